"""What an endpoint's host says besides VirtualBox: its processes, its boot, and where a folder is.

It is asked where VBoxManage runs, and as the same user: by the endpoint's command, with ``ps``, ``cat`` or
``find`` in the place of VBoxManage. A command that does not end with VBoxManage is a script. Nobody knows
what it does with other words, so it gets none.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from fencer.core.text import printable
from fencer.errors import HypervisorError
from fencer.hypervisors.virtualbox import processes
from fencer.hypervisors.virtualbox.budget import Budget
from fencer.hypervisors.virtualbox.ended import Place, Scene
from fencer.hypervisors.virtualbox.parse import Machine
from fencer.hypervisors.virtualbox.processes import Process, Unlisted, parse_processes
from fencer.hypervisors.virtualbox.run import ANY, Output, Runner

LOCAL: Final = frozenset(
    {
        "bcachefs",
        "btrfs",
        "exfat",
        "ext2",
        "ext3",
        "ext4",
        "f2fs",
        "jfs",
        "ntfs3",
        "tmpfs",
        "vfat",
        "xfs",
        "zfs",
    }
)
"""File systems that only one host at a time can have. Others may be shared, or be on top of a shared one."""

_MACHINE_ID = re.compile(r"([0-9a-f]{32})\n?")
_UID = re.compile(r"^Uid:\t(\d{1,10})\t", re.MULTILINE)
_BTIME = re.compile(r"^btime (\d{1,11})$", re.MULTILINE)
_PLACE = re.compile(r"([\w.]+),(\d{1,11}\.\d+),([\w.]+),-?\d+\.\d+,")
_PATH = re.compile(r"/(?:[\w.,:+@=%/-]| (?=\w))*")
"""No word of a shell's, and no blank before a dash: also unquoted it would be names of files."""


class Untold(Exception):
    """The host gives no answer; the text says why, for people."""


class Refused(Untold):
    """It was asked, and refused."""


class Host:
    """The host of one endpoint. Safe from any thread.

    Args:
        endpoint: The endpoint's name.
        command: Its command for VBoxManage.
        rest_s: How long a refused list is not asked for again: sudo reports each refusal.
        now_s: The agent's monotonic clock.
    """

    def __init__(
        self, endpoint: str, command: Sequence[str], rest_s: float, now_s: Callable[[], float]
    ) -> None:
        prefix, program = tuple(command[:-1]), PurePosixPath(command[-1]).name
        self._runner = Runner(endpoint, prefix, ANY) if program == "VBoxManage" else None
        self._shells = sum(PurePosixPath(word).name == "ssh" for word in prefix)
        self._rest_s = rest_s
        self._now_s = now_s
        self._refused: tuple[float, str] | None = None
        self._lock = threading.Lock()

    def registry(self, budget: Budget) -> str:
        """Name the registry of machines there, like no other: by its host's own id and the user's number.

        Returns:
            Empty: the command is none by which a host can be asked, or the host has no such id.

        Raises:
            Untold: it did not answer now.

        Source: machine-id(5); proc(5), ``/proc/pid/status``.
        """
        if self._runner is None:
            return ""
        try:
            machine = _MACHINE_ID.fullmatch(self._ask(budget, "cat", "/etc/machine-id"))
            user = _UID.search(self._ask(budget, "cat", "/proc/self/status"))
        except Refused:
            return ""
        return f"{machine[1]}/{user[1]}" if machine and user else ""

    def listed(self, budget: Budget) -> Scene:
        """Return a scene with only the host's processes."""
        try:
            return Scene(self._processes(budget))
        except Untold as error:
            return Scene(untold=str(error))

    def with_boot(self, scene: Scene, budget: Budget) -> Scene:
        """Add the host's boot time to a scene; nothing if it has no list."""
        return self._with(scene, lambda: replace(scene, booted_s=self._booted_s(budget)))

    def with_place(self, scene: Scene, machine: Machine, budget: Budget) -> Scene:
        """Add a machine's place to a scene; nothing if it has no list."""
        return self._with(scene, lambda: replace(scene, place=self._place(machine, budget)))

    def _with(self, scene: Scene, more: Callable[[], Scene]) -> Scene:
        if scene.processes is None:
            return scene
        try:
            return more()
        except Untold as error:
            return replace(scene, untold=str(error))

    def _processes(self, budget: Budget) -> tuple[Process, ...]:
        """List all processes of the host.

        Raises:
            Untold: it cannot be had, or does not hold all.
        """
        with self._lock:
            refused = self._refused
        if refused and self._now_s() - refused[0] < self._rest_s:
            raise Untold(refused[1])
        try:
            return parse_processes(self._ask(budget, *processes.COMMAND))
        except (Refused, Unlisted) as error:
            with self._lock:
                self._refused = (self._now_s(), str(error))
            raise Untold(str(error)) from error

    def _booted_s(self, budget: Budget) -> float:
        """Return when the host was booted, in seconds since 1970.

        Raises:
            Untold: it does not tell.

        Source: proc(5), ``btime``.
        """
        found = _BTIME.search(self._ask(budget, "cat", "/proc/stat"))
        if found is None:
            raise Untold("/proc/stat there has no btime")
        return float(found[1])

    def _place(self, machine: Machine, budget: Budget) -> Place:
        """Return where a machine is stored, links followed.

        Raises:
            Untold: it cannot be found out.

        Source: find(1) of GNU, ``%F`` and ``%T@``.
        """
        paths = [self._quoted(path) for path in (machine.settings_file, machine.log_folder)]
        said = self._ask(budget, "find", "-L", *paths, "-maxdepth", "0", "-printf", "%F,%T@,")
        found = _PLACE.fullmatch(said)
        if found is None:
            raise Untold("`find` there does not tell of its settings file and its logs")
        shared = next((kind for kind in (found[1], found[3]) if kind not in LOCAL), "")
        return Place(shared, float(found[2]))

    def close(self) -> None:
        """End all running commands. Never blocks."""
        if self._runner:
            self._runner.close()

    def _quoted(self, path: str) -> str:
        if not _PATH.fullmatch(path):
            raise Untold("its folder has a name that is not safe in a shell (use a plain one)")
        for _ in range(self._shells):
            path = shlex.quote(path)
        return path

    def _ask(self, budget: Budget, *words: str) -> str:
        if self._runner is None:
            raise Untold("only a command that ends with VBoxManage can ask its host")
        try:
            output = self._runner.run(*words, deadline_s=budget.next_s())
        except HypervisorError as error:
            raise Untold(f"`{words[0]}` there failed: {str(error).partition('. ')[0]}") from error
        if output.code != 0:
            raise Refused(f"`{words[0]}` there failed: {_last_words(output)}")
        return output.stdout


def _last_words(output: Output) -> str:
    lines = [line.strip() for line in output.stderr.split("\n") if line.strip()]
    return printable(lines[-1])[:120] if lines else f"exit code {output.code}"
