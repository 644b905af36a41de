"""Real VirtualBox machines for tests, made and removed by VBoxManage: empty ones, and ones that boot.

Those that boot have a boot sector for a system; where VirtualBox has no kernel driver they cannot. The
program may be a script on PATH that enters a chroot, if the tests' folder has its name there, too.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from fencer.core.model import GuestRef
from fencer.hypervisors.virtualbox.settings import VirtualBoxSettings
from tests.support import wait_until

INSTALLED = Path("/usr/lib/virtualbox/VBoxManage")
NOT_HERE = (
    "no VBoxManage on this machine: what only a real VirtualBox can show is left out. "
    "Debian's stable archive has none; it comes from sid (contrib) or from Oracle"
)
_BOOT_SECTOR = Path(__file__).parents[1] / "guests" / "boot_sector.s"
_HARDWARE = "--memory 16 --cpus 1 --graphicscontroller vboxvga --nic1 none --audio-driver none"
_IMAGE_BYTES = 1 << 20
_PATIENCE_S = 60
"""For one command: now and then it stands still for 10 s, and then succeeds."""
_STARTED, _LOCKED = "started", "0x80bb0007"
_NO_SERVER = "0x80040154"
"""What a command gets that meets a VBoxSVC about to leave, as it does 5 s after the last one."""
_TRIES = 3


def vboxmanage() -> str:
    """Return the real program, around Debian's wrapper; where there is none the test is left out.

    That is a skip also where all real parts are required: no archive that the other parts come from has it.
    """
    found = str(INSTALLED) if INSTALLED.exists() else shutil.which("VBoxManage")
    if found is None:
        raise pytest.skip.Exception(NOT_HERE)
    return found


class RealVBox:
    """A registry of the tests' own, with a VBoxSVC of its own: it sees no machine of whoever runs them.

    Args:
        folder: For the registry and for the machines of the tests.

    Source: VirtualBox 7.2.22. The home folder is that of the password database, whatever HOME says.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket_id = f"fencer-{uuid4().hex[:8]}"
        self._command = self._asking(self._socket_id)
        self._made: list[str] = []
        self._refuse_if_wrapped()

    def _asking(self, socket_id: str) -> tuple[str, ...]:
        own = (f"VBOX_USER_HOME={self._folder / 'registry'}", f"VBOX_IPC_SOCKETID={socket_id}")
        return ("env", *own, vboxmanage())

    def _refuse_if_wrapped(self) -> None:
        first, *more = self.run("--version").splitlines()
        if more:
            raise pytest.skip.Exception(
                f"{self._command[-1]} prints words of its own, as Debian's wrapper does: {first}. "
                f"Put a script on PATH that calls {INSTALLED} itself, in its chroot if it is in one"
            )

    def settings(self, endpoint: str = "lab", **patience: Any) -> VirtualBoxSettings:
        """Return the settings of an endpoint that is this registry."""
        return VirtualBoxSettings(endpoint, self._command, **patience)

    def settings_of_second_server(self) -> VirtualBoxSettings:
        """Return the settings of an endpoint that asks another VBoxSVC about this registry."""
        return VirtualBoxSettings("lab", self._asking(f"{self._socket_id}-2"), look_s=60.0, read_s=60.0)

    def run(self, *words: str) -> str:
        """Run a command as an operator would; one that fails is a fault of the test."""
        done = self._try(*words)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        return done.stdout

    def create(self, name: str = "") -> GuestRef:
        """Register a machine without disk that was never started."""
        uuid = str(uuid4())
        name = name or f"fencer-test-{uuid[:8]}"
        base = ["--basefolder", str(self._folder)]
        self.run("createvm", "--name", name, "--uuid", uuid, "--ostype", "Other", "--register", *base)
        self._made.append(uuid)
        if not any(self._folder.glob("*/*.vbox")):
            raise pytest.skip.Exception(
                f"{self._command[-1]} makes machines in a folder {self._folder} that is another than the one "
                "here: bind it into the chroot, or name one that both see with --basetemp"
            )
        self.run("modifyvm", uuid, *_HARDWARE.split())
        return GuestRef("lab", uuid, uuid, name)

    def create_bootable(self) -> GuestRef:
        """Register a machine that boots, beats on its serial port and obeys the power button."""
        guest = self.create()
        image, disk = self._folder / f"{guest.name}.img", self._folder / f"{guest.name}.vdi"
        image.write_bytes(self._boot_sector().ljust(_IMAGE_BYTES, b"\0"))
        self.run("convertfromraw", str(image), str(disk))
        self.run("storagectl", guest.id, "--name", "ide", "--add", "ide")
        place = ["--storagectl", "ide", "--port", "0", "--device", "0", "--type", "hdd"]
        self.run("storageattach", guest.id, *place, "--medium", str(disk))
        self.run(
            "modifyvm", guest.id, "--uart1", "0x3F8", "4", "--uart-mode1", "file", str(self.serial(guest))
        )
        # Where there is no driver but an interpreter: slow, and enough for a boot sector.
        self.run("setextradata", guest.id, "VBoxInternal/HM/FallbackToIEM", "1")
        return guest

    def start(self, guest: GuestRef) -> None:
        """Start a machine and wait until it beats; where VirtualBox cannot run any, the test is left out."""
        self.serial(guest).unlink(missing_ok=True)
        refusal = wait_until(lambda: self._try_to_start(guest), f"release of {guest}", timeout_s=_PATIENCE_S)
        if refusal != _STARTED:
            raise pytest.skip.Exception(f"VirtualBox starts no machine here: {refusal}")
        self.wait_for_beat(guest)

    def _try_to_start(self, guest: GuestRef) -> str:
        """Return how it went; nothing while the process of its last run holds it."""
        done = self._try("startvm", guest.id, "--type", "headless")
        if done.returncode == 0:
            return _STARTED
        return "" if _LOCKED in done.stderr else done.stderr.splitlines()[0]

    def wait_for_beat(self, guest: GuestRef) -> None:
        """Wait until the guest has said something new."""
        before = self.said(guest)
        wait_until(lambda: "." in self.said(guest)[len(before) :], f"beat of {guest}", timeout_s=_PATIENCE_S)

    def serial(self, guest: GuestRef) -> Path:
        """Return the file to which the guest's serial port writes."""
        return self._folder / f"{guest.name}.serial"

    def log(self, guest: GuestRef) -> Path:
        """Return the file of the machine's newest log."""
        return Path(self.facts(guest)["LogFldr"]) / "VBox.log"

    def facts(self, guest: GuestRef) -> dict[str, str]:
        """Return what VBoxManage says of a machine, as far as it is plain; empty where there is none."""
        shown = self._try("showvminfo", guest.id, "--machinereadable")
        pairs = (line.partition("=") for line in shown.stdout.splitlines())
        return {key: value.strip('"') for key, _, value in pairs}

    def pid(self, guest: GuestRef) -> int | None:
        """Return the number of the process that runs a machine; None: there is none."""
        command = ["pgrep", "-f", f"startvm {guest.id}"]
        found = subprocess.run(command, check=False, capture_output=True, text=True).stdout.split()
        return int(found[0]) if found else None

    def server(self, guest: GuestRef) -> int:
        """Return the number of the VBoxSVC that runs a machine."""
        command = ["ps", "-o", "ppid=", "-p", str(self.pid(guest))]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def remove(self, guest: GuestRef) -> None:
        """Unregister a machine that is off."""
        self.run("unregistervm", guest.id)
        self._made.remove(guest.id)

    def clean_up(self) -> None:
        """Remove all that was made, whatever it does."""
        for uuid in self._made:
            for words in (
                ("startvm", uuid, "--type", "emergencystop"),
                ("discardstate", uuid),
                ("unregistervm", uuid),
            ):
                # Each is refused where there is nothing to end.
                subprocess.run(
                    [*self._command, *words], check=False, capture_output=True, timeout=_PATIENCE_S
                )
        shutil.rmtree(f"/tmp/.vbox-{self._socket_id}-ipc", ignore_errors=True)  # noqa: S108 - VirtualBox's place

    def said(self, guest: GuestRef) -> str:
        """Return what the guest has said on its serial port since its start."""
        serial = self.serial(guest)
        return serial.read_text() if serial.exists() else ""

    def _try(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; again where it met no VBoxSVC."""
        command = [*self._command, *words]
        for _ in range(_TRIES):
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_PATIENCE_S)
            if _NO_SERVER not in done.stderr:
                break
        return done

    def _boot_sector(self) -> bytes:
        if missing := [tool for tool in ("as", "ld") if not shutil.which(tool)]:
            raise pytest.skip.Exception(
                f"no {missing[0]} to build a boot sector with: apt-get install binutils"
            )
        built = self._folder / "boot_sector"
        places = ["--defsym", "PM_BASE=0x4000", "--defsym", "S5=5"]
        subprocess.run(["as", "--32", *places, str(_BOOT_SECTOR), "-o", f"{built}.o"], check=True)
        link = ["ld", "-m", "elf_i386", "-Ttext", "0x7c00", "--oformat", "binary"]
        subprocess.run([*link, f"{built}.o", "-o", str(built)], check=True)
        return built.read_bytes()


Machines = TypeVar("Machines", bound=RealVBox)


@contextmanager
def real_vbox(folder: Path, kind: Callable[[Path], Machines]) -> Iterator[Machines]:
    """Lend a registry of the tests' own, and leave no machine of it running."""
    vbox = kind(folder)
    try:
        yield vbox
    finally:
        vbox.clean_up()
