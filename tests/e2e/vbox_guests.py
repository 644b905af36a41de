"""Machines of VirtualBox, fake or real, in the place of libvirt's guests, for the kubelets of a lab.

Each beats into a file, as `tests.support.guest` says: a real one's serial line is copied there, and a fake
one is made to beat exactly while its registry says that it runs.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import yaml

from fencer.core.identity import swapped
from fencer.core.model import GuestRef
from fencer.hypervisors.virtualbox.parse import LogHead, parse_log_head
from fencer.hypervisors.virtualbox.settings import VirtualBoxSettings
from tests.e2e.heart import beating
from tests.e2e.operator import Operator
from tests.support import wait_until
from tests.support.guest import Power
from tests.support.vbox import FakeVBox
from tests.support.vbox.machines import RealVBox

_POWERS = {"running": Power(1, 1), "paused": Power(3, 1), "saved": Power(5, 5)}
_OFF = Power(5, 1)


class VBox(Protocol):
    """What the lab needs of VirtualBox."""

    def settings(self, endpoint: str = "lab") -> VirtualBoxSettings:
        """Return the endpoint's settings."""

    def run(self, *words: str) -> object:
        """Run VBoxManage."""

    def create_bootable(self) -> GuestRef:
        """Register a machine; it does not run yet."""

    def start(self, guest: GuestRef) -> None:
        """Start it."""

    def state(self, guest: GuestRef) -> str:
        """Return its VMState; empty where it is not registered."""

    def pid(self, guest: GuestRef) -> int | None:
        """Return the number of the process that runs it, or that would; None: there is none."""

    def kill(self, guest: GuestRef) -> None:
        """End the process that runs it."""

    def heard(self, guest: GuestRef) -> str:
        """Return what it has said on its serial line since the last asking."""


class FakeBootable(FakeVBox):
    """Fake machines that beat."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._logs: dict[str, str] = {}
        self._made = 0

    def create_bootable(self) -> GuestRef:
        """Register a machine."""
        self._made += 1
        return self.add(f"machine-{self._made}", "poweroff")

    def start(self, guest: GuestRef) -> None:
        """Start it."""
        self.run("startvm", guest.id, "--type", "headless")

    def state(self, guest: GuestRef) -> str:
        """Return its VMState."""
        with self.world() as world:
            return str(world["machines"].get(guest.id, {}).get("state", ""))

    def pid(self, guest: GuestRef) -> int | None:
        """Return a number of this run."""
        with self.world() as world:
            machine = world["machines"].get(guest.id, {})
        return hash(machine["log_opened"]) if machine.get("state") in {"running", "paused"} else None

    def kill(self, guest: GuestRef) -> None:
        """Let it read as one of which the process was killed."""
        self.run("startvm", guest.id, "--type", "emergencystop")

    def heard(self, guest: GuestRef) -> str:
        """Beat once, if it runs; say before that it has booted, if it has."""
        with self.world() as world:
            machine = world["machines"].get(guest.id, {})
        if machine.get("state") != "running" and not machine.get("runs_unknown"):
            return ""
        before, self._logs[guest.id] = self._logs.get(guest.id), machine["log_opened"]
        return "." if before == machine["log_opened"] or machine["began"] == "Restoring" else "B."


class RealBootable(RealVBox):
    """Real machines, the serial lines of which are read.

    Boots are read from their logs: VirtualBox's serial port may swallow what is said first.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._read: dict[str, int] = {}
        self._logs: dict[str, Path] = {}
        self._runs: dict[str, LogHead] = {}

    def state(self, guest: GuestRef) -> str:
        """Return its VMState."""
        return str(self.facts(guest).get("VMState", ""))

    def kill(self, guest: GuestRef) -> None:
        """Send its process the signal that nothing outlives."""
        pid = self.pid(guest)
        assert pid, f"no process of {guest}"
        os.kill(pid, signal.SIGKILL)

    def heard(self, guest: GuestRef) -> str:
        """Return what is new in the serial line's file; a start begins it again."""
        said, before = self.said(guest).replace("B", ""), self._read.get(guest.id, 0)
        self._read[guest.id] = len(said)
        fresh = said[before:] if len(said) >= before else said
        return f"{self._booted(guest)}{fresh}" if fresh else ""

    def _booted(self, guest: GuestRef) -> str:
        """Return a `B` if the newest log is of another run than at the last asking, and it booted."""
        if guest.id not in self._logs:
            self._logs[guest.id] = self.log(guest)
        run = parse_log_head(self._logs[guest.id].read_text(errors="replace"))
        before, self._runs[guest.id] = self._runs.get(guest.id), run
        return "B" if run != before and run.cold_start else ""


