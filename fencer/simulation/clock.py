"""Virtual time: a heap of events, and strands of execution that wait in it for their turn.

Nothing here reads a real clock: an hour of a cluster's life passes as fast as its events can be worked off,
and the same events in the same order give the same hour again.

A *strand* is anything that waits: the stage, and each agent. Only one of them runs at a time. Whoever waits
works off the events that are due meanwhile, and where the next thing due is that another strand goes on, it
hands its turn over and stands still. So whatever an agent waits for, all others may do anything meanwhile, in
the middle of whatever they do. Strands are threads, because only a thread can stand still anywhere in code
that knows nothing of it.
"""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""What the API server's clock says at second 0."""

_LAST = 1 << 60
"""Added to the order of those who wait: at equal times they go on after all that happens then."""


class Ended(BaseException):
    """Raised where a strand stands, once the world that it lives in is closed; nobody is to catch it."""


class _Wait:
    """Somebody's place in time: when it is due, its strand goes on."""

    __slots__ = ("due", "over", "strand", "wakeable")

    def __init__(self, strand: _Strand, *, wakeable: bool) -> None:
        self.strand = strand
        self.wakeable = wakeable
        self.due = False
        self.over = False


class _Strand:
    """One line of execution. The first is the clock's creator, and needs no thread of its own."""

    def __init__(self) -> None:
        self.turn = threading.Lock()  # held until somebody gives the turn to this strand
        self.turn.acquire()
        self.waits: list[_Wait] = []
        self.woken = False


class VirtualClock:
    """The `Clock` of a simulated world: waiting works off the events that are due meanwhile."""

    def __init__(self) -> None:
        self.after_event: Callable[[], None] | None = None
        """Called after each event; the world checks its invariant there."""
        self._now_s = 0.0
        self._order = 0
        self._events: list[tuple[float, int, Callable[[], object] | _Wait]] = []
        self._first = self._running = _Strand()
        self._others: dict[_Strand, None] = {}  # in order: who is woken first must not be chance
        self._closed = False
        self._failed: BaseException | None = None

    def now_s(self) -> float:
        """Seconds since the world began."""
        return self._now_s

    def utc(self, timespec: str = "seconds") -> str:
        """Return the API server's clock, RFC 3339; leases are written with ``microseconds``."""
        return self.utc_in(0.0, timespec)

    def utc_in(self, seconds: float, timespec: str = "seconds") -> str:
        """Return what it will show, or did show."""
        now = EPOCH + timedelta(seconds=max(0.0, self._now_s + seconds))
        return f"{now.replace(tzinfo=None).isoformat(timespec=timespec)}Z"

    def at(self, at_s: float, call: Callable[[], object]) -> None:
        """Schedule a call; calls due at the same second run in the order in which they were scheduled."""
        self._order += 1
        heapq.heappush(self._events, (max(at_s, self._now_s), self._order, call))

    def after(self, delay_s: float, call: Callable[[], object]) -> None:
        """Schedule a call `delay_s` from now."""
        self.at(self._now_s + delay_s, call)

    def wait(self, timeout_s: float) -> bool:
        """Let the world run for `timeout_s`, or until somebody wakes all who wait. True: woken."""
        return self._run(self._now_s + timeout_s, wakeable=True)

    def wake(self) -> None:
        """End the present or the next `wait` of every strand."""
        for strand in (self._first, *self._others):
            strand.woken = True
            for wait in strand.waits:
                if wait.wakeable and strand is not self._running:
                    self._place(self._now_s, wait)

    def advance(self, delay_s: float) -> None:
        """Let the world run for `delay_s`; a wake-up meanwhile is kept for the next `wait`."""
        self._run(self._now_s + delay_s, wakeable=False)

    def spawn(self, run: Callable[[], object]) -> None:
        """Let `run` begin now as a strand of its own, and go on whenever what it waits for is due.

        What it raises is raised where the first strand waits.
        """
        strand = _Strand()
        self._others[strand] = None
        start = _Wait(strand, wakeable=False)
        strand.waits.append(start)

        def live() -> None:
            strand.turn.acquire()
            try:
                start.over = True
                if not self._closed:
                    strand.waits.remove(start)
                    run()
            except Ended:
                pass
            except BaseException as error:  # noqa: BLE001 - raised again by the first strand
                self._failed = error
            self._leave(strand)

        threading.Thread(target=live, daemon=True).start()
        self._place(self._now_s, start)

    def close(self) -> None:
        """End every strand but the first, wherever it stands."""
        self._closed = True
        for strand in tuple(self._others):
            strand.turn.release()
            self._first.turn.acquire()
        self._closed = False

    def _run(self, until_s: float, *, wakeable: bool) -> bool:
        if self._closed:
            raise Ended
        me, mine = self._running, _Wait(self._running, wakeable=wakeable)
        me.waits.append(mine)
        self._place(until_s, mine)
        try:
            while not mine.due:
                if wakeable and me.woken:
                    me.woken = False
                    return True
                self._go_on(me)
            return False
        finally:
            mine.over = True
            me.waits.remove(mine)

    def _go_on(self, me: _Strand) -> None:
        """Let happen what is due next, if need be in another strand."""
        self._now_s, _, call = heapq.heappop(self._events)
        if not isinstance(call, _Wait):
            call()
            if self.after_event is not None:
                self.after_event()
        elif not call.over:
            call.due = call.due or not (call.wakeable and call.strand.woken)
            if call.strand is not me and call.strand.waits[-1] is call:
                self._hand_over(me, call.strand)

    def _hand_over(self, me: _Strand, to: _Strand) -> None:
        self._running = to
        to.turn.release()
        me.turn.acquire()
        if self._closed and me is not self._first:
            raise Ended
        if self._failed is not None and me is self._first:
            failed, self._failed = self._failed, None
            raise failed

    def _leave(self, strand: _Strand) -> None:
        """Give the turn back for good."""
        self._others.pop(strand, None)
        self._running = self._first
        self._first.turn.release()

    def _place(self, at_s: float, wait: _Wait) -> None:
        self._order += 1
        heapq.heappush(self._events, (at_s, _LAST + self._order, wait))


class Alarm:
    """One pending call: set it as often as you like, it rings once, at the earliest second asked for.

    Args:
        clock: Whose time.
        call: What to do; setting the alarm again from there is fine.
    """

    def __init__(self, clock: VirtualClock, call: Callable[[], object]) -> None:
        self._clock = clock
        self._call = call
        self._due_s = math.inf

    def by(self, at_s: float) -> None:
        """Ring at `at_s` at the latest; infinity asks for nothing."""
        if at_s < self._due_s:
            self._due_s = at_s
            self._clock.at(at_s, self._ring)

    def soon(self, delay_s: float) -> None:
        """Ring `delay_s` from now at the latest."""
        self.by(self._clock.now_s() + delay_s)

    def _ring(self) -> None:
        if self._clock.now_s() >= self._due_s:  # else: rung before, and set again for later
            self._due_s = math.inf
            self._call()
