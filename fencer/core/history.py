"""What one agent remembers between two looks: leases by its own clock, and runs of equal readings.

All of it is folds: ``(what was, what is seen now) → what is``. Nothing here survives a restart of the agent,
and nothing needs to: a missing history delays a fence and never speeds one up.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

from fencer.core.distrust import binds, shows_known_boot
from fencer.core.model import Evidence, GuestHistory, Heard, NodeView, PowerState, Run
from fencer.core.policy import Policy
from fencer.core.starts import with_boot, with_reading

LEASE_DURATION_S = 40.0
"""A kubelet whose lease is younger is alive.

Source: kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go, NodeLeaseDurationSeconds.
"""

CONTRADICTIONS = 2
"""This many signs of life after a guest read off prove its witness wrong. One may have been on its way: a
kubelet has one renewal under way at a time, and its retries carry the same resourceVersion."""

BOOT_ID_LATE_S = 120.0
"""A kubelet that started has reported its boot id by then.

Source: kubernetes pkg/kubelet/kubelet.go, nodeReadyGracePeriod: for so long a kubelet that starts tries to
report a node that is ready.
"""

CHANCES = 1.5
"""A kubelet gets this many lease periods to be heard again, once any node is.

Source: a kubelet renews every 10 s, and tries again within 7 s where it could not (k8s.io/component-helpers
apimachinery/lease/controller.go, maxBackoff).
"""

LAGS_S = 60.0
"""For this long a live reading counts more than an older list; not for ever, because an etcd that was
restored from a backup starts from there."""

RENEWAL_FORGOTTEN_S = 60.0
"""A renewal while the guest read off is forgotten after this much silence: six missed renewals."""

NOT_READ = -1
"""In place of a Lease's version: a run ended while its node could not be read. The next look counts."""

MARKS_KEPT_S = 600.0
"""Longer than any silence that is waited for by default."""


@dataclass(frozen=True, slots=True)
class LeaseTrack:
    """A node's lease and readiness by this agent's monotonic clock.

    Only *changes* of renewTime count, so that a wrong clock inside the node does not matter.

    Attributes:
        renew_time: As it was last read; None: never.
        changed_at_s: When it was first read so.
        renewals: How many changes there were.
        not_ready_since_s: Since when Ready has not been True. None: it is.
        version: The lease's resourceVersion, as a number; a read of an older one tells nothing.
        readable: It could be read the last time.
        read_s: When that was.
        within_s: How long before `changed_at_s` the read before that was: it changed in between.
        deaf_s: How much longer ago it may have changed: no node at all was heard meanwhile, or nobody
            listened, which says nothing about this node.

    Source: kubernetes pkg/controller/nodelifecycle/node_lifecycle_controller.go, tryUpdateNodeHealth does
    the same.
    """

    renew_time: str | None
    changed_at_s: float
    renewals: int = 0
    not_ready_since_s: float | None = None
    version: int = 0
    readable: bool = True
    read_s: float = 0.0
    within_s: float = 0.0
    deaf_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Mark:
    """How far all leases of the cluster had got at one time.

    A lease that nobody has read for long still tells how long it has been silent: it was written before the
    first mark that is at least at its version, and after the mark before that.

    Attributes:
        version: The largest resourceVersion of all leases, as it was told …
        asked_s: … after it was asked for at this time: each larger one was written later …
        at_s: … and before this time: no smaller one was written later.
        deaf_s: How much later silence counts from, see `LeaseTrack.deaf_s`.
        unseen_s: How long, up to then, nobody could look.

    Source: Kubernetes, KEP-5504: resourceVersions are numbers that grow, of one kind of object.
    """

    version: int
    asked_s: float
    at_s: float
    deaf_s: float = 0.0
    unseen_s: float = 0.0


def marked(marks: tuple[Mark, ...], mark: Mark) -> tuple[Mark, ...]:
    """Add a mark, and drop old ones; or begin again if the versions have gone back: etcd was restored.

    An answer that another one has overtaken tells nothing new.
    """
    if not mark.version:
        return marks  # the server did not tell
    if marks and mark.version < marks[-1].version:
        return (mark,) if mark.asked_s >= marks[-1].at_s else marks
    return (*(old for old in marks if mark.at_s - old.at_s <= MARKS_KEPT_S), mark)


