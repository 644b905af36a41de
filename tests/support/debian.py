"""A real Debian guest for the tests: systemd and logind in a domain of the tests' own libvirtd.

It reaches the host's loopback as 10.0.2.2 (user-mode networking). Commands run inside through the QEMU guest
agent. Emulated, never on KVM: a machine may have a `/dev/kvm` on which no Linux boots.
"""

import base64
import json
import os
import subprocess
import uuid as uuids
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.debian.image import Image, MissingImageError, find_or_build
from tests.support import LateError, missing_real_part, wait_until
from tests.support.guest import Guest, GuestError
from tests.support.guests import GuestHost, libvirt_binding

HOST = "10.0.2.2"
"""The host's loopback, as a guest sees it (QEMU's user-mode network)."""
_BOOT_WITHIN_S = 300.0  # 12 s on an idle core
_OFF_WITHIN_S = 300.0
_ENDS_WITHIN_S = 300.0
_AGENT_WITHIN_S = 30
_FIRST = "-10"
"""Its niceness, among processes and among sessions (autogroups, see sched(7))."""
_SHUTOFF = 5  # virDomainState
_DOMAIN = """
<domain type='qemu'>
  <name>{name}</name><uuid>{uuid}</uuid>
  <memory unit='MiB'>384</memory><vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>{kernel}</kernel><initrd>{initrd}</initrd>
    <cmdline>console=ttyS0 quiet panic=-1 net.ifnames=0 TERM=dumb</cmdline>
  </os>
  <features><acpi/></features>
  <cpu mode='maximum'/>
  <on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='unsafe'/><source file='{disk}'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/><source file='{seed}'/><target dev='vdb' bus='virtio'/><readonly/>
    </disk>
    <controller type='usb' model='none'/>
    <interface type='user'><model type='virtio'/><rom enabled='no'/></interface>
    <serial type='file'><source path='{console}' append='on'/></serial>
    <channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>
    <memballoon model='none'/>
  </devices>
</domain>
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command inside did: its exit code, and what it printed on either stream."""

    code: int
    text: str


