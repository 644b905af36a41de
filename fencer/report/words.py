"""Times and durations as both forms of the report write them."""

from __future__ import annotations

from datetime import datetime, tzinfo

from fencer.core.text import age
from fencer.core.times import zone_of

SHORTEST_S = 0.05
"""What is shorter would be told as ``0 s``."""


def took(seconds: float) -> str:
    """Return a duration; one that is too short to be told in tenths is not told as none."""
    return "under 0.1 s" if 0 < seconds < SHORTEST_S else age(seconds)


class Clock:
    """Writes times of day; with the day, where it is another one than at the beginning.

    Args:
        begin: The beginning.
        zone: In which times are told.
    """

    def __init__(self, begin: datetime, zone: tzinfo | None) -> None:
        self._first, self._zone = begin.astimezone(zone), zone

    def __call__(self, at: datetime) -> str:
        """Write a time."""
        local = at.astimezone(self._zone)
        return f"{local:%H:%M:%S}" if local.date() == self._first.date() else f"{local:%Y-%m-%d %H:%M:%S}"

    @property
    def day(self) -> str:
        """The day of the beginning."""
        return f"{self._first:%A, %Y-%m-%d}"

    @property
    def zone(self) -> str:
        """The zone's name then, with its offset: ``CET (UTC+01:00)``."""
        return zone_of(self._first)
