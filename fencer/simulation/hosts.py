"""Hosts: the power witness of one, which is truthful unless the scripts ask otherwise, and HA's recovery."""

from __future__ import annotations

from dataclasses import dataclass

from fencer.core.model import PowerState
from fencer.errors import HypervisorUnreachable
from fencer.simulation.datacenter import Datacenter
from fencer.simulation.guests import Guest

BOARD_S = 0.4
"""How long a host's board takes to answer."""


@dataclass(slots=True)
class WitnessTrouble:
    """What is wrong with a witness; nothing at first.

    Attributes:
        silent: It does not answer.
        delay_s: How long it takes to answer.
        lie: What it says whatever is true, where `lies` is set.
    """

    silent: bool = False
    delay_s: float = BOARD_S
    lies: bool = False
    lie: bool | None = None


class SimulatedPower:
    """The `HostPower` port over one host of the world.

    Args:
        host: Its name.
        world: The truth.
    """

    def __init__(self, host: str, world: Datacenter) -> None:
        self.trouble = WitnessTrouble()
        self._host = host
        self._world = world

    @property
    def host(self) -> str:
        """The host it watches."""
        return self._host

    def is_off(self) -> bool | None:
        """Read the power of the host."""
        if self.trouble.silent:
            raise HypervisorUnreachable(f"{self._host}: its board does not answer")
        if self.trouble.lies:
            return self.trouble.lie
        return self._host in self._world.dead_hosts

    def lie(self, *, answer: bool | None) -> None:
        """From now on say this, whatever is true."""
        self.trouble.lies, self.trouble.lie = True, answer


def recover(world: Datacenter, guest: Guest, host: str) -> bool:
    """Let HA take a guest off a host that it has fenced: its watchdog has cut that host's power by then."""
    origin = guest.host
    if origin not in world.silent_hosts or host in world.silent_hosts or guest.passage is not None:
        return False
    world.kill_host(origin)
    if guest.power is not PowerState.STOPPED:
        return False  # its memory is on disk: HA leaves it alone
    guest.host, guest.came_from, guest.recovered, guest.nic_up = host, (origin,), True, True
    return world.become(guest, PowerState.STOPPED, f"HA fenced {origin}, and brought it here")
