"""The kubelets that run on this machine, by their processes and units."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Sequence

from fencer.guest.places import UNITS
from fencer.guest.system import Run, read_text

_WITHIN_K3S = ("server", "agent")
_OF_A_KUBELET = re.compile(r"(kubelet|k3s|rke2|k0s|snap\.microk8s)[A-Za-z0-9_.@-]*\.service")


@dataclass(frozen=True)
class Process:
    """A process that is a kubelet, or has one inside (k3s).

    Attributes:
        pid: Its process id.
        arguments: Its command line; k3s hides most of its own.
        unit: The systemd unit that it runs in; empty where that is no kubelet's unit.
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


def processes(root: Path) -> list[Process]:
    """Find the kubelets among the processes."""
    found = []
    for folder in sorted((root / "proc").glob("[0-9]*")):
        words = tuple(word for word in (read_text(folder / "cmdline") or "").split("\0") if word)
        # k3s shows its command line as one word with spaces.
        words = tuple(words[0].split()) if len(words) == 1 else words
        if words and _is_kubelet(words):
            found.append(Process(int(folder.name), words, _unit(read_text(folder / "cgroup") or "")))
    return found


def active_units(run: Run) -> list[str]:
    """Return those of the known kubelet units that run, or are just being started or stopped."""
    states = run(["systemctl", "is-active", *UNITS]).text.split()
    if len(states) != len(UNITS):
        return []
    return [unit for unit, state in zip(UNITS, states) if state in ("active", "activating", "deactivating")]


def _is_kubelet(words: Sequence[str]) -> bool:
    name = PurePosixPath(words[0]).name
    if name == "k3s":
        return len(words) > 1 and words[1] in _WITHIN_K3S
    return _is_bare(words)


def _is_bare(words: Sequence[str]) -> bool:
    return bool(words) and PurePosixPath(words[0]).name == "kubelet"


def _unit(cgroups: str) -> str:
    for line in cgroups.splitlines():
        _, controllers, path = (*line.split(":", 2), "", "", "")[:3]
        if controllers in ("", "name=systemd"):
            units = [part for part in path.split("/") if _OF_A_KUBELET.fullmatch(part)]
            if units:
                return units[-1]
    return ""
