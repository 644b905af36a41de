"""The one style sheet of the page, and what a browser has to be told so that it takes it."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

OLD_S = 45
"""If the page could not be loaded again, it says so by itself: after a reload or two came to nothing."""
STYLE = (
    Path(__file__)
    .with_name("templates")
    .joinpath("style.css")
    .read_text("utf-8")
    .replace("OLD_S", f"{OLD_S}s")
)
STYLE_HASH = f"sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}"
"""Of all there is between ``<style>`` and ``</style>``, as a Content-Security-Policy names it.

Source: https://www.w3.org/TR/CSP3/#grammardef-hash-source.
"""
