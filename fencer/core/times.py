"""Times of the API server's clock, as texts. Pure: no clock is read."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, tzinfo

from fencer.core.text import age

_UTC = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


def parse_utc(text: str) -> datetime:
    """Read an RFC 3339 text of the API server; a text that is none counts as the beginning of time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def seconds_between(earlier_utc: str, later_utc: str) -> float:
    """Return the seconds from one text of the API server's clock to another."""
    return (parse_utc(later_utc) - parse_utc(earlier_utc)).total_seconds()


def age_between(earlier_utc: str, later_utc: str) -> str:
    """Return for people how long before one text of that clock another was: ``3h05m``.

    Where fencer's rules speak they know no time zone; an age reads the same in all of them.
    """
    known = parse_utc(earlier_utc) != parse_utc("")
    return age(max(0.0, seconds_between(earlier_utc, later_utc)) if known else math.inf)


def zone_of(at: datetime) -> str:
    """Return the name of a time's zone, with its offset then: ``CET (UTC+01:00)``."""
    name, offset = f"{at:%Z}", f"{at:%z}"
    told = f"UTC{offset[:3]}:{offset[3:5]}" if offset.strip("+-0") else "UTC"
    return told if not name or name.startswith(("UTC", "+", "-")) else f"{name} ({told})"


def in_zone(text: str, zone: tzinfo | None) -> str:
    """Return a text for people: the times in it are in their zone, which is named; None: this machine's."""
    return _UTC.sub(lambda found: _local(found[0], zone), text)


def _local(text: str, zone: tzinfo | None) -> str:
    try:
        return f"{datetime.fromisoformat(text).astimezone(zone):%Y-%m-%d %H:%M:%S %Z}"
    except (ValueError, OverflowError):  # no such time
        return text
