"""Calls under deadlines, on worker threads of each endpoint, which are abandoned and replaced when they hang.

A call cannot be interrupted (libvirt's ``open()`` may block for ever), so a late one is left behind with its
thread, and its answer, if it ever comes, is thrown away. One that still waits for its worker is taken back.
At most `WORKERS_LOST` threads are given up per endpoint and worker; then it is not asked any more until one
of them returns.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

from fencer.errors import FencerError, HypervisorProtocol, HypervisorUnreachable
from fencer.ports import Clock
from fencer.runtime.turns import Turns

T = TypeVar("T")

WORKERS_LOST = 3
log = logging.getLogger(__name__)


class _Worker:
    """One daemon thread that runs calls in order."""

    def __init__(self, name: str) -> None:
        self._busy = False
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=f"fencer-{name}", daemon=True)
        self._thread.start()

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        answer: Future[Any] = Future()
        self._calls.put((call, answer))
        return answer

    def dismiss(self) -> None:
        """Let the thread end once its current call returns."""
        self._calls.put(None)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """How many calls wait for it, or are under way."""
        return self._calls.qsize() + self._busy

    def _serve(self) -> None:
        while (item := self._calls.get()) is not None:
            call, answer = item
            if not answer.set_running_or_notify_cancel():
                continue
            self._busy = True
            try:
                answer.set_result(call())
            except FencerError as error:
                answer.set_exception(error)
            except Exception as error:
                log.exception("a call failed in a way that no adapter translated")
                answer.set_exception(HypervisorProtocol(f"a bug in fencer: {type(error).__name__}: {error}"))
            self._busy = False


class _Asked:
    """A call that was given to a worker.

    Attributes:
        endpoint: Whose.
        worker: Which of its workers.
        answer: What comes of it.
        deadline_s: How long it may take.
        late_at_s: When it is given up.
        awaited: How many threads wait for its answer, or will, once they have those of other endpoints.
    """

    def __init__(
        self, endpoint: str, worker: _Worker, call: Callable[[], Any], deadline_s: float, now_s: float
    ) -> None:
        self.endpoint = endpoint
        self.worker = worker
        self.answer = worker.submit(call)
        self.deadline_s = deadline_s
        self.late_at_s = now_s + deadline_s
        self.awaited = 0


class ThreadAsker:
    """`Asker` over threads.

    Args:
        clock: For deadlines, in its monotonic seconds.
        patience_s: How long `ask_all` waits for slow endpoints; a later call takes their answer.
        workers: How many calls at a time are made of an endpoint, by its name; ``NAME/*``: of each of what is
            named ``NAME/…`` and not listed itself; otherwise one.
    """

    def __init__(self, clock: Clock, patience_s: float, workers: Mapping[str, int] | None = None) -> None:
        self._clock = clock
        self._patience_s = patience_s
        self._most = dict(workers or {})
        self._turns = Turns()
        self._lock = threading.Lock()
        self._workers: dict[str, list[_Worker]] = {}
        self._lost: dict[str, list[_Worker]] = {}
        self._pending: dict[str, _Asked] = {}

    def turn(self) -> AbstractContextManager[None]:
        """Be the only one that goes on; see `fencer.ports.Asker`."""
        return self._turns.mine()

    def alone(self, what: str) -> AbstractContextManager[None]:
        """Be the only one at something; see `fencer.ports.Asker`."""
        return self._turns.alone(what)

    def side_by_side(self, runs: Sequence[Callable[[], None]], patience_s: float) -> None:
        """Let these go on at the same time; see `fencer.ports.Asker`."""
        until_s = self._clock.now_s() + patience_s
        threads = [self._turns.begin(run, f"fencer-run-{number}") for number, run in enumerate(runs)]
        with self._turns.given_away():
            for thread in threads:
                thread.join(min(max(0.0, until_s - self._clock.now_s()), threading.TIMEOUT_MAX))

    def ask(self, endpoint: str, call: Callable[[], T], deadline_s: float) -> T:
        """Run one call on a worker of the endpoint; see `fencer.ports.Asker`."""
        self._forget_pending(endpoint)
        asked = self._submit(endpoint, call, deadline_s)
        answer = self._patiently(asked)
        if isinstance(answer, FencerError):
            raise answer
        return cast("T", answer)

    def ask_all(
        self, calls: Mapping[str, Callable[[], T]], deadline_s: float, *, patient: bool = False
    ) -> dict[str, T | FencerError]:
        """Run one call per endpoint at once; see `fencer.ports.Asker`.

        An endpoint that is slower than `patience_s` does not delay the others: it reads unreachable now, and
        the answer, which carries the time of its beginning, is returned by the next call. Past the deadline
        its worker is replaced.
        """
        answers: dict[str, T | FencerError] = {}
        asked: dict[str, _Asked] = {}
        for endpoint, call in calls.items():
            try:
                if patient:
                    self._forget_pending(endpoint)
                    asked[endpoint] = self._submit(endpoint, call, deadline_s)
                else:
                    asked[endpoint] = self._submit_unless_pending(endpoint, call, deadline_s)
            except FencerError as error:
                answers[endpoint] = error
        until_s = self._clock.now_s() + self._patience_s
        for one in asked.values():
            one.awaited += 1
        try:
            for endpoint, one in asked.items():
                answers[endpoint] = self._patiently(one) if patient else self._collect(one, until_s)
        finally:
            for one in asked.values():
                one.awaited -= 1
        return answers

    def _patiently(self, asked: _Asked) -> Any:
        """Wait for an answer until its deadline; return it, or the error."""
        try:
            return self._wait(asked, asked.late_at_s)
        except FutureTimeoutError:
            self._give_up(asked)
            return HypervisorUnreachable(f"{asked.endpoint}: no answer within {asked.deadline_s:g} s")

    def _collect(self, asked: _Asked, until_s: float) -> Any:
        """Wait for an answer for a while; one that comes later is for the next call."""
        try:
            result = self._wait(asked, min(until_s, asked.late_at_s))
        except FutureTimeoutError:
            return HypervisorUnreachable(f"{asked.endpoint}: no answer within {self._patience_s:g} s")
        with self._lock:
            if self._pending.get(asked.endpoint) is asked:  # else there is a newer one
                del self._pending[asked.endpoint]
        return result

    def _wait(self, asked: _Asked, until_s: float) -> Any:
        with self._turns.given_away():
            try:
                return asked.answer.result(max(0.0, until_s - self._clock.now_s()))
            except FencerError as error:
                return error

    def _submit(self, endpoint: str, call: Callable[[], Any], deadline_s: float) -> _Asked:
        with self._lock:
            return _Asked(endpoint, self._worker(endpoint), call, deadline_s, self._clock.now_s())

    def _submit_unless_pending(self, endpoint: str, call: Callable[[], Any], deadline_s: float) -> _Asked:
        pending = self._pending.get(endpoint)
        if pending is not None and not pending.answer.done() and self._clock.now_s() >= pending.late_at_s:
            self._forget_pending(endpoint)
            pending = None
        if pending is None:
            pending = self._pending[endpoint] = self._submit(endpoint, call, deadline_s)
        return pending

    def _worker(self, endpoint: str) -> _Worker:
        """Return the worker of an endpoint that has the least to do."""
        most = self._most.get(endpoint) or self._most.get(f"{endpoint.partition('/')[0]}/*", 1)
        lost = [worker for worker in self._lost.get(endpoint, ()) if worker.alive]
        self._lost[endpoint] = lost
        if len(lost) >= WORKERS_LOST * most:
            raise HypervisorUnreachable(
                f"{endpoint}: {len(lost)} calls hang there; it is not asked until one of them returns"
            )
        workers = self._workers.setdefault(endpoint, [])
        idle = min(workers, key=lambda worker: worker.waiting, default=None)
        if idle is None or (idle.waiting and len(workers) < most):
            idle = _Worker(endpoint)
            workers.append(idle)
        return idle

    def _forget_pending(self, endpoint: str) -> None:
        """Give up a sweep that blocks a more important call, unless a thread still waits for it."""
        pending = self._pending.get(endpoint)
        if pending is None or pending.awaited:
            return
        self._pending.pop(endpoint, None)
        if not pending.answer.done():
            self._give_up(pending)

    def _give_up(self, asked: _Asked) -> None:
        """Take a call back if it has not begun; otherwise replace its worker, unless that was done."""
        if asked.answer.cancel() or asked.answer.done():
            return
        with self._lock:
            workers = self._workers.get(asked.endpoint, [])
            if asked.worker not in workers:
                return
            workers.remove(asked.worker)
            asked.worker.dismiss()
            self._lost.setdefault(asked.endpoint, []).append(asked.worker)
        log.debug("endpoint=%s a call hangs; its worker is replaced", asked.endpoint)  # the caller tells it
