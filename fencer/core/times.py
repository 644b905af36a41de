"""Times of the API server's clock, as texts. Pure: no clock is read."""

from __future__ import annotations

from datetime import UTC, datetime


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
