"""libvirt's hook: under a real libvirtd, and as a process that exits 0 and says nothing, whatever happens."""

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencer.runtime.hookserver import HookServer
from tests.support import missing_real_part, wait_until
from tests.support.guests import programs_missing

ROOT = Path(__file__).parents[2]
HOOK = ROOT / "config" / "libvirt" / "qemu-hook"
LONG_S = 30
XML = b"<domain type='kvm'>" + b" " * 200_000 + b"</domain>"
"""More than a pipe holds."""
# libvirt looks for hooks in one folder of the system's; in a mount namespace of its own it sees ours there.
OWN_NAMESPACE = ["unshare", "--mount"]
IN_OUR_FOLDER = 'mount --bind "$1" /etc/libvirt/hooks && exec "$2" -c "$3"'
ONE_LIFE = """
from tests.support.guests import GuestHost
with GuestHost() as host:
    guest = host.define("a-guest")
    guest.start()
    guest.destroy()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where everybody may send to: the hook runs as libvirtd's user."""
    path = Path(tempfile.mkdtemp(prefix="fh-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def call(folder: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the hook; its interpreter may be another than this one's, so only its text is used."""
    return subprocess.run(
        [sys.executable, "-ISE", str(HOOK), *arguments],
        env={"FENCER_RUN_DIR": str(folder)},
        input=stdin,
        capture_output=True,
        timeout=LONG_S,
        check=False,
    )


def silent(done: subprocess.CompletedProcess[bytes]) -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.libvirt
def test_a_real_libvirtd_runs_it_at_the_begin_and_end_of_a_guest(folder: Path) -> None:
    hooks = folder / "hooks"
    (hooks / "qemu.d").mkdir(parents=True)
    shutil.copy(HOOK, folder / "hook")
    installed = hooks / "qemu.d" / "fencer"
    installed.write_text(f'#!/bin/sh\nFENCER_RUN_DIR={folder} exec {folder}/hook "$@"\n')
    installed.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as agent:
        agent.bind(f"{folder}/agent.sock")
        (folder / "agent.sock").chmod(0o666)
        tried = subprocess.run([*OWN_NAMESPACE, "true"], capture_output=True, text=True, check=False)
        if tried.returncode:
            missing_real_part(f"no mount namespace of one's own here: {tried.stderr.strip()}; run it as root")
        if absent := programs_missing():
            missing_real_part(absent)
        shell = [*OWN_NAMESPACE, "sh", "-ec", IN_OUR_FOLDER, "sh"]
        command = [*shell, str(hooks), sys.executable, ONE_LIFE]
        life = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert life.returncode == 0, life.stderr
        heard: list[str] = []
        wait_until(lambda: hear(agent, heard) == "release a-guest\n", "nudge at the guest's end")
        assert heard == ["started a-guest\n", "stopped a-guest\n", "release a-guest\n"]


def hear(agent: socket.socket, heard: list[str]) -> str:
    """Take the next nudge, if there is one; return the last."""
    with contextlib.suppress(BlockingIOError):
        heard.append(agent.recv(256).decode())
    return heard[-1] if heard else ""


def test_a_nudge_reaches_the_agent_and_names_the_guest(folder: Path) -> None:
    heard: list[str] = []
    server = HookServer(folder / "home.sock", heard.append)
    try:
        assert silent(call(folder, "k8s-2", "stopped", "end", "-", stdin=XML))
        wait_until(lambda: heard[:1] == ["k8s-2"], "nudge")
    finally:
        server.close()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("k8s-2",),
        ("", "stopped", "end", "-"),
        ("k8s-2", "prepare", "begin", "-"),
        ("k8s-2", "migrate", "begin", "-"),
        ("k8s-2", "levitate", "begin", "-"),
    ],
)
def test_what_is_no_begin_or_end_wakes_nobody(folder: Path, arguments: tuple[str, ...]) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as agent:
        agent.bind(f"{folder}/agent.sock")
        assert silent(call(folder, *arguments, stdin=XML))
        with pytest.raises(BlockingIOError):
            agent.recv(256)


@pytest.mark.parametrize("name", ["k8s-2", "a guest\nwith lines", "\udcff", "x" * 5000, "../../etc"])
def test_without_an_agent_or_with_a_dead_ones_socket_it_is_silent(folder: Path, name: str) -> None:
    assert silent(call(folder / "missing", name, "stopped", "end", "-"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(f"{folder}/dead.sock")
    assert silent(call(folder, name, "stopped", "end", "-"))
