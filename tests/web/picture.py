"""The pictures of the status page for the documentation: ``python -m tests.web.picture FOLDER``.

The world in them is simulated; the agent and the page are real.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.chromium import Chromium, chromium
from tests.web.worlds import fenced, well

LARGEST_BYTES = 120_000


@dataclass(frozen=True, slots=True)
class Picture:
    """One of them.

    Attributes:
        text: Makes the page.
        width_px: How wide it is shown.
        height_px: So much of its top.
        dark: In dark mode.
    """

    text: Callable[[], str]
    width_px: int
    height_px: int
    dark: bool = False


@cache
def _incidents() -> str:
    with TemporaryDirectory() as folder:
        return fenced(Path(folder) / "journal.db").page()


PICTURES = {
    "status-page": Picture(_incidents, 1200, 1220),
    "status-page-dark": Picture(_incidents, 1200, 1220, dark=True),
    "status-page-phone": Picture(_incidents, 390, 980),
    "status-page-well": Picture(lambda: well().page(), 390, 980),
}
"""By the names of their files."""


def taken(browser: Chromium, name: str, form: str, folder: Path) -> bytes:
    """Return a picture.

    Args:
        browser: Takes it.
        name: Which one.
        form: ``png`` or ``webp``.
        folder: For the page.
    """
    one = PICTURES[name]
    path = folder / f"{name}.html"
    path.write_text(re.sub(r'<meta http-equiv="refresh"[^>]*>', "", one.text()))
    browser.open(path)
    browser.shows(width_px=one.width_px, dark=one.dark)
    return browser.picture(height_px=one.height_px, form=form)


def main(words: list[str]) -> int:
    """Write all of them; return the exit code."""
    if len(words) != 1:
        sys.stderr.write(f"{(__doc__ or '').splitlines()[0]}\n")
        return 2
    with TemporaryDirectory() as folder, chromium() as browser:
        for name in PICTURES:
            data = taken(browser, name, "webp", Path(folder))
            if len(data) > LARGEST_BYTES:
                sys.stderr.write(f"{name}: it would have {len(data)} bytes, more than {LARGEST_BYTES}\n")
                return 1
            (Path(words[0]) / f"{name}.webp").write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
