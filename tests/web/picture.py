"""The pictures of the status page for the documentation: `./dev pictures status-page` takes them.

The world in them is simulated; the agent and the page are real.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.chromium import Chromium
from tests.web.worlds import fenced, well


@dataclass(frozen=True, slots=True)
class Picture:
    """One of them.

    Attributes:
        text: Makes the page.
        width_px: How wide it is shown.
        height_px: So much of its top.
    """

    text: Callable[[], str]
    width_px: int
    height_px: int


@cache
def _incidents() -> str:
    with TemporaryDirectory() as folder:
        return fenced(Path(folder) / "journal.db").page()


PICTURES = {
    "status-page": Picture(_incidents, 1200, 1220),
    "status-page-phone": Picture(_incidents, 390, 980),
    "status-page-well": Picture(lambda: well().page(), 390, 980),
}
"""By the names of their files."""


def taken(browser: Chromium, name: str, form: str, folder: Path, *, dark: bool = False) -> bytes:
    """Return a picture.

    Args:
        browser: Takes it.
        name: Which one.
        form: ``png`` or ``webp``.
        folder: For the page.
        dark: In dark mode.
    """
    one = PICTURES[name]
    path = folder / f"{name}.html"
    path.write_text(re.sub(r'<meta http-equiv="refresh"[^>]*>', "", one.text()))
    browser.open(path)
    browser.shows(width_px=one.width_px, dark=dark)
    return browser.picture(height_px=one.height_px, form=form)
