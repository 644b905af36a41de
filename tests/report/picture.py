"""The picture of a report for the documentation: ``python -m tests.report.picture JOURNAL INCIDENT FILE``.

It shows the top of the page, as a browser does: what happened, the lanes, and where the time went. FILE ends
with .png or .webp. JOURNAL is of a real run; the documentation says of which.
"""

from __future__ import annotations

import sys
from datetime import UTC, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from fencer.cli.looking_back import incident_of, rows
from fencer.report.html import page
from fencer.report.story import around, report
from tests.support.chromium import Chromium, chromium

WIDTH_PX = 1200
A_WHILE = timedelta(minutes=1)
"""So long after the incident the report is written: that all is well again is to be seen."""
LARGEST_BYTES = 200_000
BELOW = "Workloads"
"""The picture ends above this heading."""
_TOP_PX = """[...document.querySelectorAll("h2")]
    .find(one => one.textContent === "{}").getBoundingClientRect().top + scrollY"""


def picture(journal: Path, wanted: str, form: str) -> bytes:
    """Return the picture of an incident.

    Args:
        journal: The journal's file.
        wanted: The incident's id, or ``last``.
        form: ``png`` or ``webp``.
    """
    incident = incident_of(journal, wanted)
    text = page(report(incident, incident.last.astimezone(UTC) + A_WHILE, around(incident, rows(journal))))
    with TemporaryDirectory() as folder, chromium() as browser:
        path = Path(folder) / "incident.html"
        path.write_text(text)
        browser.open(path)
        return taken(browser, form)


def taken(browser: Chromium, form: str) -> bytes:
    """Return the picture of the page that is open."""
    browser.shows(width_px=WIDTH_PX)
    height_px = round(browser.value(_TOP_PX.format(BELOW))) - 16
    return browser.picture(height_px=height_px, form=form)


def main(words: list[str]) -> int:
    """Write the picture that was asked for; return the exit code."""
    if len(words) != len(("JOURNAL", "INCIDENT", "FILE")):
        sys.stderr.write(f"{(__doc__ or '').splitlines()[0]}\n")
        return 2
    journal, wanted, file = words
    data = picture(Path(journal), wanted, Path(file).suffix.lstrip("."))
    if len(data) > LARGEST_BYTES:
        sys.stderr.write(f"{file}: it would have {len(data)} bytes, more than {LARGEST_BYTES}\n")
        return 1
    Path(file).write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
