"""One wording for log, journal and Events: what to say about a decision or an action, and how loudly.

Names in it come from outside: the code that writes it escapes it for its place.
"""

from __future__ import annotations

from fencer.core.done import Done, PodsCleared, Tainted
from fencer.core.model import (
    Alarm,
    BindNode,
    Decision,
    Deed,
    ForgetMark,
    NodeView,
    PowerState,
    Proof,
    Reason,
    RecordDoubts,
    UntaintNode,
    Verdict,
)
from fencer.core.text import age, count
from fencer.core.wire import name_of
from fencer.wording.conditions import AT_EASE
from fencer.wording.events import ACTIONS, NO_CASE
from fencer.wording.reasons import TEXTS, change, says
from fencer.wording.verdicts import recorded_adjective

LOUD = frozenset({Verdict.REFUSE, Verdict.STOP_FIRST, Verdict.DISCARD_FIRST, Verdict.FENCE})
"""Verdicts that a person should look at: something is wrong, or about to be done."""

LINKS = frozenset(
    {
        Reason.NOT_HELD,
        Reason.PROVEN_OFF,
        Reason.CLEARING_PODS,
        Reason.RELEASING_VOLUMES,
        Reason.AWAITING_RENEWALS,
        Reason.SETTLING,
        Reason.SETTLED,
        Reason.FENCING_PAUSED,
        Reason.MAINTENANCE,
    }
)
"""What only leads from one step to the next: the action that follows says as much. A pause is told once, and
not for each node that is Ready."""

LED = frozenset({*LOUD, Verdict.WAIT, Verdict.FENCED, Verdict.RECOVERING})
"""Verdicts whose adjective starts the line of the log; the reasons of the others are whole sentences."""

STILL_FENCED = "still fenced: "
"""How one starts about a fenced node if something else than its fence is judged."""

NOT_READY, READY_AGAIN = "not Ready, and ", "Ready again; "
"""How one begins of a node that falls while fencing is paused, and of one that comes back then."""

ENDS: dict[PowerState | Proof, str] = {
    PowerState.STOPPED: "guest stopped",
    PowerState.ABSENT: "guest deleted",
    PowerState.PAUSED: "guest paused",
    Proof.HA_RECOVERY: "host fenced by HA",
    Proof.HOST_POWER: "host without power",
    Proof.OPERATOR: "guest off, by a person's word",
}
"""What has ended, as a fence is told."""


def decision_text(decision: Decision) -> str:
    """Return the text of a decision: why, what was seen and, for a refusal, what would change it."""
    text = says(decision)
    if decision.verdict is Verdict.REFUSE and decision.reason not in NO_CASE:
        text += f"; what would change this: {change(decision)}"
    return text


def told_decision(decision: Decision, node: NodeView) -> str:
    """Return a decision as the log tells it after the name of the node.

    Args:
        decision: The decision.
        node: The node: it may carry a fence already, or somebody else's taint.
    """
    fenced = node.fenced
    if decision.reason is Reason.NODE_HEALTHY:
        taken = node.out_of_service is not None and not fenced
        return f"healthy again, but {TEXTS[Reason.FOREIGN_TAINT].says}" if taken else "healthy again"
    if decision.reason is Reason.CORDON_UNRECORDED:
        return f"{says(decision)}; to lift it: `kubectl uncordon {node.name}`"
    lead = lead_of(decision.verdict, decision.reason, fenced=fenced)
    if decision.reason is Reason.OBSERVE_MODE:  # "would fence now: …"
        lead = ""
    elif not fenced and fell_unheeded(decision, node):
        lead = f"{NOT_READY}{lead}"
    return lead + decision_text(decision)


def back_unheeded(decision: Decision, node: NodeView) -> str:
    """Return how the log tells that a node is Ready again, of which it told that it fell while paused."""
    return f"{READY_AGAIN}{told_decision(decision, node) if node.fenced else says(decision)}"


def fell_unheeded(decision: Decision, node: NodeView) -> bool:
    """Whether a node is not Ready, and nothing follows, because fencing is paused or the node excluded."""
    return decision.reason in AT_EASE and node.ready is not True


def lead_of(verdict: str, reason: str, *, fenced: bool) -> str:
    """Return how a line about a decision starts; nothing for a verdict of a newer fencer in the journal."""
    if verdict not in LED or reason == Reason.NOTHING_TO_CLEAR:  # its text starts with the same words
        return ""
    if fenced and verdict in {Verdict.WAIT, Verdict.REFUSE}:
        return STILL_FENCED
    return f"{recorded_adjective(verdict, reason)}: "


def told_action(action: Deed, done: Done) -> str:
    """Return an action as the log tells it after the name of the node."""
    match action, done:
        case Alarm(), _:
            return f"ALARM: {done}"
        case _, Tainted():
            left = f"{count(done.pods, 'pod')} to clear, {count(done.volumes, 'volume')} to release"
            return f"{done}: {_ended(done, 0.0)}; {left}"
        case UntaintNode(), _ if done.ok:
            return f"fence lifted: {done}"
    return str(done) if done.ok else f"could not {ACTIONS[type(action)][1]}: {done}"


def fenced_text(tainted: Tainted, took_s: float) -> str:
    """Return the one line that a complete fence comes to.

    Args:
        tainted: How it began.
        took_s: How long ago that was.
    """
    what = f"{count(tainted.pods, 'pod')}, {count(tainted.volumes, 'volume')}"
    return f"fenced: {_ended(tainted, took_s)}; {what}, {age(took_s)}"


def _ended(tainted: Tainted, since_s: float) -> str:
    what = ENDS.get(tainted.proof) or ENDS.get(tainted.power_state, f"guest {tainted.power_state}")
    return what if tainted.off_s is None else f"{what} {age(tainted.off_s + since_s)} ago"


def is_loud(decision: Decision) -> bool:
    """Whether a decision is a warning."""
    return decision.verdict in LOUD and decision.reason not in NO_CASE


def is_link(decision: Decision, node: NodeView) -> bool:
    """Whether a decision is no news for people, only a step on the way.

    Args:
        decision: The decision.
        node: The node: that it falls while fencing is paused is news.
    """
    if fell_unheeded(decision, node):
        return False
    waits = decision.verdict is Verdict.FENCED and decision.reason is Reason.AWAITING_BOOT
    return decision.reason in LINKS or waits


def is_alarming(action: Deed) -> bool:
    """Whether an action that was done is a warning: an alarm, or the note whose word does not count."""
    doubted = isinstance(action, RecordDoubts) and bool(action.doubts)
    return doubted or isinstance(action, Alarm)


def links(action: Deed, done: Done) -> bool:
    """Whether an action is no news for people: a note of fencer's own, or a step that is tried again."""
    return isinstance(action, BindNode | ForgetMark) or (isinstance(done, PodsCleared) and done.only_changed)


def action_word(action: Deed, *, ok: bool) -> str:
    """Return an action as Kubernetes writes reasons: ``TaintNode``, ``TaintNodeFailed``."""
    return name_of(type(action)) + ("" if ok else "Failed")
