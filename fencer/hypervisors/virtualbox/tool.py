"""VBoxManage asked and answered: settings, the time it may take, and its answers as values."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import GuestNotFound, HypervisorError, HypervisorProtocol, HypervisorUnreachable
from fencer.hypervisors.virtualbox.errors import (
    ACCESS_DENIED,
    IN_BETWEEN,
    INACCESSIBLE,
    PASSING,
    code_of,
    failure,
    kind_of,
)
from fencer.hypervisors.virtualbox.parse import (
    NAME_OF_INACCESSIBLE,
    Listed,
    LogHead,
    Machine,
    Malformed,
    parse_list,
    parse_log_head,
    parse_machine,
    parse_version,
)
from fencer.hypervisors.virtualbox.run import Late, Output, Runner

PROGRAM = Path("/usr/lib/virtualbox/VBoxManage")
"""Where Debian's and Oracle's packages have the program; theirs on PATH is a script around it."""

ASKINGS = 3
ASKING_PAUSE_S = 0.3
"""How often a machine is asked whose process comes or goes, which takes some tenths of a second."""

LOG_HEAD_BYTES = 8192
"""As much of a log as says how its run began, with a long list of extension packs before that."""


@dataclass(frozen=True, slots=True)
class VirtualBoxSettings:
    """Which endpoint, and how patient to be with it.

    All that happens in one call of the port ends within the 10 s that a call has, or the 15 s of a power-off.

    Attributes:
        endpoint: The endpoint's name in the configuration.
        command: VBoxManage, and what stands before it: ``("ssh", "me@box", "VBoxManage")``. The name alone is
            the program itself where it is installed as usual.
        look_s: Seconds for all processes of one sweep or reading together.
        read_s: Seconds for one of them.
        off_s: Seconds for a power-off before the machine's process is killed instead.
        kill_s: Seconds for that.
        start_s: Seconds for a start, which waits until the last run has let go, and until the machine runs.
        rest_s: Seconds for which sweeps do not ask again a machine that did not answer.
        parallel: Readings at a time in a sweep; sshd turns away more than ten that knock at once.
    """

    endpoint: str
    command: tuple[str, ...] = ("VBoxManage",)
    look_s: float = 9.0
    read_s: float = 4.0
    off_s: float = 6.0
    kill_s: float = 5.0
    start_s: float = 13.0
    rest_s: float = 30.0
    parallel: int = 4

    @property
    def tool(self) -> str:
        """The command as people would type it."""
        return printable(" ".join(self.command))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A machine that is registered, and says nothing of its state.

    Attributes:
        why: For people.
        passing: It is on the way from one state to another.
    """

    why: str
    passing: bool = False


class Budget:
    """How long the processes of one call of the port may take together, counted from here.

    Args:
        settings: Of the endpoint.
    """

    def __init__(self, settings: VirtualBoxSettings) -> None:
        self._endpoint = settings.endpoint
        self._each_s = settings.read_s
        self._until_s = time.monotonic() + settings.look_s

    def next_s(self) -> float:
        """Return the seconds that the next process may take.

        Raises:
            HypervisorUnreachable: none are left.
        """
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise HypervisorUnreachable(
                f"{self._endpoint}: no time was left to ask; other machines hang there"
            )
        return min(self._each_s, left_s)