class VBoxGuest:
    """A machine as the lab sees one. Made by `VBoxGuestHost.define`.

    Attributes:
        name: Of its node.
        uuid: What its guest sees, and so the node's systemUUID: with the first three fields turned round.
        machine: The machine.
        serial_log: `B` for each boot, `.` for each beat.
        boots: How often it has booted.
    """

    def __init__(self, vbox: VBox, name: str, folder: Path) -> None:
        self.machine = vbox.create_bootable()
        self.name, self.uuid = name, swapped(self.machine.uuid)
        self.serial_log = folder / f"{name}.log"
        self.boots = 0
        self._vbox = vbox

    @property
    def power(self) -> Power:
        """What is left of it, in libvirt's numbers."""
        return _POWERS.get(self._vbox.state(self.machine), _OFF)

    @property
    def saved(self) -> bool:
        """Whether it is off with its memory on disk."""
        return self.power == _POWERS["saved"]

    def start(self) -> None:
        """Power it on; return when it beats."""
        size = self._size()
        self._vbox.start(self.machine)
        wait_until(lambda: self._size() > size, f"beat of {self.name}")

    @property
    def pid(self) -> int | None:
        """Number of its process; None: there is none."""
        return self._vbox.pid(self.machine)

    def control(self, action: str) -> None:
        """Do what ``VBoxManage controlvm`` can: pause, resume, poweroff, savestate."""
        self._vbox.run("controlvm", self.machine.id, action)

    def remove(self) -> None:
        """End it, if it runs."""
        if self.power is not _OFF:
            self._vbox.run("startvm", self.machine.id, "--type", "emergencystop")

    def beat(self) -> None:
        """Write down what it has said."""
        if said := self._vbox.heard(self.machine):
            self.boots += said.count("B")
            with self.serial_log.open("a") as log:
                log.write(said)

    def _size(self) -> int:
        return self.serial_log.stat().st_size if self.serial_log.exists() else 0


class VBoxGuestHost:
    """Defines guests, as `tests.support.guests.GuestHost` does, and keeps them beating."""

    uri = "no libvirt"

    def __init__(self, vbox: VBox, folder: Path) -> None:
        self.vbox = vbox
        self.guests: dict[str, VBoxGuest] = {}
        self._folder = folder

    def define(self, name: str) -> VBoxGuest:
        """Make a guest; it does not run yet."""
        guest = VBoxGuest(self.vbox, name, self._folder)
        self.guests[name] = guest
        return guest

    def powers(self) -> dict[str, Power]:
        """Return what is left of every guest."""
        return {name: guest.power for name, guest in self.guests.items()}


@contextmanager
def running_vbox_guests(vbox: VBox, folder: Path) -> Iterator[VBoxGuestHost]:
    """Run the heart of a lab's guests."""
    host = VBoxGuestHost(vbox, folder)
    with beating(host.guests):
        yield host


SPEED = 2.0
"""A sweep is a process for each machine: by a quicker clock, its answers would be old on a busy machine."""


class VagrantOperator(Operator):
    """fencer beside a VirtualBox lab, set up from a Vagrant project as docs/virtualbox.md says.

    Args:
        host: The lab's machines.
        arguments: As `Operator` takes them.
    """

    def __init__(self, host: VBoxGuestHost, *arguments: Any) -> None:
        super().__init__(*arguments, speed=SPEED)
        self._host = host

    def configure(self, mode: str = "armed", *, power: bool = True, **policy: Any) -> Path:
        """Write the configuration file: VBoxManage, and the nodes from the project's records."""
        path = super().configure(mode, power=power, **policy)
        content = yaml.safe_load(path.read_text())
        command = list(self._host.vbox.settings().command)
        content["hypervisors"] = [{"name": "box", "type": "virtualbox", "command": command}]
        if power:
            content["hypervisors"][0]["power"] = {"mapped": True}
        project = path.parent / "project"
        for name, guest in self._host.guests.items():
            record = project / ".vagrant" / "machines" / name / "virtualbox" / "id"
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(guest.machine.id)
        printed = self.run("setup", "vagrant", str(project))
        assert printed.returncode == 0, printed.stderr
        path.write_text(yaml.safe_dump(content) + printed.stdout)
        return path
