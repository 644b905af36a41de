"""The rows of an incident, each with what was known then, and when that was by the clock on the wall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fencer.core.model import Observation
from fencer.core.times import parse_utc
from fencer.errors import JournalError
from fencer.journal.rows import Entry, Kind


@dataclass(frozen=True, slots=True)
class Sight:
    """A row, read.

    Attributes:
        entry: The row.
        seen: All that was known; None: the row has nothing of that, or it cannot be read.
        unread: Why it cannot be read; empty: it can.
    """

    entry: Entry
    seen: Observation | None
    unread: str = ""

    def when(self, at_s: float) -> datetime:
        """Return the time of day of a moment by the clock of whoever wrote this row."""
        return self.entry.at + timedelta(seconds=at_s - self.entry.at_s)

    def ago(self, seconds: float) -> datetime:
        """Return the time of day so long before this was seen."""
        seen_s = self.entry.at_s if self.seen is None else self.seen.now_s
        return self.when(seen_s - seconds)

    def heard(self) -> datetime | None:
        """Return when the node's kubelet was last heard; None: nothing was seen, or it has no lease.

        Whoever has seen no renewal yet only knows what the lease says, which is by the node's own clock.
        """
        if self.seen is None or self.seen.node.heard_s is None:
            return None
        node, at = self.seen.node, self.ago(0)
        own = self.ago(node.heard_s or 0.0)
        renewed = parse_utc(node.renewed_utc)
        return own if node.lease_renewals or renewed == parse_utc("") else min(at, renewed)


def sights(entries: Iterable[Entry]) -> tuple[Sight, ...]:
    """Read what was known at each row. What cannot be read is told, and hides no other row."""
    return tuple(_sight(entry) for entry in entries)


def _sight(entry: Entry) -> Sight:
    try:
        return Sight(entry, entry.seen)
    except JournalError as error:
        return Sight(entry, None, str(error))


def done_of(entry: Entry) -> Mapping[str, Any]:
    """Return what came of an action, by fields; empty: the row tells of none."""
    done = entry.body.get("done")
    return done if isinstance(done, dict) else {}


def names(of: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return a list of names; of anything else nothing."""
    found = of.get(key)
    return tuple(map(str, found)) if isinstance(found, list | tuple) else ()


def left_of(entry: Entry) -> dict[str, str]:
    """Return the pods that a clearing left behind, each with why."""
    done = done_of(entry)
    every = [done.get("held"), done.get("failed")]
    return {str(pod): str(why) for one in every if isinstance(one, dict) for pod, why in one.items()}


@dataclass(frozen=True, slots=True)
class Watch:
    """While this lasted, somebody looked at every node again and again."""

    begin: datetime
    end: datetime


def watches(entries: Iterable[Entry], last: Entry, until: datetime) -> tuple[Watch, ...]:
    """Return when somebody looked: each agent and each command from its first row to its last.

    An agent that wrote the last row of what is told goes on, as far as is known: no news is no row. When any
    other one ended is not in the journal.

    Args:
        entries: Rows of the whole journal, oldest first.
        last: The last row of what is told.
        until: When the report is written.
    """
    begins, ends, what = dict[str, datetime](), dict[str, datetime](), dict[str, str]()
    for entry in entries:
        begins.setdefault(entry.session, entry.at)
        ends[entry.session] = entry.at
        if entry.kind is Kind.SESSION:
            what[entry.session] = str(entry.body.get("what", ""))
    if what.get(last.session, "watch") == "watch":
        ends[last.session] = max(until, last.at)
    return tuple(Watch(begin, ends[session]) for session, begin in begins.items())
