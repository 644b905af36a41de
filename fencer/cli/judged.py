"""A judged node as the cells of a table, and as data for programs."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo
from typing import Any

from fencer.cli.render import BAD, DOUBTFUL, FAINT, GOOD, Cell
from fencer.core.cordon import cordoned_by
from fencer.core.model import Evidence, FenceMark, Judged, NodeView, Observation, PowerState
from fencer.core.times import in_zone
from fencer.wording.conditions import Condition, condition, fence_word
from fencer.wording.foresight import UNTOLD
from fencer.wording.nodes import (
    NOBODY,
    blind,
    fenced_age,
    guest_of,
    ready,
    state_of,
    why,
    would_change,
)
from fencer.wording.verdicts import key_of, shown_verdict

STATE_COLOURS = {PowerState.RUNNING: GOOD, PowerState.UNKNOWN: DOUBTFUL}


def ready_cell(node: NodeView) -> Cell:
    """Return whether a node is Ready, and since when it is not."""
    return Cell(ready(node), GOOD if node.ready else BAD)


def state_cell(observation: Observation) -> Cell:
    """Return the guest's power state."""
    evidence: Evidence | None = observation.evidence
    colour = DOUBTFUL if evidence is None else STATE_COLOURS.get(evidence.power_state, BAD)
    word = state_of(observation)
    return Cell(word, FAINT if word == NOBODY else colour)


def fence_cell(judged: Judged) -> Cell:
    """Return whether the node is fenced, or would be."""
    word = fence_word(judged)
    if word == NOBODY:
        return Cell(word)
    bad = {Condition.ALARM, Condition.REFUSED, Condition.UNPROTECTED, Condition.BLIND}
    return Cell(word, BAD if condition(judged) in bad else DOUBTFUL)


def locally(judged: Judged, zone: tzinfo | None) -> Judged:
    """Return a judged node for people: times in what was seen and is needed are local, with the zone."""
    checks = [
        replace(one, seen=in_zone(one.seen, zone), needs=in_zone(one.needs, zone))
        for one in judged.decision.checks
    ]
    return replace(judged, decision=replace(judged.decision, checks=tuple(checks)))


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
        "condition": condition(judged).value,
        "verdict": key_of(shown_verdict(judged)),
        "reason": decision.reason.value,
        "why": why(judged),
        "what_would_change_this": would_change(judged),
        "one_look_cannot_tell": UNTOLD[decision.reason] if judged.untold else None,
        "blind": blind(judged) is not None,
        "cordoned": cordoned_by(node),
        "fenced": fenced_age(observation) is not None,
        "fenced_at": mark.fenced_at_utc if isinstance(mark, FenceMark) else None,
        "incident": mark.incident if isinstance(mark, FenceMark) else None,
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
