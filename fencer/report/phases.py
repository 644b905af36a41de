"""Where the time went: one phase after the other, each with what it waited for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from fencer.core.model import Outcome, PowerState, Reason
from fencer.journal.rows import Entry, Kind
from fencer.report.lanes import began
from fencer.report.sights import Sight
from fencer.wording.events import NO_CASE
from fencer.wording.reasons import TEXTS

NAMES: dict[Reason, str] = {
    Reason.COUNTING_SILENCE: "silence counted",
    Reason.SILENCE_TOO_SHORT: "silence counted",
    Reason.LEASE_RENEWED: "silence counted anew",
    Reason.NODE_READY: "until Kubernetes called it not Ready",
    Reason.FALL_UNSEEN: "until Kubernetes called it not Ready",
    Reason.NOT_HELD: "until its guest was confirmed off",
    Reason.PAUSE_TOO_SHORT: "pause counted",
    Reason.GUEST_PAUSED: "its power cut",
    Reason.GUEST_POWERED_OFF: "its process ended",
    Reason.PROVEN_OFF: "taint set",
    Reason.CLEARING_PODS: "pods cleared",
    Reason.RELEASING_VOLUMES: "volumes released",
    Reason.PODS_CLEARED: "until its guest ran again",
    Reason.AWAITING_BOOT: "until its kubelet was heard again",
    Reason.AWAITING_RENEWALS: "until it was heard often enough",
    Reason.PODS_REMAIN: "until its old pods were gone",
    Reason.VOLUMES_REMAIN: "until its old volumes were released",
    Reason.BOOTED_ANEW: "fence lifted",
    Reason.SETTLING: "kept cordoned",
    Reason.SETTLED: "uncordoned",
    Reason.BRAKE: "held by the brake",
    Reason.SHUTTING_DOWN: "its guest shut down",
    Reason.AWAITING_READY: "until the node was Ready",
}
"""What a phase is called that a decision begins; of other reasons it is what they say."""

WAITS: dict[Reason, str] = {
    Reason.PROVEN_OFF: "the API server's answer",
    Reason.CLEARING_PODS: "the API server's answers",
    Reason.BOOTED_ANEW: "the API server's answer",
    Reason.RELEASING_VOLUMES: "Kubernetes to detach them",
    Reason.PODS_CLEARED: "the guest to boot again",
    Reason.SETTLING: "caches that may still show old pods and volumes",
    Reason.SETTLED: "the API server's answer",
}
"""What it waited for, where neither the failed check nor the reason's text says it well."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the incident.

    Attributes:
        begin: From then.
        end: Until then.
        name: What it was.
        waited_for: What ended it, or had to.
        goes_on: Its end is not in the journal yet.
    """

    begin: datetime
    end: datetime
    name: str
    waited_for: str
    goes_on: bool = False

    @property
    def seconds(self) -> float:
        """How long it took."""
        return max(0.0, (self.end - self.begin).total_seconds())


def phases(rows: Sequence[Sight], *, over: bool = True) -> tuple[Phase, ...]:
    """Return the phases of an incident, from the node's last sign of life to the last row.

    Args:
        rows: Its rows, oldest first; at least one.
        over: It is over; otherwise its last phase goes on.
    """
    decisions = [one for one in rows if one.entry.kind is Kind.DECISION]
    every = _joined((*_until_noticed(rows), *_between(decisions, rows[-1].entry.at)))
    if every and not over and not (decisions and decisions[-1].entry.body.get("reason") in NO_CASE):
        every[-1] = replace(every[-1], goes_on=True)
    return tuple(every)


def _until_noticed(rows: Sequence[Sight]) -> Iterator[Phase]:
    """Give the phase before the first row: what was noticed may have gone on for a while."""
    begin, noticed = began(rows), rows[0].entry.at
    first = next((one for one in rows if one.entry.kind is Kind.DECISION), None)
    if first is None or first.entry.body.get("verdict") == "healthy":
        return
    not_ready = first.seen is not None and not first.seen.node.ready
    waited_for = "Ready to be Unknown or False" if not_ready else "a look at the node and its guest"
    if begin < noticed and first.entry.body.get("reason") == Reason.NODE_READY.value:
        yield Phase(
            begin, noticed, NAMES[Reason.COUNTING_SILENCE], "enough silence to ask whether it is dead"
        )
    elif begin < noticed:
        yield Phase(begin, noticed, "until it was noticed", waited_for)


def _between(decisions: Sequence[Sight], end: datetime) -> Iterator[Phase]:
    nexts = [*(one.entry.at for one in decisions[1:]), end]
    for one, until in zip(decisions, nexts, strict=False):
        entry = one.entry
        if entry.body.get("verdict") == "healthy" or entry.body.get("reason") in NO_CASE:
            continue
        try:
            reason = Reason(str(entry.body.get("reason")))
        except ValueError:  # of a fencer that knows more
            yield Phase(entry.at, until, str(entry.body.get("text")), "")
            continue
        if reason is Reason.AWAITING_BOOT and _is_off(one):
            reason = Reason.PODS_CLEARED  # somebody asked for its unfence too early
        name = NAMES.get(reason, TEXTS[reason].says)
        yield Phase(entry.at, until, name, WAITS.get(reason) or _needs(entry) or TEXTS[reason].change)


def _is_off(one: Sight) -> bool:
    run = one.seen.history.run if one.seen is not None else None
    return run is not None and run.power_state is PowerState.STOPPED


def _needs(entry: Entry) -> str:
    """Return what the check that failed takes; empty: none says."""
    checks = entry.body.get("checks") or ()
    failed = (str(one.get("needs")) for one in checks if one.get("outcome") == Outcome.FAILED.value)
    needs = next(failed, "")
    return "" if needs.startswith("limit") else needs


def _joined(every: Iterable[Phase]) -> list[Phase]:
    joined: list[Phase] = []
    for one in every:
        if joined and joined[-1].name == one.name:
            joined[-1] = replace(joined[-1], end=one.end, waited_for=one.waited_for)
        else:
            joined.append(one)
    return joined
