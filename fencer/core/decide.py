"""Judge one node: find its ladder, climb it, and say what to write down on the way.

`decide` is the only entrance to the rules. The ladders are in `fencer.core.ladders`.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core.doubt import recorded
from fencer.core.fence import alarm_of_older_boot, heard
from fencer.core.identity import known_boot_ids, moved_binding, untold
from fencer.core.ladders import RETURN_UNTOLD, STOP_OLD_MEMORY, TAKE_BACK, begin, climb, ladder_for
from fencer.core.model import (
    Alarm,
    BindNode,
    Check,
    Decision,
    FenceMark,
    Intent,
    Observation,
    Outcome,
    PowerState,
    Reason,
    Verdict,
)
from fencer.core.policy import Mode, Policy, ResumedGuest
from fencer.core.recover import alarmed, known_boot_heard, settling
from fencer.core.rung import Ending, Subject
from fencer.core.shutdown import PASSING, as_planned
from fencer.core.word import spoken_for

UNCERTAIN = frozenset({Reason.GUEST_AMBIGUOUS, Reason.NO_GUEST, Reason.GUEST_TAKEN})
"""It is not known which guest the node is; but what was seen of the possible ones is noted."""


def decide(observation: Observation, policy: Policy) -> Decision:
    """Judge one node.

    Args:
        observation: All that is known of it.
        policy: How careful to be.

    Returns:
        What it is, why, the whole ladder, and what to do next. After each action everything has to be
        observed and decided again; a decision is never carried over.
    """
    observation = spoken_for(observation, policy)
    if observation.intent is Intent.UNFENCE and not observation.node.fenced:
        return _not_fenced(observation)
    begun = begin(observation, policy)
    if isinstance(begun, Decision):
        begun = _with_alarm(observation, policy, _back_untold(observation, policy, begun))
        return recorded(observation, begun) if begun.reason in UNCERTAIN else begun
    subject, opening = begun
    decision = climb(ladder_for(subject, policy), subject, opening, policy)
    decision = _with_alarm(observation, policy, _come_back(subject, opening, policy, decision))
    decision = recorded(observation, _waited_for(observation, policy, decision))
    decision = as_planned(observation, _bound_where_it_runs(observation, decision))
    return _told(subject, decision)


def _back_untold(observation: Observation, policy: Policy, refused: Decision) -> Decision:
    """Judge a node whose guest nobody can tell: a fence, and what it left, comes off all the same."""
    node, subject = observation.node, untold(observation)
    if node.fenced:
        rebooted = bool(node.boot_id) and node.boot_id not in known_boot_ids(node)
        asked = observation.intent in {Intent.WATCH, Intent.UNFENCE}
        if refused.reason is not Reason.NO_GUEST or not (rebooted and asked):
            return refused
        passed = tuple(check for check in refused.checks if check.outcome is Outcome.PASSED)
        return climb(RETURN_UNTOLD, subject, passed, policy)
    watched = refused.reason in UNCERTAIN and observation.intent is Intent.WATCH
    if not watched or not heard(subject, policy):
        return refused
    told = Ending(refused.verdict, refused.reason, alarm_of_older_boot(node))
    ending = settling(subject, policy, told) if policy.mode is Mode.ARMED else told
    return replace(refused, actions=ending.actions)


def _bound_where_it_runs(observation: Observation, decision: Decision) -> Decision:
    """Write where the bound guest runs now, even if its node is silent: that is where it has to be off."""
    watches = observation.intent is Intent.WATCH
    binding = moved_binding(observation)
    if binding is None or not watches or any(isinstance(action, BindNode) for action in decision.actions):
        return decision
    return replace(decision, actions=(BindNode(binding), *decision.actions))


def _told(subject: Subject, decision: Decision) -> Decision:
    """Tell people what a hypervisor found out besides its reading."""
    if not subject.evidence.told:
        return decision
    return replace(decision, actions=(Alarm(f"{subject.guest}: {subject.evidence.told}"), *decision.actions))


def _come_back(subject: Subject, opening: tuple[Check, ...], policy: Policy, decision: Decision) -> Decision:
    """React to old memory that is back under a fence: take the fence back, or stop the guest again."""
    known = decision.reason is Reason.OLD_MEMORY or known_boot_heard(subject.seen, policy)
    if not subject.node.fenced or not known:
        return decision
    back = climb(TAKE_BACK, subject, opening, policy)
    if back.reason in {Reason.FENCED_WRONGLY, Reason.CLOSER_LOOK}:
        return back
    if back.reason is Reason.OBSERVE_MODE:
        return replace(back, actions=decision.actions)
    runs = subject.power_state is PowerState.RUNNING
    if runs and decision.reason is Reason.OLD_MEMORY and policy.resumed_guest is ResumedGuest.STOP:
        stop = climb(STOP_OLD_MEMORY, subject, opening, policy)
        if stop.actions or stop.reason is Reason.OBSERVE_MODE:
            return replace(stop, actions=(*decision.actions, *stop.actions))
    return decision


def _with_alarm(observation: Observation, policy: Policy, decision: Decision) -> Decision:
    """Let people know of old memory, whatever else is in the way of a decision."""
    mark = observation.node.mark
    if (
        not isinstance(mark, FenceMark)
        or not observation.node.fenced
        or observation.intent is Intent.SHUTDOWN
    ):
        return decision
    return alarmed(observation, mark, policy, decision)


def _waited_for(observation: Observation, policy: Policy, decision: Decision) -> Decision:
    """Wait for what may pass, once a guest was asked to shut down."""
    asked = observation.intent is Intent.SHUTDOWN and observation.asked_s is not None
    if not asked or decision.reason not in PASSING:
        return decision
    return replace(decision, verdict=Verdict.WAIT, recheck_s=policy.poll_s)


def _not_fenced(observation: Observation) -> Decision:
    foreign = observation.node.out_of_service is not None
    taint = "a taint that is not ours" if foreign else "no out-of-service taint"
    check = Check("fenced", Outcome.FAILED, taint, "a fence that fencer set")
    return Decision(Verdict.REFUSE, Reason.FOREIGN_TAINT if foreign else Reason.NOT_FENCED, (check,))
