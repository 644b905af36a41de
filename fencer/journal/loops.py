"""Which VMs an agent on this machine sees in a crash loop, by the newest rows of its journal.

An armed agent writes that on its record in the cluster (M6); one that only observes writes nothing there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from fencer.core.crash_loop import CHECK
from fencer.core.model import Outcome
from fencer.core.starts import LOOP_S
from fencer.journal.reading import entries
from fencer.journal.rows import BY_HAND, Entry, Kind, text_of

_NEWEST = "number IN (SELECT max(number) FROM rows WHERE kind = ? AND at >= ? AND by NOT LIKE ? GROUP BY uid)"


@dataclass(frozen=True, slots=True)
class SeenLoop:
    """A crash loop that an agent saw.

    Attributes:
        by: The agent, as it calls itself.
        seen: What showed it.
        ago_s: How long ago that was recorded: each crash and each start is another row.
    """

    by: str
    seen: str
    ago_s: float


def newest_loops(path: Path, now: datetime) -> Mapping[str, SeenLoop]:
    """Return the crash loops that may go on, by UID of the node.

    Args:
        path: The journal.
        now: The time of day.

    Raises:
        JournalError: it is not there, or cannot be read.
    """
    since = text_of(now - timedelta(seconds=LOOP_S))
    rows = entries(path, _NEWEST, (Kind.DECISION.value, since, f"%{BY_HAND}"), damaged=lambda _: None)
    return {
        one.uid: SeenLoop(one.by, seen, (now - one.at).total_seconds())
        for one in rows
        if (seen := _loop_in(one))
    }


def _loop_in(entry: Entry) -> str:
    """Return what a decision shows of a crash loop; empty: nothing."""
    checks = entry.body.get("checks") or ()
    alarms = (one for one in checks if (one.get("name"), one.get("outcome")) == (CHECK, Outcome.ALARM.value))
    return next((str(one.get("seen", "")) for one in alarms), "")
