"""What becomes of a fenced node: clear what is left while its guest is off, lift the fence when it is back.

Never lift it on old memory: a guest that was resumed, restored or reverted goes on writing where it stopped.
The exception: nothing was given away yet. Then the fence was wrong, and is taken back at once.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core.cordon import (
    AFTER_FENCE,
    HOOK,
    PASSING,
    cordoned_after_fence,
    cordoned_by_drain,
    unrecorded_cordon,
)
from fencer.core.history import LEASE_DURATION_S, renewals_in_run
from fencer.core.holder import holder
from fencer.core.model import (
    Alarm,
    ClearPods,
    Cordon,
    DeleteAttachments,
    FenceMark,
    Intent,
    NodeView,
    PowerState,
    Reason,
    StartGuest,
    StopGuest,
    Uncordon,
    UntaintNode,
    Verdict,
)
from fencer.core.old_memory import (
    is_restored,
    old_memory_alarm,
    sign_of_known_boot,
    sign_of_old_memory,
    sign_of_same_run,
)
from fencer.core.pods import given_away, pods_from_before, to_clear, to_release
from fencer.core.policy import AfterStop, Mode, Policy
from fencer.core.proof import fresh, reads_off
from fencer.core.rung import Answer, Ending, Objection, Passed, Subject
from fencer.core.text import age
from fencer.core.times import seconds_between
from fencer.core.word import nothing_known, word_given

START_TRIES, START_PAUSE_S = 3, 60.0
"""For a guest that has to be started again: a lock is over soon, a broken configuration never."""

UNTOLD = frozenset({PowerState.UNKNOWN, PowerState.ABSENT})
"""In these states the hypervisor does not say whether the guest runs: it may run where there is no
endpoint."""

STOP_DID_NOT_COME_S = 600.0
"""This long after a hookscript had a node drained, its guest would be off: the drain ends after 300 s at
most, a shutdown is given 60 to 180 s.

