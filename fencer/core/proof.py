"""The proof that a guest is gone: asked before the taint, after it, and before all that follows from it.

One tuple, `PROOF`, is in every ladder that gives something away or rests on the guest's end; or its two parts
in order, if something has to be asked before the second, which costs calls. It is a positive list: everything
that is not in it objects.
"""

from __future__ import annotations

from fencer.core.distrust import ends_distrust, why_distrusted
from fencer.core.history import renewals_in_run
from fencer.core.model import (
    Binding,
    Doubted,
    Evidence,
    GuestRef,
    Observation,
    PowerState,
    Proof,
    Reason,
    Verdict,
)
from fencer.core.policy import PausedGuest, Policy
from fencer.core.rung import Answer, Objection, Passed, Rungs, Subject
from fencer.core.text import age

A_LEASE = "a lease in kube-node-lease; or, once Ready is Unknown, --confirm-guest-off WHY"
"""What it takes if nobody can say whether a node is silent."""

NOT_GONE: dict[PowerState, tuple[Verdict, Reason, str, str]] = {
    PowerState.RUNNING: (
        Verdict.REFUSE,
        Reason.GUEST_RUNNING,
        ": the node may only be cut off",
        ", or stopped by fencer (--stop-guest, or unresponsive_guest: stop)",
    ),
    PowerState.PAUSED: (
        Verdict.REFUSE,
        Reason.GUEST_PAUSED,
        ": once resumed it would go on writing",
        ", or paused_guest: stop",
    ),
    PowerState.SAVED: (
        Verdict.REFUSE,
        Reason.GUEST_SAVED,
        ": once restored it would go on writing",
        ", or `saved_guest: discard`",
    ),
    PowerState.ABSENT: (Verdict.REFUSE, Reason.ABSENCE_UNPROVEN, "", ", or --confirm-guest-off WHY"),
    PowerState.STOPPING: (Verdict.WAIT, Reason.GUEST_STOPPING, "", ""),
    PowerState.UNKNOWN: (Verdict.REFUSE, Reason.GUEST_UNKNOWN, "", ""),
}
"""Verdict, reason, what it means and what else would help, for each state in which a guest may write
again."""

DOUBTED: dict[Doubted, tuple[Reason, str]] = {
    Doubted.CONTRADICTED: (
        Reason.WITNESS_CONTRADICTED,
        "its VM reported running there again, or --confirm-guest-off WHY",
    ),
    Doubted.SAVED: (
        Reason.GUEST_SAVED,
        "the guest started or restored, or --confirm-guest-off WHY: its memory may lie on disk",
    ),
    Doubted.FILED: (
        Reason.GUEST_SAVED,
        "the guest started or restored, or --confirm-guest-off WHY: its memory may lie in a file",
    ),
    Doubted.HIBERNATED: (
        Reason.GUEST_SAVED,
        "the guest started, which continues from its own disk; or --confirm-guest-off WHY",
    ),
    Doubted.MIGRATED: (
        Reason.GUEST_LEFT,
        "the guest found where it went, or --confirm-guest-off WHY: it may run on elsewhere",
    ),
    Doubted.UNSEEN: (
        Reason.GUEST_LEFT,
        "its VM started by you, once you know that it runs nowhere, also where fencer does not look; or, if "
        "it stays off, --confirm-guest-off WHY",
    ),
}
"""Reason, and what would help, for each doubt."""


def fresh(subject: Subject, policy: Policy) -> Answer:
    """There is a reading of the guest, and it is not old; one from afar may be, and is then taken again."""
    evidence = subject.evidence
    if not evidence.read:
        last = subject.seen.last_state
        seen = f"{evidence.raw}; a moment ago, from afar, it read {last}" if last else evidence.raw
        return Objection(Verdict.REFUSE, Reason.EVIDENCE_MISSING, seen, "an answer from the hypervisor")
    old_s = max(0.0, subject.seen.now_s - evidence.observed_at_s)  # G9: it may have been read again since
    limit = f"limit {policy.evidence_max_age_s:g} s"
    if old_s > policy.evidence_max_age_s and not subject.seen.close:
        return Objection(Verdict.WAIT, Reason.CLOSER_LOOK, f"read {age(old_s)} ago", limit, 0.0)
    if old_s > policy.evidence_max_age_s:
        return Objection(Verdict.REFUSE, Reason.EVIDENCE_STALE, f"read {age(old_s)} ago", limit)
    return Passed(f"read {age(old_s)} ago", limit)


def off(subject: Subject, policy: Policy) -> Answer:
    """The hypervisor says that no process holds this guest's memory."""
    return reads_off(subject.evidence, policy)


