"""What becomes of a fenced node: clear what is left while its guest is off, lift the fence when it is back.

Never lift it on old memory: a guest that was resumed, restored or reverted writes on where it stopped.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core import rungs
from fencer.core.drain import HOOK, cordoned_by_drain
from fencer.core.history import LEASE_DURATION_S, renewals_in_run
from fencer.core.identity import known_boot_ids, resolve
from fencer.core.ladder import Ending, Objection, Passed, Rung, climb
from fencer.core.model import (
    Alarm,
    ClearPods,
    Cordon,
    Decision,
    DeleteAttachments,
    FenceMark,
    Intent,
    Observation,
    PowerState,
    Reason,
    StartGuest,
    StopGuest,
    Uncordon,
    UntaintNode,
    Verdict,
)
from fencer.core.off import off
from fencer.core.pods import clearable, older_than_fence, seconds_between
from fencer.core.policy import AfterStop, Mode, Policy, ResumedGuest
from fencer.core.rungs import age

STOP_DID_NOT_COME_S = 600.0
"""So long after a hookscript had a node drained, its guest would be off: the drain ends after 300 s at most,
a shutdown is given 60 to 180 s. Source: facts of qemu-server and pve-guests."""


def decide_fenced(observation: Observation, policy: Policy) -> Decision:
    """Judge a node that carries our taint and our mark."""
    state = observation.evidence.power_state if observation.evidence else PowerState.UNKNOWN
    if rungs.counts_as_off(state, policy) and observation.intent is not Intent.UNFENCE:
        return climb(STILL_OFF, _clear, observation, policy)
    decision = climb(RETURN, _unfence, observation, policy)
    if decision.reason is Reason.OLD_MEMORY and policy.resumed_guest is ResumedGuest.STOP:
        stop = climb(STOP_OLD_MEMORY, _stop_again, observation, policy)
        return replace(stop, actions=(*decision.actions, *stop.actions)) if stop.actions else decision
    return _alarmed(observation, policy, decision)


def decide_settling(observation: Observation, policy: Policy, healthy: Decision) -> Decision:
    """Judge a healthy node that carries a cordon of ours from after a fence."""
    cordon = observation.node.cordon
    if not isinstance(cordon, Cordon) or policy.mode is not Mode.ARMED:
        return healthy
    if cordon.by == HOOK:
        return _after_a_stop(observation, cordon, healthy)
    if cordon.by != "unfence":
        return healthy
    passed_s = seconds_between(cordon.since_utc, observation.utc)
    if passed_s < policy.settle_s:
        left_s = policy.settle_s - passed_s
        return Decision(
            Verdict.RECOVERING, Reason.SETTLING, healthy.checks, healthy.actions, left_s, healthy.guest
        )
    actions = (*healthy.actions, Uncordon())
    return Decision(Verdict.RECOVERING, Reason.SETTLED, healthy.checks, actions, 0.0, healthy.guest)


def _after_a_stop(observation: Observation, cordon: Cordon, healthy: Decision) -> Decision:
    """Uncordon a node that a hookscript had drained: it has booted since, or the stop did not come."""
    node = observation.node
    stayed_s = seconds_between(cordon.since_utc, observation.utc)
    back = node.boot_id != cordon.boot_id or stayed_s >= STOP_DID_NOT_COME_S
    if not cordoned_by_drain(node) or not back:
        return healthy
    actions = (*healthy.actions, Uncordon())
    return Decision(Verdict.RECOVERING, Reason.SETTLED, healthy.checks, actions, 0.0, healthy.guest)


def same_guest(observation: Observation, policy: Policy) -> Passed | Objection:
    """The guest is the one that was fenced; or that one is proven off as well, and another took its place."""
    candidate, mark = resolve(observation).candidate, _mark(observation)
    if candidate is not None and candidate.guest.key != mark.guest.key:
        fenced = observation.fenced_guest
        if fenced is not None and not fenced.conclusive and fenced.power_state in rungs.OFF:
            return Objection(Verdict.WAIT, Reason.CLOSER_LOOK, fenced.raw, "a live reading of it", 0.0)
        if fenced is not None and isinstance(off(fenced, policy), Passed):
            return Passed(f"{mark.guest}, as fenced, is off ({fenced.raw}); {candidate.guest} took its place")
        return Objection(
            Verdict.FENCED,
            Reason.GUEST_REPLACED,
            f"{mark.guest} was fenced, {candidate.guest} is the node now",
            f"{mark.guest} proven off as well, or `fencer unfence` by hand",
        )
    return Passed(f"{mark.guest}, as fenced")


def running(observation: Observation, policy: Policy) -> Passed | Objection:
    """The guest runs by a cold start; or its hypervisor is silent and the node alone tells."""
    evidence = observation.evidence
    state = evidence.power_state if evidence else PowerState.UNKNOWN
    fresh = isinstance(rungs.known(observation, policy), Passed)
    if state is PowerState.RUNNING and fresh and evidence is not None:
        if evidence.cold_start is False:
            return _old_memory(observation, f"{evidence.raw}: restored, not booted")
        return Passed(evidence.raw)
    if (state is PowerState.UNKNOWN or not fresh) and _alive_for(observation) >= policy.unfence_blind_s:
        return Passed(f"no word of its hypervisor; new boot, renewing for {age(_alive_for(observation))}")
    raw = evidence.raw if evidence else observation.evidence_error or "no reading of the guest"
    return Objection(Verdict.FENCED, Reason.AWAITING_BOOT, raw, "the guest to run by a cold start")


def booted_anew(observation: Observation, policy: Policy) -> Passed | Objection:
    """The boot was never seen before: what ran before the fence is gone."""
    node, why = observation.node, observation.word.same_boot_why
    if node.boot_id and node.boot_id not in known_boot_ids(node):
        return Passed(f"new boot id {node.boot_id}")
    if why is not None and node.volumes_in_use == 0:
        return Passed(f"same boot id, by the operator's word: {why}")
    evidence, mark = observation.evidence, _mark(observation)
    if evidence is not None and evidence.incarnation is not None and evidence.incarnation == mark.incarnation:
        return _old_memory(observation, f"{evidence.raw}: the very run that was fenced")
    if renewals_in_run(observation.history, node) >= policy.unfence_renewals:
        return _old_memory(observation, f"renews its lease with the known boot id {node.boot_id}")
    seen = f"the node still reports the known boot id {node.boot_id}"
    if why is not None:
        seen += f", and {node.volumes_in_use} volumes in use"
    return Objection(Verdict.RECOVERING, Reason.AWAITING_BOOT, seen, "the kubelet to report a new boot")


def renewed(observation: Observation, policy: Policy) -> Passed | Objection:
    """Its kubelet lives: the lease was renewed since it booted."""
    renewals = observation.node.lease_renewals - observation.history.renewals_at_boot
    if observation.word.same_boot_why is not None:
        renewals = max(renewals, renewals_in_run(observation.history, observation.node))
    needs = f"{policy.unfence_renewals} since the boot"
    if renewals < policy.unfence_renewals:
        return Objection(
            Verdict.RECOVERING, Reason.AWAITING_RENEWALS, f"{renewals} renewals", needs, policy.poll_s
        )
    return Passed(f"{renewals} renewals", needs)


def looked_closely(observation: Observation, _policy: Policy) -> Passed | Objection:
    """Node, lease, pods and attachments were read live, whether the hypervisor answered or not."""
    if observation.close:
        return Passed("node, lease, pods and volumes read live")
    return Objection(
        Verdict.WAIT, Reason.CLOSER_LOOK, "seen from afar only", "a live reading of the node", recheck_s=0.0
    )


def pods_gone(observation: Observation, policy: Policy) -> Passed | Objection:
    """No pod is left that ran there before the fence."""
    left = older_than_fence(observation.pods or (), _mark(observation).fenced_at_utc)
    held = [pod for pod in left if not (pod.terminating and pod.finalizers)]
    if held:
        names = ", ".join(str(pod) for pod in held[:3]) + (", …" if len(held) > 3 else "")  # noqa: PLR2004
        return Objection(
            Verdict.RECOVERING,
            Reason.PODS_REMAIN,
            f"{len(held)} left: {names}",
            "none from before the fence",
            policy.poll_s,
        )
    return Passed("none from before the fence")


def volumes_gone(observation: Observation, policy: Policy) -> Passed | Objection:
    """No volume is attached any more."""
    left = observation.attachments or ()
    if left:
        names = ", ".join(attachment.volume for attachment in left[:3])
        return Objection(
            Verdict.RECOVERING, Reason.VOLUMES_REMAIN, f"{len(left)} attached: {names}", "none", policy.poll_s
        )
    return Passed("none attached")


STILL_OFF: tuple[tuple[str, Rung], ...] = (
    ("wanted", rungs.wanted),
    ("bound", rungs.bound),
    ("same guest", same_guest),
    ("fresh", rungs.known),
    ("no renewal", rungs.not_renewed),
    ("settled", rungs.settled),
    ("looked closely", rungs.looked_closely),
    ("held", rungs.held),
    ("armed", rungs.armed),
)
"""The same proof as for the taint, before every batch of pods."""

RETURN: tuple[tuple[str, Rung], ...] = (
    ("wanted", rungs.wanted),
    ("bound", rungs.bound),
    ("same guest", same_guest),
    ("running", running),
    ("booted anew", booted_anew),
    ("renewed", renewed),
    ("looked closely", looked_closely),
    ("pods gone", pods_gone),
    ("volumes gone", volumes_gone),
    ("armed", rungs.armed),
)
"""All of it must hold before a fence is lifted. Not Ready: a network add-on may wait for the untaint."""


STOP_OLD_MEMORY: tuple[tuple[str, Rung], ...] = (
    ("wanted", rungs.wanted),
    ("bound", rungs.bound),
    ("same guest", same_guest),
    ("power rights", rungs.may_power),
    ("quorum", rungs.quorate_without),
    ("looked closely", rungs.looked_closely),
    ("armed", rungs.armed),
)
"""A guest that came back with its old memory is stopped again at once, where the operator wants that."""


def _clear(observation: Observation, policy: Policy) -> Ending:
    pods = clearable(observation.pods or ())
    if pods:
        return Ending(
            Verdict.FENCED,
            Reason.CLEARING_PODS,
            (ClearPods(pods[: policy.clear_batch]),),
            policy.poll_s,
        )
    if observation.attachments:
        return Ending(Verdict.FENCED, Reason.RELEASING_VOLUMES, _release(observation), policy.poll_s)
    return Ending(Verdict.FENCED, Reason.PODS_CLEARED, _start_again(observation, policy))


def _release(observation: Observation) -> tuple[DeleteAttachments, ...]:
    """Delete attachments only where the Node object is gone, and with it the taint that releases them.

    Source: measured, attachments of a deleted node are released after six minutes otherwise.
    """
    asked = [item for item in observation.attachments or () if not item.terminating]
    return (DeleteAttachments(tuple(asked)),) if observation.node.gone and asked else ()


def _start_again(observation: Observation, policy: Policy) -> tuple[StartGuest, ...]:
    """Start a guest that fencer itself stopped, once all was given away, where the operator wants that."""
    mark, candidate = _mark(observation), resolve(observation).candidate
    if observation.intent is Intent.START and candidate is not None:  # its own ladder held
        return (StartGuest(candidate.guest),)
    ours = observation.node.claim == mark.incident and candidate is not None and candidate.power_admitted
    if policy.after_stop is not AfterStop.START or not ours or observation.started:
        return ()
    return (StartGuest(mark.guest),)


def _stop_again(observation: Observation, policy: Policy) -> Ending:
    incarnation = observation.evidence.incarnation if observation.evidence else None
    stop = StopGuest(_mark(observation).guest, incarnation)
    return Ending(Verdict.STOP_FIRST, Reason.OLD_MEMORY, (stop,), policy.poll_s)


def _alarmed(observation: Observation, policy: Policy, decision: Decision) -> Decision:
    """Add an alarm where old memory is heard, whatever is in the way; or where the way back takes long."""
    node, run = observation.node, observation.history.run
    if decision.actions or observation.word.same_boot_why is not None:
        return decision
    if node.boot_id in known_boot_ids(node) and _heard_since_fence(observation, policy):
        seen = f"the kubelet of the known boot {node.boot_id} is heard after the fence"
        return replace(decision, actions=_old_memory(observation, seen).actions)
    if run is None or run.power_state is not PowerState.RUNNING:
        return decision
    if observation.now_s - run.since_s < policy.unfence_alarm_s:
        return decision
    text = f"its guest has been back for more than {age(policy.unfence_alarm_s)} and it is still fenced"
    return replace(decision, actions=(Alarm(text),))


def _heard_since_fence(observation: Observation, policy: Policy) -> bool:
    """A renewal that this agent saw came after the fence, by more than one that was on its way then."""
    node = observation.node
    if node.lease_age_s is None or not node.lease_renewals:
        return False
    fenced_s = seconds_between(_mark(observation).fenced_at_utc, observation.utc)
    return fenced_s - node.lease_age_s > policy.lease_period_s


def _unfence(observation: Observation, _policy: Policy) -> Ending:
    node = observation.node
    cordon = None if node.unschedulable else Cordon("unfence", node.boot_id, observation.utc)
    return Ending(Verdict.UNFENCE, Reason.BOOTED_ANEW, (UntaintNode(cordon),))


def _old_memory(observation: Observation, seen: str) -> Objection:
    text = (
        f"{_mark(observation).guest} came back with its old memory; it may write to volumes that "
        "were given away. Restart it cold."
    )
    return Objection(
        Verdict.RECOVERING,
        Reason.OLD_MEMORY,
        seen,
        "the guest restarted cold, or `fencer unfence --same-boot WHY`",
        actions=(Alarm(text),),
    )


def _alive_for(observation: Observation) -> float:
    """Seconds since a never-seen boot was first seen; 0 while its kubelet is silent."""
    node, history = observation.node, observation.history
    if not node.boot_id or node.boot_id in known_boot_ids(node) or node.lease_age_s is None:
        return 0.0
    alive = node.lease_renewals > history.renewals_at_boot and node.lease_age_s < LEASE_DURATION_S
    return observation.now_s - history.boot_seen_s if alive else 0.0


def _mark(observation: Observation) -> FenceMark:
    mark = observation.node.mark
    assert isinstance(mark, FenceMark)  # noqa: S101 - decide() asked
    return mark