def deafened(marks: tuple[Mark, ...], deaf_s: float, now_s: float, keep_s: float) -> tuple[Mark, ...]:
    """Take out of the silence since each mark the time in which no node was heard; see `unheard`."""
    return tuple(
        replace(mark, deaf_s=mark.deaf_s + _uncounted_s(mark.at_s + mark.deaf_s, deaf_s, now_s, keep_s))
        for mark in marks
    )


def _uncounted_s(since_s: float, deaf_s: float, now_s: float, keep_s: float) -> float:
    """Return how much of a deaf time is not counted as silence since a time."""
    return min(deaf_s, max(0.0, now_s - keep_s - since_s))


def chance_s(policy: Policy) -> float:
    """Return within how many seconds a kubelet is heard again once nothing prevents it any more."""
    return CHANCES * policy.lease_period_s


def silence_kept_s(policy: Policy) -> float:
    """Return how much silence a node keeps while no node is heard: every kubelet then gets its chance.

    Once one is heard again, each other one has more than a lease's period to be heard, too, before it counts
    as silent: a kubelet whose path to the API was cut tries again in that time.
    """
    limit_s = policy.lease_silent_s or LEASE_DURATION_S
    return max(0.0, limit_s - chance_s(policy))


def track(
    before: LeaseTrack | None,
    renew_time: str | None,
    *,
    ready: bool,
    now_s: float,
    version: int = 0,
    unseen_s: float = 0.0,
    marks: tuple[Mark, ...] = (),
) -> LeaseTrack:
    """Take in one look at a node's lease and Ready condition.

    Args:
        before: What was known of this node (by UID); None at the first look.
        renew_time: The lease's renewTime as text; None where there is none, or none that can be read.
        ready: Whether Ready is True.
        now_s: When the look was taken.
        version: The lease's resourceVersion, as a number; 0: not known. Lists may lag behind live reads, by
            less than `LAGS_S`.
        unseen_s: How long, up to now, nobody could look: a change that is seen now may be as old. Silence
            counts from now, a sign of life from then.
        marks: How far all leases had got, and when: a change that is seen late is dated by them.
    """
    since_s = None if ready else now_s
    if before is None:
        return LeaseTrack(renew_time, now_s, 0, since_s, version, renew_time is not None, read_s=now_s)
    if not ready and before.not_ready_since_s is not None:
        since_s = before.not_ready_since_s
    before = replace(before, not_ready_since_s=since_s, readable=renew_time is not None)
    old = version < before.version and now_s - before.changed_at_s < LAGS_S
    if renew_time is None or old:
        return before
    if renew_time == before.renew_time:
        return replace(before, read_s=now_s)
    at, since_s = _written(marks, version, Mark(version, now_s, now_s, unseen_s=unseen_s), before.read_s)
    return replace(
        before,
        renew_time=renew_time,
        changed_at_s=at.at_s + at.deaf_s,
        renewals=before.renewals + (before.renew_time is not None),
        version=version,
        read_s=now_s,
        within_s=at.at_s - since_s,
        deaf_s=at.deaf_s + at.unseen_s,
    )


def unheard(lease: LeaseTrack, deaf_s: float, now_s: float, keep_s: float) -> LeaseTrack:
    """Take out of a lease's silence the time in which no node was heard: it says nothing about this one.

    Args:
        lease: As it was tracked.
        deaf_s: How long, up to now, that was.
        now_s: The agent's clock.
        keep_s: That time leaves no silence longer than this; see `silence_kept_s`.
    """
    more_s = _uncounted_s(lease.changed_at_s, deaf_s, now_s, keep_s)
    return replace(lease, changed_at_s=lease.changed_at_s + more_s, deaf_s=lease.deaf_s + more_s)


