"""The clock of the living: monotonic time, and a wait that events cut short."""

from __future__ import annotations

import threading
import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux' goes on while the machine is suspended: what was seen before is old then, and orders are too late.
Of a pause by the machine's own hypervisor no clock in it knows; only the incarnation keeps an order from
another run of a guest then (see `fencer.ports.Hypervisor`)."""


class SystemClock:
    """`Clock` over the system's monotonic time, suspension included."""

    def __init__(self) -> None:
        self._woken = threading.Event()

    def now_s(self) -> float:
        """Return monotonic seconds."""
        return time.clock_gettime(_CLOCK)

    def wait(self, timeout_s: float) -> bool:
        """Wait for a wake-up, `timeout_s` at most."""
        woken = self._woken.wait(max(0.0, timeout_s))
        self._woken.clear()
        return woken

    def wake(self) -> None:
        """End the present or the next `wait`."""
        self._woken.set()
