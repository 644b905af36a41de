"""fencer over a hypervisor that is a switch: ``python -m tests.benchmarks.switched_fencer GUESTS watch …``.

All else is as users have it. The guests are those of `fleet`; every one runs until a line of JSON on stdin
says otherwise: ``{"off": [3, 4]}`` cuts their power, and tells fencer so by an event, as a hypervisor does.
``{"tell": true}`` asks what the sweeps cost. Each line is answered by one on stdout.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from fencer.cli.main import cli
from fencer.cli.wire import Wiring
from fencer.core.model import Evidence, GuestRef, PowerState
from fencer.ports import Clock, EndpointInfo
from tests.benchmarks import fleet


class SwitchedHypervisor:
    """Answers at once, for next to nothing; powers nothing on or off itself.

    Args:
        guests: How many.
        clock: The agent's.
    """

    endpoint = fleet.ENDPOINT

    def __init__(self, guests: int, clock: Clock) -> None:
        self._clock = clock
        self._running = {
            reading.guest.key: replace(reading, incarnation="run-1", observed_at_s=0.0)
            for reading in (fleet.evidence(number, 0.0) for number in range(guests))
        }
        self._off: dict[tuple[str, str, str], Evidence] = {}
        self._wake: Callable[[], None] = lambda: None
        self._sweeps, self._sweeps_cpu_s = 0, 0.0

    def describe(self) -> EndpointInfo:
        """Report which hypervisor it is: it is named so on Nodes and Leases."""
        return EndpointInfo("simulation", "1", "guests in memory", can_power=None, identity="switched")

    def sweep(self) -> Sequence[Evidence]:
        began_s, now_s = time.thread_time(), self._clock.now_s()
        readings = [replace(reading, observed_at_s=now_s) for reading in (self._running | self._off).values()]
        self._sweeps, self._sweeps_cpu_s = self._sweeps + 1, self._sweeps_cpu_s + time.thread_time() - began_s
        return readings

    def read(self, guest: GuestRef) -> Evidence:
        reading = self._off.get(guest.key) or self._running[guest.key]
        return replace(reading, observed_at_s=self._clock.now_s())

    def subscribe(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def attend(self, guests: Collection[GuestRef]) -> None:
        """Do nothing: every sweep reads every guest live."""

    def nudge(self, guest: str) -> None:
        """Do nothing, either."""

    def close(self) -> None:
        """There is nothing to close."""

    def obey(self) -> None:
        """Do as is said on stdin, until it ends."""
        for line in sys.stdin:
            said = json.loads(line)
            for number in said.get("off", ()):
                key = fleet.guest_ref(number).key
                was = self._running[key]
                self._off[key] = replace(
                    was, power_state=PowerState.STOPPED, incarnation="off-1", raw="stopped"
                )
            if "off" in said:
                self._wake()
            told = {"sweeps": self._sweeps, "cpu_s": self._sweeps_cpu_s}
            print(json.dumps(told), flush=True)  # noqa: T201 - it is how it answers


class SwitchedWiring(Wiring):
    """The usual parts over that hypervisor, whatever the configuration says of it."""

    def __init__(self, guests: int) -> None:
        self._guests = guests

    def hypervisor(self, _endpoint: Any, clock: Clock) -> Any:
        switched = SwitchedHypervisor(self._guests, clock)
        threading.Thread(target=switched.obey, name="switch", daemon=True).start()
        return switched


if __name__ == "__main__":
    guests, *words = sys.argv[1:]
    cli(words, prog_name="fencer", obj=SwitchedWiring(int(guests)))
