"""The kubelets that run on this machine, by their units.

A name proves nothing: any user, and any container, may call a process `kubelet`. We believe systemd's word
for the main process of a system unit, which only root can make, and for the children of that process: RKE2
and k0s start the kubelet so. In case its number is another process's now, that one must also be root's, and
see the same processes and files as process 1. A main process that does not is reported with the reason, and
not used: its paths may be other files than ours. Other processes are not even reported.

Namespaces are found from files that anybody may read. Our units cannot read the links in /proc/PID/ns: they
have no capabilities, and may not look at a process that has some.
Source: Linux, fs/proc/array.c (NSpid), fs/proc_namespace.c (mountinfo, whose ids no two mounts share);
fs/proc/namespaces.c asks for PTRACE_MODE_READ.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Iterator, Mapping, Sequence

from fencer.guest.orders import shown
from fencer.guest.places import UNITS
from fencer.guest.system import Run, read_text

_NAMES = ("kubelet", "k3s", "rke2", "k0s", "snap.microk8s")
_WITHIN_K3S = (("server",), ("agent",))
_MOST = 1 << 16
"""Bytes of a process's status, or of its command line, which anybody can make very long.
Source: prctl(2), PR_SET_MM_MAP."""


@dataclass(frozen=True)
class Process:
    """A process that is a kubelet, or has one inside (k3s, MicroK8s).

    Attributes:
        pid: Its process id.
        arguments: Its command line; k3s hides most of its own.
        unit: The systemd unit whose main process it is, or whose main process is its parent.
        doubt: Why it is not believed, for people; empty: it is.
    """

    pid: int
    arguments: tuple[str, ...]
    unit: str
    doubt: str = ""

    def option(self, name: str) -> str:
        """Return the value of a kubelet's option; empty: it has none (k3s's own options are different)."""
        if _name(self.arguments) != "kubelet":
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
        units: The known kubelet units that run, or are being started or stopped.
        processes: The kubelets that are believed; their units may have other names.
        doubted: Those that are not, at most one per unit. What they say does not count.
    """

    units: tuple[str, ...]
    processes: tuple[Process, ...]
    doubted: tuple[Process, ...] = ()

    @property
    def of_processes(self) -> tuple[str, ...]:
        """The units of all these processes, believed or not: only root makes units."""
        return tuple(process.unit for process in (*self.processes, *self.doubted))


def running(root: Path, run: Run) -> Running:
    """Find the kubelets.

    Args:
        root: Of the file system.
        run: Runs commands.
    """
    main = dict(_main_processes(run))
    found = [process for unit, pid in main.items() if pid for process in _kubelets(root, unit, pid)]
    doubted = {process.unit: process for process in found if process.doubt}
    return Running(
        tuple(unit for unit in UNITS if unit in main),
        tuple(process for process in found if not process.doubt),
        tuple(doubted.values()),
    )


def _main_processes(run: Run) -> Iterator[tuple[str, int]]:
    """Yield each unit that may be a kubelet's and runs, and its main process; 0: it has none."""
    patterns = [f"{name}*.service" for name in _NAMES]
    for said in shown(run, "Id,ActiveState,MainPID", patterns):
        if said.get("ActiveState") in ("active", "reloading", "activating", "deactivating"):
            pid = said.get("MainPID", "")
            yield said.get("Id", ""), int(pid) if re.fullmatch("[0-9]{1,10}", pid) else 0


def _kubelets(root: Path, unit: str, main: int) -> Iterator[Process]:
    """Yield the main process of a unit, if it is a kubelet, else those of its children that are."""
    first = _seen(root, unit, main)
    if first is None:
        return
    if _is_kubelet(first.arguments) or (first.doubt and unit in UNITS):
        yield first
    elif not first.doubt:
        pids = (int(folder.name) for folder in sorted((root / "proc").glob("[0-9]*")))
        for process in (_seen(root, unit, pid, str(main)) for pid in pids):
            if process is not None and _name(process.arguments) == "kubelet":
                yield process


def _seen(root: Path, unit: str, pid: int, parent: str = "") -> Process | None:
    """Return a process with this parent (empty: any); doubted unless it is root's, with process 1's view."""
    try:
        held = os.open(root / "proc" / str(pid), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    # The open handle stays with this process, even if its number is used again.
    folder = Path(f"/proc/self/fd/{held}")
    try:
        lines = (line.partition(":") for line in read_text(folder / "status", _MOST).splitlines())
        status = {key: value.split() for key, _, value in lines}
        if not status or (parent and status.get("PPid") != [parent]):
            return None
        why = _doubt(root, folder, pid, status)
        doubt = f"{unit} runs as process {pid}, which is not believed: {why}" if why else ""
        return Process(pid, _words(folder), unit, doubt)
    finally:
        os.close(held)


def _doubt(root: Path, folder: Path, pid: int, status: Mapping[str, Sequence[str]]) -> str:
    uids = status.get("Uid", [])
    if uids != ["0"] * 4:
        return f"its user is {'/'.join(sorted(set(uids)))}; it has to be root"
    if status.get("NSpid") != [str(pid)]:
        return "it has a pid namespace of its own; it has to be in that of process 1"
    mounts, ours = _root_mounts(folder), _root_mounts(root / "proc/1")
    if not mounts or not ours:
        return "its mounts are not told, or those of process 1"
    own = "it has a mount namespace of its own; its unit has to do without PrivateTmp= and the like"
    return "" if mounts == ours else own


def _words(folder: Path) -> tuple[str, ...]:
    words = tuple(word for word in read_text(folder / "cmdline", _MOST).split("\0") if word)
    # k3s shows its command line as one word with spaces.
    return tuple(words[0].split()) if len(words) == 1 else words


def _root_mounts(process: Path) -> list[bytes]:
    """Return the ids of the mounts on a process's root; pods can make 100,000 mounts."""
    try:
        with (process / "mountinfo").open("rb") as file:
            rows = (line.split(maxsplit=5) for line in file)
            return [row[0] for row in rows if row[4:5] == [b"/"]]
    except OSError:
        return []


def _is_kubelet(words: tuple[str, ...]) -> bool:
    name = _name(words)
    return name in ("kubelet", "kubelite") or (name == "k3s" and words[1:2] in _WITHIN_K3S)


def _name(words: Sequence[str]) -> str:
    return PurePosixPath(words[0]).name if words else ""
