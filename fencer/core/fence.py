"""From a node that falls silent to the taint: what is asked besides the proof, and how a sound node reads."""

from __future__ import annotations

from fencer.core.history import LEASE_DURATION_S, renewals_in_run
from fencer.core.identity import canonical
from fencer.core.model import (
    FenceMark,
    ForgetMark,
    GuestRef,
    Intent,
    Observation,
    PowerState,
    Proof,
    Reason,
    TaintNode,
    Verdict,
)
from fencer.core.pods import bound_to_node, on_record, to_clear, to_release
from fencer.core.policy import Mode, Policy
from fencer.core.proof import A_LEASE
from fencer.core.recover import settling
from fencer.core.rung import Answer, Ending, Objection, Passed, Subject
from fencer.core.text import age, count
from fencer.core.times import age_between, parse_utc, seconds_between

SILENT_PERIODS = 1.5
"""By hand, this many lease periods without a renewal are silence: half a period overdue."""


ALIVE_RENEWALS = 2
"""With this many, one may have been on its way when the guest fell, but not all."""

_NOT_READY = "Ready to be Unknown or False, some 50 s after its last sign of life"
"""Source: kubernetes pkg/controller/nodelifecycle/config/v1alpha1/defaults.go, NodeMonitorGracePeriod (50 s
since 1.32)."""


def heard(subject: Subject, policy: Policy) -> bool:
    """Whether the node's kubelet is heard, so that fencer only notes which guest it is.

    Where silence alone is enough for a fence, a guest that reads off is judged at once.
    """
    node = subject.node
    if not node.asked:
        return node.ready is True
    if node.ready is not True or node.lease_age_s is None:
        return False
    if node.lease_age_s >= silence_needed_s(policy):
        return False
    return policy.require_not_ready or not subject.evidence.gone


def heard_of(subject: Subject, _policy: Policy) -> Answer:
    """The kubelet is heard: its stage says so."""
    return Passed(heard_last(subject.seen))


def silent(subject: Subject, policy: Policy) -> Answer:
    """The kubelet is not heard. By hand, a shorter silence is enough, and is waited for."""
    node, seen = subject.node, heard_last(subject.seen)
    if node.lease_age_s is None and subject.evidence.proof is Proof.OPERATOR:
        return Passed(f"{seen}; silent by the operator's word")
    if node.lease_age_s is None:
        return Objection(Verdict.WAIT, Reason.LEASE_UNSEEN, seen, A_LEASE, policy.poll_s)
    if subject.seen.intent is Intent.FENCE:
        return _silent_by_hand(subject, policy)
    if node.ready and policy.require_not_ready:
        return Objection(Verdict.WAIT, Reason.NODE_READY, seen, _NOT_READY, policy.poll_s)
    return _silent_for(subject, policy.lease_silent_s)


def _silent_by_hand(subject: Subject, policy: Policy) -> Answer:
    node, seen = subject.node, heard_last(subject.seen)
    overdue_s = SILENT_PERIODS * policy.lease_period_s
    if subject.power_state is PowerState.RUNNING:
        if not node.ready:
            return Passed(seen)  # its silence is asked about once its guest is off
        needs = f"its guest off; to empty the node: `fencer shutdown {node.name}`"
        if told_age_s(subject.seen) >= overdue_s:
            needs = f"its guest off, or {_NOT_READY}; then the same command again"
        return Objection(Verdict.REFUSE, Reason.NODE_READY, seen, needs)
    times = renewals_in_run(subject.history, node)
    if times >= ALIVE_RENEWALS and subject.power_state is not PowerState.PAUSED:  # that one may be stopped
        seen = f"{seen}; {times} times since its guest was read {subject.power_state}: it is alive"
        needs = f"its kubelet silent; to empty the node: `fencer drain {node.name}`"
        return Objection(Verdict.REFUSE, Reason.SILENCE_TOO_SHORT, seen, needs)
    if node.ready and not subject.proven:
        # Of a guest that a person has named, or that a hook saw end, it only has to be waited for.
        verdict = Verdict.WAIT if subject.seen.word.guest else Verdict.REFUSE
        return Objection(verdict, Reason.NODE_READY, seen, _NOT_READY, policy.poll_s)
    return _silent_for(subject, overdue_s)