def reads_off(evidence: Evidence, policy: Policy) -> Answer:
    """The same, for any reading."""
    state, raw = evidence.power_state, evidence.raw
    if evidence.gone:
        return Passed(f"{raw}; its end was recorded" if state is PowerState.ABSENT else raw)
    if state is PowerState.PAUSED and policy.paused_guest is PausedGuest.TRUST and not evidence.untracked:
        return Passed(f"{raw}; trusted not to be resumed (paused_guest: trust)")
    if state is PowerState.ABSENT and not evidence.conclusive:
        return Objection(Verdict.WAIT, Reason.CLOSER_LOOK, raw, "a live reading of the guest", 0.0)
    doubted = not_believed(evidence)
    if doubted is not None:
        return doubted
    if state is PowerState.UNKNOWN and evidence.host_silent:
        return _host_silent(evidence)
    return _not_gone(evidence, policy)


def _not_gone(evidence: Evidence, policy: Policy) -> Objection:
    """Object to a reading by which the guest may write again, or is not quite gone."""
    verdict, reason, meaning, way = NOT_GONE[evidence.power_state]
    verdict = Verdict.REFUSE if evidence.stuck else verdict
    needs = evidence.stuck or f"its guest stopped, or deleted with a record of its end{way}"
    if evidence.powered_off:
        verdict, reason, needs = Verdict.REFUSE, Reason.GUEST_POWERED_OFF, f"{needs}, or `paused_guest: stop`"
    recheck_s = policy.poll_s if verdict is Verdict.WAIT else None
    return Objection(verdict, reason, f"{evidence.raw}{meaning}", needs, recheck_s)


def not_believed(evidence: Evidence) -> Objection | None:
    """Object to a reading that is doubted, or that says that memory went elsewhere."""
    doubted = evidence.doubt.kind if evidence.doubt else None
    if evidence.away:
        doubted = Doubted.MIGRATED
    elif evidence.power_state is PowerState.UNKNOWN:
        doubted = evidence.untracked or doubted
    if doubted is None:
        return None
    reason, needs = DOUBTED[doubted]
    return Objection(Verdict.REFUSE, reason, evidence.raw, needs)


def not_renewed(subject: Subject, policy: Policy) -> Answer:
    """No sign of life came after the guest was first read off."""
    node, evidence, run = subject.node, subject.evidence, subject.history.run
    if node.lease_age_s is None and not node.gone and evidence.proof is not Proof.OPERATOR:
        return Objection(
            Verdict.WAIT,
            Reason.LEASE_UNSEEN,
            "the node has no lease that can be read, so nobody can say whether it is silent",
            A_LEASE,
            policy.poll_s,
        )
    if evidence.guest.endpoint in subject.seen.fleet.contradicted_endpoints and evidence.proof in WITNESSED:
        return _distrusted(evidence.guest.endpoint, subject.seen)
    # From afar it may not have been read off yet: then no renewal can come after that.
    if run is not None and stands_still(run.power_state, policy) and renewals_in_run(subject.history, node):
        return Objection(
            Verdict.REFUSE,
            Reason.LEASE_RENEWED,
            "the node's lease was renewed after the guest was first read off",
            "60 s of silence while off: its kubelet is alive",
        )
    return Passed("no renewal since the first off reading")


def _distrusted(endpoint: str, seen: Observation) -> Objection:
    """Refuse, because the endpoint was wrong about VMs of other nodes (D1)."""
    return Objection(
        Verdict.REFUSE,
        Reason.WITNESS_CONTRADICTED,
        why_distrusted(endpoint, seen.fleet),
        ends_distrust(endpoint, seen.fleet),
    )


def in_place(subject: Subject, _policy: Policy) -> Answer:
    """The guest is off where it was last seen running: as the Node has it, and as this agent remembers it."""
    evidence, now = subject.evidence, subject.evidence.guest
    ran = ran_elsewhere(subject.seen, evidence)
    if ran is not None and evidence.proof is Proof.OPERATOR:
        return Passed(f"last seen running on {_place(ran, now)}")
    if ran is not None:
        return Objection(
            Verdict.REFUSE,
            Reason.HOST_CHANGED,
            f"last seen running on {_place(ran, now)}, read off on {_place(now, ran)}",
            "the guest seen running again, an explained move, or --confirm-guest-off WHY: it may still run "
            f"on {_place(ran, now)}",
        )
    came = [ran.host for ran in _ran(subject.seen, now) if not now.shares_host(ran)]
    if came:
        return Passed(f"on {now.host}, moved there from {came[-1]}: {evidence.raw}")
    return Passed(f"on {now.host}, where it ran" if now.host else "its endpoint is one host")


def ran_elsewhere(seen: Observation, evidence: Evidence) -> GuestRef | None:
    """Return the guest as it was last seen running on another host, if no record explains that it moved."""
    now = evidence.guest
    return next(
        (ran for ran in _ran(seen, now) if not now.shares_host(ran) and ran.host not in evidence.moved_from),
        None,
    )