Source: qemu-server, src/PVE/QemuServer.pm, vm_stop (60 s); pve-manager, PVE/API2/Nodes.pm, stopall (180 s).
"""

LIFT_OVERDUE_S = 60.0
"""The agent that set a cordon lifts it within this time once that is due, and once the node's boot is seen:
the next look and an answer, both late."""


def settling(subject: Subject, policy: Policy, healthy: Ending) -> Ending:
    """Judge a sound node that may carry a cordon of ours, from after a fence or from before a stop."""
    cordon = subject.node.cordon
    if not isinstance(cordon, Cordon) or cordon.by not in PASSING:
        return healthy
    if unrecorded_cordon(subject.node) is not None:
        return _unrecorded(subject, policy, cordon, healthy)
    if cordon.by == HOOK:
        return _after_a_stop(subject, cordon, healthy)
    return _after_a_fence(subject, policy, cordon, healthy)


def _after_a_fence(subject: Subject, policy: Policy, cordon: Cordon, healthy: Ending) -> Ending:
    """Uncordon a node whose fence was lifted, once caches have settled."""
    if subject.node.unschedulable and not cordoned_after_fence(subject.node):
        return healthy
    if not subject.node.unschedulable and policy.mode is not Mode.ARMED:
        return healthy  # only a note is left, for an agent that may write to tidy up
    passed_s = seconds_between(cordon.since_utc, subject.seen.earliest_utc)
    if passed_s < policy.settle_s:
        left_s = policy.settle_s - passed_s
        return Ending(Verdict.RECOVERING, Reason.SETTLING, healthy.actions, left_s)
    return Ending(Verdict.RECOVERING, Reason.SETTLED, (*healthy.actions, Uncordon()), 0.0)


def _unrecorded(subject: Subject, policy: Policy, cordon: Cordon, healthy: Ending) -> Ending:
    """Leave a cordon that may be an administrator's, and report it once no other agent is about to lift it.

    C9: another agent may have set and watched it. A node that fencer can't see stays reported as that.
    """
    seen = subject.seen
    due_s = STOP_DID_NOT_COME_S if cordon.by == HOOK else policy.settle_s
    left_s = due_s - seconds_between(cordon.since_utc, seen.earliest_utc)
    if subject.node.boot_id != cordon.boot_id:  # it may have been off since
        left_s = max(left_s, subject.history.boot_seen_s - seen.now_s)
    left_s += LIFT_OVERDUE_S
    if left_s > 0 and cordon.by == AFTER_FENCE:
        return Ending(Verdict.RECOVERING, Reason.SETTLING, healthy.actions, left_s)
    if left_s > 0:
        return replace(healthy, recheck_s=left_s)
    known = healthy.reason is Reason.NODE_HEALTHY
    return replace(healthy, reason=Reason.CORDON_UNRECORDED) if known else healthy


def _after_a_stop(subject: Subject, cordon: Cordon, healthy: Ending) -> Ending:
    """Uncordon a node that a hookscript had drained: it has booted since, or the stop did not come."""
    node = subject.node
    stayed_s = seconds_between(cordon.since_utc, subject.seen.earliest_utc)
    back = node.boot_id != cordon.boot_id or stayed_s >= STOP_DID_NOT_COME_S
    if not cordoned_by_drain(node) or not back:
        return healthy
    return Ending(Verdict.RECOVERING, Reason.SETTLED, (*healthy.actions, Uncordon()), 0.0)


def same_guest(subject: Subject, policy: Policy) -> Answer:
    """The guest is the one that was fenced; or that one is off as well, and another took its place."""
    mark, fenced = subject.mark, subject.seen.fenced_guest
    if subject.guest.key == mark.guest.key:
        return Passed(f"{mark.guest}, as fenced")
    left = (
        fenced is not None and fenced.conclusive and (fenced.away or fenced.power_state is PowerState.ABSENT)
    )
    if left and subject.guest.uuid == mark.guest.uuid:
        # It was off when it was fenced: whatever it did since, it began without the old memory.
        return Passed(f"{mark.guest}, as fenced, is not there any more; {subject.guest} has its UUID")
    return _fenced_one_off(subject, policy, str(subject.guest))


def fenced_guest_off(subject: Subject, policy: Policy) -> Answer:
    """The guest that was fenced is off: a machine that no endpoint names is the node now."""
    return _fenced_one_off(subject, policy, "a machine that no endpoint names")


def _fenced_one_off(subject: Subject, policy: Policy, now: str) -> Answer:
    """It is proven off as always; or a person says so, if nobody can tell."""
    mark, fenced = subject.mark, subject.seen.fenced_guest
    if fenced is not None and not fenced.conclusive and fenced.at_rest:
        return Objection(Verdict.WAIT, Reason.CLOSER_LOOK, fenced.raw, "a live reading of it", 0.0)
    if fenced is not None and isinstance(reads_off(fenced, policy), Passed):
        return Passed(f"{mark.guest}, as fenced, is off ({fenced.raw}); {now} took its place")
    why = word_given(subject.seen)
    if why is not None and nothing_known(fenced):
        return Passed(f"{mark.guest}, as fenced, is off by the operator's word: {why}; {now} took its place")
    needs = f"{mark.guest} stopped, with nothing left of its memory"
    if nothing_known(fenced):
        needs = (
            f"proof that {mark.guest} is off, or `fencer unfence {subject.node.name} --confirm-guest-off WHY`"
        )
    raw = "cannot be read" if fenced is None else f"reads {fenced.raw}"
    seen = f"{mark.guest} was fenced, and {raw}; {now} is the node now"
    return Objection(Verdict.FENCED, Reason.GUEST_REPLACED, seen, needs)


def no_old_memory(subject: Subject, policy: Policy) -> Answer:
    """Nothing shows that memory from before the fence runs again; or a person answers for it (M5)."""
    sign = sign_of_old_memory(subject, policy)
    if not sign:
        return Passed("no sign of it")
    if _vouched_for(subject):
        return Passed(f"{sign}; by the operator's word: {subject.seen.word.same_boot_why}")
    lost = given_away(subject.seen, subject.mark) if subject.seen.close else ""
    return Objection(
        Verdict.RECOVERING,
        Reason.OLD_MEMORY,
        f"{sign}{_forbidden(subject)}{f'; {lost}' if lost else ''}",
        f"the guest restarted cold, or `fencer unfence {subject.node.name} --same-boot WHY`",
        actions=(old_memory_alarm(subject.seen, subject.mark),),
    )


def running(subject: Subject, policy: Policy) -> Answer:
    """The guest runs; or no hypervisor reports it, and only the node does."""
    evidence = subject.evidence
    if not isinstance(fresh(subject, policy), Passed) or evidence.power_state in UNTOLD:
        return _heard_alone(subject, policy)
    if evidence.power_state is not PowerState.RUNNING:
        ended = f"{evidence.stuck}; then " if evidence.powered_off and evidence.stuck else ""
        needs = f"{ended}the guest to run by a cold start"
        return Objection(Verdict.FENCED, Reason.AWAITING_BOOT, evidence.raw, needs)
    return Passed(evidence.raw)


def _heard_alone(subject: Subject, policy: Policy) -> Answer:
    """Judge a guest that no hypervisor reports by its kubelet: a new boot, heard for long enough, will do."""
    evidence, alive_s, by_hand = subject.evidence, _alive_for(subject), subject.seen.intent is Intent.UNFENCE
    if alive_s >= policy.unfence_blind_s:
        return Passed(f"no word from its hypervisor; new boot, renewing for {age(alive_s)}")
    if sign_of_known_boot(subject.seen, policy):  # a person answers for it: see `no_old_memory`
        return Passed(f"{evidence.raw}; the kubelet of the known boot is heard")
    if evidence.power_state is PowerState.ABSENT and not alive_s and not by_hand:
        return reads_off(evidence, policy)
    heard = f"; a new boot, heard for {age(alive_s)}" if alive_s else ""
    needs = f"the guest to run by a cold start, or a new boot heard for {policy.unfence_blind_s:g} s"
    return Objection(Verdict.FENCED, Reason.AWAITING_BOOT, f"{evidence.raw}{heard}", needs)


def heard_for_long(subject: Subject, policy: Policy) -> Answer:
    """Its kubelet was heard in this boot for as long as a guest needs whose hypervisor is silent."""
    alive_s = _alive_for(subject)
    needs = f"limit {policy.unfence_blind_s:g} s"
    if alive_s < policy.unfence_blind_s:
        seen = f"no endpoint reports it; renewing for {age(alive_s)}"
        return Objection(Verdict.RECOVERING, Reason.AWAITING_RENEWALS, seen, needs, policy.poll_s)
    return Passed(f"no endpoint reports it; renewing for {age(alive_s)}", needs)


def booted_anew(subject: Subject, _policy: Policy) -> Answer:
    """The boot was never seen before: what ran before the fence is gone."""
    node, why = subject.node, subject.seen.word.same_boot_why
    if node.boot_id and node.boot_id not in node.known_boot_ids:
        return _reported_lately(subject)
    if _vouched_for(subject):
        return Passed(f"same boot id, by the operator's word: {why}")
    seen = f"the node still reports the known boot id {node.boot_id}{_forbidden(subject)}"
    return Objection(Verdict.RECOVERING, Reason.AWAITING_BOOT, seen, "the kubelet to report a new boot")


def _reported_lately(subject: Subject) -> Answer:
    """The Node shows a new boot; and its kubelet reported that after the VM was last off, not before."""
    node, history = subject.node, subject.history
    stale = bool(node.reported_utc) and node.reported_utc == history.off_reported_utc
    if not stale:
        return Passed(f"new boot id {node.boot_id}")
    seen = f"new boot id {node.boot_id}, but the VM was off since its kubelet reported that"
    return Objection(Verdict.RECOVERING, Reason.AWAITING_BOOT, seen, "its kubelet to report its status again")


def _vouched_for(subject: Subject) -> bool:
    """Whether a person says that it has no volume mounted any more, and its kubelet reports none in use."""
    return subject.seen.word.same_boot_why is not None and not subject.node.volumes_in_use


def _forbidden(subject: Subject) -> str:
    """Say why that word is not taken; empty: it was not given."""
    given = subject.seen.word.same_boot_why is not None
    return f", and {subject.node.volumes_in_use} volumes in use" if given else ""


def renewed(subject: Subject, policy: Policy) -> Answer:
    """Its kubelet lives: the lease was renewed since it booted."""
    run, since = subject.history.run, subject.history.renewals_at_boot
    if run is not None:
        since = max(since, run.renewals_at_start)  # what an earlier run renewed says nothing about this one
    renewals = subject.node.lease_renewals - since
    if subject.seen.word.same_boot_why is not None:
        renewals = max(renewals, renewals_in_run(subject.history, subject.node))
    needs = f"{policy.unfence_renewals} renewals since the boot"
    if renewals < policy.unfence_renewals:
        return Objection(
            Verdict.RECOVERING, Reason.AWAITING_RENEWALS, f"{renewals} renewals", needs, policy.poll_s
        )
    return Passed(f"{renewals} renewals", needs)


def looked_closely(subject: Subject, _policy: Policy) -> Answer:
    """Node, lease, pods and attachments were read live, whether the hypervisor answered or not."""
    if subject.seen.close:
        return Passed("node, lease, pods and volumes read live")
    return Objection(
        Verdict.WAIT, Reason.CLOSER_LOOK, "seen from afar only", "a live reading of the node", recheck_s=0.0
    )


def pods_gone(subject: Subject, policy: Policy) -> Answer:
    """No pod is left that ran there before the fence."""
    left = pods_from_before(subject.seen, subject.mark)
    held = [pod for pod in left if not (pod.terminating and pod.finalizers)]
    if held:
        names = ", ".join(str(pod) for pod in held[:3]) + (", …" if len(held) > 3 else "")  # noqa: PLR2004 - as many as are named
        return Objection(
            Verdict.RECOVERING,
            Reason.PODS_REMAIN,
            f"{len(held)} left: {names}",
            recheck_s=policy.poll_s,
        )
    return Passed("none from before the fence")


def volumes_gone(subject: Subject, policy: Policy) -> Answer:
    """No volume is attached any more that was attached before the fence."""
    left, unread = to_release(subject.seen), subject.seen.kept_unread
    if left:
        seen = f"{len(left)} attached: {', '.join(attachment.volume for attachment in left[:3])}"
        seen = f"{seen}; pods that tolerate the taint may keep some: {unread}" if unread else seen
        return Objection(Verdict.RECOVERING, Reason.VOLUMES_REMAIN, seen, recheck_s=policy.poll_s)
    stay = [one.volume for one in subject.seen.attachments or ()]
    names = ", ".join(stay[:3]) + (", …" if len(stay) > 3 else "")  # noqa: PLR2004 - as many as are named
    return Passed(
        f"only of pods that tolerate the taint or are newer than the fence: {names}"
        if stay
        else "none attached"
    )


def memory_is_back(subject: Subject, policy: Policy) -> Answer:
    """The boot that was fenced is alive, and its VM never was off: no ordinary boot looks like that (R3)."""
    sign = sign_of_old_memory(subject, policy) or sign_of_same_run(subject, policy)
    if sign and not is_restored(subject, policy):
        return Passed(sign)
    return Objection(Verdict.FENCED, Reason.AWAITING_BOOT, "no sign of it")


def nothing_given_away(subject: Subject, _policy: Policy) -> Answer:
    """Every pod and attachment that the fence was about is still there (R3)."""
    lost = given_away(subject.seen, subject.mark)
    if lost:
        return Objection(Verdict.RECOVERING, Reason.OLD_MEMORY, lost, "all of them still there")
    return Passed("all its pods and volumes are still there")


def left(subject: Subject, policy: Policy) -> Answer:
    """Something is left to be done for it, as far as is known: else not every pass needs a close look."""
    seen = subject.seen
    known = not seen.close and seen.pods is not None and seen.intent is Intent.WATCH
    if not known or to_clear(seen) or to_release(seen) or _start_again(subject, policy):
        return Passed("not looked at yet" if seen.pods is None else "its pods and volumes are taken care of")
    ago = f"nothing was left on it {age(seen.looked_s)} ago"
    needs = "its guest to boot again"
    if policy.after_stop is AfterStop.START:
        needs = (
            f"{needs}: `fencer start {subject.node.name}`; fencer starts only guests that it stopped itself"
        )
    return Objection(Verdict.FENCED, Reason.PODS_CLEARED, ago, needs)


def clear(subject: Subject, policy: Policy) -> Ending:
    """Clear the next batch of what is left of the node, or start its guest once nothing is."""
    pods = to_clear(subject.seen)
    if pods:
        return Ending(
            Verdict.FENCED,
            Reason.CLEARING_PODS,
            (ClearPods(pods[: policy.clear_batch]),),
            policy.poll_s,
        )
    if to_release(subject.seen):
        return Ending(Verdict.FENCED, Reason.RELEASING_VOLUMES, _release(subject), policy.poll_s)
    return Ending(Verdict.FENCED, Reason.PODS_CLEARED, _start_again(subject, policy))


def left_as(node: NodeView, utc: str) -> str | None:
    """Return in which incarnation an agent's own stop has left the guest of a fence; None: do not start it.

    Args:
        node: The node; whoever stopped its guest has written that on it.
        utc: The slower of two clocks.
    """
    left, mark = node.left, node.mark
    ours = isinstance(mark, FenceMark) and node.fenced and node.claim == mark.incident
    if left is None or not ours or left.starts >= START_TRIES:
        return None
    rested = not left.started_utc or seconds_between(left.started_utc, utc) >= START_PAUSE_S
    return left.incarnation if rested else None


def _release(subject: Subject) -> tuple[DeleteAttachments, ...]:
    """Delete attachments only where the Node object is gone, and with it the taint that releases them.

    Otherwise they are released after six minutes.

    Source: kubernetes pkg/controller/volume/attachdetach/attach_detach_controller.go, DefaultTimerConfig.
    """
    asked = [item for item in to_release(subject.seen) if not item.terminating]
    return (DeleteAttachments(tuple(asked)),) if subject.node.gone and asked else ()


def _start_again(subject: Subject, policy: Policy) -> tuple[StartGuest, ...]:
    """Start a guest that an agent stopped for this fence, once all was given away, where that is wanted.

    It has to be off in the same incarnation in which that stop left it: anyone who ran it since, and switched
    it off, meant that.
    """
    order = StartGuest(subject.guest, subject.evidence.incarnation)
    if subject.seen.intent is Intent.START:  # its own rungs held
        return (order,)
    if policy.after_stop is not AfterStop.START or subject.evidence.told:  # that is for people to look at
        return ()
    ours = subject.seen.stopped_as is not None and subject.seen.stopped_as == subject.evidence.incarnation
    may = subject.candidate.power_admitted and isinstance(holder(subject, policy), Passed)
    return (order,) if ours and may else ()


def stop_again(subject: Subject, policy: Policy) -> Ending:
    """Stop a guest that came back with its old memory."""
    order = StopGuest(subject.guest, subject.evidence.incarnation)
    return Ending(Verdict.STOP_FIRST, Reason.OLD_MEMORY, (order,), policy.poll_s)


def unfence(subject: Subject, _policy: Policy) -> Ending:
    """Lift the fence, and keep the node cordoned for a moment."""
    return Ending(Verdict.UNFENCE, Reason.BOOTED_ANEW, (UntaintNode(_settling_cordon(subject)),))


def take_back(subject: Subject, policy: Policy) -> Ending:
    """Undo a wrong fence before anything was given away."""
    mark = subject.mark
    alive = bool(sign_of_known_boot(subject.seen, policy))
    found = "its kubelet is alive in the boot that was fenced" if alive else "the same run goes on"
    text = (
        f"it was fenced wrongly: {mark.guest} was reported off ({mark.proof}), and {found}. All pods and "
        "volumes of that fence are still there, so fencer lifts it. Find out why the VM was reported off."
    )
    untaint = UntaintNode(_settling_cordon(subject))
    return Ending(Verdict.UNFENCE, Reason.FENCED_WRONGLY, (Alarm(text), untaint))


def _settling_cordon(subject: Subject) -> Cordon | None:
    """Return the cordon to set, also in place of an earlier fence's (R5); None: another cordon is there."""
    node = subject.node
    if node.unschedulable and not cordoned_after_fence(node):
        return None
    return Cordon(AFTER_FENCE, node.boot_id, subject.seen.latest_utc)


def _alive_for(subject: Subject) -> float:
    """Seconds since a never-seen boot was first seen; 0 while its kubelet is silent."""
    node, history = subject.node, subject.history
    if not node.boot_id or node.boot_id in node.known_boot_ids or node.heard_s is None:
        return 0.0
    alive = node.lease_renewals > history.renewals_at_boot and node.heard_s < LEASE_DURATION_S
    return subject.seen.now_s - history.boot_seen_s if alive else 0.0
