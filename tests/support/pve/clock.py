"""Virtual time: what happens in the cluster happens by this clock, and by nothing else.

A frozen clock (speed 0) stands until a test, or the adapter under test by `Clock.wait`, lets it go on. A
running one follows the machine's clock, `speed` times as fast. Either way what is due is done by whoever
next asks for the time, in order, so that no thread is needed and a frozen run is always the same.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EPOCH_S = 1_795_200_000
"""Unix time at the beginning: 20 November 2026."""


class Clock:
    """A `fencer.ports.Clock` over virtual seconds.

    Args:
        speed: Virtual seconds a real second; 0: it stands.

    Attributes:
        lock: Held while anything of the cluster is read or changed.
    """

    def __init__(self, speed: float = 0.0) -> None:
        self.lock = threading.RLock()
        self._speed = speed
        self._began_s = time.monotonic()
        self._jumped_s = 1000.0
        self._event_s: float | None = None
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._woken = threading.Event()

    def now_s(self) -> float:
        """Monotonic virtual seconds; whatever was due by now has happened."""
        with self.lock:
            if self._event_s is not None:
                return self._event_s
            now_s = self._jumped_s + self._speed * (time.monotonic() - self._began_s)
            self._catch_up(now_s)
            return now_s

    @contextmanager
    def held(self) -> Iterator[float]:
        """Let nothing else happen meanwhile. Whatever was due by now has happened; gives the time."""
        with self.lock:
            yield self.now_s()

    def run(self, speed: float) -> None:
        """Go on at another speed from now on."""
        with self.held() as now_s:
            self._speed, self._began_s, self._jumped_s = speed, time.monotonic(), now_s

    def unix_s(self) -> int:
        """Return the time of day, as the hosts have it."""
        return EPOCH_S + int(self.now_s())

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        """Do something, `delay_s` from now."""
        with self.held() as now_s:
            heapq.heappush(self._due, (now_s + delay_s, next(self._numbers), action))

    def advance(self, seconds: float) -> None:
        """Let time pass at once."""
        with self.lock:
            self._jumped_s += seconds
            self.now_s()

    def wait(self, timeout_s: float) -> bool:
        """Wait for a wake-up, `timeout_s` at most, in virtual seconds. True: woken."""
        if not self._speed and not self._woken.is_set():
            self.advance(timeout_s)
        woken = self._woken.wait(timeout_s / self._speed if self._speed else 0)
        self._woken.clear()
        return woken

    def wake(self) -> None:
        """End the current or the next `wait`."""
        self._woken.set()

    def _catch_up(self, now_s: float) -> None:
        while self._due and self._due[0][0] <= now_s:
            self._event_s, _, action = heapq.heappop(self._due)
            try:
                action()
            finally:
                self._event_s = None
