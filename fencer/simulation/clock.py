"""Virtual time: a heap of events, a clock that runs through them, and calls whose answers take their time.

Nothing here reads a real clock: an hour of a cluster's life passes as fast as its events can be worked off,
and the same events in the same order give the same hour again.
"""

from __future__ import annotations

import heapq
import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from fencer.errors import FencerError, HypervisorUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""What the API server's clock says at second 0."""


class VirtualClock:
    """The `Clock` of a simulated world: waiting works off the events that are due meanwhile."""

    def __init__(self) -> None:
        self.after_event: Callable[[], None] | None = None
        """Called after each event; the world checks its invariant there."""
        self._now_s = 0.0
        self._order = 0
        self._woken = False
        self._events: list[tuple[float, int, Callable[[], object]]] = []

    def now_s(self) -> float:
        """Seconds since the world began."""
        return self._now_s

    def utc(self, timespec: str = "seconds") -> str:
        """Return the API server's clock, RFC 3339; leases are written with ``microseconds``."""
        now = EPOCH + timedelta(seconds=self._now_s)
        return f"{now.replace(tzinfo=None).isoformat(timespec=timespec)}Z"

    def at(self, at_s: float, call: Callable[[], object]) -> None:
        """Schedule a call; calls due at the same second run in the order in which they were scheduled."""
        self._order += 1
        heapq.heappush(self._events, (max(at_s, self._now_s), self._order, call))

    def after(self, delay_s: float, call: Callable[[], object]) -> None:
        """Schedule a call `delay_s` from now."""
        self.at(self._now_s + delay_s, call)

    def wait(self, timeout_s: float) -> bool:
        """Let the world run for `timeout_s`, or until somebody wakes the waiter. True: woken."""
        return self._run(self._now_s + timeout_s, wakeable=True)

    def wake(self) -> None:
        """End the present or the next `wait`."""
        self._woken = True

    def advance(self, delay_s: float) -> None:
        """Let the world run for `delay_s`; a wake-up meanwhile is kept for the next `wait`."""
        self._run(self._now_s + delay_s, wakeable=False)

    def _run(self, until_s: float, *, wakeable: bool) -> bool:
        events = self._events
        while True:
            if wakeable and self._woken:
                self._woken = False
                return True
            if not events or events[0][0] > until_s:
                break
            self._now_s, _, call = heapq.heappop(events)
            call()
            if self.after_event is not None:
                self.after_event()
        self._now_s = max(self._now_s, until_s)
        return False


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
        if self._clock.now_s() >= self._due_s:  # else: rung before, and set anew for later
            self._due_s = math.inf
            self._call()


class InlineAsker:
    """The `Asker` of a simulated world: runs calls in line, and lets virtual time pass instead of hanging.

    An answer that comes in time is as old as the endpoint was slow. A call that is late runs all the same,
    when its time has come and nobody listens any more: a power-off given up on may still happen.

    Args:
        clock: Whose time passes.
        delay_of: How many seconds an endpoint takes for an answer now; infinity: it hangs.
    """

    def __init__(self, clock: VirtualClock, delay_of: Callable[[str], float]) -> None:
        self.patience_s = math.inf
        """How long a look at all endpoints waits for one that hangs: commands wait, `watch` does not."""
        self._clock = clock
        self._delay_of = delay_of

    def ask(self, endpoint: str, call: Callable[[], T], deadline_s: float) -> T:
        """Run one call; see `fencer.ports.Asker`."""
        answer, delay_s = self._begin(endpoint, call, deadline_s)
        self._clock.advance(delay_s)
        if isinstance(answer, FencerError):
            raise answer
        return answer

    def ask_all(
        self,
        calls: Mapping[str, Callable[[], T]],
        deadline_s: float,
        *,
        patient: bool = False,
    ) -> dict[str, T | FencerError]:
        """Run one call per endpoint at once: together they take as long as the slowest that answers.

        Whoever hangs is not waited for any longer than `patience_s`, where nobody is to be patient.
        """
        begun = {endpoint: self._begin(endpoint, call, deadline_s) for endpoint, call in calls.items()}
        if not patient:
            begun = {
                endpoint: (answer, min(delay_s, self.patience_s) if self._hangs(endpoint) else delay_s)
                for endpoint, (answer, delay_s) in begun.items()
            }
        self._clock.advance(max((delay_s for _, delay_s in begun.values()), default=0.0))
        return {endpoint: answer for endpoint, (answer, _) in begun.items()}

    def _hangs(self, endpoint: str) -> bool:
        return math.isinf(self._delay_of(endpoint))

    def _begin(
        self, endpoint: str, call: Callable[[], T], deadline_s: float
    ) -> tuple[T | FencerError, float]:
        delay_s = self._delay_of(endpoint)
        if delay_s > deadline_s:
            if not math.isinf(delay_s):
                self._clock.after(delay_s, lambda: _unheard(call))
            return HypervisorUnreachable(f"{endpoint}: no answer within {deadline_s:g} s"), deadline_s
        try:
            return call(), delay_s
        except FencerError as error:
            return error, delay_s


def _unheard(call: Callable[[], object]) -> None:
    with suppress(FencerError):
        call()