def settled(subject: Subject, policy: Policy) -> Answer:
    """No lock, task or job is in the way."""
    if subject.evidence.settled:
        return Passed("no lock or task in the way")
    if stuck := subject.evidence.stuck:
        return Objection(Verdict.REFUSE, Reason.GUEST_UNSETTLED, subject.evidence.raw, stuck)
    return Objection(
        Verdict.WAIT,
        Reason.GUEST_UNSETTLED,
        subject.evidence.raw,
        "the lock or task to end",
        recheck_s=policy.poll_s,
    )


def looked_closely(subject: Subject, _policy: Policy) -> Answer:
    """Node, lease, guest, pods and attachments were read live, just now, for this node alone."""
    if subject.seen.close and subject.evidence.conclusive:
        return Passed(f"guest, node, lease, pods and volumes read live: {subject.evidence.raw}")
    return Objection(
        Verdict.WAIT,
        Reason.CLOSER_LOOK,
        "seen from afar only",
        "a live reading of guest and node",
        recheck_s=0.0,
    )


def held(subject: Subject, policy: Policy) -> Answer:
    """The guest was read off, again and again, for long enough, in the same incarnation.

    And with nothing in the way for that long: what follows a lock or a task may be the next step of the same
    operation, such as a rollback that brings a snapshot's memory back.
    """
    run = subject.history.run
    if subject.evidence.proof is Proof.OPERATOR:
        return Passed("by the operator's word")
    limit_s = held_for_s(subject, policy)
    needs = f"two readings at least, {limit_s:g} s apart"
    if run is None or not stands_still(run.power_state, policy):
        return Objection(Verdict.WAIT, Reason.NOT_HELD, "no off reading yet", needs, policy.poll_s)
    held_s, times = run.lasted_s, run.readings - run.busy
    seen = "read off once" if times == 1 else f"read off {times} times over {age(held_s)}"
    if times < 2 or held_s < limit_s:  # noqa: PLR2004 - once more than once
        return Objection(Verdict.WAIT, Reason.NOT_HELD, seen, needs, max(0.0, limit_s - held_s))
    return Passed(seen, needs)


def held_for_s(subject: Subject, policy: Policy) -> float:
    """Return for how long the guest has to stand still before that counts, in seconds."""
    stands = subject.power_state is PowerState.PAUSED or subject.evidence.powered_off
    limit_s = policy.paused_for_s if stands else policy.confirm_s
    return max(limit_s, policy.killed_hold_s) if _may_have_been_killed(subject) else limit_s


SEEN: Rungs = (
    ("fresh", fresh),
    ("off", off),
    ("no renewal", not_renewed),
    ("in place", in_place),
    ("settled", settled),
)
"""The part of the proof that a look from afar can refute: alone it proves nothing."""

SHOWN: Rungs = (("looked closely", looked_closely), ("held", held))
"""The part that takes calls and time. Between the two there are only checks that spare it."""

PROOF: Rungs = (*SEEN, *SHOWN)
"""The whole proof that the guest is gone. Never use only a part of it."""

WITNESSED = frozenset({Proof.POWER, Proof.ABSENCE})
"""Kinds of proof that rest on the word of the guest's hypervisor alone."""


def stands_still(state: PowerState, policy: Policy) -> bool:
    """Whether a proof may rest on a run of readings of this state (an end on record reads STOPPED)."""
    trusted = state is PowerState.PAUSED and policy.paused_guest is PausedGuest.TRUST
    return state is PowerState.STOPPED or trusted


def _ran(seen: Observation, guest: GuestRef) -> list[GuestRef]:
    """Return a guest as it was last seen running: as the Node has it, and as this agent remembers it."""
    binding, history = seen.node.binding, seen.history
    found = []
    if isinstance(binding, Binding) and binding.guest.key == guest.key:
        found.append(binding.guest)
    if history.ran_as is not None and history.guest == guest.key:
        found.append(history.ran_as)
    return found


def _place(guest: GuestRef, other: GuestRef) -> str:
    """Name a host, so that it can be told from the other one."""
    if guest.host == other.host:
        return f"{guest.host} ({guest.host_uuid})"
    return str(guest.host)


def _host_silent(evidence: Evidence) -> Objection:
    """Refuse, and name the ways out wherever it is told: the host's hypervisor died with it."""
    host = evidence.guest.host or "its host"
    ways = f"{host} back, a power witness that reads it off (host_power), or --confirm-guest-off WHY"
    ways = f"{evidence.stuck}; {ways}" if evidence.stuck else ways
    seen = f"{evidence.raw}. That does not prove the guest off. What would: {ways}"
    return Objection(Verdict.REFUSE, Reason.HOST_SILENT, seen, ways)


def _may_have_been_killed(subject: Subject) -> bool:
    """A stop claimed for this incident that this agent does not remember may have needed SIGKILL."""
    claim, incident = subject.node.claim, subject.seen.incident
    if subject.seen.killed is None:
        return bool(incident) and claim.startswith(incident)
    return subject.seen.killed