def _written(marks: tuple[Mark, ...], version: int, now: Mark, read_s: float) -> tuple[Mark, float]:
    """Return until when a version was written at the latest, and since when at the earliest.

    Args:
        marks: By age.
        version: Of the lease; 0: not known.
        now: This very look.
        read_s: When it was last read, in an older version.
    """
    if not version or not marks:
        return now, read_s
    number = bisect_left(marks, version, key=lambda mark: mark.version)
    since_s = max(read_s, marks[number - 1].asked_s) if number else read_s
    if number == len(marks):  # after the last mark
        return replace(now, unseen_s=0.0), since_s
    at = marks[number]
    return (at, since_s) if at.at_s >= since_s else (now, since_s)


def aged(node: NodeView, lease: LeaseTrack, now_s: float) -> NodeView:
    """Return the node with what the agent's own clock knows of it.

    A lease that cannot be read, or is gone, is not silent: it says nothing.
    """
    unknown = lease.renew_time is None or not lease.readable
    return replace(
        node,
        lease_age_s=None if unknown else now_s - lease.changed_at_s,
        lease_renewals=lease.renewals,
        renewed_within_s=lease.within_s,
        deaf_s=lease.deaf_s,
        renewed_utc=lease.renew_time or "",
        lease_version=lease.version,
        not_ready_s=None if lease.not_ready_since_s is None else now_s - lease.not_ready_since_s,
    )


def unasked(node: NodeView, lease: LeaseTrack) -> NodeView:
    """Return a node whose lease was not read in this look; see `NodeView.asked`."""
    return replace(node, asked=False, lease_renewals=lease.renewals)


def remember(
    before: GuestHistory, node: NodeView, evidence: Evidence | None, now_s: float, apart_s: float
) -> GuestHistory:
    """Take in one reading of the node's guest, together with the node as it was read *after* it.

    That order matters: a renewal that is first seen in a later look than the reading happened after it.

    Args:
        before: What was known.
        node: The node, with lease data.
        evidence: The reading; None or an inconclusive one changes nothing about the guest.
        now_s: The agent's clock.
        apart_s: A gap between readings longer than this breaks a run; see `Policy.apart_s`.
    """
    history = before
    if node.boot_id != history.boot_id:
        history = replace(
            history,
            boot_id=node.boot_id,
            boot_seen_s=now_s,
            renewals_at_boot=node.lease_renewals,
            starts=with_boot(history.starts, node.boot_id, now_s),
        )
    if evidence is not None and evidence.conclusive:
        history = _with_guest(history, node, evidence, now_s, apart_s)
    back_s = min(history.back_s, now_s - (node.heard_s or 0.0)) if _renews_again(history, node) else math.inf
    return history if back_s == history.back_s else replace(history, back_s=back_s)


def _renews_again(history: GuestHistory, node: NodeView) -> bool:
    """Whether the lease of a fenced node was renewed since, and the Node shows a boot that was known then."""
    mark = node.fence
    if mark is None or node.boot_id not in node.known_boot_ids:
        return False
    since = max(mark.lease_version, history.off_lease_version)  # 0: an older fencer's, and not seen off since
    if node.heard_s is None or node.heard_s >= LEASE_DURATION_S:
        return False  # a kubelet that was silent in between may be that of another boot
    return bool(since) and since < node.lease_version


def _with_guest(
    history: GuestHistory, node: NodeView, evidence: Evidence, now_s: float, apart_s: float
) -> GuestHistory:
    """Take in a conclusive reading."""
    history = replace(history, starts=with_reading(history, evidence))
    if evidence.guest.key != history.guest:
        history = replace(
            history,
            guest=evidence.guest.key,
            run=None,
            running_seen=False,
            proven=False,
            ran_as=None,
            off_s=-math.inf,
            off_lease_version=0,
            off_reported_utc="",
        )
    if evidence.gone or history.off_lease_version == NOT_READ or _began_again(history, evidence):
        # A boot that the Node shows since this look is of the newest run: M5
        newest = not evidence.gone and history.boot_seen_s == now_s
        history = replace(
            history,
            off_s=max(history.off_s, evidence.observed_at_s),
            off_lease_version=node.lease_version,
            off_reported_utc="" if newest else node.reported_utc,
        )
    known = history.heard is None and evidence.guest == history.ran_as
    if evidence.power_state is PowerState.RUNNING and not known:
        # A witness that reads it running is believed again.
        history = replace(history, ran_as=evidence.guest, heard=None)
    history = _with_reading(history, node, evidence, now_s, apart_s)
    if not history.proven and proven_running(history, node):
        history = replace(history, proven=True)
    return history


