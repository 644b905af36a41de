"""Whether to fence: the guard ladder. Every rule is a rung, asked in order; the first objection decides.

`decide` is the only entrance. It hands nodes that are fenced already to `fencer.core.recover`.
"""

from __future__ import annotations

from fencer.core import rungs
from fencer.core.history import LEASE_DURATION_S
from fencer.core.identity import new_binding, resolve
from fencer.core.ladder import Ending, Objection, Passed, Rung, climb
from fencer.core.model import (
    Action,
    Alarm,
    Binding,
    BindNode,
    Decision,
    DiscardSaved,
    FenceMark,
    ForgetMark,
    Intent,
    Observation,
    PowerState,
    Proof,
    Reason,
    StopGuest,
    TaintNode,
    Verdict,
)
from fencer.core.off import off as reads_off
from fencer.core.policy import Mode, PausedGuest, Policy, SavedGuest, UnresponsiveGuest
from fencer.core.recover import decide_fenced, decide_settling
from fencer.core.rungs import age
from fencer.core.shutdown import decide_shutdown
from fencer.core.start import decide_start
from fencer.core.stop import DISCARD_SAVED, STOP_PAUSED, STOP_RUNNING
from fencer.core.word import spoken_for


def decide(observation: Observation, policy: Policy) -> Decision:
    """Judge one node.

    Args:
        observation: All that is known of it.
        policy: How careful to be.

    Returns:
        What it is, why, the whole ladder, and what to do next. After each action everything is to be
        observed and decided anew; a decision is never carried over.
    """
    if observation.intent is Intent.SHUTDOWN:
        return decide_shutdown(observation, policy)
    if observation.intent is Intent.START:
        return decide_start(observation, policy)
    observation = spoken_for(observation, policy)
    node = observation.node
    if isinstance(node.mark, FenceMark) and node.out_of_service is not None:
        return decide_fenced(observation, policy)
    if observation.intent is Intent.UNFENCE:
        return climb((("fenced", _not_fenced),), _no_ending, observation, policy)
    decision = _decide_fence(observation, policy)
    if decision.verdict is Verdict.HEALTHY and node.cordon is not None:
        return decide_settling(observation, policy, decision)
    return decision


def _decide_fence(observation: Observation, policy: Policy) -> Decision:
    state = observation.evidence.power_state if observation.evidence else PowerState.UNKNOWN
    if state is PowerState.PAUSED and policy.paused_guest is PausedGuest.STOP:
        return climb((*APPROACH, *STOP_PAUSED), _stop, observation, policy)
    if state is PowerState.RUNNING and _stops_running(observation, policy):
        return climb((*APPROACH, *STOP_RUNNING), _stop, observation, policy)
    if state is PowerState.SAVED and policy.saved_guest is SavedGuest.DISCARD:
        return climb((*APPROACH, *DISCARD_SAVED), _discard, observation, policy)
    return climb((*APPROACH, *FENCE), _fence, observation, policy)


def silent(observation: Observation, policy: Policy) -> Passed | Objection:
    """The kubelet is not heard. By hand, the operator's word replaces the waiting."""
    node = observation.node
    condition = {True: "True", False: "False", None: "Unknown"}[node.ready]
    if node.lease_age_s is None:
        seen = f"Ready={condition}; the node has no lease"
        return Objection(Verdict.WAIT, Reason.LEASE_UNSEEN, seen, "a lease in kube-node-lease")
    seen = f"Ready={condition}{f' for {age(node.not_ready_s)}' if node.not_ready_s else ''}"
    heard = f"lease last renewed {age(node.lease_age_s)} ago"
    needs = f"limit {policy.lease_silent_s:g} s"
    if observation.intent is Intent.FENCE:
        return Passed(f"{seen}; {heard}; by hand: not waited for", needs)
    if node.ready and node.lease_age_s < (policy.lease_silent_s or LEASE_DURATION_S):
        state = observation.evidence.power_state if observation.evidence else PowerState.UNKNOWN
        if policy.require_not_ready or state not in rungs.OFF:
            return _healthy(observation, policy, f"{seen}; {heard}")
    if node.ready and policy.require_not_ready:
        return Objection(Verdict.WAIT, Reason.NODE_READY, f"{seen}; {heard}", "Ready to be Unknown or False")
    if node.lease_age_s < policy.lease_silent_s:
        left_s = policy.lease_silent_s - node.lease_age_s
        return Objection(Verdict.WAIT, Reason.SILENCE_TOO_SHORT, f"{seen}; {heard}", needs, left_s)
    return Passed(f"{seen}; {heard}", needs)


def unmarked(observation: Observation, _policy: Policy) -> Passed | Objection:
    """No taint of somebody else, and no fence that an operator took back (and did not ask for again)."""
    node, by_hand = observation.node, observation.intent is Intent.FENCE
    if node.out_of_service is not None and node.mark is None:
        return Objection(
            Verdict.REFUSE,
            Reason.FOREIGN_TAINT,
            "the node carries an out-of-service taint that fencer did not set",
            "whoever set it to take it off; fencer neither adds to it nor removes it",
        )
    if isinstance(node.mark, FenceMark) and node.mark.boot_id == node.boot_id and not by_hand:
        return Objection(
            Verdict.REFUSE,
            Reason.TAINT_TAKEN_OFF,
            f"somebody took the taint off that {node.mark.by} set at {node.mark.fenced_at_utc}",
            "the node to boot anew, or `fencer fence` by hand: an operator's word is not undone",
        )
    return Passed("no taint and no mark")