def unheard(subject: Subject, policy: Policy) -> Answer:
    """The kubelet is not heard, so no copy of the VM is the node now (S11).

    By the node controller, which counts by its own clock, or by this agent's, as for a fence by hand. Where
    it is not certain that the VM is the node, only the latter counts.
    """
    node, renewals = subject.node, renewals_in_run(subject.history, subject.node)
    if subject.proven and node.ready is None and not renewals:
        return Passed(heard_last(subject.seen))
    if node.lease_age_s is None:
        seen = heard_last(subject.seen)
        return Objection(Verdict.WAIT, Reason.LEASE_UNSEEN, seen, A_LEASE, policy.poll_s)
    return _silent_for(subject, SILENT_PERIODS * policy.lease_period_s)


def _silent_for(subject: Subject, limit_s: float) -> Answer:
    seen, needs = heard_last(subject.seen), f"limit {limit_s:g} s"
    counted_s = subject.node.lease_age_s or 0.0
    left_s = limit_s - counted_s
    if left_s > 0:
        watches, deaf = subject.seen.intent is Intent.WATCH, subject.node.deaf_s
        if watches and not deaf and told_age_s(subject.seen) >= limit_s:  # an old lease, and a new agent
            seen = f"{seen}, but only watched for {age(counted_s)} of {limit_s:g} s"
        return Objection(Verdict.WAIT, Reason.SILENCE_TOO_SHORT, seen, needs, left_s)
    return Passed(seen, needs)


def unmarked(subject: Subject, _policy: Policy) -> Answer:
    """No taint of anybody else, and no fence that an operator took back (and did not ask for again)."""
    node, by_hand = subject.node, subject.seen.intent is Intent.FENCE
    if node.out_of_service is not None and not node.fenced:
        return Objection(
            Verdict.REFUSE,
            Reason.FOREIGN_TAINT,
            "the node carries an out-of-service taint that fencer did not set",
            "that taint taken off by its owner; fencer neither adds to it nor removes it",
        )
    if isinstance(node.mark, FenceMark) and node.mark.boot_id == node.boot_id and not by_hand:
        ago = age_between(node.mark.fenced_at_utc, subject.seen.utc)
        return Objection(
            Verdict.REFUSE,
            Reason.TAINT_TAKEN_OFF,
            f"somebody took the taint off that {node.mark.by} set {ago} ago",
            "the node to boot again, or `fencer fence` by hand: fencer does not undo what an operator did",
        )
    return Passed("no taint and no mark")


def proven(subject: Subject, policy: Policy) -> Answer:
    """It is certain which guest the node is: seen, configured, or typed by a person."""
    typed, guest = subject.seen.word.guest, subject.guest
    if typed and not is_named(guest, typed):
        seen = f"{guest} is the node, not {typed}"
        return Objection(Verdict.REFUSE, Reason.GUEST_REPLACED, seen, f"--guest {guest.endpoint}/{guest.id}")
    if subject.proven:
        return Passed("seen running while the node's lease advanced" if subject.seen_alive else "by the map")
    if subject.seen.intent is Intent.WATCH:
        return Objection(
            Verdict.REFUSE,
            Reason.BINDING_UNPROVEN,
            "never seen running while the node's lease advanced",
            "the node seen alive once, the node in the configuration's `nodes:`, or a fence by hand",
        )
    return _proven_by_hand(subject, policy)