def _began_again(history: GuestHistory, evidence: Evidence) -> bool:
    """Whether the VM runs in another run than it last did, on the same host: it was off in between.

    A run that was read off says nothing: what its node has said since that reading counts. Nor does another
    host, as a migration gives the run a new name; nor a reading that a later one has overtaken.
    """
    run = history.run
    if (
        run is None
        or run.power_state is PowerState.STOPPED
        or None in {run.incarnation, evidence.incarnation}
        or evidence.observed_at_s < run.last_s
    ):
        return False
    runs = evidence.power_state is PowerState.RUNNING and evidence.guest == history.ran_as
    return runs and run.incarnation != evidence.incarnation


def glimpse(before: GuestHistory, evidence: Evidence | None) -> GuestHistory:
    """Take in a reading while nothing can be read of its node: it ends what it contradicts, proves nothing.

    That a guest runs is no proof that it is the node, without a renewal between two readings; and that it is
    off has to be read again, once renewals would show up.

    Args:
        before: What was known.
        evidence: The reading.
    """
    if evidence is None or not evidence.conclusive or evidence.guest.key != before.guest:
        return before
    starts = with_reading(before, evidence)
    before = before if starts is before.starts else replace(before, starts=starts)
    runs, run = evidence.power_state is PowerState.RUNNING, before.run
    state = PowerState.STOPPED if evidence.gone else evidence.power_state
    if run is not None and (run.power_state, run.incarnation) != (state, evidence.incarnation):
        seen = before.running_seen or run.power_state is PowerState.RUNNING
        ended = evidence.gone or _began_again(before, evidence)
        version = NOT_READ if ended else before.off_lease_version
        before = replace(before, run=None, running_seen=seen, off_lease_version=version)
    return replace(before, ran_as=evidence.guest) if runs and evidence.guest != before.ran_as else before


def _with_reading(
    history: GuestHistory, node: NodeView, evidence: Evidence, now_s: float, apart_s: float
) -> GuestHistory:
    """Continue the current run, or begin a new one."""
    state, run = PowerState.STOPPED if evidence.gone else evidence.power_state, history.run
    if run is not None and evidence.observed_at_s < run.last_s:
        return history  # of before: another look has read it since
    if run is None or _breaks(run, evidence, state, node, apart_s):
        seen = history.running_seen or (run is not None and run.power_state is PowerState.RUNNING)
        return replace(history, run=_begun_after(run, state, evidence, node), running_seen=seen)
    if _forgets(run, node) and state is not PowerState.PAUSED:
        return replace(history, run=_begun(state, evidence, node))
    if evidence.observed_at_s <= run.last_s:
        return history  # an older reading, or this one taken in again: it does not count twice
    if _forgets(run, node):  # it may have run when it was heard, and is paused since
        since_s = max(run.since_s, now_s - (node.lease_age_s or 0.0))
        run = replace(run, since_s=since_s, renewals_at_start=node.lease_renewals)
    run = replace(run, last_s=evidence.observed_at_s, readings=run.readings + 1)
    return replace(history, run=_freed(run, evidence))


def _begun_after(before: Run | None, state: PowerState, evidence: Evidence, node: NodeView) -> Run:
    """Return a run that begins with this reading.

    If the same run was read before, what was heard since then still counts against it, even if nobody read it
    for a while.
    """
    run = _begun(state, evidence, node)
    if before is None or state is PowerState.RUNNING:
        return run
    if (before.power_state, before.incarnation) != (state, evidence.incarnation):
        return run
    return replace(run, renewals_at_start=before.renewals_at_start)


