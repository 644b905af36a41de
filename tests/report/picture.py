"""The picture of a report for the documentation: the top of the page, as a browser shows it.

What happened, the lanes, and where the time went. The journal is of a real run; the documentation says of
which. `./dev pictures incident-report` takes it.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from pathlib import Path

from fencer.cli.looking_back import incident_of, rows
from fencer.report.html import page
from fencer.report.story import around, report
from tests.support.chromium import Chromium

JOURNAL = Path(__file__).parents[1] / "journal" / "real-incident.db"
WIDTH_PX = 1200
A_WHILE = timedelta(minutes=1)
"""So long after the incident the report is written: that all is well again is to be seen."""
BELOW = "Workloads"
"""The picture ends above this heading."""
_TOP_PX = """[...document.querySelectorAll("h2")]
    .find(one => one.textContent === "{}").getBoundingClientRect().top + scrollY"""


def last_incident() -> str:
    """Return the page of the last incident of the journal."""
    incident = incident_of(JOURNAL, "last")
    return page(report(incident, incident.last.astimezone(UTC) + A_WHILE, around(incident, rows(JOURNAL))))


def taken(browser: Chromium, form: str, *, dark: bool = False) -> bytes:
    """Return the picture of the page that is open.

    Args:
        browser: Shows it.
        form: ``png`` or ``webp``.
        dark: In dark mode.
    """
    browser.shows(width_px=WIDTH_PX, dark=dark)
    height_px = round(browser.value(_TOP_PX.format(BELOW))) - 16
    return browser.picture(height_px=height_px, form=form)
