"""A real systemd for tests: process 1 of its own namespaces, over this machine's files.

Quick, because nothing is emulated and nothing is installed. Units are confined by the kernel, as anywhere;
the machine stays as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.support import LateError, missing_real_part, wait_until

CHECKOUT = Path(__file__).parents[2]
_SCRIPT = Path(__file__).with_name("nested_systemd.sh")
_PROGRAMS = {"unshare": "util-linux", "nsenter": "util-linux", "systemctl": "systemd", "ip": "iproute2"}
_WITHIN_S = 300.0
PYTHON = f"/opt/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"
"""This Python, in there: below /opt, because units do not see home folders, nor the machine's /tmp."""
ENVIRONMENT = "PYTHONPATH=/opt/fencer:/opt/site LD_LIBRARY_PATH=/opt/python/lib PYTHONDONTWRITEBYTECODE=1"
"""Variables with which that Python finds fencer and all that it needs."""


class NestedSystem:
    """A system that runs; made by `nested_system`.

    Args:
        leader: The process that ends all of it when it is killed.
        folder: Where its log is.
    """

    def __init__(self, leader: subprocess.Popen[bytes], folder: Path) -> None:
        self._leader = leader
        self._log = folder / "systemd.log"

    def words(self, *command: str) -> list[str]:
        """Return how a command is run in there, as root."""
        inside = ("nsenter", "-t", self._first(), "-m", "-p", "-u", "-i", "-C", "-n", "-r", "-w")
        return [*inside, *command]

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command in there, as root; return what it printed on either stream.

        Raises:
            AssertionError: it failed, and `check` is true.
        """
        done = subprocess.run(
            self.words(*command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_WITHIN_S,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"{' '.join(command)}: exit code {done.returncode}: {done.stdout}")
        return done.stdout

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file in there; its folder is made."""
        inside = Path(f"/proc/{self._first()}/root{path}")
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.write_text(text)
        inside.chmod(mode)

    def read(self, path: str) -> str:
        """Read a file in there; empty: it is not there."""
        inside = Path(f"/proc/{self._first()}/root{path}")
        return inside.read_text() if inside.exists() else ""

    def wait_up(self) -> None:
        """Wait until it has started.

        Raises:
            LateError: it has not, or cannot here; the message has its last words.
        """

        def up() -> bool:
            if self._leader.poll() is not None:
                raise LateError(self.last_words())
            state = self.run("systemctl", "is-system-running", check=False)
            return state.strip() in {"running", "degraded"}

        wait_until(up, "nested systemd", timeout_s=_WITHIN_S)

    def last_words(self) -> str:
        """Return the end of what it said."""
        return self._log.read_text(errors="replace")[-500:].strip()

    def _first(self) -> str:
        """Return its process 1, as this machine counts."""
        pid = self._leader.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        return wait_until(lambda: children.read_text().split(), "process 1")[0]


@contextmanager
def nested_system(folder: Path) -> Iterator[NestedSystem]:
    """Have such a system; or leave the test out with the reason (see `missing_real_part`).

    Args:
        folder: For what it says, and its layer.
    """
    if os.geteuid() != 0:
        missing_real_part("a real systemd in namespaces needs root: run these tests with sudo")
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            missing_real_part(f"no {program} on this machine: apt-get install {package}")
    layer = folder / "layer"
    layer.mkdir()
    places = (str(CHECKOUT), sys.base_prefix, sysconfig.get_path("purelib"))
    with _started(("sh", str(_SCRIPT), str(layer), *places), folder, layer) as system:
        try:
            system.wait_up()
        except (LateError, OSError) as error:
            missing_real_part(
                f"no systemd in namespaces of its own here: {error}; run these tests on a machine of its own,"
                " or in a container with CAP_SYS_ADMIN and a cgroup2 that it may write"
            )
        yield system


@contextmanager
def nested_root(folder: Path, root: Path) -> Iterator[NestedSystem]:
    """Have a system of a root of its own, with this machine's network; what it writes stays there.

    Args:
        folder: For what it says.
        root: All files of it; it has systemd.

    Raises:
        LateError: it does not start.
    """
    place = folder / "place"
    place.mkdir(exist_ok=True)
    with _started(("sh", str(_SCRIPT), str(place), str(root)), folder, place) as system:
        system.wait_up()
        yield system


@contextmanager
def _started(command: Sequence[str], folder: Path, place: Path) -> Iterator[NestedSystem]:
    with (folder / "systemd.log").open("ab") as log:
        leader = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield NestedSystem(leader, folder)
    finally:
        leader.kill()
        leader.wait()
        _remove_cgroup(place / "cgroup")


def _remove_cgroup(told: Path) -> None:
    if told.exists():
        group = Path(told.read_text().strip())
        for below in sorted(group.rglob("*/"), reverse=True):
            wait_until(partial(_removed, below), f"end of {below}")
        wait_until(partial(_removed, group), f"end of {group}")


def _removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:  # its last process is not quite gone
        return not group.exists()
    return True
