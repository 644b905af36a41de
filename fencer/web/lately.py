"""The last incidents, out of the journal. A disk that hangs holds up one thread here, and nobody else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from fencer.core.text import printable, unticked
from fencer.errors import JournalError
from fencer.journal.folding import incidents
from fencer.journal.headline import headline, moment_of
from fencer.journal.incidents import Incident
from fencer.journal.reading import entries
from fencer.journal.rows import Entry, text_of

KEPT = timedelta(days=30)
"""So far back is looked: a monthly drill is still there."""
MOST = 10
"""So many incidents are shown."""
MOST_ROWS = 5000
"""So many rows are read, the newest: an incident has one or two dozen."""
LARGEST_SEEN_BYTES = 8 * 2**10
"""Of what was known at a decision no more is kept in memory, compressed; enough for a hundred pods."""
REST_S = 10.0
"""The journal is read no more often, and only if somebody has looked meanwhile."""
LATE_S = 5.0
"""A reading that takes longer is told: its disk may hang."""


@dataclass(frozen=True, slots=True)
class Past:
    """An incident in a line.

    Attributes:
        id: To ask for more by it.
        node: The node.
        began: When it began, in the zone of people.
        told: How it began, what was done, how it ended.
        over: It is over.
        refused: A person should have looked, and nothing was fenced.
    """

    id: str
    node: str
    began: datetime
    told: str
    over: bool
    refused: bool


@dataclass(frozen=True, slots=True)
class Lately:
    """What is known of the last incidents.

    Attributes:
        incidents: The newest first.
        more: How many older ones were read as well.
        read: When that was read, by this machine's clock. None: it was not read yet.
        trouble: Why it cannot be read now; empty: it can.
    """

    incidents: tuple[Past, ...] = ()
    more: int = 0
    read: datetime | None = None
    trouble: str = ""


NOT_KEPT = Lately(trouble="no journal is kept: `journal.enabled` is false")


def read(journal: Path, now: datetime) -> Lately:
    """Read the last incidents.

    Args:
        journal: Its file.
        now: The time, in the zone of people.

    Raises:
        JournalError: it cannot be read.
    """
    damaged: list[JournalError] = []
    young = "at >= ? AND number > (SELECT max(number) FROM rows) - ?", (text_of(now - KEPT), str(MOST_ROWS))
    try:
        rows = map(_lighter, entries(journal, *young, damaged=damaged.append))
        told = [one for one in incidents(rows) if one.worth_telling]
        found = tuple(_past(told, now))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise JournalError(f"{journal}: rows of another fencer: {error}") from error
    trouble = f"some rows are left out: {unticked(str(damaged[0]))}" if damaged else ""
    return Lately(found, max(0, len(told) - MOST), now, trouble)


def _lighter(row: Entry) -> Entry:
    """Leave out what takes much memory; then the cause of an incident may be told as "silent"."""
    heavy = row.packed is not None and len(row.packed) > LARGEST_SEEN_BYTES
    return replace(row, packed=None) if heavy else row


def _past(told: Sequence[Incident], now: datetime) -> Iterator[Past]:
    for one in reversed(told[-MOST:]):
        refused = one.fence is None and one.refusal is not None
        text = printable(headline(one, moment_of(one, now.tzinfo)))
        yield Past(one.id, one.node, one.began.astimezone(now.tzinfo), text, one.over, refused)


class LatelyReader:
    """Reads the journal in a thread of its own, while somebody looks at what it finds.

    Args:
        journal: Its file. None: none is kept.
        wall: The time of day, in the zone of people.
        now_s: A monotonic clock.
    """

    def __init__(
        self, journal: Path | None, wall: Callable[[], datetime], now_s: Callable[[], float]
    ) -> None:
        self._journal, self._wall, self._now_s = journal, wall, now_s
        self._found = NOT_KEPT if journal is None else Lately()
        self._begun_s: float | None = None
        self._wanted, self._over = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin to read whenever somebody looks."""
        if self._journal is not None:
            self._thread = threading.Thread(target=self._run, name="fencer-web-journal", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Read no more; does not wait for a reading that hangs."""
        self._over.set()
        self._wanted.set()

    def look(self) -> Lately:
        """Return what was read last, and have it read again soon. Never waits."""
        self._wanted.set()
        found, begun_s = self._found, self._begun_s
        late_s = 0.0 if begun_s is None else self._now_s() - begun_s
        if late_s <= LATE_S:
            return found
        return replace(found, trouble=f"its disk has not answered for {round(late_s)} s")

    def look_again(self) -> None:
        """Read it, in this thread."""
        assert self._journal is not None  # noqa: S101 - otherwise there is no thread
        self._begun_s = self._now_s()
        try:
            self._found = read(self._journal, self._wall())
        except JournalError as error:
            self._found = replace(self._found, trouble=unticked(str(error)))
        finally:
            self._begun_s = None

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._over.is_set():
                return
            self.look_again()
            self._over.wait(REST_S)