def off(observation: Observation, policy: Policy) -> Passed | Objection:
    """The hypervisor says that no process holds this guest's memory."""
    if observation.evidence is None:
        return Objection(Verdict.REFUSE, Reason.EVIDENCE_MISSING, "nothing", "an answer of the hypervisor")
    return reads_off(observation.evidence, policy)


def fall_seen(observation: Observation, policy: Policy) -> Passed | Objection:
    """Without any wait for silence, only a fall that this agent saw counts."""
    if observation.intent is Intent.FENCE or policy.lease_silent_s > 0 or observation.history.running_seen:
        return Passed("seen running before" if observation.history.running_seen else "silence was waited for")
    return Objection(
        Verdict.REFUSE,
        Reason.FALL_UNSEEN,
        "first seen off",
        "a guest seen running before (lease_silent_s: 0)",
    )


APPROACH: tuple[tuple[str, Rung], ...] = (
    ("wanted", rungs.wanted),
    ("bound", rungs.bound),
    ("silent", silent),
    ("unmarked", unmarked),
    ("proven", rungs.proven),
    ("fresh", rungs.known),
)
"""Every ladder begins so."""

FENCE: tuple[tuple[str, Rung], ...] = (
    ("off", off),
    ("no renewal", rungs.not_renewed),
    ("in place", rungs.in_place),
    ("settled", rungs.settled),
    ("fall seen", fall_seen),
    ("looked closely", rungs.looked_closely),
    ("held", rungs.held),
    ("needed", rungs.needed),
    ("brake", rungs.braked),
    ("armed", rungs.armed),
)
"""From a guest that is off to the taint."""


def _healthy(observation: Observation, policy: Policy, seen: str) -> Objection:
    actions: tuple[Action, ...] = ()
    candidate = resolve(observation).candidate
    if policy.mode is Mode.ARMED and observation.intent is Intent.WATCH and candidate is not None:
        binding = new_binding(observation, candidate.guest)
        actions = (BindNode(binding),) if binding else ()
        mark = observation.node.mark
        if isinstance(mark, FenceMark) and mark.boot_id != observation.node.boot_id:
            actions = (*actions, ForgetMark())
        actions = (*actions, *_alarm_of_older_boot(observation))
    return Objection(Verdict.HEALTHY, Reason.NODE_HEALTHY, seen, "nothing", actions=actions)


def _alarm_of_older_boot(observation: Observation) -> tuple[Alarm, ...]:
    """Old memory may come back after a fence was lifted, too: by a snapshot of an earlier boot."""
    node = observation.node
    earlier = node.binding.boot_ids[:-1] if isinstance(node.binding, Binding) else ()
    if node.boot_id not in earlier:
        return ()
    text = f"it runs an earlier boot again ({node.boot_id}): memory that may write to volumes given away"
    return (Alarm(f"{text}. Restart its guest cold."),)


def _stops_running(observation: Observation, policy: Policy) -> bool:
    if observation.intent is Intent.FENCE:
        return observation.word.stop_guest
    return policy.unresponsive_guest is UnresponsiveGuest.STOP


def _stop(observation: Observation, policy: Policy) -> Ending:
    candidate, evidence = resolve(observation).candidate, observation.evidence
    assert candidate is not None  # noqa: S101 - `bound` held
    assert evidence is not None  # noqa: S101 - `fresh` held
    reason = Reason.GUEST_PAUSED if evidence.power_state is PowerState.PAUSED else Reason.GUEST_UNRESPONSIVE
    return Ending(
        Verdict.STOP_FIRST,
        reason,
        (StopGuest(candidate.guest, evidence.incarnation),),
        recheck_s=policy.poll_s,
    )


def _discard(observation: Observation, policy: Policy) -> Ending:
    candidate = resolve(observation).candidate
    assert candidate is not None  # noqa: S101 - `bound` held
    return Ending(
        Verdict.STOP_FIRST, Reason.GUEST_SAVED, (DiscardSaved(candidate.guest),), recheck_s=policy.poll_s
    )


def _fence(observation: Observation, _policy: Policy) -> Ending:
    candidate, evidence = resolve(observation).candidate, observation.evidence
    assert candidate is not None  # noqa: S101 - `bound` held
    assert evidence is not None  # noqa: S101 - `fresh` held
    absent = evidence.power_state is PowerState.ABSENT
    mark = FenceMark(
        incident=observation.incident,
        fenced_at_utc=observation.utc,
        boot_id=observation.node.boot_id,
        guest=candidate.guest,
        by=observation.by,
        proof=Proof.ABSENCE if absent else evidence.proof,
        incarnation=evidence.incarnation,
    )
    return Ending(Verdict.FENCE, Reason.PROVEN_OFF, (TaintNode(mark),))


def _not_fenced(observation: Observation, _policy: Policy) -> Passed | Objection:
    taint = "a taint that is not ours" if observation.node.out_of_service else "no out-of-service taint"
    return Objection(Verdict.REFUSE, Reason.NOT_FENCED, taint, "a fence of fencer's to lift")


def _no_ending(observation: Observation, _policy: Policy) -> Ending:
    raise AssertionError(f"{observation.node.name}: a ladder without an end was climbed")
