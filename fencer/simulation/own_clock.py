"""The clocks of the machine that an agent runs on: they stand still, or are set back, with it."""

from __future__ import annotations

import math
from datetime import timedelta

from fencer.core.times import write_utc
from fencer.simulation.clock import EPOCH, VirtualClock


class OwnClock:
    """The `Clock` of one agent, and its wall clock: the world's, until something happens to its machine.

    A hypervisor that pauses a VM stops its clocks, too, and a revert sets them back. The wall clock is wrong
    until NTP corrects it; the monotonic clock goes on from where it is.

    Args:
        clock: The world's.

    Attributes:
        stopped_s: When it last began to stand still, by the world's clock.
        went_on_s: When it last went on after that, or was set back, by the world's clock.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._behind_s = self._wall_behind_s = 0.0
        self._stands = False
        self.stopped_s = self.went_on_s = -math.inf

    @property
    def behind_s(self) -> float:
        """How far it is behind the world's."""
        still_s = self._clock.now_s() - self.stopped_s if self._stands else 0.0
        return self._behind_s + still_s

    def now_s(self) -> float:
        """See `fencer.ports.Clock.now_s`."""
        return self._clock.now_s() - self.behind_s

    def wait(self, timeout_s: float) -> bool:
        """See `fencer.ports.Clock.wait`."""
        return self._clock.wait(timeout_s)

    def wake(self) -> None:
        """See `fencer.ports.Clock.wake`."""
        self._clock.wake()

    def wall_utc(self) -> str:
        """Return the machine's wall clock, RFC 3339, in whole seconds."""
        return write_utc(EPOCH + timedelta(seconds=max(0.0, self._clock.now_s() - self._wall_behind_s)))

    def wall_micros(self) -> str:
        """Return the same with six digits, as Leases are written."""
        return self._clock.utc_in(-self._wall_behind_s, "microseconds")

    def stop(self) -> None:
        """Stand still from now on."""
        self._stands, self.stopped_s = True, self._clock.now_s()

    def go_on(self) -> None:
        """Go on from where it stands; nobody has corrected the wall clock yet."""
        still_s = self._clock.now_s() - self.stopped_s
        self._stands, self.went_on_s = False, self._clock.now_s()
        self._behind_s += still_s
        self._wall_behind_s += still_s

    def set_back(self, to_s: float) -> None:
        """Show this time now, as it was shown when the machine's memory was kept."""
        back_s = self.now_s() - to_s
        self.stopped_s = self.went_on_s = self._clock.now_s()
        self._behind_s += back_s
        self._wall_behind_s += back_s

    def correct(self) -> None:
        """NTP corrects the wall clock."""
        self._wall_behind_s = 0.0
