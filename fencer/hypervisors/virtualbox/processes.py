"""A host's list of processes, and which of them may run a machine. Pure.

Sources: ps(1) of procps-ng; ``PROC_PID_INIT_INO`` in Linux' include/linux/proc_ns.h, since 3.8; proc(5) on
``hidepid``; and VirtualBox 7.2.22, whose VBoxSVC starts ``VBoxHeadless --comment NAME --startvm UUID``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fencer.core.text import printable

COMMAND: Final = ("ps", "-e", "-ww", "-o", "pid,pidns,stat,args")
"""What to ask a host. Lines as long as they are; no column but the last may hold a blank."""

_HEAD = ["PID", "PIDNS", "STAT", "COMMAND"]
_LINE = re.compile(r" *(\d+) +(\d+|-) +(\S+) +(.*)")
_OF_THE_HOST = "4026531836"
"""The number of the namespace of processes that no container has."""
_RUNS_MACHINES = re.compile(r"VBoxHeadless|VirtualBoxVM|VBoxSDL|(?<!\S)--?startvm(?!\S)")
"""Programs that run a machine if told `--startvm`: until 5.2 that was VirtualBox, which otherwise only
manages machines."""
_STARTED = re.compile(r"(?<!\S)--?(?:startvm|s)[ =](\S+)")
_UUID = re.compile(r"\{?[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}?")
"""In this form VirtualBox does not read it as a name."""
_NEVER = re.compile(r"(?!)")
_SHOWN_CHARS = 120


class Unlisted(ValueError):
    """An answer that is no list of all processes of a host; the text says why."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process.

    Attributes:
        pid: Its number.
        line: Its command line, as ps joins it.
    """

    pid: int
    line: str

    def __str__(self) -> str:
        """Return it for people."""
        return f"process {self.pid} ({printable(self.line[:_SHOWN_CHARS])})"


@dataclass(frozen=True, slots=True)
class Suspects:
    """Processes that may run one machine.

    Attributes:
        own: One that names it; None: none does.
        unclear: One that runs a machine that may be this one; None: there is none.
    """

    own: Process | None = None
    unclear: Process | None = None

    @property
    def any(self) -> Process | None:
        """One of them; None: nothing on that host runs the machine."""
        return self.own or self.unclear


def parse_processes(text: str) -> tuple[Process, ...]:
    """Read the answer to `COMMAND`: all processes of a host, except zombies.

    Raises:
        Unlisted: it has another form, or not all processes: those of a container, or of one user.
    """
    head, *lines = text.removesuffix("\n").split("\n")
    found = [_LINE.fullmatch(line) for line in lines]
    if head.split() != _HEAD or not all(found):
        raise Unlisted("`ps` there answers in another form than procps' on Linux")
    whole = [line for line in found if line]
    if all(line[2] != _OF_THE_HOST for line in whole):
        raise Unlisted("`ps` there sees a container's processes only")
    if all(line[1] != "1" for line in whole):
        raise Unlisted("`ps` there does not see other users' processes (hidepid)")
    return tuple(Process(int(line[1]), line[4]) for line in whole if not _is_dead(line[3]))


def suspects(processes: Iterable[Process], uuid: str, name: str = "") -> Suspects:
    """Return the processes that may run a machine, of any user.

    One whose command line names the machine, even beside others: names of machines, which stand there too,
    are what people like. One that names others by UUID only is theirs. Of any other it cannot be told: a
    machine may be started by its name, which two can have, or a line be cut.

    Args:
        processes: All of a host.
        uuid: The machine's, in lower case.
        name: The machine's, which a process started by it counts as its own; empty: not known.
    """
    own = unclear = None
    by_name = re.compile(rf"(?<!\S)--?(?:startvm|s)[ =]{re.escape(name)}(?!\S)") if name else _NEVER
    for process in processes:
        if not _RUNS_MACHINES.search(process.line):
            continue
        named = _STARTED.findall(process.line)
        if uuid in process.line.lower() or by_name.search(process.line):
            own = own or process
        elif not named or not all(map(_UUID.fullmatch, named)):
            unclear = unclear or process
    return Suspects(own, unclear)


def _is_dead(state: str) -> bool:
    """Whether it is only a zombie. In ``Zl`` the first thread is dead, and others live."""
    return state.startswith("Z") and "l" not in state
