"""What happened to one node, from the first sign until it was over.

Also a drain, a planned stop and a start are incidents here, and a command that did nothing to any node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from fencer.core.model import FenceMark, Outcome, PowerState
from fencer.errors import JournalError
from fencer.journal.rows import BY_HAND, Entry, Kind
from fencer.wording.conditions import AT_EASE

ALARM = "Alarm"
"""The action that raises an alarm, as rows name it."""

NOTES = frozenset({ALARM, "BindNode", "RecordDoubts", "ForgetMark"})
"""What is done without taking anything from anybody: alone it is no incident, except an alarm. See
`Incident.deeds` and `Incident.alarms`."""

PROVED = frozenset({"TaintNode", "StopGuest", "DiscardSaved", "UntaintNode"})
"""Cannot be undone: history and report show the whole proof before these actions."""

CAUSES = {
    "pause_too_short": "paused",
    "guest_paused": "paused",
    "guest_saved": "saved",
    "guest_unresponsive": "unresponsive",
    "host_silent": "host silent",
    "storage_stall": "storage stalled",
}
"""What a reason says of how it began; of others the state of the guest does."""

PROOFS = {"ha_recovery": "host fenced by HA", "host_power": "host without power", "operator": "off"}
"""What a proof says of how it began."""

RUNS = frozenset({PowerState.RUNNING, PowerState.UNKNOWN})
"""Readings that tell of no end."""

HOLDS = frozenset({"fenced", "recovering", "unfence"})
"""Verdicts on a node that carries a fence …"""

LIFTED = frozenset({"settling", "settled"})
"""… unless this is the reason."""

REFUSED = frozenset({"refuse"})
"""Verdicts after which a person should look."""


@dataclass(frozen=True, slots=True)
class RaisedAlarm:
    """One alarm, with the decision that raised it.

    Attributes:
        entry: Its row.
        decision: The row of the decision; None: the journal has none, as before alarms were recorded so.
    """

    entry: Entry
    decision: Entry | None

    @property
    def text(self) -> str:
        """What the alarm says."""
        return str(self.entry.body.get("text", ""))

    @property
    def grounds(self) -> tuple[Mapping[str, Any], ...]:
        """What the alarm rests on: checks of its decision, as the row has them.

        They are those that are there for the alarm; in rows of an older fencer those that failed.
        """
        checks = () if self.decision is None else self.decision.body.get("checks") or ()
        own = tuple(check for check in checks if check.get("outcome") == Outcome.ALARM.value)
        return own or tuple(check for check in checks if check.get("outcome") == Outcome.FAILED.value)


@dataclass(frozen=True)
class Incident:
    """What happened to a node.

    Attributes:
        id: For people to name it: the incident's id as it is on the Node, or the session of the command; and
            ``.2`` behind it where there was one before in the same boot.
        node: The node's name; of a command without any, the names that were typed.
        entries: Its rows, oldest first.
        over: It is over; otherwise it goes on, as far as the journal knows.
    """

    id: str
    node: str
    entries: tuple[Entry, ...]
    over: bool

    @property
    def began(self) -> datetime:
        """When it was first noticed."""
        return self.entries[0].at

    @property
    def last(self) -> datetime:
        """When it was last heard of."""
        return self.entries[-1].at

    @cached_property
    def decisions(self) -> tuple[Entry, ...]:
        """The rows that tell a decision."""
        return self._of(Kind.DECISION)

    @cached_property
    def deeds(self) -> tuple[Entry, ...]:
        """The rows that tell of something that was done, or failed: notes and alarms are none."""
        return tuple(one for one in self._of(Kind.ACTION) if one.body.get("action") not in NOTES)

    @cached_property
    def alarms(self) -> tuple[RaisedAlarm, ...]:
        """The alarms, each with its decision: the newest one of that node before it, in the same session."""
        found, newest = list[RaisedAlarm](), dict[tuple[str, str], Entry]()
        for one in self.entries:
            if one.kind is Kind.DECISION:
                newest[one.session, one.uid] = one
            elif one.kind is Kind.ACTION and one.body.get("action") == ALARM:
                decision = newest.get((one.session, one.uid))
                raised = decision is not None and raises_alarm(decision)
                found.append(RaisedAlarm(one, decision if raised else None))
        return tuple(found)

    @cached_property
    def commands(self) -> tuple[Entry, ...]:
        """The rows that tell what people asked for."""
        return self._of(Kind.COMMAND)

    @property
    def guest(self) -> str:
        """Its guest, as last told; empty: none."""
        return next((str(one.body["guest"]) for one in reversed(self.decisions) if one.body.get("guest")), "")

    @property
    def cause(self) -> str:
        """How it began, in a word or two: ``paused``, ``stopped``, ``silent``."""
        told = (CAUSES.get(str(one.body.get("reason"))) for one in self.decisions)
        found = next((cause for cause in told if cause), "")
        taint = self._done("TaintNode")
        if found or taint is None:
            return found or self._first_power() or "silent"
        done = facts_of(taint)
        return PROOFS.get(str(done.get("proof"))) or str(done.get("power_state") or "silent")

    @property
    def tainted(self) -> Entry | None:
        """The row that tells that it was fenced by whoever writes here; None: it was not."""
        return self._done("TaintNode")

    @cached_property
    def found(self) -> Entry | None:
        """The first row that shows a fence of which none here tells that it was set; None: there is none.

        What a command finds is told by what was typed.
        """
        if self.tainted is not None or self.entries[0].kind is Kind.COMMAND:
            return None
        return next(filter(shows_fence, self.decisions), None)

    @property
    def fence(self) -> Entry | None:
        """The first row that tells of a fence, whoever set it; None: it was not fenced."""
        return self.tainted or self.found

    @property
    def fenced_by(self) -> str:
        """Who set the fence, by the row or by its mark; empty: there is none, or that cannot be read."""
        if self.tainted is not None:
            return self.tainted.by.removesuffix(BY_HAND)
        marks = (_mark(one) for one in self.decisions if self.found is not None and shows_fence(one))
        return next((mark.by.removesuffix(BY_HAND) for mark in marks if mark is not None), "")

    @property
    def stands(self) -> bool:
        """Whether the fence stands, as far as the newest decision tells."""
        newest = self.decisions[-1] if self.decisions else None
        if self.fence is None or newest is None or newest.number < self.fence.number or shows_fence(newest):
            return self.fence is not None
        with suppress(JournalError):  # of another fencer
            if newest.seen is not None:
                return newest.seen.node.fenced
        return newest.body.get("reason") not in LIFTED

    @property
    def cleared(self) -> Entry | None:
        """The row that tells that nothing was left on it; None: that did not come."""
        after = self.tainted.number if self.tainted else 0
        return next((one for one in self._reasons("pods_cleared") if one.number > after), None)

    @property
    def lifted(self) -> Entry | None:
        """The row that tells that the fence was lifted by whoever writes here; None: it was not."""
        return self._done("UntaintNode", last=True)

    @property
    def healthy(self) -> Entry | None:
        """The row that tells that all was well again, without an alarm; None: that did not come."""
        last = self.decisions[-1] if self.decisions else None
        healthy = last is not None and last.body.get("verdict") == "healthy" and not raises_alarm(last)
        return last if healthy else None

    @property
    def back(self) -> Entry | None:
        """The row that tells that it was Ready again while fencing was paused; None: that did not come."""
        last = self.decisions[-1] if self.decisions else None
        return last if self.over and last is not None and ready_unheeded(last) else None

    @property
    def refusal(self) -> Entry | None:
        """The last row that says no, if a person should look at that; None: there is none."""
        return next((one for one in reversed(self.decisions) if one.body.get("verdict") in REFUSED), None)

    def is_fenced_at(self, one: Entry) -> bool:
        """Whether the node was fenced, as far as the rows of this incident tell, when a row was written."""
        begun = self.fence is not None and self.fence.number < one.number
        return begun and (self.lifted is None or one.number < self.lifted.number)

    @property
    def pods(self) -> tuple[str, ...]:
        """The pods that were cleared or evicted; where none is left in the end, also those that were held."""
        kinds = ("gone", "held", "changed") if self.cleared else ("gone",)
        cleared = [facts_of(one).get(kind) or () for one in self._all("ClearPods") for kind in kinds]
        evicted = [one.body.get("on", {}).get("pods", ()) for one in self._all("EvictPods")]
        return tuple(dict.fromkeys(str(pod) for pods in (*cleared, *evicted) for pod in pods))

    @property
    def volumes(self) -> int:
        """How many volumes were to be released."""
        return int(facts_of(self.tainted).get("volumes", 0)) if self.tainted else 0

    @property
    def code(self) -> int | None:
        """The exit code of the last command; None: there was none, or it has not ended."""
        ended = self._of(Kind.ENDED)
        return int(ended[-1].body.get("code", 1)) if ended else None

    @property
    def worth_telling(self) -> bool:
        """Whether anything was done or asked for, or a person should have looked, or it goes on."""
        looks = self.refusal or self.alarms
        return bool(self.deeds or self.commands or looks or self.found or not self.over)

    def seconds(self, until: Entry) -> float:
        """Return how long after its beginning a row was written, in seconds."""
        return seconds_between(self.entries[0], until)

    def _first_power(self) -> str:
        """Return what its guest first read, if that was told and it did not run."""
        for one in self.decisions:
            with suppress(JournalError):  # of another fencer
                evidence = one.seen.evidence if one.seen else None
                if evidence is not None and evidence.power_state not in RUNS:
                    return evidence.power_state.value
        return ""

    def _of(self, kind: Kind) -> tuple[Entry, ...]:
        return tuple(one for one in self.entries if one.kind is kind)

    def _reasons(self, reason: str) -> Iterator[Entry]:
        return (one for one in self.decisions if one.body.get("reason") == reason)

    def _all(self, action: str) -> Iterator[Entry]:
        return (one for one in self.deeds if one.body.get("action") == action and one.body.get("ok"))

    def _done(self, action: str, *, last: bool = False) -> Entry | None:
        found = list(self._all(action))
        return found[-1 if last else 0] if found else None


def seconds_between(earlier: Entry, later: Entry) -> float:
    """Return the seconds from one row to another: by the monotonic clock, if one session wrote both."""
    if earlier.session == later.session:
        return max(0.0, later.at_s - earlier.at_s)
    return max(0.0, (later.at - earlier.at).total_seconds())


def raises_alarm(entry: Entry) -> bool:
    """Whether an alarm is among the actions of a decision."""
    return entry.kind is Kind.DECISION and ALARM in (entry.body.get("actions") or ())


def shows_fence(entry: Entry) -> bool:
    """Whether a decision is about a node that carries a fence, whoever set it."""
    body = entry.body
    return body.get("verdict") in HOLDS and body.get("reason") not in LIFTED


def ready_unheeded(entry: Entry) -> bool | None:
    """Whether a node is Ready of which a row tells only that fencing is paused, or that it is excluded.

    None: the row tells something else.
    """
    if entry.kind is not Kind.DECISION or entry.body.get("reason") not in AT_EASE:
        return None
    if "ready" in entry.body:
        return entry.body["ready"] is True
    with suppress(JournalError):  # of another fencer
        return entry.seen is not None and entry.seen.node.ready is True
    return False


def _mark(entry: Entry) -> FenceMark | None:
    """Return the mark of the fence that a decision knew; None: nothing is kept of it, or anybody wrote it."""
    with suppress(JournalError):  # of another fencer
        mark = entry.seen.node.mark if entry.seen is not None else None
        return mark if isinstance(mark, FenceMark) and mark.signed else None
    return None


def facts_of(entry: Entry) -> dict[str, Any]:
    """Return what came of an action, by fields; empty: the row tells of none."""
    done = entry.body.get("done")
    return done if isinstance(done, dict) else {}
