"""How a judged node is told: the same words for `status`, `explain`, `fence` and `unfence`."""

from __future__ import annotations

from typing import Any

from fencer.cli.render import BAD, DOUBTFUL, FAINT, GOOD, Cell, clean
from fencer.core.foresight import UNTOLD
from fencer.core.identity import subject_of
from fencer.core.model import (
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
from fencer.core.pods import clearable, to_release
from fencer.core.reasons import change, says
from fencer.core.text import age, count
from fencer.core.times import seconds_between

NOBODY = "\N{EN DASH}"

FENCE_WORDS: dict[Verdict, tuple[str, str | None]] = {
    Verdict.HEALTHY: (NOBODY, None),
    Verdict.WAIT: ("waits", DOUBTFUL),
    Verdict.REFUSE: ("refused", BAD),
    Verdict.STOP_FIRST: ("due, stop first", DOUBTFUL),
    Verdict.DISCARD_FIRST: ("due, discard first", DOUBTFUL),
    Verdict.ASK: (NOBODY, None),
    Verdict.START: (NOBODY, None),
    Verdict.FENCE: ("due", DOUBTFUL),
    Verdict.FENCED: ("fenced", DOUBTFUL),
    Verdict.RECOVERING: ("coming back", DOUBTFUL),
    Verdict.UNFENCE: ("due to be lifted", DOUBTFUL),
    Verdict.OFF: (NOBODY, None),
}
"""What stands in the column FENCE of a node without a fence of ours, and in which colour."""

CANNOT = frozenset({Reason.NO_GUEST, Reason.GUEST_AMBIGUOUS, Reason.GUEST_TAKEN, Reason.BINDING_UNPROVEN})
"""Refusals that say: this node could not be fenced if it died."""

SPECIAL = {
    Reason.OBSERVE_MODE: "only observed",
    Reason.NOTHING_TO_CLEAR: "not needed",
    Reason.SETTLING: "lifted",
    Reason.SETTLED: "lifted",
}
"""Reasons that say more than their verdict does."""

STATE_COLOURS = {PowerState.RUNNING: GOOD, PowerState.UNKNOWN: DOUBTFUL}


def ready(node: NodeView) -> str:
    """Return whether a node is Ready, and since when it is not where that is known."""
    word = {True: "yes", False: "no", None: "unknown"}[node.ready]
    return f"{word}, {age(round(node.not_ready_s))}" if node.not_ready_s else word


def ready_cell(node: NodeView) -> Cell:
    """Return the same for a table."""
    return Cell(ready(node), GOOD if node.ready else BAD)


def guest_of(judged: Judged) -> GuestRef | None:
    """Return the guest, as its hypervisor names it now."""
    subject = subject_of(judged.observation)
    return None if subject is None else subject.evidence.guest


def state_of(observation: Observation) -> str:
    """Return the guest's power state in a word."""
    if subject_of(observation) is None:
        return NOBODY
    return "unknown" if observation.evidence is None else observation.evidence.power_state.value


def state_cell(observation: Observation) -> Cell:
    """Return the same for a table."""
    evidence: Evidence | None = observation.evidence
    colour = DOUBTFUL if evidence is None else STATE_COLOURS.get(evidence.power_state, BAD)
    word = state_of(observation)
    return Cell(word, FAINT if word == NOBODY else colour)


def last_said(reading: Evidence | None, error: str = "", last_state: PowerState | None = None) -> str:
    """Return what a hypervisor last said of a guest, as a sentence: what a person's word stands beside.

    Args:
        reading: The newest; None: there is none.
        error: Why there is none.
        last_state: What was read a moment ago, from afar; None: nothing.
    """
    if reading is not None and reading.read:
        return f"Last, {reading.guest.endpoint} said of it: {reading.raw.rstrip('.')}."
    earlier = f"; a moment ago, from afar, it was read {last_state}" if last_state else ""
    why = error or (reading.raw if reading is not None else "there is no reading of the guest")
    return f"Its hypervisor says nothing of it now: {why.rstrip('.')}{earlier}."


def fenced_age(observation: Observation) -> str | None:
    """Return for how long the node has carried our fence; None: it does not."""
    mark = observation.node.mark
    if not isinstance(mark, FenceMark) or not observation.node.fenced:
        return None
    return age(max(0.0, seconds_between(mark.fenced_at_utc, observation.utc)))


def fence_cell(judged: Judged) -> Cell:
    """Return whether the node is fenced, or would be."""
    decision, fenced = judged.decision, fenced_age(judged.observation)
    if fenced is not None:
        return Cell(f"fenced {fenced} ago", DOUBTFUL)
    if (decision.reason in CANNOT and not judged.untold) or disbelieved(judged) is not None:
        return Cell("cannot fence", BAD)
    if decision.reason in SPECIAL:
        return Cell(SPECIAL[decision.reason], DOUBTFUL)
    return Cell(*FENCE_WORDS[Verdict.WAIT if judged.untold else decision.verdict])


def disbelieved(judged: Judged) -> str | None:
    """Return what is said of a healthy node's guest, and not believed; None: nothing of the kind."""
    evidence = judged.observation.evidence
    if judged.decision.verdict is not Verdict.HEALTHY or evidence is None or evidence.doubt is None:
        return None
    return f"its guest reads {clean(evidence.raw)}"


def left_on(observation: Observation) -> str:
    """Return what a fence still has to clear."""
    pods, volumes = clearable(observation.pods or ()), to_release(observation)
    if not pods and not volumes:
        return "no pod and no volume is left on it"
    return f"{count(len(pods), 'pod')} to be cleared, {count(len(volumes), 'volume')} to be released"


def why(judged: Judged) -> str:
    """Return why the decision is what it is; where one look cannot tell, what would follow."""
    decision, evidence, unbelieved = judged.decision, judged.observation.evidence, disbelieved(judged)
    if unbelieved is not None:
        return f"{clean(says(decision))}, but {unbelieved}"
    if not judged.untold:
        return clean(says(decision))
    if decision.reason is Reason.NOT_HELD and fenced_age(judged.observation) is not None:
        seen = clean(evidence.raw) if evidence else "no reading"
        return f"its guest is off: {seen}; {left_on(judged.observation)}"
    return clean(judged.untold)


def as_data(judged: Judged) -> dict[str, Any]:
    """Return a judged node for programs."""
    observation, decision = judged.observation, judged.decision
    node, guest, mark = observation.node, guest_of(judged), observation.node.mark
    return {
        "node": node.name,
        "ready": node.ready,
        "not_ready_s": _rounded(node.not_ready_s),
        "lease_age_s": _rounded(node.lease_age_s),
        "guest": None
        if guest is None
        else {
            "endpoint": guest.endpoint,
            "id": guest.id,
            "uuid": guest.uuid,
            "name": guest.name,
            "host": guest.host,
        },
        "guest_state": state_of(observation).replace(NOBODY, "") or None,
        "guest_says": observation.evidence.raw if observation.evidence else None,
        "verdict": decision.verdict.value,
        "reason": decision.reason.value,
        "why": why(judged),
        "what_would_change_this": change(decision),
        "one_look_cannot_tell": UNTOLD[decision.reason] if judged.untold else None,
        "fenced": fenced_age(observation) is not None,
        "fenced_at": mark.fenced_at_utc if isinstance(mark, FenceMark) else None,
        "incident": mark.incident if isinstance(mark, FenceMark) else None,
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
