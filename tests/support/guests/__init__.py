"""Real guests for the tests: tiny QEMU machines under a libvirtd of their own, ended with the tests.

The libvirtd is a *session* daemon with its own runtime, configuration and cache folders, so that nothing of
the machine's own libvirt is read or written; where the tests run as root it runs as `nobody`, because as root
libvirtd is always the system's. Everything a `Guest` does is done behind fencer's back: by virsh, by signals
to QEMU, or by the guest itself.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid as uuids
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Self

import pytest

from tests.support import missing_real_part, real_parts_required, wait_until
from tests.support.guest import Guest, GuestError, Power
from tests.support.kept import Kept
from tests.support.processes import alive, freeze, thaw

__all__ = [
    "Guest",
    "GuestError",
    "GuestHost",
    "Power",
    "leave_out_early",
    "libvirt_binding",
    "running_guest_host",
]

_SOURCES = Path(__file__).parent
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_PROGRAMS = ("libvirtd", "virsh", "qemu-system-x86_64", "qemu-img", "as", "ld")
_HOW_TO_GET = (
    "apt-get install libvirt-daemon-system libvirt-clients libvirt-daemon-driver-qemu"
    " qemu-system-x86 qemu-utils seabios binutils"
)
_SOCKETS = {"libvirtd": "libvirt-sock", "virtqemud": "virtqemud-sock"}
_VIRSH_WITHIN_S = 60.0
_IMAGE_BYTES = 1 << 20
_DOMAIN = """
<domain type='qemu'>
  <name>{name}</name><uuid>{uuid}</uuid>
  <memory unit='MiB'>4</memory><vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type></os>
  <features><acpi/></features>
  <pm><suspend-to-disk enabled='yes'/></pm>
  <on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>
  <devices>
    <emulator>{emulator}</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2'/><source file='{disk}'/><target dev='hda' bus='ide'/>
    </disk>
    <controller type='usb' model='none'/>
    <serial type='unix'><source mode='bind' path='{socket}'/><log file='{log}' append='on'/></serial>
    <memballoon model='none'/>
  </devices>
