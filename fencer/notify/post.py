"""HTTP POSTs to receivers, within bounds."""

import urllib3  # noqa: F401
