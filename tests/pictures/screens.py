"""Pictures of fencer's pages, as a browser shows them in light and dark: only these need Chromium.

A browser draws the same page a little differently on each machine, so pages are compared, not pictures:
`PAGES` keeps the digest of the page that each picture was taken of.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.report.picture import last_incident
from tests.report.picture import taken as taken_of_report
from tests.support.chromium import Chromium, chromium
from tests.web.picture import PICTURES
from tests.web.picture import taken as taken_of_web

PAGES = Path(__file__).with_name("pages.json")
LARGEST_BYTES = 150_000
REPORT = "incident-report"

TEXTS: Mapping[str, Callable[[], str]] = {
    REPORT: last_incident,
    **{name: picture.text for name, picture in PICTURES.items()},
}
"""What makes the page of each picture, by its name."""


class TooLargeError(Exception):
    """A picture has more bytes than a page of the documentation should load."""


def files(name: str) -> Mapping[str, bool]:
    """Return the files of a picture, and whether each is the dark one."""
    return {f"{name}.webp": False, f"{name}-dark.webp": True}


def take(names: Iterable[str], folder: Path) -> None:
    """Take pictures, and note of which pages.

    Raises:
        TooLargeError: one of them is.
    """
    noted = known()
    with TemporaryDirectory() as pages, chromium() as browser:
        for name in names:
            for file, dark in files(name).items():
                data = _taken(browser, name, Path(pages), dark=dark)
                if len(data) > LARGEST_BYTES:
                    raise TooLargeError(f"{file}: it would have {len(data)} bytes, more than {LARGEST_BYTES}")
                (folder / file).write_bytes(data)
            noted[name] = digest(name)
    PAGES.write_text(json.dumps(noted, indent=1, sort_keys=True) + "\n")


def _taken(browser: Chromium, name: str, folder: Path, *, dark: bool) -> bytes:
    if name in PICTURES:
        return taken_of_web(browser, name, "webp", folder, dark=dark)
    path = folder / f"{name}.html"
    path.write_text(TEXTS[name]())
    browser.open(path)
    return taken_of_report(browser, "webp", dark=dark)


def known() -> dict[str, str]:
    """Return the digests of the pages that pictures were taken of."""
    noted: dict[str, str] = json.loads(PAGES.read_text("utf-8")) if PAGES.exists() else {}
    return noted


def digest(name: str) -> str:
    """Return the digest of a picture's page as it is now."""
    return hashlib.sha256(TEXTS[name]().encode()).hexdigest()
