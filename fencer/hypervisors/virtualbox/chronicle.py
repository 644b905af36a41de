"""What one reading of a machine does not show: which run it is, how it began, and since when.

`fencer.hypervisors.virtualbox.ended` decides from what is remembered here whether to believe an "off".
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Final

from fencer.core.model import PowerState
from fencer.core.text import printable
from fencer.hypervisors.virtualbox.ended import Ending, Scene, Traces, date, find, is_contradicted
from fencer.hypervisors.virtualbox.parse import STATES, LogHead, Machine, same_moment
from fencer.hypervisors.virtualbox.processes import Suspects, suspects

_WORTH: Final = {Ending.SOON: PowerState.STOPPING, Ending.OPEN: PowerState.UNKNOWN}
_SHOWN_CHARS = 40
UNASKED: Final = Scene()
_NOBODY: Final = Suspects()


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a look at one machine.

    Attributes:
        power_state: What counts.
        settled: False while it may still change by itself.
        incarnation: Of the run, or of being off; see `fencer.core.model.Evidence`.
        cold_start: False: the run began with memory from disk. None: not known.
        raw: VirtualBox's words, escaped, and the reason if they do not count.
        way_out: What would change it, if waiting does not; empty: not known.
        away: It was teleported: it runs on elsewhere.
    """

    power_state: PowerState
    settled: bool
    incarnation: str
    cold_start: bool | None
    raw: str
    way_out: str = ""
    away: bool = False


_NONE: Final = Reading(PowerState.UNKNOWN, settled=False, incarnation="", cold_start=None, raw="")


@dataclass(frozen=True, slots=True)
class _Record:
    """The memory of one machine.

    Attributes:
        machine: As it was last read, its state dated as exactly as it ever was.
        read_at_s: When that reading began.
        state_since_s: Since when this process has seen that state, on its own clock: the host's may be wrong.
        log: The head of its log, as it was last read in that state; None: it could not be, or was not.
        lived: When the last run began that this process has seen alive; empty: none.
        suspects: Processes that may run it while it reads off, from the last available list.
        quiet_since_s: Since when it reads off with no such process in any list; None: it does not.
        reading: The result of that reading.
    """

    machine: Machine
    read_at_s: float
    state_since_s: float
    log: LogHead | None
    lived: str = ""
    suspects: Suspects = _NOBODY
    quiet_since_s: float | None = None
    reading: Reading = _NONE


class Chronicle:
    """Remembers machines from reading to reading; empty after a restart. Safe from any thread.

    Without memory, times of observation begin again, and a machine that is gone has no record of its end.
    """

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}
        self._lock = threading.Lock()

    def needs_log(self, machine: Machine) -> bool:
        """Whether the machine's log must be read too: for "off" always, otherwise after each change."""
        if not is_alive(machine):
            return is_off(machine)
        before = self._before(machine.uuid)
        return before is None or before.log is None or not _same_state(before.machine, machine)

    def take(
        self, machine: Machine, log: LogHead | None, read_at_s: float, scene: Scene = UNASKED
    ) -> tuple[Reading, bool]:
        """Take in a look at a machine, its log read after its state, and its host asked after that.

        Args:
            machine: What was read.
            log: The head of its newest log; None: not asked, or not to be read.
            read_at_s: When the look began, on the agent's clock.
            scene: What its host said, if it reads off.

        Returns:
            The result, and whether the power state is a new one.
        """
        with self._lock:
            before = self._records.get(machine.uuid)
            record = _record(before, machine, log, read_at_s, scene)
            if before is None or read_at_s >= before.read_at_s:
                self._records[machine.uuid] = record
            is_change = before is not None and before.reading.power_state is not record.reading.power_state
            return record.reading, is_change

    def machine(self, uuid: str) -> Machine | None:
        """Return a machine as it was last read; None: never."""
        before = self._before(uuid)
        return before.machine if before else None

    def end_of(self, uuid: str) -> Reading | None:
        """Return the last reading of a machine if it proved its end; None otherwise."""
        before = self._before(uuid)
        return before.reading if before and before.reading.power_state is PowerState.STOPPED else None

    def disbelieved(self) -> tuple[tuple[str, Reading], ...]:
        """Name the machines whose last reading said off and was not believed, for people."""
        with self._lock:
            records = [record for record in self._records.values() if record.reading.way_out]
        return tuple((printable(record.machine.name), record.reading) for record in records)

    def _before(self, uuid: str) -> _Record | None:
        with self._lock:
            return self._records.get(uuid)


