"""Whether a machine that VirtualBox reports off is off. Pure.

VirtualBox writes state and date down at an *end* that it sees. Of a run that ends with its host, or with a
VBoxSVC that is killed, it sees none: from then on it reports the end before that run, for good. A second
VBoxSVC of the same user reports the same about a machine that *runs*: it does not know the first one's.
Either way the machine's own log, a new one for each run, is younger than the state. Then only the host can
tell: whether a process may be that run's, whether the run is older than the host's boot, whether another host
may have it.

Source: VirtualBox 7.2.22, a host's power loss, VBoxSVC killed, two VBoxSVC of one user over a running
machine: VMState="poweroff", with a VMStateChangeTime before the machine's log was opened. But where the
settings file was written during the run (a snapshot does), it holds a date of that run: the second server
calls a machine that runs off since *after* its log was opened. So an off without doubt is one of which the
log itself tells: it does so of every end but a killed process's, also of a start that failed. And of a
machine that was teleported, which runs on elsewhere, only its log tells for long: once VBoxSVC has gone, 5 s
after its last client, the next one calls it ``poweroff``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from fencer.hypervisors.virtualbox.parse import LogHead, Machine, moment_of
from fencer.hypervisors.virtualbox.processes import Process, Suspects

ABORTED_FOR_S: Final = 20.0
"""How long ``aborted`` alone is no end yet: a machine's process outlived a killed VBoxSVC by up to 15 s."""
QUIET_S: Final = 20.0
"""How long a run that began since the host's boot must have no process."""
CLOCK_S: Final = 5.0
"""A host's boot may be dated this much too late: its clock is set while it boots."""
START_WRITES_S: Final = 0.25
"""How long after the log is opened a start itself may write the settings file."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a machine is stored.

    Attributes:
        shared_by: The first file system that other hosts may have as well; empty: there is none.
        written_s: When its settings file was last written, in seconds since 1970.
    """

    shared_by: str
    written_s: float


@dataclass(frozen=True, slots=True)
class Scene:
    """What the host said, after VirtualBox.

    Attributes:
        processes: All of the host; None: there is no complete list.
        booted_s: When the host was booted, in seconds since 1970; None: not asked, or not told.
        place: Where the machine is stored; None: not asked, or not known.
        untold: Why something is missing, for people.
    """

    processes: tuple[Process, ...] | None = None
    booted_s: float | None = None
    place: Place | None = None
    untold: str = "its host was not asked"


@dataclass(frozen=True, slots=True)
class Traces:
    """All that is known when a machine reads off.

    Attributes:
        machine: What VirtualBox says, its state dated as exactly as it ever was.
        log: The head of its newest log.
        scene: What the host told.
        suspects: Processes that may run the machine, from the last list that could be had.
        lived_here: This process has seen the run of that log alive.
        seen_for_s: For how long this process has seen the machine in that state.
        quiet_for_s: For how long no process was seen that may be that run's; None: not once.
    """

    machine: Machine
    log: LogHead
    scene: Scene
    suspects: Suspects
    lived_here: bool
    seen_for_s: float
    quiet_for_s: float | None


class Ending(Enum):
    """How much an off reading proves."""

    OVER = "it is off"
    SOON = "it will be, or it will show"
    OPEN = "it may run"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What follows from a `Traces`.

    Attributes:
        ending: The result.
        why: For people, to follow VirtualBox's own words; empty: these say it all.
        way_out: What would change an OPEN one, for people.
    """

    ending: Ending
    why: str = ""
    way_out: str = ""


def is_contradicted(machine: Machine, log: LogHead) -> bool:
    """Whether a machine's log is younger than its state."""
    return log.opened > machine.changed


def untold_of(scene: Scene, *, with_place: bool) -> str:
    """Say why a host does not say all that an end may depend on; empty: it does.

    Args:
        scene: What it was asked.
        with_place: Whether it was also asked where a machine is stored.
    """
    missing = scene.processes is None or scene.booted_s is None or (with_place and scene.place is None)
    return scene.untold if missing else ""


def needs_place(machine: Machine, log: LogHead) -> bool:
    """Whether it matters where a machine that reads off is stored, and when its host was booted."""
    return not log.ended or is_contradicted(machine, log)


def find(look: Traces) -> Conclusion:
    """Judge a machine that VirtualBox reports off."""
    if look.suspects.own:
        return _of_living(look, look.suspects.own)
    if look.log.away:
        return Conclusion(Ending.OPEN, "but its log ends with a teleport: it may run on elsewhere", WAY_BACK)
    if look.log.is_cut and not look.suspects.any:
        why = "but its log is too long to be read to its end: the machine may have been teleported"
        return Conclusion(Ending.OPEN, why, WAY_BACK)
    return _of_unknown_run(look) if is_contradicted(look.machine, look.log) else _of_dated_end(look)


def _of_living(look: Traces, own: Process) -> Conclusion:
    """Judge a machine whose own process is there: it runs until that has gone, no matter what is said.

    So this is never `Ending.OPEN`, which a person's word may close.
    """
    there = f"{own} is still there"
    if look.scene.processes is None:
        there = f"{own} was there when its host last told, which it does not do now: {look.scene.untold}"
    if is_contradicted(look.machine, look.log):
        return Conclusion(Ending.SOON, f"{_began(look)}, and {there}", _its_end(own, look.machine))
    if look.seen_for_s < ABORTED_FOR_S:
        return Conclusion(Ending.SOON, f"but {there}")
    return Conclusion(Ending.SOON, f"for {look.seen_for_s:.0f} s, but {there}", _its_end(own, look.machine))


