"""Whether the memory from before a fence runs again, and what excludes that this is an ordinary boot.

A kubelet that starts renews its lease first, and reports its new boot id 0.2 to 0.9 s later; where the
container runtime or the API server is slow, it takes longer. Until then the Node shows the boot that was
fenced, beside a lease that is renewed. So a renewal alone proves nothing. These do:

- the hypervisor reports that the VM was restored;
- the kubelet has reported its status since the fence, and in that very report the boot that was fenced;
- it still has not reported another boot long after a kubelet that starts would have, and no cold start is
  reported.

Source: kubernetes pkg/kubelet/kubelet.go: `Run` starts the lease controller and `syncNodeStatus` side by
side, and the latter waits for the runtime; one patch has the conditions and the boot id. The times were
measured for fencer on Kubernetes 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from fencer.core.cordon import cordoned_after_fence
from fencer.core.history import BOOT_ID_LATE_S
from fencer.core.holds import BY_REASON, Act, May, command_to_resume
from fencer.core.identity import subject_of
from fencer.core.model import (
    Alarm,
    Binding,
    Check,
    Cordon,
    Decision,
    FenceMark,
    NodeView,
    Observation,
    Outcome,
    PowerState,
)
from fencer.core.policy import Policy
from fencer.core.proof import fresh
from fencer.core.rung import Passed, Subject
from fencer.core.text import age
from fencer.core.times import seconds_between

OFF_AGAIN = "ran with its old memory after the fence, and is off now"
IS_BACK = re.compile("came back with its old memory|runs with the memory")
"""What alarms say of a VM with old memory: that it is off again, or that it runs."""


def sign_of_old_memory(subject: Subject, policy: Policy) -> str:
    """Return what shows that memory from before the fence runs again; empty: nothing does (M5)."""
    evidence, seen = subject.evidence, subject.seen
    if is_restored(subject, policy):
        return f"{evidence.raw}: restored, not booted"
    if sign := sign_of_known_boot(seen, policy):
        return sign
    # A reset is a cold boot in the same run: then its kubelet reports another boot before that.
    run = seen.history.run
    long = run is not None and seen.now_s - run.since_s >= BOOT_ID_LATE_S
    same = sign_of_same_run(subject, policy)
    return (
        f"{same} for {age(BOOT_ID_LATE_S)}, and its kubelet reports no new boot id" if same and long else ""
    )


def sign_of_same_run(subject: Subject, policy: Policy) -> str:
    """Return that the run which was fenced goes on, and its VM never was off; empty: nothing shows that."""
    evidence, node = subject.evidence, subject.node
    same = evidence.incarnation is not None and evidence.incarnation == subject.mark.incarnation
    runs = evidence.power_state is PowerState.RUNNING and isinstance(fresh(subject, policy), Passed)
    known = node.boot_id in node.known_boot_ids and _runs(subject.seen)
    return f"{evidence.raw}: the run that was fenced goes on" if same and runs and known else ""


def is_restored(subject: Subject, policy: Policy) -> bool:
    """Whether the hypervisor reports that the VM runs on from a copy of its memory: the fence was right."""
    evidence = subject.evidence
    runs = evidence.power_state is PowerState.RUNNING and evidence.cold_start is False
    return runs and isinstance(fresh(subject, policy), Passed)


def sign_of_known_boot(seen: Observation, policy: Policy) -> str:
    """Return what shows that the kubelet of the boot that was fenced is alive; empty: nothing does.

    It goes by versions and texts that change, never by a clock of the API server's or of the node's.
    """
    node, mark = seen.node, seen.node.mark
    if not isinstance(mark, FenceMark) or node.boot_id not in node.known_boot_ids:
        return ""
    if node.heard_s is None or not _renewed_since(seen, mark, policy):
        return ""
    boot = f"boot id {node.boot_id}, known from before the fence"
    if _reported_since(seen, mark, policy):
        return f"its kubelet reported its status after the fence, with {boot}"
    if seen.evidence is not None and seen.evidence.cold_start:
        return ""  # it booted: whatever keeps its kubelet from reporting that, no memory from before runs
    return _late(seen, node, boot)


def _late(seen: Observation, node: NodeView, boot: str) -> str:
    """Return that a kubelet which started would have reported its boot id by now; empty: it would not.

    While no node could be heard, it could not report it either.
    """
    late, heard_s, silent_s = age(BOOT_ID_LATE_S), node.heard_s or 0.0, node.lease_age_s or 0.0
    if seen.now_s - heard_s - seen.history.back_s >= BOOT_ID_LATE_S:
        return f"its kubelet has renewed its lease for {late} and still has {boot}"
    silent = _runs(seen) and silent_s >= BOOT_ID_LATE_S
    return f"its VM runs, and {late} after its kubelet was last alive it still has {boot}" if silent else ""


def _renewed_since(seen: Observation, mark: FenceMark, policy: Policy) -> bool:
    """Whether the lease was renewed after the fence; or after the VM was last off, if it runs again."""
    node, history = seen.node, seen.history
    if mark.lease_version:
        return node.lease_version > max(mark.lease_version, _runs(seen) * history.off_lease_version)
    # The mark of an older fencer: by the API server's clock, and by renewals that this agent has seen.
    ago_s = (node.heard_s or 0.0) + node.renewed_within_s
    ended = _runs(seen) and history.off_s > seen.now_s - (node.heard_s or 0.0)
    since_s = seconds_between(mark.fenced_at_utc, seen.utc) - ago_s
    return bool(node.lease_renewals) and not ended and since_s > policy.lease_period_s


def _reported_since(seen: Observation, mark: FenceMark, policy: Policy) -> bool:
    """Whether the kubelet has reported its status since then."""
    node, history = seen.node, seen.history
    if _runs(seen) and history.off_lease_version:
        return bool(node.reported_utc) and node.reported_utc != history.off_reported_utc
    if mark.lease_version:
        return bool(node.reported_utc) and node.reported_utc != mark.reported_utc
    return node.ready is True and policy.require_not_ready  # it was not Ready when it was fenced


def _runs(seen: Observation) -> bool:
    run = seen.history.run
    return run is not None and run.power_state is PowerState.RUNNING


def with_fence_alarm(seen: Observation, mark: FenceMark, policy: Policy, decision: Decision) -> Decision:
    """Add an alarm where old memory is back, whatever is in the way; or where the way back takes long."""
    if decision.actions or seen.word.same_boot_why is not None:
        return decision
    subject = subject_of(seen)
    if sign := sign_of_old_memory(subject, policy) if subject else sign_of_known_boot(seen, policy):
        check = Check("old memory", Outcome.ALARM, sign, "a cold restart of the VM")
        return with_alarm(decision, check, _alarm_under_hold(seen, mark, decision))
    run, limit = seen.history.run, age(policy.unfence_alarm_s)
    if run is None or run.power_state is not PowerState.RUNNING:
        return decision
    runs_s = seen.now_s - run.since_s
    if runs_s < policy.unfence_alarm_s:
        return decision
    check = Check(
        "late return", Outcome.ALARM, f"its VM has been running for {age(runs_s)}, and the limit is {limit}"
    )
    alarm = Alarm(f"its VM has been running for more than {limit}, and its node is still fenced")
    return with_alarm(decision, check, alarm)


def with_earlier_boot_alarm(node: NodeView, decision: Decision) -> Decision:
    """Add an alarm where a node runs an earlier boot: a snapshot can bring old memory back at any time."""
    boots = node.binding.boot_ids if isinstance(node.binding, Binding) else ()
    ours = node.cordon if cordoned_after_fence(node) else None  # a note alone a kubelet can write (C9)
    if isinstance(ours, Cordon) and ours.boot_id not in boots:
        boots = (*boots, ours.boot_id)  # the boot for which the fence was lifted a moment ago
    if node.boot_id not in boots[:-1]:
        return decision
    text = f"it runs an earlier boot again ({node.boot_id}): memory that may write to volumes given away"
    seen = f"boot id {node.boot_id}; it ran {boots[-1]} later than that"
    check = Check("earlier boot", Outcome.ALARM, seen, "a cold restart of the VM")
    return with_alarm(decision, check, Alarm(f"{text}. Restart its VM cold."))


def with_alarm(decision: Decision, check: Check, alarm: Alarm) -> Decision:
    """Add an alarm, and the check that it rests on (A8)."""
    return replace(decision, checks=(*decision.checks, check), actions=(alarm, *decision.actions))


def old_memory_alarm(seen: Observation, mark: FenceMark) -> Alarm:
    """Return the alarm that old memory is back; one text for each state, so that it is raised once."""
    if seen.evidence is not None and seen.evidence.gone:
        return Alarm(
            f"{mark.guest} {OFF_AGAIN}; it may have written to volumes that were given away. Check them."
        )
    return Alarm(
        f"{mark.guest} came back with its old memory; it may write to volumes that "
        "were given away. Restart it cold."
    )


def _alarm_under_hold(seen: Observation, mark: FenceMark, decision: Decision) -> Alarm:
    """Return the alarm, and with it the command to type where fencer may not react."""
    hold = BY_REASON.get(decision.reason)
    off = seen.evidence is not None and seen.evidence.gone
    if off or hold is None or hold.may(Act.UNDO) is not May.ALARM:
        return old_memory_alarm(seen, mark)
    command = command_to_resume(seen.node, decision.reason)
    return Alarm(
        f"{mark.guest} runs with the memory that it had before it was fenced, and fencer keeps its hands "
        "off: it neither stops the VM nor lifts the fence. Cut the VM's power where it runs, unless every "
        f"pod and volume attachment of that fence is still there. Then let fencer act again: {command}"
    )


def repeats(alarm: Alarm, raised: Collection[Alarm]) -> bool:
    """Whether an alarm is about a VM that is off again, and there was one in the incident while it ran.

    Args:
        alarm: The one that is due.
        raised: Those that were raised in the same incident.
    """
    return OFF_AGAIN in alarm.text and any(IS_BACK.search(one.text) for one in raised)