def is_alive(machine: Machine) -> bool:
    """Whether VirtualBox says that a process runs it, and is not starting or ending."""
    return STATES.get(machine.state) in {PowerState.RUNNING, PowerState.PAUSED}


def is_off(machine: Machine) -> bool:
    """Whether VirtualBox says that no process runs it."""
    return STATES.get(machine.state) in {PowerState.STOPPED, PowerState.SAVED}


def name_of_run(log: LogHead) -> str:
    """Name a run by its log."""
    return f"run of {log.opened}"


def _record(
    before: _Record | None, machine: Machine, log: LogHead | None, read_at_s: float, scene: Scene
) -> _Record:
    now = _Record(machine, read_at_s, read_at_s, log, before.lived if before else "")
    if before is not None and _same_state(before.machine, machine):
        machine = replace(machine, changed=max(before.machine.changed, machine.changed))
        now = replace(now, machine=machine, state_since_s=before.state_since_s, log=log or before.log)
    state = STATES.get(machine.state, PowerState.UNKNOWN)
    if is_alive(machine):
        now = replace(now, lived=now.log.opened if now.log else now.lived)
        return replace(now, reading=_alive(machine, now.log))
    if not is_off(machine):
        return replace(now, reading=_not_off(machine, state))
    if log is None:
        return replace(now, reading=_without_log(machine))
    now = _watched(before, now, scene)
    return replace(now, reading=_off(now, log, scene))


def _watched(before: _Record | None, now: _Record, scene: Scene) -> _Record:
    """Take in the processes seen running a machine that reads off; without a list all stays as it was."""
    if before is not None and before.machine == now.machine and before.log == now.log:
        now = replace(now, suspects=before.suspects, quiet_since_s=before.quiet_since_s)
    if scene.processes is None:
        return now
    seen = suspects(scene.processes, now.machine.uuid, now.machine.name)
    quiet_since_s = now.read_at_s if now.quiet_since_s is None else now.quiet_since_s
    return replace(now, suspects=seen, quiet_since_s=None if seen.any else quiet_since_s)


def _same_state(before: Machine, now: Machine) -> bool:
    return before.state == now.state and same_moment(before.changed, now.changed)


def _alive(machine: Machine, run: LogHead | None) -> Reading:
    return Reading(
        power_state=STATES[machine.state],
        settled=True,
        incarnation=name_of_run(run) if run else f"alive since {machine.changed}",
        cold_start=run.cold_start if run else None,
        raw=_words(machine),
    )


def _off(now: _Record, log: LogHead, scene: Scene) -> Reading:
    """Judge a machine that reads off."""
    machine, at_s = now.machine, now.read_at_s
    quiet_for_s = None if now.quiet_since_s is None else at_s - now.quiet_since_s
    lived_here = now.lived == log.opened
    found = find(Traces(machine, log, scene, now.suspects, lived_here, at_s - now.state_since_s, quiet_for_s))
    after = f", {name_of_run(log)}" if is_contradicted(machine, log) else ""
    return Reading(
        power_state=_WORTH.get(found.ending, STATES[machine.state]),
        settled=found.ending is Ending.OVER,
        incarnation=f"{printable(machine.state)} since {machine.changed}{after}",
        cold_start=None,
        raw=", ".join(filter(None, (_words(machine), found.why))),
        way_out=found.way_out,
        away=log.away and now.suspects.own is None,
    )


def _without_log(machine: Machine) -> Reading:
    why = "but its log, which would confirm it, cannot be read"
    return replace(_not_off(machine, PowerState.UNKNOWN), raw=f"{_words(machine)}, {why}")


def _not_off(machine: Machine, state: PowerState) -> Reading:
    return Reading(
        power_state=state,
        settled=False,
        incarnation=f"{printable(machine.state)} since {machine.changed}",
        cold_start=None,
        raw=_words(machine),
        away=machine.state == "teleported",
    )


def _words(machine: Machine) -> str:
    return f"{printable(machine.state[:_SHOWN_CHARS])} since {date(machine.changed)}"
