"""A node in words: is it Ready, which guest is it, its state, is it fenced, and why or why not."""

from __future__ import annotations

from fencer.core.cordon import DRAIN, cordoned_by, unrecorded_cordon
from fencer.core.distrust import why_distrusted
from fencer.core.identity import subject_of
from fencer.core.model import (
    Alarm,
    Evidence,
    FenceMark,
    GuestRef,
    Judged,
    NodeView,
    Observation,
    PowerState,
    Reason,
    Verdict,
)
from fencer.core.text import age, listing, printable, unticked
from fencer.core.times import seconds_between
from fencer.wording.reasons import TEXTS, change, says

NOBODY = "\N{EN DASH}"

CANNOT = frozenset({Reason.NO_GUEST, Reason.GUEST_AMBIGUOUS, Reason.GUEST_TAKEN, Reason.BINDING_UNPROVEN})
"""Refusals that mean: this node could not be fenced if it died."""

SAYS_CORDONED = frozenset({Reason.SETTLING, Reason.SETTLED, Reason.PLANNED_STOP, Reason.CORDON_UNRECORDED})
"""Their texts tell of the cordon."""

CORDONED: dict[str | None, str] = {
    None: "",
    "fencer-drain": "cordoned by fencer (drain)",
    "fencer-hook": "cordoned by fencer (drain before a stop)",
    "fencer-unfence": "cordoned by fencer (after a fence)",
    "unrecorded": "cordoned by fencer, but the API server can't confirm that (no managedFields)",
    "others": "cordoned by others",
}


def ready(node: NodeView) -> str:
    """Return whether a node is Ready, and since when it is not where that is known."""
    word = {True: "yes", False: "no", None: "unknown"}[node.ready]
    since_s = round(node.not_ready_s or 0.0)
    return f"{word}, {age(since_s)}" if since_s else word


def guest_of(judged: Judged) -> GuestRef | None:
    """Return the guest, as its hypervisor names it now."""
    subject = subject_of(judged.observation)
    return None if subject is None else subject.evidence.guest


def state_of(observation: Observation) -> str:
    """Return the guest's power state in a word."""
    if subject_of(observation) is None:
        return NOBODY
    return "unknown" if observation.evidence is None else observation.evidence.power_state.value


def last_said(reading: Evidence | None, error: str = "", last_state: PowerState | None = None) -> str:
    """Return what a hypervisor last said of a guest, as a sentence to show with a person's word.

    Args:
        reading: The newest; None: there is none.
        error: Why there is none.
        last_state: What was read a moment ago, from afar; None: nothing.
    """
    if reading is not None and reading.read:
        return f"Last reading from {reading.guest.endpoint}: {reading.raw.rstrip('.')}."
    earlier = f"; a moment ago, from afar, it read {last_state}" if last_state else ""
    why = error or (reading.raw if reading is not None else "there is no reading of the guest")
    return f"Its hypervisor now says nothing about it: {why.rstrip('.')}{earlier}."


def fenced_age(observation: Observation) -> str | None:
    """Return for how long the node has carried our fence; None: it does not."""
    mark = observation.node.mark
    if not isinstance(mark, FenceMark) or not observation.node.fenced:
        return None
    return age(max(0.0, seconds_between(mark.fenced_at_utc, observation.utc)))


def disbelieved(judged: Judged) -> str | None:
    """Return what is reported of a healthy node's VM but distrusted; None: nothing."""
    evidence = judged.observation.evidence
    if judged.decision.verdict is not Verdict.HEALTHY or evidence is None or evidence.doubt is None:
        return None
    return printable(f"{evidence.guest.endpoint} reports its VM as {evidence.raw}")


def distrusted(judged: Judged) -> str | None:
    """Return the endpoint of a healthy node's VM, if it is distrusted because of other nodes' VMs."""
    guest = judged.decision.guest
    if judged.decision.verdict is not Verdict.HEALTHY or guest is None or disbelieved(judged) is not None:
        return None
    return guest.endpoint if guest.endpoint in judged.observation.fleet.contradicted_endpoints else None


