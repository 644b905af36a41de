"""Maintenance windows: when `watch` begins nothing by itself, by the configuration. Pure: no clock is read.

A window is written in local time. Its days are those on which it begins, so one over midnight belongs to the
evening. Where a clock is put forward or back, one time is two moments, or none: then the window is as long as
either reading makes it. So what runs in it (a backup, say, which some programs start an hour later then) is
inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fencer.core.times import Moment, parse_utc
from fencer.core.wire import wire

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_MIDNIGHT = "24:00"
_NO_ONE_ZONE = frozenset({"localtime", "posixrules", "Factory"})
"""Names that mean other hours on another machine, or none."""
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)


@wire("begins ends zone days nodes why")
@dataclass(frozen=True, slots=True)
class Window:
    """A maintenance window, as it is written. What cannot be one is not made.

    Attributes:
        begins: Local time, like ``22:00``.
        ends: Local time, up to ``24:00``; not after `begins`: on the next day.
        zone: Name of the time zone, like ``Europe/Berlin``.
        days: On which it begins: weekdays (``sat``), or dates (``2026-12-24``). Empty: every day.
        nodes: Patterns of names, like ``k8s-*``. Empty: all nodes.
        why: For people.

    Raises:
        ValueError: this can be none; says which value is wrong.
    """

    begins: str
    ends: str
    zone: str
    days: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    why: str = ""

    def __post_init__(self) -> None:
        """Refuse what can be no window."""
        if _CLOCK.fullmatch(self.begins) is None:
            raise ValueError(f"{self.begins!r} is no time of day, such as 22:00")
        if _CLOCK.fullmatch(self.ends) is None and self.ends != _MIDNIGHT:
            raise ValueError(f"{self.ends!r} is no time of day, such as 02:00")
        if self.begins == self.ends:
            raise ValueError("begins and ends at the same time: a whole day is from 00:00 to 24:00")
        zone_named(self.zone)
        for day in self.days:
            if day not in WEEKDAYS and not is_date(day):
                raise ValueError(f"{day!r} is no day: {', '.join(WEEKDAYS)}, or a date, such as 2026-12-24")

    def means(self, node: str) -> bool:
        """Whether it is for a node."""
        return not self.nodes or any(fnmatchcase(node, pattern) for pattern in self.nodes)

    def until(self, utc: str) -> datetime | None:
        """Return when the window ends that is open at a time; None: it is not open.

        Args:
            utc: The API server's clock, RFC 3339.
        """
        moment = parse_utc(utc)
        try:
            today = moment.astimezone(zone_named(self.zone)).date()
            spans = [self._on(day) for day in (today - _DAY, today, today + _DAY) if self._begins_on(day)]
        except OverflowError:  # no clock shows such a time
            return None
        return max((end for start, end in spans if start <= moment < end), default=None)

    def until_utc(self, utc: str) -> str:
        """Return the same as a text, RFC 3339; empty: it is not open."""
        until = self.until(utc)
        return "" if until is None else f"{until:%Y-%m-%dT%H:%M:%SZ}"

    def __str__(self) -> str:
        """Say it for people: ``maintenance window sat, sun 02:00-04:00 Europe/Berlin (backups)``."""
        days = f"{', '.join(self.days)} " if self.days else ""
        why = f" ({self.why})" if self.why else ""
        return f"maintenance window {days}{self.begins}-{self.ends} {self.zone}{why}"

    def _begins_on(self, day: date) -> bool:
        return not self.days or WEEKDAYS[day.weekday()] in self.days or day.isoformat() in self.days

    def _on(self, day: date) -> tuple[datetime, datetime]:
        """Return from when to when it is open, if it begins on a day; by both readings of the clock."""
        start = datetime.combine(day, time.fromisoformat(self.begins))
        ends = time() if self.ends == _MIDNIGHT else time.fromisoformat(self.ends)
        end = datetime.combine(day, ends)
        if end <= start:
            end += _DAY
        return min(self._moments(start)), max(self._moments(end - _MINUTE)) + _MINUTE

    def _moments(self, local: datetime) -> Iterator[datetime]:
        zone = zone_named(self.zone)
        return (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))


def zone_named(name: str) -> ZoneInfo:
    """Return a time zone.

    Raises:
        ValueError: this machine knows none of that name, or another machine another one.
    """
    if name in _NO_ONE_ZONE:
        raise ValueError(f"{name!r} is not the same time zone on every machine: name it, like Europe/Berlin")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # a folder, or no path at all
        raise ValueError(
            f"{name!r} is no time zone that this machine knows, such as Europe/Berlin"
        ) from error


def is_date(text: str) -> bool:
    """Whether a text is a date, like ``2026-12-24``."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


@lru_cache(maxsize=16)
def windows_at(windows: tuple[Window, ...], now: Moment) -> tuple[Window, ...]:
    """Return the windows that are open by either of two clocks, no matter for which nodes.

    All nodes of a pass are judged at one time, so the answer is kept.

    Args:
        windows: All there are.
        now: By two clocks: a window that one of them opens holds `watch` back (E26).
    """
    return tuple(window for window in windows if until_utc(window, now))


def window_for(node: str, windows: tuple[Window, ...], now: Moment) -> Window | None:
    """Return the first window that is open for a node; None: none is. Arguments as `windows_at`."""
    return next((window for window in windows_at(windows, now) if window.means(node)), None)


def until_utc(window: Window, now: Moment) -> str:
    """Return when a window ends that is open by either clock; empty: it is open by none."""
    return max(window.until_utc(now.earliest_utc), window.until_utc(now.latest_utc))


def told(windows: tuple[Window, ...], now: Moment) -> tuple[str, ...]:
    """List the windows that are open, for which nodes, and until when; arguments as `windows_at`."""
    return tuple(
        f"{window}: fencer begins nothing by itself on {', '.join(window.nodes) or 'any node'} until {until}"
        for window in windows
        if (until := until_utc(window, now))
    )
