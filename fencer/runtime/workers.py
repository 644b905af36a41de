"""Calls under deadlines: one worker thread per endpoint, abandoned and replaced when it hangs.

A call cannot be interrupted (libvirt's ``open()`` may block for ever), so a late one is left behind with its
thread, and its answer, if it ever comes, is thrown away. At most `WORKERS_LOST` threads are given up per
endpoint; then the endpoint is not asked any more until one of them returns.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar, cast

from fencer.errors import FencerError, HypervisorProtocol, HypervisorUnreachable
from fencer.ports import Clock

T = TypeVar("T")

WORKERS_LOST = 3
log = logging.getLogger(__name__)


class _Worker:
    """One daemon thread that runs calls in order."""

    def __init__(self, name: str) -> None:
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

    def _serve(self) -> None:
        while (item := self._calls.get()) is not None:
            call, answer = item
            try:
                answer.set_result(call())
            except FencerError as error:
                answer.set_exception(error)
            except Exception as error:
                log.exception("a call failed in a way that no adapter translated")
                answer.set_exception(HypervisorProtocol(f"a bug in fencer: {type(error).__name__}: {error}"))


class ThreadAsker:
    """`Asker` over threads.

    Args:
        clock: For deadlines, in its monotonic seconds.
        patience_s: How long `ask_all` waits for slow endpoints; a later call takes their answer.
    """

    def __init__(self, clock: Clock, patience_s: float) -> None:
        self._clock = clock
        self._patience_s = patience_s
        self._workers: dict[str, _Worker] = {}
        self._lost: dict[str, list[_Worker]] = {}
        self._pending: dict[str, tuple[Future[Any], float]] = {}

    def ask(self, endpoint: str, call: Callable[[], T], deadline_s: float) -> T:
        """Run one call on the endpoint's worker; see `fencer.ports.Asker`."""
        self._forget_pending(endpoint)
        answer = self._worker(endpoint).submit(call)
        try:
            return cast("T", answer.result(deadline_s))
        except FutureTimeoutError as error:
            self._abandon(endpoint)
            raise HypervisorUnreachable(f"{endpoint}: no answer within {deadline_s:g} s") from error

    def ask_all(
        self, calls: Mapping[str, Callable[[], T]], deadline_s: float, *, patient: bool = False
    ) -> dict[str, T | FencerError]:
        """Run one call per endpoint at once; see `fencer.ports.Asker`.

        An endpoint that is slower than `patience_s` does not delay the others: it reads unreachable now, and
        the answer, which carries the time of its beginning, is returned by the next call. Past the deadline
        its worker is replaced.
        """
        answers: dict[str, T | FencerError] = {}
        for endpoint, call in calls.items():
            try:
                self._submit_unless_pending(endpoint, call, deadline_s)
            except FencerError as error:
                answers[endpoint] = error
        patient_until_s = self._clock.now_s() + (deadline_s if patient else self._patience_s)
        for endpoint in calls:
            if endpoint not in answers:
                answers[endpoint] = self._collect(endpoint, patient_until_s)
                if patient and endpoint in self._pending:
                    self._abandon(endpoint)
        return answers

    def _submit_unless_pending(self, endpoint: str, call: Callable[[], Any], deadline_s: float) -> None:
        now_s = self._clock.now_s()
        pending = self._pending.get(endpoint)
        if pending is not None and not pending[0].done() and now_s >= pending[1]:
            self._abandon(endpoint)
            pending = None
        if pending is None:
            self._pending[endpoint] = (self._worker(endpoint).submit(call), now_s + deadline_s)

    def _collect(self, endpoint: str, patient_until_s: float) -> Any:
        answer, late_at_s = self._pending[endpoint]
        wait_s = max(0.0, min(patient_until_s, late_at_s) - self._clock.now_s())
        try:
            result = answer.result(wait_s)
        except FutureTimeoutError:
            return HypervisorUnreachable(f"{endpoint}: no answer within {self._patience_s:g} s")
        except FencerError as error:
            result = error
        del self._pending[endpoint]
        return result

    def _worker(self, endpoint: str) -> _Worker:
        lost = [worker for worker in self._lost.get(endpoint, ()) if worker.alive]
        self._lost[endpoint] = lost
        if len(lost) >= WORKERS_LOST:
            raise HypervisorUnreachable(
                f"{endpoint}: {len(lost)} calls hang there; it is not asked until one of them returns"
            )
        if endpoint not in self._workers:
            self._workers[endpoint] = _Worker(endpoint)
        return self._workers[endpoint]

    def _forget_pending(self, endpoint: str) -> None:
        """Give up a sweep that blocks a more important call."""
        pending = self._pending.pop(endpoint, None)
        if pending is not None and not pending[0].done():
            self._abandon(endpoint)

    def _abandon(self, endpoint: str) -> None:
        self._pending.pop(endpoint, None)
        worker = self._workers.pop(endpoint, None)
        if worker is not None:
            worker.dismiss()
            self._lost.setdefault(endpoint, []).append(worker)
            log.warning("endpoint=%s a call hangs; its worker is replaced", endpoint)
