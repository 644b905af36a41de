"""Times of the API server's clock, as texts. Pure: no clock is read."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from fencer.core.text import age


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
