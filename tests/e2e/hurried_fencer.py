"""fencer by a clock that runs faster: ``python hurried_fencer.py SPEED watch …``, all else as it is.

So tests have the policy that users have, and wait for a part of it; and for what takes Proxmox minutes: the
clock of the stand-in cluster runs as fast.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

from fencer.cli.main import cli
from fencer.cli.wire import Wiring
from fencer.runtime.beside import Beside
from fencer.runtime.clock import SystemClock


class HurriedClock(SystemClock):
    """A clock of which `speed` seconds pass in a real one."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed

    def now_s(self) -> float:
        """Return monotonic seconds, its own."""
        return super().now_s() * self._speed

    def wait(self, timeout_s: float) -> bool:
        """Wait for a wake-up, `timeout_s` of its seconds at most."""
        return super().wait(timeout_s / self._speed)


class HurriedWiring(Wiring):
    """The usual parts, on that clock."""

    def __init__(self, speed: float) -> None:
        self._speed = speed

    def clock(self) -> HurriedClock:
        """Build the clock."""
        return HurriedClock(self._speed)

    def beside(self, steps: Sequence[Callable[[], float]]) -> Beside:
        """Let these go on beside the passes; they rest by that clock, too."""
        return super().beside([partial(self._hurried, step) for step in steps])

    def _hurried(self, step: Callable[[], float]) -> float:
        return step() / self._speed


if __name__ == "__main__":
    _, speed, *words = sys.argv
    cli(words, prog_name="fencer", obj=HurriedWiring(float(speed)))
