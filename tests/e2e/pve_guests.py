"""Guests of the stand-in Proxmox cluster in the place of real ones, for the kubelets of a lab.

A real guest beats on its serial line while its CPU runs (see `tests.support.guest`). These beat into a file
of the same form, exactly while the stand-in's truth says that a vCPU of theirs runs, on whatever host.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.heart import beating
from tests.support import wait_until
from tests.support.guest import Power
from tests.support.pve import PveCluster

_RUNNING, _PAUSED, _OFF, _SAVED = Power(1, 1), Power(3, 1), Power(5, 1), Power(5, 5)


class PveGuest:
    """A guest as the lab sees one: a name, a UUID, a heartbeat. Made by `PveGuestHost.define`.

    Attributes:
        vmid: Its number.
        serial_log: `B` for each boot, `.` for each beat.
        boots: How often it has booted.
    """

    def __init__(self, pve: PveCluster, name: str, host: str, folder: Path) -> None:
        conf = pve.add_guest(name, host, running=False)
        self.name, self.uuid, self.vmid = name, conf.uuid, conf.vmid
        self.serial_log = folder / f"{name}.log"
        self.boots = 0
        self._pve = pve
        self._memory: str | None = None

    @property
    def pid(self) -> int | None:
        """A number for what it has in memory: to a guest a live migration is no new process."""
        held = [kvm.memory for kvm in self._pve.kvms(self.vmid)]
        return int(held[0].split("-")[1]) if held else None

    @property
    def power(self) -> Power:
        """What is left of it, in libvirt's numbers."""
        kvms = self._pve.kvms(self.vmid)
        if any(kvm.runs for kvm in kvms):
            return _RUNNING
        conf = self._pve.confs.get(self.vmid)
        if kvms:
            return _PAUSED
        return _SAVED if conf is not None and conf.saved else _OFF

    @property
    def saved(self) -> bool:
        """Whether it is off with its memory on disk."""
        return self.power == _SAVED

    def start(self) -> None:
        """Power it on; return when it beats."""
        size = self._size()
        task = self._pve.qm.start(self.vmid)
        wait_until(lambda: self._pve.clock.now_s() and task.exitstatus, f"end of {task.kind} of {self.name}")
        assert task.exitstatus == "OK", task.log
        wait_until(lambda: self._size() > size, f"beat of {self.name}")

    def kill(self) -> None:
        """Kill its process."""
        self._pve.crash(self.vmid)

    def remove(self) -> None:
        """End it, whatever state it is in."""
        self._pve.crash(self.vmid)

    def beat(self) -> None:
        """Beat once, if its CPU runs; say before that it has booted, if it has."""
        memory = self._pve.memory_of(self.vmid)
        if memory is None:
            return
        said = "."
        if memory != self._memory:
            self.boots, self._memory, said = self.boots + 1, memory, "B."
        with self.serial_log.open("a") as log:
            log.write(said)

    def _size(self) -> int:
        return self.serial_log.stat().st_size if self.serial_log.exists() else 0


class PveGuestHost:
    """Defines guests, as `tests.support.guests.GuestHost` does, and keeps them beating.

    Args:
        pve: The cluster.
        folder: For serial logs.
        places: On which host which guest is to be.
    """

    def __init__(self, pve: PveCluster, folder: Path, places: dict[str, str]) -> None:
        self.guests: dict[str, PveGuest] = {}
        self._pve, self._folder, self._places = pve, folder, places

    def define(self, name: str) -> PveGuest:
        """Make a guest; it does not run yet."""
        guest = PveGuest(self._pve, name, self._places[name], self._folder)
        self.guests[name] = guest
        return guest

    def powers(self) -> dict[str, Power]:
        """Return what is left of every guest."""
        return {name: guest.power for name, guest in self.guests.items()}


@contextmanager
def running_pve_guests(pve: PveCluster, folder: Path, places: dict[str, str]) -> Iterator[PveGuestHost]:
    """Run the heart of a cluster's guests."""
    host = PveGuestHost(pve, folder, places)
    with beating(host.guests):
        yield host
