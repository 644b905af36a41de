"""`Hints`: wake-ups that somebody else causes; none is lost, and their rate is limited."""

from __future__ import annotations

import threading
from collections.abc import Callable

REST_S = 1.0
"""One wake-up in this time. Each brings a pass over all nodes forward, which asks every endpoint."""


def _later(wait_s: float, call: Callable[[], None]) -> None:
    timer = threading.Timer(wait_s, call)
    timer.daemon = True
    timer.start()


class Hints:
    """Wakes at once, and then not again for `REST_S`; hints in that time wake once, when it is over.

    Args:
        wake: Called to wake.
        now_s: The agent's monotonic clock.
        later: Makes a call after this many seconds, in another thread.
    """

    def __init__(
        self,
        wake: Callable[[], None],
        now_s: Callable[[], float],
        later: Callable[[float, Callable[[], None]], None] = _later,
    ) -> None:
        self._wake = wake
        self._now_s = now_s
        self._later = later
        self._lock = threading.Lock()
        self._again_at_s = now_s()
        self._waiting = False

    def __call__(self) -> None:
        """Take a hint, from any thread; never waits."""
        with self._lock:
            if self._waiting:
                return
            now_s = self._now_s()
            if now_s < self._again_at_s:
                self._later(self._again_at_s - now_s, self._wake_for_all)
                self._waiting = True
                return
            self._again_at_s = now_s + REST_S
        self._wake()

    def _wake_for_all(self) -> None:
        with self._lock:
            self._waiting = False
            self._again_at_s = self._now_s() + REST_S
        self._wake()
