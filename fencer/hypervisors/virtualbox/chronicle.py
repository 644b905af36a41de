"""What one reading of a machine does not tell: which run it is, how it began, and whether to believe "off".

VBoxManage asks VBoxSVC, a process of each OS user, and a user can have two of them: one that runs the
machines, and a second that knows nothing of it, because the first one's socket in /tmp was deleted, or is
hidden from a service with a /tmp of its own. The second calls every machine that runs ``poweroff``, in good
faith. What gives it away is the machine's own log, which each run begins anew: a state that is older than the
newest log is not true any more. So "off" counts only where the log is the older one. Both are dated by one
clock, the host's; setting it back during a run makes that run's end read UNKNOWN, until the next.

Source: VirtualBox 7.2.22, two VBoxSVC of one user over a running machine: VMState="poweroff", with a
VMStateChangeTime before the machine's log was opened. With one VBoxSVC every end was dated after the log,
also that of a start that failed.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Final

from fencer.core.model import PowerState
from fencer.core.text import printable
from fencer.hypervisors.virtualbox.parse import STATES, LogHead, Machine, same_moment

ABORTED_FOR_S: Final = 20.0
"""How long ``aborted`` is no end yet: a machine's process outlived a killed VBoxSVC by up to 15 s."""

_OFF = frozenset({PowerState.STOPPED, PowerState.SAVED})
_ALIVE = frozenset({PowerState.RUNNING, PowerState.PAUSED})
_SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class Reading:
    """What a look at one machine comes to.

    Attributes:
        power_state: What counts.
        settled: False while it may still change by itself.
        incarnation: Of the run, or of being off; see `fencer.core.model.Evidence`.
        cold_start: False: the run began with memory from disk. None: not known.
        raw: VirtualBox's words, escaped, and why they do not count where they do not.
        contradicted: The machine's log is younger than its state: this VBoxSVC does not know its runs.
        away: It was teleported: it runs on elsewhere.
    """

    power_state: PowerState
    settled: bool
    incarnation: str
    cold_start: bool | None
    raw: str
    contradicted: bool = False
    away: bool = False


@dataclass(frozen=True, slots=True)
class _Record:
    """What is remembered of one machine.

    Attributes:
        machine: As it was last read, its state dated as exactly as it ever was.
        read_at_s: When that reading began.
        state_since_s: Since when this process has seen that state, on its own clock: the host's may be wrong.
        run: The head of the log of the run that it is in; None: it is in none, or its log cannot be read.
        reading: What that reading came to.
    """

    machine: Machine
    read_at_s: float
    state_since_s: float
    run: LogHead | None
    reading: Reading


class Chronicle:
    """Remembers machines from reading to reading; empty after a restart. Safe from any thread.

    Without memory an aborted machine waits again, and a machine that is gone has no record of its end.
    """

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}
        self._lock = threading.Lock()

    def needs_log(self, machine: Machine) -> bool:
        """Whether the machine's log must be asked too: always for "off", for the living after each change."""
        state = STATES.get(machine.state)
        if state not in _ALIVE:
            return state in _OFF
        before = self._before(machine.uuid)
        return before is None or before.run is None or not _same_state(before.machine, machine)

    def take(self, machine: Machine, log: LogHead | None, read_at_s: float) -> tuple[Reading, bool]:
        """Take in a look at a machine, its log read after its state.

        Args:
            machine: What was read.
            log: The head of its newest log; None: not asked, or not to be read.
            read_at_s: When the look began, on the agent's clock.

        Returns:
            What it comes to, and whether that is another power state than before.
        """
        with self._lock:
            before = self._records.get(machine.uuid)
            record = _record(before, machine, log, read_at_s)
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

    def contradicted(self) -> tuple[str, ...]:
        """Name the machines whose last reading was contradicted by their log."""
        with self._lock:
            records = [record for record in self._records.values() if record.reading.contradicted]
        return tuple(printable(record.machine.name) for record in records)

    def _before(self, uuid: str) -> _Record | None:
        with self._lock:
            return self._records.get(uuid)


def _record(before: _Record | None, machine: Machine, log: LogHead | None, read_at_s: float) -> _Record:
    run, since_s = log, read_at_s
    if before is not None and _same_state(before.machine, machine):
        machine = replace(machine, changed=max(before.machine.changed, machine.changed))
        run, since_s = log or before.run, before.state_since_s
    if STATES.get(machine.state) in _ALIVE:
        return _Record(machine, read_at_s, since_s, run, _alive(machine, run))
    return _Record(machine, read_at_s, since_s, None, _not_alive(machine, log, read_at_s - since_s))


def _same_state(before: Machine, now: Machine) -> bool:
    return before.state == now.state and same_moment(before.changed, now.changed)


def _alive(machine: Machine, run: LogHead | None) -> Reading:
    return Reading(
        power_state=STATES[machine.state],
        settled=True,
        incarnation=f"run of {run.opened}" if run else f"alive since {machine.changed}",
        cold_start=run.cold_start if run else None,
        raw=_words(machine),
    )


def _not_alive(machine: Machine, log: LogHead | None, seen_for_s: float) -> Reading:
    raw, state = _words(machine), STATES.get(machine.state, PowerState.UNKNOWN)
    contradicted = False
    if state in _OFF and log is None:
        state, raw = PowerState.UNKNOWN, f"{raw}, but its log, which would confirm it, cannot be read"
    elif state in _OFF and log is not None and log.opened > machine.changed:
        state, contradicted = PowerState.UNKNOWN, True
        raw = f"{raw}, but a run of it began at {_date(log.opened)}: this VBoxSVC does not know of that one"
    elif machine.state == "aborted" and seen_for_s < ABORTED_FOR_S:
        state = PowerState.STOPPING
        raw = f"{raw}, seen for {seen_for_s:.0f} s; its process may live for {ABORTED_FOR_S:.0f} s"
    return Reading(
        power_state=state,
        settled=state in _OFF,
        incarnation=f"{printable(machine.state)} since {machine.changed}",
        cold_start=None,
        raw=raw,
        contradicted=contradicted,
        away=machine.state == "teleported",
    )


def _words(machine: Machine) -> str:
    return f"{printable(machine.state[:_SHOWN_CHARS])} since {_date(machine.changed)}"


def _date(moment: str) -> str:
    return f"{moment[:19]}Z"
