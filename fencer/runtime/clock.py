"""The real clock: monotonic time, and a wait that events cut short."""

from __future__ import annotations

import threading
import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux' clock goes on while the machine is suspended: what was seen before is then old, and orders are too
late. No clock in a machine knows of a pause by its own hypervisor; then only the incarnation keeps an order
from another run of a guest (see `fencer.ports.Hypervisor`)."""


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
        """End the current or the next `wait`."""
        self._woken.set()
