"""What happened, in three sentences: how it began, what was done, how it ended. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from fencer.core.model import Intent, Proof, Reason
from fencer.core.text import age, count
from fencer.journal.incidents import Incident, seconds_between
from fencer.journal.rows import BY_HAND, Entry
from fencer.report.lanes import POWER, began, deed_word
from fencer.report.sights import Sight
from fencer.report.workloads import down
from fencer.wording.verdicts import OF_REASON

Clock = Callable[[datetime], str]

MOST_DEEDS = 4
"""So many things that were done are told in the sentence; all are told step by step."""

PROOFS: dict[str, str] = {
    Proof.POWER.value: "its hypervisor read it {state}{for_so_long}",
    Proof.ABSENCE.value: "it was deleted, and there is a record of its end",
    Proof.HA_RECOVERY.value: "the HA stack had fenced its host and recovered it",
    Proof.HOST_POWER.value: "its host was without power",
    Proof.OPERATOR.value: "a person gave their word that it was off",
}
"""Why the guest counted as gone."""


REFUSED = {
    Intent.UNFENCE.value: "Lifting the fence",
    Intent.SHUTDOWN.value: "The shutdown",
    Intent.START.value: "The start",
}
"""What was refused, by the intent of a decision; fencing otherwise."""


def sentences(incident: Incident, rows: Sequence[Sight], clock: Clock) -> tuple[str, ...]:
    """Return the sentences.

    Args:
        incident: The incident.
        rows: Its rows, read.
        clock: Writes a time of day.
    """
    told = (_beginning(incident, rows, clock), _middle(incident, rows, clock), _end(incident, clock))
    return tuple(sentence for sentence in told if sentence)


def _beginning(incident: Incident, rows: Sequence[Sight], clock: Clock) -> str:
    asked = incident.commands[0] if incident.commands else None
    if asked is not None and asked is incident.entries[0]:
        return f"At {clock(asked.at)} {_person(asked)} typed `fencer {asked.body.get('words')}`."
    heard, off = began(rows), down(rows)
    state = next((one for one in rows if one.seen is not None and one.seen.history.run is not None), None)
    was = f"{incident.node} was last heard at {clock(heard)}"
    guest = f"its guest {incident.guest}" if incident.guest else "its guest"
    if off is not None:
        return f"{was}, and {guest} did not run from {clock(off)} on; its hypervisor read {_state(rows)}."
    if state is None or state.seen is None or state.seen.history.run is None:
        return f"{was}."
    return f"{was}; {guest} was read {POWER[state.seen.history.run.power_state][1]}."


def _state(rows: Sequence[Sight]) -> str:
    """Return the hypervisor's words for a guest that does not run."""
    off = down(rows)
    readings = (one.seen.evidence for one in rows if one.seen is not None and off and one.ago(0) >= off)
    return next((one.raw for one in readings if one is not None), "")


def _middle(incident: Incident, rows: Sequence[Sight], clock: Clock) -> str:
    tainted = incident.tainted
    if tainted is None:
        return _found(incident, clock) or _not_fenced(incident, rows)
    done = tainted.body.get("done") or {}
    for_so_long = f" for {age(done['off_s'])}" if isinstance(done.get("off_s"), int | float) else ""
    why = PROOFS.get(str(done.get("proof")), "it was proven off")
    proof = why.format(state=done.get("power_state", "off"), for_so_long=for_so_long)
    what = f"{count(len(incident.pods), 'pod')} and {count(incident.volumes, 'volume')}"
    after = age((tainted.at - began(rows)).total_seconds())
    by = _who(incident, tainted, clock)
    told = f"{by} fenced the node at {clock(tainted.at)}, {after} after its last sign of life: {proof}."
    if incident.cleared is None:
        return f"{told} Its pods and volumes were not all cleared by the last row of this report."
    took = age(seconds_between(tainted, incident.cleared))
    return f"{told} {took} later {what} were free for other nodes."


def _who(incident: Incident, tainted: Entry, clock: Clock) -> str:
    """Return who fenced it, and who cut its guest's power before that, where anybody did."""
    before = (one for one in incident.deeds if _did(one, "StopGuest") and one.number < tainted.number)
    cut = next(before, None)
    if cut is None:
        return tainted.by
    power = f"{cut.by} cut the guest's power at {clock(cut.at)}"
    return f"{power}, and" if cut.by == tainted.by else f"{power}. {tainted.by}"


def _found(incident: Incident, clock: Clock) -> str:
    """Tell of a fence that somebody else set; empty: there is none."""
    if incident.found is None:
        return ""
    by = incident.fenced_by or "Another agent"
    return f"{by} fenced the node, as was seen at {clock(incident.found.at)}."


def _not_fenced(incident: Incident, rows: Sequence[Sight]) -> str:
    if incident.refusal is not None:
        text = str(incident.refusal.body.get("text", ""))
        why, _, change = text.partition("; what would change this: ")
        otherwise = f" What would have changed that: {change}." if change else ""
        observed = incident.refusal.body.get("reason") == Reason.OBSERVE_MODE
        what = REFUSED.get(str(incident.refusal.body.get("intent")), "Fencing")
        lead = f"The node was {OF_REASON[Reason.OBSERVE_MODE]}" if observed else f"{what} was refused"
        return f"{lead}: {why}.{otherwise}"
    if incident.deeds:
        deeds = dict.fromkeys(map(_deed, incident.deeds))
        more = len(deeds) - MOST_DEEDS
        told = (*tuple(deeds)[:MOST_DEEDS], *((f"{more} more",) if more > 0 else ()))
        return f"What was done: {'; '.join(told)}."
    if incident.alarms:
        return f"fencer raised an alarm: {incident.alarms[0].text.rstrip('.')}."
    return "Nothing had to be done." if incident.decisions and rows else ""


def _end(incident: Incident, clock: Clock) -> str:
    if incident.lifted is not None:
        stood = age(seconds_between(incident.tainted, incident.lifted)) if incident.tainted else ""
        told = f"The fence was lifted at {clock(incident.lifted.at)}" + (f", after {stood}" if stood else "")
        healthy = incident.healthy
        return f"{told}, and the node was healthy at {clock(healthy.at)}." if healthy else f"{told}."
    if incident.healthy is None and incident.fence is not None and incident.stands:
        return f"The node was still fenced at {clock(incident.last)}, when the last row was written."
    if incident.healthy is not None:
        return f"The node was healthy again at {clock(incident.healthy.at)}."
    if incident.back is not None:
        return f"The node was Ready again at {clock(incident.back.at)}."
    if incident.code is not None:
        how = "was done" if incident.code == 0 else f"ended with exit code {incident.code}"
        return f"The command {how} at {clock(incident.last)}."
    return f"It went on at {clock(incident.last)}, when the last row was written."


def _deed(entry: Entry) -> str:
    text = str(entry.body.get("text", ""))
    if not entry.body.get("ok"):
        return f"{deed_word(entry)} failed: {text}"
    return f"evicted {text}" if entry.body.get("action") == "EvictPods" else text


def _did(entry: Entry, action: str) -> bool:
    return entry.body.get("action") == action and bool(entry.body.get("ok"))


def _person(entry: Entry) -> str:
    return entry.by.removesuffix(BY_HAND)