</domain>
"""


class GuestHost:
    """A private libvirtd and its guests. A context manager: leaving it ends the daemon and every QEMU.

    Nothing of it survives the test process, however that ends (see ``keeper.py``).

    Args:
        daemon: ``virtqemud`` in libvirtd's place, or libvirtd.
        words: Of its command line.

    Attributes:
        uri: Where it listens, for libvirt clients: full rights. `openReadOnly` works on it too.
        folder: Sockets, disks, serial logs and the daemon's (``libvirtd.log``); removed at the end.
        daemon_pid: The process id of its libvirtd.
    """

    def __init__(self, daemon: str = "libvirtd", *words: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fg-"))  # short: paths of sockets end at 108 characters
        self.uri = f"qemu:///session?socket={self.folder}/r/libvirt/{_SOCKETS[daemon]}"
        self._command = (daemon, *words)
        self._user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self.daemon_pid = 0
        self._count = 0
        self._boot_sectors: dict[bool, bytes] = {}
        self._daemon: Kept | None = None

    def __enter__(self) -> Self:
        os.environ["LIBVIRT_AUTOSTART"] = (
            "0"  # or clients would start the user's own daemon while ours is away
        )
        for name in ("r", "c/libvirt", "h"):
            (self.folder / name).mkdir(parents=True)
        # Neither virtlogd nor a security module: both belong to the machine.
        (self.folder / "c/libvirt/qemu.conf").write_text('stdio_handler = "file"\nsecurity_driver = "none"\n')
        self._own(self.folder, *self.folder.rglob("*"))
        environment = {
            "PATH": _PATH,
            "HOME": f"{self.folder}/h",
            "XDG_RUNTIME_DIR": f"{self.folder}/r",
            "XDG_CONFIG_HOME": f"{self.folder}/c",
            "XDG_CACHE_HOME": f"{self.folder}/h",
            "XDG_DATA_HOME": f"{self.folder}/h",
        }
        command = (_program(self._command[0]), *self._command[1:])
        self._daemon = Kept(self.folder, command, environment, self._user)
        self.start_libvirtd()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._daemon is not None:
            self._daemon.end()
            self._daemon = None

    # -- guests -------------------------------------------------------------------------------------------

    def define(self, name: str | None = None, uuid: str | None = None, *, deaf: bool = False) -> Guest:
        """Define a guest, not running yet.

        Args:
            name: Unique on this host; None: some name.
            uuid: None: a random one.
            deaf: It sees the ACPI power button and does not obey.
        """
        self._count += 1
        name = name or f"guest-{self._count}"
        guest = Guest(self, name, str(uuids.UUID(uuid) if uuid else uuids.uuid4()))
        disk = self._disk(name, deaf=deaf)
        description = _DOMAIN.format(
            name=name,
            uuid=guest.uuid,
            emulator=_program("qemu-system-x86_64"),
            disk=disk,
            socket=self.folder / f"{name}.sock",
            log=guest.serial_log,
        )
        self.add(guest, description, disk)
        return guest

    def add(self, guest: Guest, description: str, *files: Path) -> None:
        """Define a guest by libvirt's XML; the files become its QEMU's."""
        xml = self.folder / f"{guest.name}.xml"
        xml.write_text(description)
        self._own(xml, *files)
        self.virsh("define", str(xml))

    def powers(self) -> dict[str, Power]:
        """Ask libvirt how all its guests are, by name: one call, about 20 ms."""
        found: dict[str, dict[str, str]] = {}
        fields: dict[str, str] = {}
        for line in self.virsh("domstats", "--state", "--nowait").splitlines():
            key, _, value = line.strip().partition("=")
            if key.startswith("Domain: "):
                fields = found.setdefault(line.strip().removeprefix("Domain: ").strip("'"), {})
            elif value:
                fields[key] = value
        return {
            name: Power(int(seen["state.state"]), int(seen["state.reason"])) for name, seen in found.items()
        }

    def virsh(self, *words: str, check: bool = True) -> str:
        """Run virsh on this host; return what it prints.

        Raises:
            GuestError: It failed, and `check` is true, or libvirtd hangs.
        """
        command = [_program("virsh"), "--quiet", "--connect", self.uri, *words]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_VIRSH_WITHIN_S
            )
        except subprocess.TimeoutExpired as hangs:
            raise GuestError(f"virsh {' '.join(words)}: no answer within {_VIRSH_WITHIN_S:g} s") from hangs
        if check and done.returncode:
            raise GuestError(f"virsh {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    # -- the daemon ---------------------------------------------------------------------------------------

    def start_libvirtd(self) -> None:
        """Start the daemon; return when it answers. Guests that ran on without it are found again."""
        if self._daemon is None:
            raise GuestError("the host is over")
        self.daemon_pid = self._daemon.start()
        try:
            wait_until(self._answers, "answer of libvirtd")
        except AssertionError as late:
            log = (self.folder / f"{self._command[0]}.log").read_text(errors="replace")
            raise GuestError(f"{late}: {log[-2000:]}") from late

    def kill_libvirtd(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End the daemon and wait until it is gone; the guests run on."""
        os.kill(self.daemon_pid, how)
        wait_until(lambda: not self.daemon_lives, "end of libvirtd")

    def freeze_libvirtd(self) -> None:
        """Make the daemon hang: connections are accepted by the kernel and nothing answers."""
        freeze(self.daemon_pid)

    def thaw_libvirtd(self) -> None:
        """Let a frozen daemon go on; return when it answers. Nothing happens when it is gone.

        libvirtd 9.0.0 crashes now and then when it finds that clients have left meanwhile. It is started
        again then, as systemd would.
        """
        if self.daemon_lives:
            thaw(self.daemon_pid)
            wait_until(lambda: self._answers() or not self.daemon_lives, "answer of libvirtd")
            self._start_where_it_is_gone()

    def restore_libvirtd(self) -> None:
        """See that the daemon answers, whatever a test did to it."""
        self.thaw_libvirtd()
        self._start_where_it_is_gone()

    def _start_where_it_is_gone(self) -> None:
        if not self.daemon_lives:
            self.start_libvirtd()

    @property
    def daemon_lives(self) -> bool:
        """Whether the daemon has not ended."""
        return alive(self.daemon_pid)

    def _answers(self) -> bool:
        return bool(self.virsh("uri", check=False))

    def _own(self, *paths: Path) -> None:
        if os.geteuid() == 0:
            for path in paths:
                shutil.chown(path, self._user)

    def _disk(self, name: str, *, deaf: bool) -> Path:
        """Make a disk in the format that can keep snapshots of memory."""
        raw, disk = self.folder / f"{name}.img", self.folder / f"{name}.qcow2"
        raw.write_bytes(self._boot_sector(deaf=deaf).ljust(_IMAGE_BYTES, b"\0"))
        convert = ["convert", "-q", "-f", "raw", "-O", "qcow2", str(raw), str(disk)]
        subprocess.run([_program("qemu-img"), *convert], check=True)
        raw.unlink()
        return disk

    def _boot_sector(self, *, deaf: bool) -> bytes:
        if deaf not in self._boot_sectors:
            built = self.folder / "boot_sector"
            source = str(_SOURCES / "boot_sector.s")
            flags = ["--defsym", "DEAF=1"] if deaf else []
            subprocess.run(["as", "--32", *flags, source, "-o", f"{built}.o"], check=True)
            link = ["ld", "-m", "elf_i386", "-Ttext", "0x7c00", "--oformat", "binary"]
            subprocess.run([*link, f"{built}.o", "-o", built], check=True)
            self._boot_sectors[deaf] = built.read_bytes()
        return self._boot_sectors[deaf]


