"""Judge one node: find its ladder, and climb it. What has to be noted first comes from `fencer.core.learn`.

`decide` is the only entrance to the rules. The ladders are in `fencer.core.ladders`.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core import consent, fleet
from fencer.core.crash_loop import with_loop_alarm
from fencer.core.fence import heard
from fencer.core.holds import allowed
from fencer.core.identity import untold
from fencer.core.ladders import (
    RETURN_UNTOLD,
    STOP_OLD_MEMORY,
    TAKE_BACK,
    Begun,
    begin,
    climb,
    ladder_for,
    leaves_room,
)
from fencer.core.learn import learn
from fencer.core.model import (
    Alarm,
    Check,
    Decision,
    Evidence,
    Intent,
    Observation,
    Outcome,
    PowerState,
    Reason,
    StartGuest,
    Verdict,
)
from fencer.core.old_memory import (
    sign_of_old_memory,
    sign_of_same_run,
    with_alarm,
    with_earlier_boot_alarm,
    with_fence_alarm,
)
from fencer.core.policy import Mode, Policy, ResumedGuest
from fencer.core.recover import settling
from fencer.core.rung import Ending, Objection
from fencer.core.shutdown import PASSING, as_planned
from fencer.core.word import spoken_for

UNCERTAIN = frozenset({Reason.GUEST_AMBIGUOUS, Reason.NO_GUEST, Reason.GUEST_TAKEN})
"""It is not known which guest the node is; but what was seen of the possible ones is noted."""


def decide(observation: Observation, policy: Policy) -> Decision:
    """Judge one node, on what `fencer.core.learn` has learnt of it.

    Args:
        observation: All that is known of it.
        policy: How careful to be.

    Returns:
        What it is, why, the whole ladder, and what to do next: notes come first. After each action everything
        has to be observed and decided again; a decision is never carried over.
    """
    learned = learn(observation, policy)
    decision = _judged(spoken_for(observation, policy), policy)
    if observation.intent is Intent.WATCH:  # a command has seen no start
        decision = with_loop_alarm(observation, decision)
    return replace(decision, actions=(*learned.notes, *decision.actions), look=learned.look)


def _judged(observation: Observation, policy: Policy) -> Decision:
    """Judge one node, whatever there is to be noted of it."""
    if observation.intent is Intent.UNFENCE and not observation.node.fenced:
        return _not_fenced(observation)
    begun = begin(observation, policy)
    if isinstance(begun, Decision):
        decision = _with_alarm(observation, policy, _back_untold(observation, policy, begun))
        return _told(observation.evidence, decision)
    subject = begun.subject
    decision = climb(ladder_for(subject, policy), subject, begun.opening, policy)
    decision = _with_alarm(observation, policy, _come_back(begun, policy, decision))
    decision = as_planned(observation, _waited_for(observation, policy, decision))
    return _told(subject.evidence, _within(begun, policy, decision))


def _within(begun: Begun, policy: Policy, decision: Decision) -> Decision:
    """Leave out what a hold leaves no room for. An open window shows where nothing that was begun goes on."""
    actions = decision.actions
    if isinstance(consent.unreserved(begun.subject, policy), Objection):
        actions = tuple(action for action in actions if not isinstance(action, StartGuest))
    if begun.held is None:
        return replace(decision, actions=actions)
    actions = allowed(begun.held.reason, actions)
    goes_on = begun.subject.node.fenced or decision.verdict is Verdict.RECOVERING
    return replace(decision if goes_on else begun.held, actions=actions)


def _back_untold(observation: Observation, policy: Policy, refused: Decision) -> Decision:
    """Judge a node whose guest nobody can tell: a fence, and what it left, comes off all the same."""
    node, subject = observation.node, untold(observation)
    if node.fenced:
        rebooted = bool(node.boot_id) and node.boot_id not in node.known_boot_ids
        asked = observation.intent in {Intent.WATCH, Intent.UNFENCE}
        if refused.reason is not Reason.NO_GUEST or not (rebooted and asked):
            return refused
        passed = tuple(check for check in refused.checks if check.outcome is Outcome.PASSED)
        return climb(RETURN_UNTOLD, subject, passed, policy)
    watched = refused.reason in UNCERTAIN and observation.intent is Intent.WATCH
    if not watched or not heard(subject, policy):
        return refused
    told = Ending(refused.verdict, refused.reason)
    ending = settling(subject, policy, told) if policy.mode is Mode.ARMED else told
    return replace(refused, actions=ending.actions)


def _told(evidence: Evidence | None, decision: Decision) -> Decision:
    """Add an alarm about what a hypervisor found out besides its reading."""
    if evidence is None or not evidence.told:
        return decision
    check = Check("found besides", Outcome.ALARM, evidence.told)
    return with_alarm(decision, check, Alarm(f"{evidence.guest}: {evidence.told}"))


def _come_back(begun: Begun, policy: Policy, decision: Decision) -> Decision:
    """React to old memory that is back under a fence: take the fence back, or stop the guest again."""
    subject, opening = begun.subject, begun.opening
    sign = sign_of_old_memory(subject, policy) or sign_of_same_run(subject, policy)
    if not subject.node.fenced:
        return decision
    grounds = Check("old memory", Outcome.ALARM, sign)
    back = climb(TAKE_BACK, subject, opening, policy)
    if back.reason is Reason.CLOSER_LOOK:
        return back
    if back.reason is Reason.FENCED_WRONGLY:
        return replace(back, checks=(*back.checks, grounds))
    if back.reason is Reason.OBSERVE_MODE:
        return replace(back, checks=(*back.checks, grounds))
    runs = subject.power_state is PowerState.RUNNING
    wanted = policy.resumed_guest is ResumedGuest.STOP and decision.reason is Reason.OLD_MEMORY
    if runs and wanted and (begun.held is None or leaves_room(begun.held, STOP_OLD_MEMORY)):
        stop = climb(STOP_OLD_MEMORY, subject, opening, policy)
        if stop.actions or stop.reason is Reason.OBSERVE_MODE:
            actions = (*decision.actions, *stop.actions)
            return replace(stop, checks=(*stop.checks, grounds), actions=actions)
    return decision


def _with_alarm(observation: Observation, policy: Policy, decision: Decision) -> Decision:
    """Let people know of old memory, whatever else is in the way of a decision."""
    node, intent = observation.node, observation.intent
    if node.fence is not None:
        if intent is Intent.SHUTDOWN:
            return decision
        return with_fence_alarm(observation, node.fence, policy, decision)
    alive = intent is Intent.WATCH and fleet.heard(node, policy)
    return with_earlier_boot_alarm(node, decision) if alive else decision


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