def _of_dated_end(look: Traces) -> Conclusion:
    if look.log.ended:
        return Conclusion(Ending.OVER)
    doubt = _untold(look) or (f"{look.suspects.any} may be its own" if look.suspects.any else "")
    if look.machine.state.startswith("aborted"):
        return _of_aborted(look, doubt)
    told = "but its log tells of no end"
    return Conclusion(Ending.OPEN, f"{told}, and {doubt}", _way_out(look)) if doubt else _by_quiet(look, told)


def _of_aborted(look: Traces, doubt: str) -> Conclusion:
    """Judge an end that the log does not show.

    Time alone ends a doubt only where no process is there, and only of a run that this VBoxSVC was heard to
    run: of another one's it may tell an end before that run, with a date after the log if a clock was set
    back in between, or is another host's.
    """
    seen_s = look.seen_for_s
    by_time = look.lived_here and look.suspects.any is None and seen_s >= ABORTED_FOR_S
    if not doubt or by_time:
        return Conclusion(Ending.OVER)
    if seen_s < ABORTED_FOR_S:
        why = f"seen for {seen_s:.0f} s; its process may live for {ABORTED_FOR_S:.0f} s"
        return Conclusion(Ending.SOON, why)
    return Conclusion(Ending.OPEN, f"for {seen_s:.0f} s, but {doubt}", _way_out(look))


def _of_unknown_run(look: Traces) -> Conclusion:
    opened, booted_s, place = look.log.opened, look.scene.booted_s, look.scene.place
    began = _began(look)
    if suspect := look.suspects.any:
        way_out = f"process {suspect.pid} ended, or the VBoxSVC asked that runs it. {SECOND_SERVER}"
        return Conclusion(Ending.OPEN, f"{began}, and {suspect} may be it", way_out)
    if untold := _untold(look):
        return Conclusion(Ending.OPEN, f"{began}, and {untold}", _way_out(look))
    if booted_s is not None and opened < moment_of(booted_s - CLOCK_S):
        boot = f"its host was booted at {date(moment_of(booted_s))}"
        return Conclusion(Ending.OVER, f"{began}, but it is over: {boot}, and no process of it is there")
    if place and opened < moment_of(place.written_s - START_WRITES_S) and not _is_read_since(look):
        written = f"its settings file was written at {date(moment_of(place.written_s))}"
        return Conclusion(Ending.OPEN, f"{began}, and {written}: it may tell of another end", WAY_OUT)
    return _by_quiet(look, began)


def _is_read_since(look: Traces) -> bool:
    """Whether what the settings file tells is known to the VBoxSVC that is asked, and no saved memory.

    Another one was asked before, and ran it: so this one began later, and read what each restored run, and a
    `setextradata`, writes there.
    """
    return look.lived_here and look.log.ended != "Saved"


def _by_quiet(look: Traces, told: str) -> Conclusion:
    """Judge by how long no process was seen, if all else is known."""
    if look.quiet_for_s is None or look.quiet_for_s < QUIET_S:
        seen = f"seen for {look.quiet_for_s or 0:.0f} of {QUIET_S:.0f} s"
        return Conclusion(Ending.SOON, f"{told}, but no process of it is there, {seen}")
    return Conclusion(Ending.OVER, f"{told}, but it is over: no process of it was there for {QUIET_S:.0f} s")


def _way_out(look: Traces) -> str:
    """Say what would change a doubt: first its host has to answer, if it does not."""
    is_told = look.scene.processes is not None and look.scene.place is not None
    return WAY_OUT if is_told else f"its host telling: {LET_THROUGH}; or {WAY_OUT}"


def _untold(look: Traces) -> str:
    """Say what is missing about the host of a run; empty: all is known."""
    scene = look.scene
    if scene.processes is None or scene.place is None:
        return f"whether it goes on cannot be told: {scene.untold}"
    if scene.place.shared_by and not look.lived_here:
        return f"another host may run it: it lies on {scene.place.shared_by}, which hosts can share"
    return ""


def _began(look: Traces) -> str:
    return f"but a run of it began at {date(look.log.opened)}: this VBoxSVC does not know of that one"


def _its_end(own: Process, machine: Machine) -> str:
    """Say what ends a process, and what else would help if two machines may have the name in it."""
    way_out = f"process {own.pid} runs it; to end it: `kill {own.pid}` on its host as the machines' user"
    if machine.uuid not in own.line.lower():
        way_out += "; or another name for this machine, if that process is another user's"
    return f"{way_out}. {SECOND_SERVER}"


SECOND_SERVER: Final = (
    "Has this user a second VBoxSVC? A service with a private /tmp starts one, and so does whoever deletes "
    "/tmp/.vbox-USER-ipc"
)
LET_THROUGH: Final = (
    "a `command` that ends with VBoxManage, and lets `ps`, `cat` and `find` of that host through in its place"
)
WAY_OUT: Final = (
    "the machine started and stopped once, which VirtualBox then records, or --confirm-guest-off WHY if you "
    "know that it is off: it can have ended with its host or with a VBoxSVC that was killed"
)
WAY_BACK: Final = (
    "the machine started and stopped once here, when it runs nowhere else, or --confirm-guest-off WHY if you "
    "know that it is off there, too"
)


def date(moment: str) -> str:
    """Return a moment for people."""
    return f"{moment[:19]}Z"
