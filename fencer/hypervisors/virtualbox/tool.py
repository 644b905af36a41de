"""VBoxManage asked and answered: settings, the time it may take, and its answers as values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fencer.errors import GuestNotFound, HypervisorError, HypervisorProtocol
from fencer.hypervisors.virtualbox.budget import Budget
from fencer.hypervisors.virtualbox.errors import (
    ACCESS_DENIED,
    IN_BETWEEN,
    PASSING,
    code_of,
    failure,
    hangs,
    kind_of,
    meets_leaving_server,
)
from fencer.hypervisors.virtualbox.parse import (
    NAME_OF_INACCESSIBLE,
    Listed,
    LogHead,
    Machine,
    Malformed,
    parse_list,
    parse_log_head,
    parse_logged_uuid,
    parse_machine,
    parse_version,
)
from fencer.hypervisors.virtualbox.run import Late, Output, Runner
from fencer.hypervisors.virtualbox.settings import VirtualBoxSettings

PROGRAM = Path("/usr/lib/virtualbox/VBoxManage")
"""Where Debian's and Oracle's packages have the program; theirs on PATH is a script around it."""

ASKINGS = 3
ASKING_PAUSE_S = 0.3
"""How often a machine is asked whose process comes or goes, which takes some tenths of a second."""

LOG_HEAD_BYTES = 8192
"""As much of a log as says how its run began, with a long list of extension packs before that."""
LOG_BYTES = 8 * 1024 * 1024
"""As much as is read for the end of a run; a week of one takes some 0.2 MB."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A machine that is registered, and says nothing of its state.

    Attributes:
        why: For people.
        passing: It is on the way from one state to another.
        way_out: What would change it, if waiting does not; empty: not known.
    """

    why: str
    passing: bool = False
    way_out: str = ""


_INACCESSIBLE = Unreadable(
    "inaccessible: its settings file cannot be read", way_out="its settings file readable again"
)


class Tool:
    """One endpoint's VBoxManage. Safe from any thread.

    Each method but `close` raises HypervisorUnreachable, HypervisorDenied and HypervisorProtocol, and where
    it is about a machine GuestNotFound.

    Args:
        settings: Of the endpoint.
    """

    def __init__(self, settings: VirtualBoxSettings) -> None:
        self._settings = settings
        self._runner = Runner(settings.name, _around_wrapper(settings.command))

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

    def show(self, listed: Listed, budget: Budget, most_s: float | None = None) -> Machine | Unreadable:
        """Read one machine; one whose process comes or goes is asked again.

        Args:
            listed: The machine.
            budget: Of the call.
            most_s: Seconds for each asking; None: those of any reading.

        Raises:
            Late: besides the others.
        """
        uuid = listed.uuid
        for _ in range(ASKINGS):
            output = self._read(budget, "showvminfo", uuid, "--machinereadable", most_s=most_s)
            code = code_of(output) if output.code != 0 else None
            known_inaccessible = code == ACCESS_DENIED and listed.name == NAME_OF_INACCESSIBLE
            if known_inaccessible or code not in {*PASSING, *IN_BETWEEN}:
                break
            self.rest(ASKING_PAUSE_S)
        if code == ACCESS_DENIED and (known_inaccessible or self._calls_inaccessible(uuid, budget)):
            return _INACCESSIBLE
        if code in PASSING:
            return Unreadable(f"on the way to another state: {PASSING[code]} (0x{code:08x})", passing=True)
        return Unreadable(IN_BETWEEN[code]) if code in IN_BETWEEN else self._shown(output, uuid)

    def _calls_inaccessible(self, uuid: str, budget: Budget) -> bool:
        return Listed(uuid, NAME_OF_INACCESSIBLE) in self.machines(budget)

    def _shown(self, output: Output, uuid: str) -> Machine | Unreadable:
        if output.code != 0:
            raise self._failure(output, f"cannot read machine {uuid}", uuid)
        try:
            return parse_machine(output.stdout, uuid) or _INACCESSIBLE
        except Malformed as error:
            raise self._garbled(f"showvminfo {uuid}", error) from error

    def log_head(self, uuid: str, budget: Budget, enough_bytes: int = LOG_HEAD_BYTES) -> LogHead | None:
        """Read the head of the machine's newest log; None where there is none that can be read."""
        output = self._read(budget, "showvminfo", uuid, "--log", "0", enough_bytes=enough_bytes)
        if output.code != 0 and kind_of(output) is GuestNotFound:
            # Unregistered since its state was read, which is no word against that state.
            raise self._failure(output, f"cannot read the log of machine {uuid}", uuid)
        try:
            return parse_log_head(output.stdout, is_cut=output.is_cut) if output.code == 0 else None
        except Malformed:
            return None

    def logged_uuid(self, uuid: str, budget: Budget) -> str:
        """Return what UUID a machine's guest sees, by its newest log, which one that hangs has, too.

        Empty: it is not told there.
        """
        output = self._read(budget, "showvminfo", uuid, "--log", "0", enough_bytes=LOG_HEAD_BYTES)
        return parse_logged_uuid(output.stdout) if output.code == 0 else ""

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
        try:
            output = self._read(budget, *words)
        except Late as error:
            raise Late(f"{error}. {hangs(self._settings.tool)}") from error
        if output.code != 0:
            raise self._failure(output, f"cannot {doing}")
        return output.stdout

    def _read(
        self, budget: Budget, *words: str, enough_bytes: int | None = None, most_s: float | None = None
    ) -> Output:
        run = partial(self._runner.run, *words, enough_bytes=enough_bytes, again_s=self._settings.again_s)
        output = run(deadline_s=budget.next_s(most_s))
        if meets_leaving_server(output) and budget.left_s() > 0:
            return run(deadline_s=budget.next_s(most_s))
        return output

    def _failure(self, output: Output, doing: str, uuid: str = "") -> HypervisorError:
        return failure(output, doing, self._settings.name, self._settings.tool, uuid)

    def _garbled(self, words: str, error: Malformed) -> HypervisorProtocol:
        return HypervisorProtocol(
            f"{self._settings.name}: `{self._settings.tool} {words}` gave {error}. A script around the "
            "program prints words of its own: call /usr/lib/virtualbox/VBoxManage itself"
        )


def _around_wrapper(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program, not the script around it: that warns on stdout, and may delete VBoxSVC's socket.

    Source: Debian's virtualbox package, /usr/bin/VBoxManage.
    """
    return (str(PROGRAM),) if command == ("VBoxManage",) and PROGRAM.exists() else command
