"""What one agent remembers between two looks: leases by its own clock, and runs of equal readings.

All of it is folds: ``(what was, what is seen now) → what is``. Nothing here survives a restart of the agent,
and nothing needs to: a missing history delays a fence and never hastens one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fencer.core.model import Evidence, GuestHistory, NodeView, PowerState, Run

LEASE_DURATION_S = 40.0
"""A kubelet whose lease is younger lives. Source: the kubelet's nodeLeaseDurationSeconds."""

RENEWAL_FORGOTTEN_S = 60.0
"""A renewal while the guest read off is forgotten after this much silence: six missed renewals."""


@dataclass(frozen=True, slots=True)
class LeaseTrack:
    """A node's lease and readiness by this agent's monotonic clock.

    Only *changes* of renewTime count, so that a wrong clock inside the node does not matter.

    Source: kubernetes pkg/controller/nodelifecycle, tryUpdateNodeHealth does the same.
    """

    renew_time: str | None
    changed_at_s: float
    renewals: int = 0
    not_ready_since_s: float | None = None


def track(before: LeaseTrack | None, renew_time: str | None, *, ready: bool, now_s: float) -> LeaseTrack:
    """Take in one look at a node's lease and Ready condition.

    Args:
        before: What was known of this node (by UID); None at the first look.
        renew_time: The lease's renewTime as text; None where there is no lease.
        ready: Whether Ready is True.
        now_s: When the look was taken.
    """
    since_s = None if ready else now_s
    if before is None:
        return LeaseTrack(renew_time, now_s, 0, since_s)
    if not ready and before.not_ready_since_s is not None:
        since_s = before.not_ready_since_s
    if renew_time is None or renew_time == before.renew_time:
        return replace(before, not_ready_since_s=since_s)
    return LeaseTrack(renew_time, now_s, before.renewals + 1, since_s)


def aged(node: NodeView, lease: LeaseTrack, now_s: float) -> NodeView:
    """Return the node with what the agent's own clock knows of it."""
    return replace(
        node,
        lease_age_s=None if lease.renew_time is None else now_s - lease.changed_at_s,
        lease_renewals=lease.renewals,
        not_ready_s=None if lease.not_ready_since_s is None else now_s - lease.not_ready_since_s,
    )


def remember(
    before: GuestHistory, node: NodeView, evidence: Evidence | None, now_s: float, max_age_s: float
) -> GuestHistory:
    """Take in one reading of the node's guest, together with the node as it was read *after* it.

    That order matters: a renewal that is first seen in a later look than the reading happened after it.

    Args:
        before: What was known.
        node: The node, with lease data.
        evidence: The reading; None or an inconclusive one changes nothing about the guest.
        now_s: The agent's clock.
        max_age_s: A gap between readings longer than this breaks a run.
    """
    history = before
    if node.boot_id != history.boot_id:
        history = replace(
            history, boot_id=node.boot_id, boot_seen_s=now_s, renewals_at_boot=node.lease_renewals
        )
    if evidence is None or not evidence.conclusive:
        return history
    if evidence.guest.key != history.guest:
        history = replace(
            history, guest=evidence.guest.key, run=None, running_seen=False, proven=False, ran_on=None
        )
    host = evidence.guest.host
    if evidence.power_state is PowerState.RUNNING and host is not None and host != history.ran_on:
        history = replace(history, ran_on=host)
    history = _with_reading(history, node, evidence, max_age_s)
    if not history.proven and proven_running(history, node):
        history = replace(history, proven=True)
    return history


def _with_reading(
    history: GuestHistory, node: NodeView, evidence: Evidence, max_age_s: float
) -> GuestHistory:
    """Continue the present run, or begin a new one."""
    state, run = _folded_state(evidence), history.run
    if run is None or _breaks(run, evidence, state, node, max_age_s):
        seen = history.running_seen or (run is not None and run.power_state is PowerState.RUNNING)
        fresh = Run(
            state,
            evidence.incarnation,
            evidence.observed_at_s,
            evidence.observed_at_s,
            1,
            node.lease_renewals,
            node.boot_id,
        )
        return replace(history, run=fresh, running_seen=seen)
    if evidence.observed_at_s <= run.last_s:
        return history  # an older reading, or this one taken in again: it does not count twice
    return replace(history, run=replace(run, last_s=evidence.observed_at_s, readings=run.readings + 1))


def renewals_in_run(history: GuestHistory, node: NodeView) -> int:
    """Count the lease renewals since the present run began."""
    return node.lease_renewals - history.run.renewals_at_start if history.run else 0


def contradicted(history: GuestHistory, node: NodeView) -> bool:
    """Whether the witness calls the guest off while its node renews: two renewals prove it wrong."""
    run = history.run
    if run is None or run.power_state is not PowerState.STOPPED:
        return False
    return renewals_in_run(history, node) >= 2  # noqa: PLR2004


def proven_running(history: GuestHistory, node: NodeView) -> bool:
    """Whether the guest was read RUNNING before and after a renewal of the same boot: they are one."""
    run = history.run
    return (
        run is not None
        and run.power_state is PowerState.RUNNING
        and run.readings >= 2  # noqa: PLR2004 - before and after
        and run.boot_id == node.boot_id
        and renewals_in_run(history, node) >= 1
    )


def _folded_state(evidence: Evidence) -> PowerState:
    if evidence.power_state is PowerState.ABSENT and evidence.end_recorded:
        return PowerState.STOPPED
    return evidence.power_state


def _breaks(run: Run, evidence: Evidence, state: PowerState, node: NodeView, max_age_s: float) -> bool:
    if run.power_state is not state or run.incarnation != evidence.incarnation:
        return True
    if evidence.observed_at_s - run.last_s > max_age_s:
        return True
    if state is PowerState.RUNNING:
        return run.boot_id != node.boot_id
    renewed = node.lease_renewals > run.renewals_at_start
    return renewed and node.lease_age_s is not None and node.lease_age_s >= RENEWAL_FORGOTTEN_S
