"""The kubelets that run on this machine, by their units.

A name proves nothing: any user, and any container, may call a process `kubelet`. Believed is systemd's word
for the main process of a system unit, which only root can make; and of that, what it started itself, as RKE2
and k0s do with the kubelet. Should its number be another process's by now, that has to be root's too, and to
see the same processes and files as process 1.

Namespaces are told by what anybody may read. The links in /proc/PID/ns are not for our units, which have no
capabilities, and may look at no process that has some.
Source: Linux, fs/proc/array.c (NSpid), fs/proc_namespace.c (mountinfo, whose ids no two mounts share);
fs/proc/namespaces.c asks for PTRACE_MODE_READ.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Iterator, Sequence

from fencer.guest.places import UNITS
from fencer.guest.system import Run, read_text

_NAMES = ("kubelet", "k3s", "rke2", "k0s", "snap.microk8s")
_WITHIN_K3S = ("server", "agent")


@dataclass(frozen=True)
class Process:
    """A process that is a kubelet, or has one inside (k3s).

    Attributes:
        pid: Its process id.
        arguments: Its command line; k3s hides most of its own.
        unit: The systemd unit that it is the main process of, or a child of that.
    """

    pid: int
    arguments: tuple[str, ...]
    unit: str

    def option(self, name: str) -> str:
        """Return the value of a kubelet's option; empty where it has none (k3s's own options are others)."""
        if not _is_bare(self.arguments):
            return ""
        for at, argument in enumerate(self.arguments):
            if argument == f"--{name}" and at + 1 < len(self.arguments):
                return self.arguments[at + 1]
            if argument.startswith(f"--{name}="):
                return argument.split("=", 1)[1]
        return ""


@dataclass(frozen=True)
class Running:
    """What runs.

    Attributes:
        units: Those of the known kubelet units that run, or are just being started or stopped.
        processes: The kubelets that are believed; their units may have other names.
    """

    units: tuple[str, ...]
    processes: tuple[Process, ...]


def running(root: Path, run: Run) -> Running:
    """Find the kubelets.

    Args:
        root: Of the file system.
        run: Runs commands.
    """
    main = dict(_main_processes(run))
    found = (process for unit, pid in main.items() if pid for process in _kubelets(root, unit, pid))
    return Running(tuple(unit for unit in UNITS if unit in main), tuple(found))


def _main_processes(run: Run) -> Iterator[tuple[str, int]]:
    """Yield each unit that may be a kubelet's and runs, and its main process; 0: it has none."""
    patterns = [f"{name}*.service" for name in _NAMES]
    told = run(["systemctl", "show", "--property=Id,ActiveState,MainPID", *patterns]).text
    for unit in told.split("\n\n"):
        said = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
        if said.get("ActiveState") in ("active", "reloading", "activating", "deactivating"):
            pid = said.get("MainPID", "")
            yield said.get("Id", ""), int(pid) if re.fullmatch("[0-9]{1,10}", pid) else 0


def _kubelets(root: Path, unit: str, main: int) -> Iterator[Process]:
    """Yield the main process of a unit, if it is a kubelet, else those of its children that are."""
    first = _believed(root, unit, main)
    if first is not None and _is_kubelet(first.arguments):
        yield first
    elif first is not None:
        pids = (int(folder.name) for folder in sorted((root / "proc").glob("[0-9]*")))
        for process in (_believed(root, unit, pid, str(main)) for pid in pids):
            if process is not None and _is_bare(process.arguments):
                yield process


def _believed(root: Path, unit: str, pid: int, parent: str = "") -> Process | None:
    """Return a process if it is root's, of this parent (empty: any), and in the namespaces of process 1."""
    try:
        held = os.open(root / "proc" / str(pid), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    # By what is held it stays the same process, whoever has its number later.
    folder = Path(f"/proc/self/fd/{held}")
    try:
        return _looked_at(root, folder, Process(pid, _words(folder), unit), parent)
    finally:
        os.close(held)


def _looked_at(root: Path, folder: Path, process: Process, parent: str) -> Process | None:
    lines = (line.partition(":") for line in (read_text(folder / "status") or "").splitlines())
    status = {key: value.split() for key, _, value in lines}
    if parent and status.get("PPid") != [parent]:
        return None
    if status.get("Uid") != ["0"] * 4 or status.get("NSpid") != [str(process.pid)]:
        return None
    mounts = _root_mounts(root / "proc/1")
    return process if mounts and _root_mounts(folder) == mounts else None


def _words(folder: Path) -> tuple[str, ...]:
    words = tuple(word for word in (read_text(folder / "cmdline") or "").split("\0") if word)
    # k3s shows its command line as one word with spaces.
    return tuple(words[0].split()) if len(words) == 1 else words


def _root_mounts(process: Path) -> list[str]:
    """Return the ids of what is mounted on a process's root."""
    rows = (line.split() for line in (read_text(process / "mountinfo") or "").splitlines())
    return [row[0] for row in rows if row[4:5] == ["/"]]


def _is_kubelet(words: Sequence[str]) -> bool:
    if words and PurePosixPath(words[0]).name == "k3s":
        return len(words) > 1 and words[1] in _WITHIN_K3S
    return _is_bare(words)


def _is_bare(words: Sequence[str]) -> bool:
    return bool(words) and PurePosixPath(words[0]).name == "kubelet"