def _proven_by_hand(subject: Subject, policy: Policy) -> Answer:
    """If something may be given away, a person has to name the guest; otherwise equal UUIDs are enough."""
    guest = subject.guest
    if _will_be_proven(subject):
        seen = f"{guest} was not seen running yet while the node's lease advanced"
        return Objection(Verdict.WAIT, Reason.BINDING_UNPROVEN, seen, "its next renewal", policy.poll_s)
    if subject.seen.intent is not Intent.FENCE:
        return Passed("by hand: equal UUIDs are enough")
    if is_named(guest, subject.seen.word.guest):
        return Passed(f"by hand: {subject.seen.word.guest}")
    return Objection(
        Verdict.REFUSE,
        Reason.BINDING_UNPROVEN,
        f"{guest} was never seen alive with the node; it may be a copy, and the node's own guest may run "
        "elsewhere",
        f"--guest {guest.endpoint}/{guest.id}, if you are sure that this guest is the node",
    )


def is_named(guest: GuestRef, typed: str) -> bool:
    """Whether a person has named this guest: ``ENDPOINT/ID``, or by its UUID or name instead of the id."""
    endpoint, _, name = typed.partition("/")
    if endpoint != guest.endpoint or not name:
        return False
    called = name == guest.name and not (name.isdecimal() or canonical(name))  # it may be named like another
    return called or name == guest.id or canonical(name) == guest.uuid


def _will_be_proven(subject: Subject) -> bool:
    """Whether a planned stop only has to wait: what it leaves behind may have to be cleared."""
    planned = subject.seen.intent is Intent.SHUTDOWN and subject.seen.asked_s is None
    heard = subject.node.heard_s is not None and subject.node.heard_s < LEASE_DURATION_S
    return planned and heard and subject.power_state is PowerState.RUNNING


def fall_seen(subject: Subject, policy: Policy) -> Answer:
    """Without a wait for silence, only a fall that this agent saw counts; otherwise the default silence.

    An agent that was started between fall and fence has seen no fall, and never will.
    """
    running_seen = subject.history.running_seen
    if subject.seen.intent is Intent.FENCE or policy.lease_silent_s > 0 or running_seen:
        return Passed("seen running before" if running_seen else "silence was waited for")
    silent_s = subject.node.lease_age_s or 0.0
    seen = f"first seen off; {heard_last(subject.seen)}"
    needs = (
        f"{LEASE_DURATION_S:g} s of silence and Ready to be Unknown or False; or a guest seen running before"
    )
    if subject.node.ready is True or silent_s < LEASE_DURATION_S:
        left_s = max(policy.poll_s, LEASE_DURATION_S - silent_s)
        return Objection(Verdict.WAIT, Reason.FALL_UNSEEN, seen, needs, left_s)
    return Passed(seen, needs)


def needed(subject: Subject, _policy: Policy) -> Answer:
    """There is something to clear: more than a drain leaves behind."""
    if subject.seen.pods is None:
        return Passed("not looked at yet")
    return left_to_clear(subject.seen)


def left_to_clear(observation: Observation) -> Answer:
    """Say what there is to clear on a node; an objection: nothing that counts."""
    pods, attachments = to_clear(observation), to_release(observation)
    if not attachments and all(bound_to_node(pod) for pod in pods):
        seen = "no pod to clear and no volume attached" if not pods else "only pods of DaemonSets, no volume"
        ago = "" if observation.close else f" (as of {age(observation.looked_s)} ago)"
        return Objection(Verdict.REFUSE, Reason.NOTHING_TO_CLEAR, f"{seen}{ago}", "nothing")
    return Passed(f"{count(len(pods), 'pod')} to clear, {count(len(attachments), 'volume')} attached")


def taint(subject: Subject, _policy: Policy) -> Ending:
    """Fence: the guest is proven gone."""
    seen, evidence = subject.seen, subject.evidence
    mark = FenceMark(
        incident=seen.incident,
        fenced_at_utc=seen.latest_utc,  # E26: it counts against the brake from then
        boot_id=seen.node.boot_id,
        guest=subject.guest,
        by=seen.by,
        proof=Proof.ABSENCE if evidence.power_state is PowerState.ABSENT else evidence.proof,
        incarnation=evidence.incarnation,
        pods=len(to_clear(seen)),
        lease_version=seen.node.lease_version,
        reported_utc=seen.node.reported_utc,
    )
    return Ending(Verdict.FENCE, Reason.PROVEN_OFF, (TaintNode(on_record(mark, seen)),))


