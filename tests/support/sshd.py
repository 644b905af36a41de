"""An sshd of the tests' own on loopback, with its own keys; nothing of the machine's ssh is read or written.

Where the tests run as root, who logs in becomes `nobody`, as the guests' libvirtd is: libvirt's helper at the
other end takes root for the system's daemon. All of it ends with the test process (see ``keeper.py``).
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support import missing_real_part, wait_until
from tests.support.guests import GuestError, GuestHost
from tests.support.kept import Kept
from tests.support.processes import alive

_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_PROGRAMS = {"sshd": "openssh-server", "ssh": "openssh-client", "ssh-keygen": "openssh-client"}
_HELPER = "virt-ssh-helper"  # of libvirt-daemon: what libvirt's client starts at the other end
_SERVER = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PidFile none
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
SetEnv XDG_RUNTIME_DIR={runtime} LIBVIRT_AUTOSTART=0
{further}
"""
_AS_NOBODY = (
    'ForceCommand exec setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups'
    ' sh -c "$SSH_ORIGINAL_COMMAND"'
)
_CLIENT = """
UserKnownHostsFile {folder}/known_hosts
GlobalKnownHostsFile /dev/null
IdentityFile {folder}/user
IdentitiesOnly yes
"""
_COMMAND = """#!/bin/sh
echo $$ >> {folder}/clients
exec ssh -F {folder}/ssh_config "$@"
"""


class SshServer:
    """A private sshd, through which a guest host's libvirtd is reached. A context manager.

    Attributes:
        folder: Its keys and settings, ``known_hosts`` of the client among them; removed at the end.
        uri: What libvirt's client opens to reach that libvirtd.
        pid: The process id of the sshd that listens.
    """

    def __init__(self, host: GuestHost) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fs-"))
        self._host = host
        self._port = _free_port()
        self._user = pwd.getpwuid(os.geteuid()).pw_name
        self.pid = 0
        where = f"{self._user}@127.0.0.1:{self._port}"
        self.uri = f"qemu+ssh://{where}/session?command={self.folder}/ssh"
        self._daemon: Kept | None = None

    def __enter__(self) -> Self:
        as_root = os.geteuid() == 0
        if as_root:
            Path("/run/sshd").mkdir(exist_ok=True)  # systemd makes it where sshd is a service
        for name in ("host", "user"):
            self.make_key(name)
        folder = self.folder
        further = _AS_NOBODY if as_root else ""
        settings = _SERVER.format(
            port=self._port, folder=folder, runtime=self._host.folder / "r", further=further
        )
        (folder / "sshd_config").write_text(settings)
        (folder / "ssh_config").write_text(_CLIENT.format(folder=folder))
        command = folder / "ssh"
        command.write_text(_COMMAND.format(folder=folder))
        command.chmod(0o755)
        self.know_host()
        sshd = str(shutil.which("sshd", path=_PATH))
        words = (sshd, "-D", "-e", "-f", str(folder / "sshd_config"))
        self._daemon = Kept(folder, words, {"PATH": _PATH}, self._user)
        self.start()
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

    def start(self) -> None:
        """Start sshd; return when it listens."""
        if self._daemon is None:
            raise GuestError("the server is over")
        self.pid = self._daemon.start()
        wait_until(self._listens, f"sshd on port {self._port}")

    def cut(self) -> None:
        """Kill sshd and all its sessions: who is connected reads the end, nobody else gets in."""
        while self._daemon is not None and (gone := _descendants(self._daemon.pid)):
            for pid in gone:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            wait_until(partial(_over, gone), "end of sshd and its sessions")

    def make_key(self, name: str) -> None:
        """Make a key again: ``host`` or ``user``; sshd takes it when it starts."""
        for path in (self.folder / name, self.folder / f"{name}.pub"):
            path.unlink(missing_ok=True)
        keygen = str(shutil.which("ssh-keygen", path=_PATH))
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)], check=True)

    def know_host(self) -> None:
        """Let the client know the present host key."""
        key = (self.folder / "host.pub").read_text()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self._port} {key}")

    @property
    def clients(self) -> set[int]:
        """The process ids of the ssh that libvirt's client has started and that live."""
        try:
            told = (self.folder / "clients").read_text().split()
        except FileNotFoundError:
            return set()
        return {int(pid) for pid in told if alive(int(pid))}

    def _listens(self) -> bool:
        with socket.socket() as line:
            return line.connect_ex(("127.0.0.1", self._port)) == 0


@contextmanager
def running_ssh_server(host: GuestHost) -> Iterator[SshServer]:
    """Run an sshd for a fixture, or leave its tests out with the reason (see `missing_real_part`)."""
    absent = [name for name in (*_PROGRAMS, _HELPER) if shutil.which(name, path=_PATH) is None]
    if absent:
        packages = sorted({_PROGRAMS.get(name, "libvirt-daemon") for name in absent})
        missing_real_part(
            f"libvirt over ssh left out: no {', '.join(absent)} here; apt-get install {' '.join(packages)}"
        )
    with SshServer(host) as server:
        yield server


def _free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


def _over(pids: set[int]) -> bool:
    return not any(map(alive, pids))


def _descendants(root: int) -> set[int]:
    """Return the processes below one, from the files of proc(5)."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            after_name = stat.read_text(errors="replace").rpartition(")")[2].split()
            if after_name[0] not in "ZX":
                parents[int(stat.parent.name)] = int(after_name[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}
