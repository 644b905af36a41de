"""Calls whose answers take their time, and the process of the one who calls, which may stand still or end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TypeVar, cast

from fencer.errors import FencerError, HypervisorUnreachable
from fencer.simulation.clock import VirtualClock

T = TypeVar("T")

CALLS_LOST = 3
"""How many calls may hang at an endpoint; then it is not asked until one of them returns."""

STEP_S = 0.01
"""How often a strand looks whether it may go on."""

HANGS_S = 60.0
"""A call that is given up ends at last, with an error: adapters have timeouts of their own."""


class Killed(BaseException):
    """Raised in the midst of an agent whose process is ended; only who runs agents is to catch it."""


class Process:
    """The process that an agent runs in, all its strands: suspended or killed in the middle of anything.

    Args:
        clock: Whose time passes while it stands still.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._fates: list[tuple[int, Callable[[], None]]] = []
        """What is to befall it, one after the other: after so many further steps."""
        self._stalls: list[tuple[int, Callable[[], None]]] = []
        """The same, of which the steps of what is on its way do not count."""
        self._stands = self._stalled = self._ended = False

    def meets(self, fate: Callable[[], None], steps: int = 0) -> None:
        """Have `fate` called after so many further steps."""
        self._fates.append((steps, fate))

    def stalls(self, fate: Callable[[], None], steps: int) -> None:
        """Have `fate` called after so many further steps, but never while a request is on its way.

        What was sent cannot be called back: after that no guard can make good what happens meanwhile.
        """
        self._stalls.append((steps, fate))

    def end(self) -> None:
        """End every strand of it at its next step."""
        self._ended = True

    def follow(self) -> None:
        """Stand still while the process does, and end with it; what befalls it counts no step of this.

        Raises:
            Killed: it has ended.
        """
        while self._stands:
            self._clock.advance(STEP_S)
        if self._ended:
            raise Killed

    def step(self, *, on_its_way: bool = False, waits: bool = False) -> None:
        """Go one step: right before or right after what a call brings about.

        Args:
            on_its_way: A request has been sent, and has not arrived yet.
            waits: It only waits for another strand, and is not about to do anything.

        Raises:
            Killed: it ends here.
        """
        if self._stalled and on_its_way and not self._ended:
            return  # it arrives, whether or not its sender stands still
        while self._stands:
            self._clock.advance(STEP_S)
        if self._ended:
            raise Killed
        if not on_its_way and not waits:
            self._stalled = bool(self._stalls)
            self._meet(self._stalls)
            self._stalled = False
        self._meet(self._fates)

    def _meet(self, fates: list[tuple[int, Callable[[], None]]]) -> None:
        """Meet the first of these, once it is due."""
        if not fates:
            return
        steps, fate = fates[0]
        if steps:
            fates[0] = (steps - 1, fate)
            return
        del fates[0]
        self._stands = True
        try:
            fate()
        except Killed:
            self.end()
            raise
        finally:
            self._stands = False