def guest_runs(subject: Subject, policy: Policy) -> Answer:
    """The guest does not read as ended. If it does, all that is left to wait for is its kubelet's silence."""
    reading, ending = subject.evidence, sound(subject, policy)
    runs = reading.power_state is PowerState.RUNNING
    if runs or says_nothing(subject) or ending.verdict is not Verdict.HEALTHY:
        return Passed(reading.raw)
    silent_s, told_s = subject.node.lease_age_s or 0.0, told_age_s(subject.seen)
    heard_times = renewals_in_run(subject.history, subject.node)
    seen = f"{reading.raw}; counting: silent {silent_s:.0f} of {silence_needed_s(policy):g} s"
    if heard_times >= ALIVE_RENEWALS:
        seen = f"{reading.raw}; but its kubelet was heard {heard_times} times since it first read so"
    elif not subject.node.deaf_s and told_s >= silent_s + policy.lease_period_s:
        seen = f"{seen}, as counted here; lease last renewed {age(told_s)} ago"
    needs = "more silence, and Ready to be Unknown or False; or its guest running"
    return Objection(Verdict.WAIT, Reason.COUNTING_SILENCE, seen, needs, policy.poll_s, ending.actions)


def says_nothing(subject: Subject) -> bool:
    """Whether nobody tells of the guest of a node that is heard: one that is not found has not ended then."""
    reading, times = subject.evidence, renewals_in_run(subject.history, subject.node)
    missing = reading.power_state is PowerState.ABSENT and not reading.end_recorded
    return reading.power_state is PowerState.UNKNOWN or (missing and times >= ALIVE_RENEWALS)


def silence_needed_s(policy: Policy) -> float:
    """Return for how many seconds a kubelet whose guest has ended has to be silent."""
    return policy.lease_silent_s or LEASE_DURATION_S


def sound(subject: Subject, policy: Policy) -> Ending:
    """The node is heard: take off what an old fence has left."""
    node = subject.node
    outlived = isinstance(node.mark, FenceMark) and node.mark.boot_id != node.boot_id
    forgets = (ForgetMark(),) if outlived and policy.mode is Mode.ARMED else ()
    blind = says_nothing(subject) and subject.evidence.doubt is None
    reason = Reason.BLIND if blind else Reason.NODE_HEALTHY
    return settling(subject, policy, Ending(Verdict.HEALTHY, reason, forgets))


def heard_last(seen: Observation) -> str:
    """Say when the node was last heard, in words."""
    node = seen.node
    condition = {True: "True", False: "False", None: "Unknown"}[node.ready]
    if not node.asked:
        return f"Ready={condition}; its lease was not read: its guest runs"
    if node.lease_age_s is None:
        return f"Ready={condition}; the node has no lease that can be read"
    watches = seen.intent is Intent.WATCH  # a person's command has seen nothing of what went before
    since = f" for {age(node.not_ready_s)}" if node.not_ready_s and watches else ""
    if node.deaf_s:
        told = f"lease not seen renewed for {age(told_age_s(seen))}"
        return f"Ready={condition}{since}; {told}, {age(node.deaf_s)} of that while fencer heard nobody"
    return f"Ready={condition}{since}; lease last renewed {age(told_age_s(seen))} ago"


def told_age_s(seen: Observation) -> float:
    """Return the lease's age for people: by the API's own times where nothing was seen yet.

    Never judge by it: it compares with the node's clock.
    """
    node = seen.node
    counted_s = (node.lease_age_s or 0.0) + node.deaf_s
    if node.lease_renewals or parse_utc(node.renewed_utc) == parse_utc(""):
        return counted_s
    return max(counted_s, seconds_between(node.renewed_utc, seen.utc))