def _begun(state: PowerState, evidence: Evidence, node: NodeView) -> Run:
    """Return a run that begins with this reading."""
    at_s, renewals = evidence.observed_at_s, node.lease_renewals
    return _freed(Run(state, evidence.incarnation, at_s, at_s, 1, renewals, node.boot_id), evidence)


def _freed(run: Run, newest: Evidence) -> Run:
    """Return a run with what its newest reading says of locks and tasks."""
    if not newest.settled:
        return replace(run, busy=run.readings, free_since_s=math.inf)
    return replace(run, free_since_s=newest.observed_at_s) if run.free_since_s == math.inf else run


def renewals_in_run(history: GuestHistory, node: NodeView) -> int:
    """Count the lease renewals since the current run began."""
    return node.lease_renewals - history.run.renewals_at_start if history.run else 0


def listen(before: GuestHistory, node: NodeView, evidence: Evidence | None, now_s: float) -> GuestHistory:
    """Take in a live read of the node's lease that began after a live reading of its guest was complete.

    Nothing comes from watches, lists or anything else that may lag behind: otherwise every node that dies
    while the API stalls would prove its hypervisor wrong. The first renewTime after the guest read off counts
    for nothing, as it may be older than that; each newer one is a sign of life.

    Args:
        before: What was known.
        node: The node, with its lease as it was read live.
        evidence: The reading before that, as the hypervisor gave it.
        now_s: The agent's clock.
    """
    if evidence is None or not evidence.conclusive:
        return before
    heard, key = before.heard, evidence.guest.key
    if not evidence.gone:
        return before if heard is None else replace(before, heard=None)
    same = heard is not None and (heard.guest.key, heard.witness) == (key, evidence.witness)
    if heard is None or not same or heard.incarnation != evidence.incarnation:
        fresh = Heard(evidence.guest, evidence.witness, evidence.incarnation, node.renewed_utc)
        return replace(before, heard=fresh)
    # Another one is a newer one, see `track`; its clock may step back.
    renewals = heard.renewals + (node.renewed_utc != heard.renewed_utc)
    heard = replace(heard, renewed_utc=node.renewed_utc, renewals=renewals)
    return replace(before, heard=replace(_in_known_boot(heard, node, now_s), looked_s=now_s))


def _in_known_boot(heard: Heard, node: NodeView, now_s: float) -> Heard:
    """Take in whether the kubelet is proven alive in a known boot, and not one that is just starting (D1).

    It has reported its status, with that boot, since it was proven alive; or it goes on for long and still
    shows that boot. In a gap another kubelet may have started.
    """
    if heard.boot_id or heard.renewals < CONTRADICTIONS:
        return heard
    silent_s = math.inf if node.heard_s is None else node.heard_s
    if max(silent_s, now_s - heard.looked_s) >= LEASE_DURATION_S:
        heard = replace(heard, since_s=math.inf)
    if not (binds(node, heard.guest) and shows_known_boot(node)) or silent_s >= LEASE_DURATION_S:
        return replace(heard, since_s=math.inf)
    if heard.since_s == math.inf:
        return replace(heard, since_s=now_s, reported_utc=node.reported_utc)
    reported = node.reported_utc not in {"", heard.reported_utc}
    late = now_s - silent_s - heard.since_s >= BOOT_ID_LATE_S
    return replace(heard, boot_id=node.boot_id) if reported or late else heard


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


def _breaks(run: Run, evidence: Evidence, state: PowerState, node: NodeView, apart_s: float) -> bool:
    if run.power_state is not state or run.incarnation != evidence.incarnation:
        return True
    if evidence.observed_at_s - run.last_s > apart_s:
        return True
    return state is PowerState.RUNNING and run.boot_id != node.boot_id


def _forgets(run: Run, node: NodeView) -> bool:
    """Whether a renewal that was seen while the guest did not run is too old to count."""
    renewed = run.power_state is not PowerState.RUNNING and node.lease_renewals > run.renewals_at_start
    return renewed and node.lease_age_s is not None and node.lease_age_s >= RENEWAL_FORGOTTEN_S
