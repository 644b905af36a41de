"""Calls whose answers take their time, and the process of the one who calls, which may stand still or end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TypeVar, cast

from fencer.errors import FencerError, HypervisorUnreachable
from fencer.simulation.clock import VirtualClock

T = TypeVar("T")

CALLS_LOST = 3
"""How many calls may hang at an endpoint; then it is not asked until one of them returns."""

HANGS_S = 60.0
"""A call that is given up ends at last, with an error: adapters have timeouts of their own."""


class Killed(BaseException):
    """Raised in the midst of an agent whose process is ended; only who runs agents is to catch it."""


class Process:
    """The process that an agent runs in: it can be suspended or killed in the middle of anything."""

    def __init__(self) -> None:
        self._steps = 0
        self._fate: Callable[[], None] | None = None

    def meets(self, fate: Callable[[], None], steps: int = 0) -> None:
        """Have `fate` called after so many further steps."""
        self._steps, self._fate = steps, fate

    def step(self) -> None:
        """Go one step: right before or right after what a call brings about.

        Raises:
            Killed: it ends here.
        """
        if self._fate is None:
            return
        if self._steps:
            self._steps -= 1
            return
        fate, self._fate = self._fate, None
        fate()


@dataclass(slots=True)
class _Late:
    """A call whose answer is not waited for any more, and may be taken up later.

    Attributes:
        done_s: When its answer comes; infinity: never.
        given_up_s: When it is given up for good.
        answer: What came of it, once it has taken effect.
    """

    done_s: float
    given_up_s: float
    answer: object = None


class InlineAsker:
    """The `Asker` of a simulated world: runs calls in line, and lets virtual time pass instead of hanging.

    As `fencer.runtime.workers.ThreadAsker` does, with which it shares a contract: who is slower than
    `patience_s` does not delay a look at all endpoints, and its answer is taken up by a later one; and of an
    endpoint where too many calls hang nothing is asked. An answer is as old as the endpoint was slow; or,
    where chance is given, as a part of that: a call takes a while to get there, and its answer to come back.
    A call that nobody waits for any more runs all the same when its time has come: a power-off that was given
    up may still happen.

    Args:
        clock: Whose time passes.
        delay_of: How many seconds an endpoint takes for an answer now; infinity: it hangs.
        process: The caller's; None: nothing ever happens to it.
        chance: Decides when within its delay a call takes effect; None: at its beginning.
    """

    def __init__(
        self,
        clock: VirtualClock,
        delay_of: Callable[[str], float],
        process: Process | None = None,
        chance: Random | None = None,
    ) -> None:
        self.patience_s = math.inf
        """How long a look at all endpoints waits for a slow one: commands wait, `watch` does not."""
        self._clock = clock
        self._delay_of = delay_of
        self._process = process or Process()
        self._chance = chance
        self._pending: dict[str, _Late] = {}
        self._lost_until_s: dict[str, list[float]] = {}

    def ask(self, endpoint: str, call: Callable[[], T], deadline_s: float) -> T:
        """Run one call; see `fencer.ports.Asker`."""
        self._lose(endpoint)
        answer = self.ask_all({endpoint: call}, deadline_s, patient=True)[endpoint]
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
        """Run one call per endpoint at once: together they take as long as the slowest that is waited for."""
        patience_s = deadline_s if patient else min(deadline_s, self.patience_s)
        until_s = began_s = self._clock.now_s()
        answers: dict[str, T | FencerError] = {}
        in_time: list[tuple[float, str]] = []
        for endpoint, call in calls.items():
            late = self._late(endpoint)
            delay_s = late.done_s - began_s if late else self._delay_of(endpoint)
            if late is None and self._hangs(endpoint):
                answers[endpoint] = HypervisorUnreachable(
                    f"{endpoint}: {CALLS_LOST} calls hang there; it is not asked until one of them returns"
                )
                continue
            if late is None and delay_s <= patience_s:
                in_time.append((began_s + delay_s * self._way_there(), endpoint))
            elif late is None:
                late = self._pending[endpoint] = _Late(began_s + delay_s, began_s + deadline_s)
                self._send(call, late, delay_s * self._way_there(given_up=delay_s > deadline_s))
            until_s = max(until_s, began_s + min(delay_s, patience_s))
        for at_s, endpoint in sorted(in_time, key=lambda item: item[0]):
            self._reach(at_s)
            self._process.step()
            answers[endpoint] = _answer(calls[endpoint])
            self._process.step()
        self._reach(until_s)
        for endpoint in calls.keys() - answers.keys():
            answers[endpoint] = cast(
                "T | FencerError", self._collected(endpoint, patience_s, patient=patient)
            )
        return {endpoint: answers[endpoint] for endpoint in calls}

    def _send(self, call: Callable[[], object], late: _Late, there_s: float) -> None:
        """Let a call take effect by itself, and its answer wait to be taken up."""

        def run() -> None:
            late.answer = _answer(call)

        if not math.isinf(late.done_s):
            self._clock.after(there_s, run)

    def _late(self, endpoint: str) -> _Late | None:
        """Return the call that is under way, unless it is to be given up now."""
        late = self._pending.get(endpoint)
        if late is not None and late.done_s > self._clock.now_s() >= late.given_up_s:
            self._lose(endpoint)
        return self._pending.get(endpoint)

    def _collected(self, endpoint: str, patience_s: float, *, patient: bool) -> object:
        """Take up the answer of a call, if it has come."""
        late = self._pending[endpoint]
        if late.done_s <= self._clock.now_s():
            del self._pending[endpoint]
            return late.answer
        if patient:
            self._lose(endpoint)
        return HypervisorUnreachable(f"{endpoint}: no answer within {patience_s:g} s")

    def _lose(self, endpoint: str) -> None:
        """Give a call up for good: whatever it still brings about, nobody hears of it."""
        late = self._pending.pop(endpoint, None)
        if late is not None and late.done_s > self._clock.now_s():
            ends_s = min(late.done_s, self._clock.now_s() + HANGS_S)
            self._lost_until_s.setdefault(endpoint, []).append(ends_s)

    def _hangs(self, endpoint: str) -> bool:
        """Whether as many calls as may be hang there."""
        now_s = self._clock.now_s()
        lost = [done_s for done_s in self._lost_until_s.get(endpoint, ()) if done_s > now_s]
        self._lost_until_s[endpoint] = lost
        return len(lost) >= CALLS_LOST

    def _way_there(self, *, given_up: bool = False) -> float:
        """Return which part of its delay a call takes to take effect."""
        if self._chance is None:
            return 1.0 if given_up else 0.0
        return self._chance.random()

    def _reach(self, at_s: float) -> None:
        left_s = at_s - self._clock.now_s()
        if left_s > 0:
            self._clock.advance(left_s)


def _answer(call: Callable[[], T]) -> T | FencerError:
    try:
        return call()
    except FencerError as error:
        return error
