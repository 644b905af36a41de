"""The report as one page of HTML: no script, nothing from outside, and what others have named is only text."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from fencer.core.text import age, count, printable
from fencer.report.picture import WIDTHS_PX, picture
from fencer.report.spans import Tone
from fencer.report.story import Report


SHORTEST_S = 0.05
"""What is shorter would be told as ``0 s``."""


def page(told: Report, written: datetime) -> str:
    """Return the page.

    Args:
        told: The report.
        written: When it is written.
    """
    drawn = picture(told.lanes, told.phases, told.zone)
    template = _environment().get_template("report.html.jinja")
    style = {"tones": [tone.value for tone in Tone], "widths": WIDTHS_PX}
    return template.render(
        report=told, picture=drawn, written=written, **style, **_words(told.begin, told.zone)
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("fencer.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _visible(value: object) -> object:
    """Escape what a reader cannot see, as on a terminal; markup of the templates' own passes."""
    return value if hasattr(value, "__html__") else printable(str(value))


def _words(begin: datetime, zone: tzinfo) -> dict[str, object]:
    first = begin.astimezone(zone)

    def clock(at: datetime) -> str:
        local = at.astimezone(zone)
        return f"{local:%H:%M:%S}" if local.date() == first.date() else f"{local:%Y-%m-%d %H:%M:%S}"

    return {
        "age": lambda seconds: "under 0.1 s" if 0 < seconds < SHORTEST_S else age(seconds),
        "count": count,
        "clock": clock,
        "day": lambda at: f"{at.astimezone(zone):%A, %Y-%m-%d}",
        "utc": lambda at: f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d} UTC",
        "iso": lambda at: at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "zone": zone_name(first),
    }


def zone_name(at: datetime) -> str:
    """Return the name of a time's zone, with its offset: ``CET (UTC+01:00)``."""
    offset = f"{at:%z}"
    told = f"UTC{offset[:3]}:{offset[3:5]}" if offset.strip("+-0") else "UTC"
    name = f"{at:%Z}"
    return told if not name or name.startswith(("UTC", "+", "-")) else f"{name} ({told})"