def unfit(judged: Judged) -> str | None:
    """Return why a healthy node could not be fenced if it died now; None: it could."""
    node = judged.observation.node
    taken = judged.decision.verdict is Verdict.HEALTHY and node.out_of_service is not None and not node.fenced
    if taken:
        return TEXTS[Reason.FOREIGN_TAINT].says
    endpoint = distrusted(judged)
    return disbelieved(judged) or (endpoint and why_distrusted(endpoint, judged.observation.fleet))


def would_change(judged: Judged) -> str:
    """Return what would change the answer about a node."""
    if unfit(judged) is None:
        return change(judged.decision)
    if disbelieved(judged):
        return "its VM reported running there again"
    return (TEXTS[Reason.FOREIGN_TAINT if distrusted(judged) is None else Reason.WITNESS_CONTRADICTED]).change


def is_unprotected(judged: Judged) -> bool:
    """Whether fencer could not fence the node if it died."""
    return (judged.decision.reason in CANNOT and not judged.untold) or unfit(judged) is not None


def silent_endpoints(observation: Observation) -> tuple[str, ...]:
    """Name the endpoints that do not answer, of those that the node's guest is on, or may be on."""
    known = {candidate.guest.endpoint for candidate in observation.candidates}
    return tuple(name for name in observation.unanswered if name in known or not known)


def blind(judged: Judged) -> str | None:
    """Return why nobody would notice the end of a heard node's guest; None: its hypervisor tells."""
    seen, reason = judged.observation, judged.decision.reason
    nowhere = reason is Reason.EVIDENCE_MISSING and not seen.candidates
    if not (reason is Reason.BLIND or (nowhere and seen.node.ready)):
        return None
    silent = silent_endpoints(seen)
    if silent:
        return f"{listing(silent)} {'does' if len(silent) == 1 else 'do'} not answer"
    return printable(f"its guest reads {seen.evidence.raw}" if seen.evidence else seen.evidence_error)


def keeps_cordon(judged: Judged) -> bool:
    """Whether a healthy node keeps fencer's cordon until a person lifts it: no record shows whose (C9)."""
    note = unrecorded_cordon(judged.observation.node)
    drained = judged.decision.verdict is Verdict.HEALTHY and note is not None and note.by == DRAIN
    return drained or judged.decision.reason is Reason.CORDON_UNRECORDED


def cordon_words(node: NodeView) -> str:
    """Return who keeps new pods off the node; empty: nobody does."""
    return CORDONED[cordoned_by(node)]


def alarms_of(judged: Judged) -> tuple[str, ...]:
    """Return what the alarms about a node say, in a clause each."""
    alarms = (action.text for action in judged.decision.actions if isinstance(action, Alarm))
    return tuple(printable(text.partition("; ")[0].rstrip(".")) for text in alarms)


def why(judged: Judged) -> str:
    """Return the reason for the decision; what an alarm says; if one look cannot tell, what would follow."""
    if alarms := alarms_of(judged):
        return alarms[0]
    decision, in_the_way = judged.decision, unfit(judged)
    if in_the_way is not None:
        return f"{printable(says(decision))}, but {in_the_way}"
    if (unread := blind(judged)) is not None:
        return f"blind: {unread}; nobody would notice the end of its guest"
    if not judged.untold:
        return printable(says(decision))
    return printable(judged.untold)


def whole_why(judged: Judged) -> str:
    """Return the reason, or what the alarm says, and who keeps new pods off the node."""
    node = judged.observation.node
    cordon = "" if judged.decision.reason in SAYS_CORDONED else cordon_words(node)
    reason = f"{why(judged)}: `fencer explain {unticked(node.name)}`" if alarms_of(judged) else why(judged)
    lifts = f"to lift it: `kubectl uncordon {unticked(node.name)}`" if keeps_cordon(judged) else ""
    return "; ".join(filter(None, (reason, cordon, lifts)))
