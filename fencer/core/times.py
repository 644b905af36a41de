"""Times of the API server's clock, as texts. Pure: no clock is read."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

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


MOST_APART_S = 600.0
"""So far this machine's clock counts where it differs from the API server's; a larger difference is its own
fault, and must not keep a pause from ending."""


def apart_s(utc: str, own_utc: str) -> float:
    """Return how far this machine's clock is ahead of the API server's, in seconds, within `MOST_APART_S`.

    Args:
        utc: The API server's clock.
        own_utc: This machine's; empty: not known.
    """
    if not own_utc or parse_utc(utc) == parse_utc(""):
        return 0.0
    return max(-MOST_APART_S, min(MOST_APART_S, seconds_between(utc, own_utc)))


def earlier(utc: str, ahead_s: float) -> str:
    """Return the slower of two clocks. Arguments as in `later`."""
    return _shifted(utc, min(0.0, ahead_s))


def later(utc: str, ahead_s: float) -> str:
    """Return the faster of two clocks.

    Args:
        utc: What one shows, RFC 3339.
        ahead_s: How far the other is ahead of it, in seconds.
    """
    return _shifted(utc, max(0.0, ahead_s))


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment by two clocks, the API server's and this machine's own (E26). RFC 3339.

    Attributes:
        earliest_utc: What the slower one shows.
        latest_utc: What the faster one shows.
    """

    earliest_utc: str
    latest_utc: str

    @classmethod
    def of(cls, utc: str, ahead_s: float) -> Moment:
        """Return the moment in which one clock shows a time, and the other is ahead of it by so much."""
        return cls(earlier(utc, ahead_s), later(utc, ahead_s))

    def later(self, seconds: float) -> Moment:
        """Return the moment so many seconds later, in whole seconds."""
        return Moment(_shifted(self.earliest_utc, seconds), _shifted(self.latest_utc, seconds))


def _shifted(utc: str, seconds: float) -> str:
    """Return a time of so many whole seconds later."""
    if not int(seconds) or parse_utc(utc) == parse_utc(""):
        return utc
    try:
        return write_utc(parse_utc(utc) + timedelta(seconds=int(seconds)))
    except OverflowError:  # no clock shows such a time
        return utc


def write_utc(at: datetime) -> str:
    """Return a time as the API server writes it: RFC 3339, in whole seconds."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


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
