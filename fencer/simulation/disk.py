"""The disk of an agent: its journal is not kept, what it has seen is; and it takes its time, or hangs."""

from __future__ import annotations

from fencer.core.kept import Kept
from fencer.errors import StateError
from fencer.journal.rows import Row
from fencer.simulation.clock import VirtualClock
from fencer.simulation.timeline import Timeline


class SimulatedDisk:
    """`fencer.journal.rows.Journal` in virtual time: rows are written at once, until it hangs.

    Args:
        clock: Virtual.
        timeline: Told that nobody waits for it any more.
    """

    def __init__(self, clock: VirtualClock, timeline: Timeline) -> None:
        self._clock, self._timeline = clock, timeline
        self._rows, self._over = 0, 0
        self.hangs, self._known = False, False

    def hang(self) -> None:
        """Write nothing from now on."""
        self.hangs = True

    def go_on(self) -> None:
        """Write all that waits, and everything from now on."""
        self.hangs, self._known = False, False
        self._over = self._rows

    def put(self, _row: Row) -> int:
        """See `fencer.journal.rows.Journal.put`."""
        self._rows += 1
        if not self.hangs:
            self._over = self._rows
        return self._rows

    def written(self, ticket: int, patience_s: float) -> bool:
        """See `fencer.journal.rows.Journal.written`."""
        if self._over < ticket and not self._known:
            self._clock.advance(patience_s)
            self._known = True
            text = f"its journal is not written: it goes on after {patience_s:g} s, and waits no more"
            self._timeline.tell("fencer", None, "journal-hangs", text)
        return self._over >= ticket


class SimulatedState:
    """`fencer.ports.StateStore` in virtual time: it outlives the process.

    Args:
        disk: On which it lies.
    """

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk
        self._kept = Kept()

    def load(self) -> Kept:
        """See `fencer.ports.StateStore.load`."""
        return self._kept

    def confirm(self) -> bool:
        """See `fencer.ports.StateStore.confirm`."""
        return True

    def save(self, kept: Kept) -> None:
        """See `fencer.ports.StateStore.save`."""
        if self._disk.hangs:
            raise StateError("the disk under it hangs")
        self._kept = kept

    def put_back(self, kept: Kept) -> None:
        """Have an earlier file lie there again."""
        self._kept = kept


class ReadState(SimulatedState):
    """What a command has of it: it reads, and writes nothing.

    Args:
        own: The agent's.
    """

    def __init__(self, own: SimulatedState) -> None:
        self._own = own

    def load(self) -> Kept:
        """See `fencer.ports.StateStore.load`."""
        return self._own.load()

    def save(self, kept: Kept) -> None:
        """See `fencer.ports.StateStore.save`."""
