"""The status page."""

import jinja2  # noqa: F401
