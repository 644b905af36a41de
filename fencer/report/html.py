"""The report as one page of HTML: no script, nothing from outside, and what others have named is text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache

from fencer.core.text import count
from fencer.markup import rendering
from fencer.report.picture import PINS_FROM_PX, WIDTHS_PX, picture
from fencer.report.spans import Tone
from fencer.report.story import Report
from fencer.report.words import Clock, took


def page(told: Report) -> str:
    """Return the page.

    Args:
        told: The report.
    """
    clock = Clock(told.begin, told.written.tzinfo)
    return _render()(
        report=told,
        picture=picture(told.lanes, told.phases, clock),
        clock=clock,
        tones=[tone.value for tone in Tone],
        widths=WIDTHS_PX,
        pins_from=PINS_FROM_PX,
    )


@cache
def _render() -> Callable[..., str]:
    return rendering("fencer.report", "report.html.jinja", took=took, count=count, utc=_utc, iso=_iso)


def _utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d} UTC"


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
