"""Serves what there is to look at."""

import waitress  # noqa: F401
