"""The clock of the living: monotonic time, and a wait that events cut short."""

from __future__ import annotations

import threading
import time


class SystemClock:
    """`Clock` over the system's monotonic time."""

    def __init__(self) -> None:
        self._woken = threading.Event()

    def now_s(self) -> float:
        """Return monotonic seconds."""
        return time.monotonic()

    def wait(self, timeout_s: float) -> bool:
        """Wait for a wake-up, `timeout_s` at most."""
        woken = self._woken.wait(max(0.0, timeout_s))
        self._woken.clear()
        return woken

    def wake(self) -> None:
        """End the present or the next `wait`."""
        self._woken.set()