class Companion(Process):
    """What runs in a process beside its passes: it shares its fate, and no fate counts its steps.

    Args:
        process: Which.
        clock: As of that.
    """

    def __init__(self, process: Process, clock: VirtualClock) -> None:
        super().__init__(clock)
        self._process = process

    def step(self, *, on_its_way: bool = False, waits: bool = False) -> None:  # noqa: ARG002 - none counts
        """See `Process.follow`."""
        self._process.follow()

    def end(self) -> None:
        """End the whole process."""
        self._process.end()


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
        self._process = process or Process(clock)
        self._chance = chance
        self._pending: dict[str, _Late] = {}
        self._lost_until_s: dict[str, list[float]] = {}
        self._alone: set[str] = set()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Of all strands only one runs at a time anyway."""
        yield

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Be the only one at something; see `fencer.ports.Asker`."""
        while what in self._alone:
            self._clock.advance(STEP_S)
            self._process.step(waits=True)
        self._alone.add(what)
        try:
            yield
        finally:
            self._alone.discard(what)

    def side_by_side(self, runs: Sequence[Callable[[], None]], patience_s: float) -> None:
        """Let these go on, each as a strand, in an order by chance; see `fencer.ports.Asker`."""
        going, until_s = set(range(len(runs))), self._clock.now_s() + patience_s

        def go_on(number: int) -> None:
            try:
                runs[number]()
            except Killed:
                self._process.end()
            finally:
                going.discard(number)

        order = list(going)
        if self._chance is not None:
            self._chance.shuffle(order)
        for number in order:
            self._clock.spawn(partial(go_on, number))
        while going and self._clock.now_s() < until_s:
            self._clock.advance(STEP_S)
            self._process.step(waits=True)

    def ask(self, endpoint: str, call: Callable[[], T], deadline_s: float) -> T:
        """Run one call; see `fencer.ports.Asker`."""
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
        pending = {} if patient else self._pending
        if patient:
            for endpoint in calls:
                self._lose(endpoint, self._pending)
        until_s = began_s = self._clock.now_s()
        answers: dict[str, T | FencerError] = {}
        in_time: list[tuple[float, str]] = []
        for endpoint, call in calls.items():
            late = self._late(endpoint, pending)
            delay_s = late.done_s - began_s if late else self._delay_of(endpoint)
            if late is None and self._hangs(endpoint):
                answers[endpoint] = HypervisorUnreachable(
                    f"{endpoint}: {CALLS_LOST} calls hang there; it is not asked until one of them returns"
                )
                continue
            if late is None and delay_s <= patience_s:
                in_time.append((began_s + delay_s * self._way_there(), endpoint))
            elif late is None:
                late = pending[endpoint] = _Late(began_s + delay_s, began_s + deadline_s)
                self._send(call, late, delay_s * self._way_there(given_up=delay_s > deadline_s))
            until_s = max(until_s, began_s + min(delay_s, patience_s))
        for at_s, endpoint in sorted(in_time, key=lambda item: item[0]):
            self._reach(at_s)
            try:
                self._process.step()
            except KeyboardInterrupt:  # the call goes on, on a worker that nobody waits for
                self._clock.after(0.0, partial(_answer, calls[endpoint]))
                raise
            answers[endpoint] = _answer(calls[endpoint])
            self._process.step()
        self._reach(until_s)
        for endpoint in calls.keys() - answers.keys():
            answers[endpoint] = cast(
                "T | FencerError", self._collected(endpoint, pending, patience_s, patient=patient)
            )
        return {endpoint: answers[endpoint] for endpoint in calls}

    def _send(self, call: Callable[[], object], late: _Late, there_s: float) -> None:
        """Let a call take effect by itself, and its answer wait to be taken up."""

        def run() -> None:
            late.answer = _answer(call)

        if not math.isinf(late.done_s):
            self._clock.after(there_s, run)

    def _late(self, endpoint: str, pending: dict[str, _Late]) -> _Late | None:
        """Return the call that is under way, unless it is to be given up now."""
        late = pending.get(endpoint)
        if late is not None and late.done_s > self._clock.now_s() >= late.given_up_s:
            self._lose(endpoint, pending)
        return pending.get(endpoint)

    def _collected(
        self, endpoint: str, pending: dict[str, _Late], patience_s: float, *, patient: bool
    ) -> object:
        """Take up the answer of a call, if it has come."""
        late = pending.get(endpoint)
        if late is not None and late.done_s <= self._clock.now_s():
            del pending[endpoint]
            return late.answer
        if patient:
            self._lose(endpoint, pending)
        return HypervisorUnreachable(f"{endpoint}: no answer within {patience_s:g} s")

    def _lose(self, endpoint: str, pending: dict[str, _Late]) -> None:
        """Give a call up for good: whatever it still brings about, nobody hears of it."""
        late = pending.pop(endpoint, None)
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