class DebianGuest(Guest):
    """One machine; its disk keeps over boots what was written to it. Made by `define_debian`."""

    def start(self, *, paused: bool = False) -> None:
        """Switch it on; return when all that starts at boot has started (unless `paused`)."""
        self._virsh("start", *(["--paused"] if paused else []))
        self._go_first()
        if not paused:
            self._wait(self._up, "boot of the Debian guest", _BOOT_WITHIN_S)

    @property
    def on(self) -> bool:
        """Whether it is powered on."""
        power = self.power()
        return power is not None and power.state != _SHUTOFF

    def ask_agent_to_shut_down(self) -> None:
        """Ask its guest agent to shut it down; what begins then may end the agent before it has answered."""
        self._host.virsh("shutdown", "--mode", "agent", self.uuid, check=False)

    def wait_off(self) -> None:
        """Wait until it has powered itself off."""
        self._wait(lambda: self.pid is None and not self.on, "end of the Debian guest", _OFF_WITHIN_S)

    def soft_reboot(self) -> None:
        """Let systemd start everything again under the same kernel; return when all has started."""
        before = self._systemd_began()
        with suppress(GuestError):  # its agent is stopped too, and may be gone before it has told
            self.run("systemctl soft-reboot", check=False)
        self._wait(
            lambda: self._up() and self._systemd_began() != before,
            "soft-reboot of the Debian guest",
            _BOOT_WITHIN_S,
        )

    def _systemd_began(self) -> str:
        return self.run("systemctl show --property=UserspaceTimestampMonotonic").text

    def run(self, command: str, *, check: bool = True) -> Ran:
        """Run a shell command inside, as root; wait for its end.

        Raises:
            AssertionError: it failed, and `check` is true.
        """
        asked = {"path": "/bin/sh", "arg": ["-c", f"({command}) 2>&1"], "capture-output": True}
        pid = self._ask_agent("guest-exec", asked)["pid"]

        def ended() -> dict[str, Any] | None:
            status: dict[str, Any] = self._ask_agent("guest-exec-status", {"pid": pid})
            return status if status["exited"] else None

        status = wait_until(ended, f"end of `{command}`", timeout_s=_ENDS_WITHIN_S, every_s=0.3)
        text = base64.b64decode(status.get("out-data", "")).decode(errors="replace")
        ran = Ran(status.get("exitcode", -1), text)
        if check and ran.code:
            raise AssertionError(f"`{command}` in the guest: exit code {ran.code}: {ran.text}")
        return ran

    def _go_first(self) -> None:
        """Let it go before the tests beside it, where that is allowed: its processor is emulated.

        Behind six lanes on a slow day, to cordon a node took it 50 s.
        """
        if (pid := self.pid) is None:
            return
        with suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(_FIRST)
        for thread in Path(f"/proc/{pid}/task").glob("*"):  # none, where it has ended by now
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, int(thread.name), int(_FIRST))

    def _up(self) -> bool:
        """Tell whether all has started; once its agent is there, the answer comes when the boot is over.

        To ask again and again how far it is would be a good part of what it has to do.
        """
        if self.pid is None:
            raise AssertionError("the Debian guest went off while it booted")
        try:
            state = self.run("systemctl is-system-running --wait", check=False)
        except GuestError:  # its agent is not there yet
            return False
        return state.text.strip() in ("running", "degraded")

    def _ask_agent(self, command: str, arguments: dict[str, Any]) -> Any:
        """Ask by the binding: the guest agent is asked so often that a virsh for each would be felt."""
        libvirt, agent = libvirt_binding(), import_module("libvirt_qemu")
        libvirt.registerErrorHandler(lambda *_: None, None)  # or it prints what we raise
        said = json.dumps({"execute": command, "arguments": arguments})
        try:
            with closing(libvirt.open(self._host.uri)) as connection:
                domain = connection.lookupByUUIDString(self.uuid)
                return json.loads(agent.qemuAgentCommand(domain, said, _AGENT_WITHIN_S, 0))["return"]
        except libvirt.libvirtError as error:
            raise GuestError(f"{command} in {self.name}: {error}") from error

    def _wait(self, condition: Callable[[], object], what: str, timeout_s: float) -> None:
        """Wait for something; what its console shows is part of the complaint."""
        try:
            wait_until(condition, what, timeout_s=timeout_s, every_s=0.2)
        except LateError as late:
            raise LateError(f"{late}\n{self.said[-3000:]}") from late


def define_debian(host: GuestHost, name: str, seed: Path) -> DebianGuest:
    """Define a guest, not running yet; or leave its tests out with the reason (see `missing_real_part`).

    Args:
        host: Where.
        name: Unique there.
        seed: A tar that is unpacked over its root at every boot.
    """
    image = debian_image()
    guest = DebianGuest(host, name, str(uuids.uuid4()))
    disk, base = host.folder / f"{name}.qcow2", _reachable(host, image.disk)
    create = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(base)]
    subprocess.run([*create, str(disk)], check=True)
    own_seed = host.folder / f"{name}.tar"
    own_seed.write_bytes(seed.read_bytes())
    description = _DOMAIN.format(
        name=name,
        uuid=guest.uuid,
        kernel=_reachable(host, image.kernel),
        initrd=_reachable(host, image.initrd),
        disk=disk,
        seed=own_seed,
        console=guest.serial_log,
    )
    host.add(guest, description, disk, own_seed)
    return guest


def debian_image() -> Image:
    """Return the image, or leave the tests out with the reason (see `missing_real_part`)."""
    try:
        return find_or_build()
    except MissingImageError as missing:
        missing_real_part(str(missing))


def _reachable(host: GuestHost, file: Path) -> Path:
    """Return a file of the cache, which belongs to us, where the libvirtd of a host may read it."""
    near = host.folder / file.name
    if not near.exists():
        try:
            os.link(file, near)
        except OSError:  # another file system
            subprocess.run(["cp", "--sparse=always", str(file), str(near)], check=True)
    return near
