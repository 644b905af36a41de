"""VMs that start again by themselves: by autostart with their host, `on_crash`, or HA on the same host."""

from __future__ import annotations

from dataclasses import dataclass

from fencer.core.model import PowerState
from fencer.simulation.datacenter import Datacenter
from fencer.simulation.guests import Guest

CRASHED = frozenset({"crashed"})
"""After this `on_crash` starts a VM again, as each power-off has its reason here."""
ENDED = CRASHED | {"destroyed", "shutdown"}
"""After these HA starts it again, whoever has stopped it: fencer, too."""
SHUT_DOWN = frozenset({"shutdown"})
"""After this `on_poweroff=restart` boots it again, whoever has asked it to shut down.

Source: libvirt src/qemu/qemu_driver.c, qemuDomainShutdownFlags: it then resets the VM in the same process.
"""
WITH_ITS_HOST = frozenset({"host lost power"})
"""After this autostart starts it, once its host is on."""
LOOKS_EVERY_S = 2.0
"""So often autostart looks whether the host is on."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """Which VMs start again by themselves.

    Attributes:
        nodes: Of which nodes.
        after: After which ends, see above.
        delay_s: How long after that.
        in_place: In the same process, as a reset does it: its hypervisor shows no other run.
    """

    nodes: tuple[str, ...]
    after: frozenset[str]
    delay_s: float
    in_place: bool = False


class Restarter:
    """Starts VMs again.

    Args:
        world: Where they are.
        restarts: Which ones.
    """

    def __init__(self, world: Datacenter, restarts: Restarts) -> None:
        self._world, self._restarts = world, restarts
        world.on_power.append(self._take_note)

    def _take_note(self, guest: Guest) -> None:
        if guest.power is not PowerState.STOPPED or guest.passage is not None:
            return
        if guest.name in self._restarts.nodes and guest.why in self._restarts.after:
            run = guest.starts
            self._world.clock.after(self._restarts.delay_s, lambda: self._start(guest, run))

    def _start(self, guest: Guest, run: int) -> None:
        if guest.starts != run or guest.power is not PowerState.STOPPED:
            return
        if guest.host in self._world.dead_hosts:
            self._world.clock.after(LOOKS_EVERY_S, lambda: self._start(guest, run))
            return
        if self._world.start(guest, in_place=self._restarts.in_place):
            text = f"{guest.name} is started again by itself"
            self._world.timeline.tell("world", guest.node, "starts-itself", text)
