"""One real guest of the tests, and all that can be done to it behind fencer's back."""

import os
import signal
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support import wait_until
from tests.support.processes import alive, freeze, thaw

if TYPE_CHECKING:
    from tests.support.guests import GuestHost

_PAUSED, _SHUTOFF = 3, 5  # virDomainState
_FORGOTTEN, _SAVED = 0, 5  # virDomainShutoffReason


class GuestError(Exception):
    """Something that a test did to a guest behind fencer's back did not work."""


@dataclass(frozen=True, slots=True)
class Power:
    """What libvirt says of a guest: the numbers of virDomainState and its reason."""

    state: int
    reason: int


class Guest:
    """One domain: a 4 MiB machine that beats on its serial line. Made by `GuestHost.define`; not running yet.

    Attributes:
        name: The domain's name.
        uuid: Its UUID, in lower case: what a node on it would have as systemUUID.
        serial_log: What it has said on its serial line: `B` booted, `.` beat (0.27 s), `P` saw the power
            button, `O` powers itself off, `H` hangs, `Z` hibernates. Kept over restarts.
    """

    def __init__(self, host: "GuestHost", name: str, uuid: str) -> None:
        self.name = name
        self.uuid = uuid
        self.serial_log = host.folder / f"{name}.log"
        self._host = host
        self._socket = host.folder / f"{name}.sock"
        self._file = host.folder / f"{name}.save"
        self._in_file = False

    # -- what an operator does ----------------------------------------------------------------------------

    def start(self, *, paused: bool = False) -> None:
        """Start it, from a saved image if there is one; return when it beats (unless `paused`)."""
        self._in_file = False
        beats = self.beats
        self._virsh("start", *(["--paused"] if paused else []))
        if not paused:
            self.wait_for_beat(beats)

    def pause(self) -> None:
        """Stop its CPU; the memory stays."""
        self._virsh("suspend")

    def resume(self) -> None:
        """Let its CPU go on."""
        self._virsh("resume")

    def resume_if_paused(self) -> None:
        """Let its CPU go on, unless it does or the guest is off."""
        power = self.power()
        if power is not None and power.state == _PAUSED:
            self.resume()

    def reset(self) -> None:
        """Press its reset button: it boots again in the same QEMU."""
        self._virsh("reset")

    def destroy(self) -> None:
        """Cut its power; return when it is off."""
        self._virsh("destroy")

    def press_power_button(self) -> None:
        """Ask it by ACPI to shut down; a deaf guest does not."""
        self._virsh("shutdown", "--mode", "acpi")

    def save(self) -> None:
        """Stop it with its memory on disk (a managed save)."""
        self._in_file = False
        self._virsh("managedsave")

    def save_to_file(self) -> None:
        """Stop it with its memory in a file of which libvirt keeps no track."""
        self._virsh_on("save", str(self._file))
        self._in_file = True

    def restore_from_file(self, *, paused: bool = False) -> None:
        """Let it go on from that file; return when it beats (unless `paused`)."""
        self._in_file = False
        beats = self.beats
        self._host.virsh("restore", *(["--paused"] if paused else []), str(self._file))
        if not paused:
            self.wait_for_beat(beats)

    def fail_to_restore(self) -> None:
        """Have a restore from that file fail, as its disk is not there; then the disk is there again."""
        disk = self._host.folder / f"{self.name}.qcow2"
        away = disk.rename(f"{disk}.away")
        self._host.virsh("restore", str(self._file), check=False)
        away.rename(disk)

    def start_beside_its_image(self) -> None:
        """Start it as if it were new, with its managed save image left as it is; return when it beats."""
        beats = self.beats
        self._host.virsh("create", str(self._host.folder / f"{self.name}.xml"))
        self.wait_for_beat(beats)

    def discard_saved(self) -> None:
        """Throw its saved memory away."""
        self._virsh("managedsave-remove")

    def take_snapshot(self, name: str) -> None:
        """Keep its memory and disk as they are now; it runs on."""
        self._virsh_on("snapshot-create-as", name)

    def revert_to_snapshot(self, name: str) -> None:
        """Let it run with the memory and disk that it had then, whatever it is doing now."""
        self._virsh_on("snapshot-revert", name)

    def migrate(self, to: "GuestHost") -> None:
        """Let it run on at another host of this machine, live. It is defined on both afterwards.

        Both have the same disk: it lies in the folder of the host where it was defined first.
        """
        way = ("--live", "--persistent", "--unsafe", "--migrateuri", "tcp:127.0.0.1")
        self._host.virsh("migrate", *way, self.uuid, to.uri)

    def fail_to_return(self, whence: "GuestHost") -> None:
        """Have a migration back from there fail: it runs on there, as nobody listens where it is sent to."""
        way = ("--live", "--persistent", "--unsafe")
        nowhere = ("--listen-address", "127.0.0.1", "--migrateuri", "tcp:127.0.0.2")
        whence.virsh("migrate", *way, *nowhere, self.uuid, self._host.uri, check=False)

    def undefine(self) -> None:
        """Take its definition away; a running guest runs on and is gone when it ends."""
        self._virsh("undefine", "--managed-save", "--snapshots-metadata")

    def remove(self) -> None:
        """Destroy and undefine it, whatever state it is in. Nothing happens when it is gone."""
        power = self.power()
        if power is None:
            return
        self.thaw()
        if power.state != _SHUTOFF:
            self._host.virsh("destroy", self.uuid, check=False)
        self._host.virsh("undefine", "--managed-save", "--snapshots-metadata", self.uuid, check=False)

    # -- what happens to it -------------------------------------------------------------------------------

    def power_off_inside(self) -> None:
        """Have the guest power itself off, as `poweroff` inside would."""
        self._tell(b"o")

    def hibernate_inside(self) -> None:
        """Have the guest power itself off by S4, as Linux does once its memory is in its swap."""
        self._tell(b"z")

    def reset_inside(self) -> None:
        """Have the guest reboot itself, as `reboot` inside would: the same QEMU runs on."""
        self._tell(b"r")

    def hang_inside(self) -> None:
        """Have the guest spin with interrupts off; return when it neither beats nor hears the button."""
        told = self.said.count("H")
        self._tell(b"h")
        wait_until(lambda: self.said.count("H") > told, f"last word of {self.name}")

    def kill(self) -> None:
        """Kill its QEMU with SIGKILL; return when the process is gone (libvirt may need a moment more)."""
        pid = self.pid
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not alive(pid), f"end of process {pid} of {self.name}")

    def freeze(self) -> None:
        """Stop its QEMU with SIGSTOP: libvirt goes on calling it running."""
        if (pid := self.pid) is not None:
            freeze(pid)

    def thaw(self) -> None:
        """Let a frozen QEMU go on."""
        if (pid := self.pid) is not None:
            thaw(pid)

    # -- how it is ----------------------------------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        """The process id of its QEMU; None: there is none. A new start has a new one, a reset has not."""
        try:
            pid = int((self._host.folder / "r" / "libvirt" / "qemu" / "run" / f"{self.name}.pid").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if alive(pid) else None

    def is_off(self) -> bool:
        """Whether libvirt calls it shut off."""
        power = self.power()
        return power is not None and power.state == _SHUTOFF

    def power(self) -> Power | None:
        """Ask libvirt how it is; None: libvirt does not know it."""
        return self._host.powers().get(self.name)

    @property
    def saved(self) -> bool:
        """Whether it is off with its memory on disk: in a managed save image, or in a file of `save_to_file`.

        libvirt's own word does not tell: it says "saved" after the image was removed, and, once it has
        restarted, "unknown" although there is a file.

        Raises:
            GuestError: libvirtd does not answer.
        """
        power = self.power()
        if power is None or power.state != _SHUTOFF:
            return False
        in_file = self._in_file and power.reason in {_FORGOTTEN, _SAVED}
        images = self._host.virsh("list", "--all", "--with-managed-save", "--name").split()
        return in_file or self.name in images

    @property
    def said(self) -> str:
        """All that it has said on its serial line."""
        try:
            return self.serial_log.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    @property
    def boots(self) -> int:
        """How often it has booted, by its own word: what a node's boot id follows. A restore is no boot."""
        return self.said.count("B")

    @property
    def beats(self) -> int:
        """How often its CPU has told that it lives (every 0.27 s while it does)."""
        return self.said.count(".")

    def wait_for_beat(self, after: int | None = None) -> None:
        """Return when it has beaten once more: it is up and answers the power button.

        Args:
            after: The count of `beats` to get past; None: the present one.
        """
        known = self.beats if after is None else after
        wait_until(lambda: self.beats > known, f"beat of {self.name}")

    def _virsh(self, verb: str, *options: str) -> None:
        self._host.virsh(verb, *options, self.uuid)

    def _virsh_on(self, verb: str, *words: str) -> None:
        self._host.virsh(verb, self.uuid, *words)

    def _tell(self, command: bytes) -> None:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(self._socket))
            line.sendall(command)