class Tool:
    """One endpoint's VBoxManage. Safe from any thread.

    Each method but `close` raises HypervisorUnreachable, HypervisorDenied and HypervisorProtocol, and where
    it is about a machine GuestNotFound.

    Args:
        settings: Of the endpoint.
    """

    def __init__(self, settings: VirtualBoxSettings) -> None:
        self._settings = settings
        self._runner = Runner(settings.endpoint, _around_wrapper(settings.command))

    def version(self, budget: Budget) -> str:
        """Ask for VirtualBox's version, like ``7.2.22_Debianr175245``."""
        try:
            return parse_version(self._ask("tell its version", budget, "--version"))
        except Malformed as error:
            raise self._garbled("--version", error) from error

    def machines(self, budget: Budget) -> tuple[Listed, ...]:
        """List all machines of the registry."""
        try:
            return parse_list(self._ask("list its machines", budget, "list", "vms"))
        except Malformed as error:
            raise self._garbled("list vms", error) from error

    def show(self, listed: Listed, budget: Budget) -> Machine | Unreadable:
        """Read one machine; one whose process comes or goes is asked again.

        Raises:
            Late: besides the others.
        """
        uuid = listed.uuid
        for _ in range(ASKINGS):
            try:
                output = self._runner.run("showvminfo", uuid, "--machinereadable", deadline_s=budget.next_s())
            except Late as error:
                raise Late(
                    f"{error}. The machine's process may hang: then only "
                    f"`{self._settings.tool} startvm {uuid} --type emergencystop` ends it"
                ) from error
            code = code_of(output) if output.code != 0 else None
            known_inaccessible = code == ACCESS_DENIED and listed.name == NAME_OF_INACCESSIBLE
            if known_inaccessible or code not in {*PASSING, *IN_BETWEEN}:
                break
            self.rest(ASKING_PAUSE_S)
        if code == ACCESS_DENIED and (known_inaccessible or self._calls_inaccessible(uuid, budget)):
            return Unreadable(INACCESSIBLE)
        if code in PASSING:
            return Unreadable(f"on the way to another state: {PASSING[code]} (0x{code:08x})", passing=True)
        return Unreadable(IN_BETWEEN[code]) if code in IN_BETWEEN else self._shown(output, uuid)

    def _calls_inaccessible(self, uuid: str, budget: Budget) -> bool:
        return Listed(uuid, NAME_OF_INACCESSIBLE) in self.machines(budget)

    def _shown(self, output: Output, uuid: str) -> Machine | Unreadable:
        if output.code != 0:
            raise self._failure(output, f"cannot read machine {uuid}", uuid)
        try:
            return parse_machine(output.stdout, uuid) or Unreadable(INACCESSIBLE)
        except Malformed as error:
            raise self._garbled(f"showvminfo {uuid}", error) from error

    def log_head(self, uuid: str, budget: Budget) -> LogHead | None:
        """Read the head of the machine's newest log; None where there is none that can be read."""
        words = ("showvminfo", uuid, "--log", "0")
        output = self._runner.run(*words, deadline_s=budget.next_s(), enough_bytes=LOG_HEAD_BYTES)
        if output.code != 0 and kind_of(output) is GuestNotFound:
            # Unregistered since its state was read, which is no word against that state.
            raise self._failure(output, f"cannot read the log of machine {uuid}", uuid)
        try:
            return parse_log_head(output.stdout) if output.code == 0 else None
        except Malformed:
            return None

    def order(self, doing: str, uuid: str, deadline_s: float, *words: str) -> None:
        """Have something done to a machine.

        Args:
            doing: What, for people: ``stop lab/k8s-1``.
            uuid: To which.
            deadline_s: How long it may take.
            words: The command's words, the UUID among them.

        Raises:
            Late, Locked: besides the others.
        """
        output = self._runner.run(*words, deadline_s=deadline_s)
        if output.code != 0:
            raise self._failure(output, f"cannot {doing}", uuid)

    def rest(self, seconds: float) -> None:
        """Wait, unless everything ends."""
        self._runner.rest(seconds)

    def close(self) -> None:
        """End what runs; from now on everything is unreachable. Never blocks."""
        self._runner.close()

    def _ask(self, doing: str, budget: Budget, *words: str) -> str:
        output = self._runner.run(*words, deadline_s=budget.next_s())
        if output.code != 0:
            raise self._failure(output, f"cannot {doing}")
        return output.stdout

    def _failure(self, output: Output, doing: str, uuid: str = "") -> HypervisorError:
        return failure(output, doing, self._settings.endpoint, self._settings.tool, uuid)

    def _garbled(self, words: str, error: Malformed) -> HypervisorProtocol:
        return HypervisorProtocol(
            f"{self._settings.endpoint}: `{self._settings.tool} {words}` gave {error}. A script around the "
            "program prints words of its own: call /usr/lib/virtualbox/VBoxManage itself"
        )


def _around_wrapper(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program, not the script around it: that warns on stdout, and may delete VBoxSVC's socket.

    Source: Debian's virtualbox package, /usr/bin/VBoxManage.
    """
    return (str(PROGRAM),) if command == ("VBoxManage",) and PROGRAM.exists() else command