def _program(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    if found is None:
        raise GuestError(f"no {name} on this machine")
    return found


def libvirt_binding() -> ModuleType:
    """Return the libvirt binding, or leave the test out with the reason (see `missing_real_part`)."""
    if reason := _binding_missing():
        missing_real_part(reason)
    return import_module("libvirt")


@contextmanager
def running_guest_host(daemon: str = "libvirtd", *words: str) -> Iterator[GuestHost]:
    """Run a guest host for a fixture, or leave its tests out with the reason (see `missing_real_part`).

    virtqemud is left out even where all real parts are required: Debian has it in no package.
    """
    if reason := programs_missing():
        missing_real_part(reason)
    if shutil.which(daemon, path=_PATH) is None:
        raise pytest.skip.Exception(
            f"no {daemon} here: Debian 12 and 13 have it in no package; where it is, put its folder on PATH"
        )
    with GuestHost(daemon, *words) as host:
        yield host


def leave_out_early(items: Iterable[pytest.Item]) -> None:
    """Mark tests as skipped whose real parts are missing: pytest folds such skips into one line a file.

    Args:
        items: The marker `libvirt` says that the binding is needed, the fixture `guest_host` that guests are.
    """
    if real_parts_required():
        return  # the fixtures fail with the same reason
    binding, programs = _binding_missing(), programs_missing()
    for item in items:
        if binding and item.get_closest_marker("libvirt"):
            item.add_marker(pytest.mark.skip(reason=binding))
        elif programs and "guest_host" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip(reason=programs))


def _binding_missing() -> str:
    try:
        import_module("libvirt")
    except ImportError as error:
        return f"libvirt left out: {error}; apt-get install gcc pkg-config libvirt-dev, uv sync --group real"
    return ""


def programs_missing() -> str:
    absent = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
    return f"real guests left out: no {', '.join(absent)} here; {_HOW_TO_GET}" if absent else ""
