"""A planned start: power the guest on, wait for its node, and take off what fencer put on it."""

from __future__ import annotations

from fencer.core.cordon import cordoned_after_fence, cordoned_by_drain
from fencer.core.doubt import ON_DISK
from fencer.core.fence import SILENT_PERIODS, heard_last, told_age_s
from fencer.core.history import LEASE_DURATION_S, renewals_in_run
from fencer.core.model import Cordon, PowerState, Reason, StartGuest, Uncordon, Verdict
from fencer.core.policy import Policy
from fencer.core.proof import not_believed
from fencer.core.rung import Answer, Ending, Objection, Passed, Subject
from fencer.core.text import age
from fencer.core.times import seconds_between

NOT_STARTABLE: dict[PowerState, tuple[Verdict, Reason, str, str]] = {
    PowerState.PAUSED: (Verdict.REFUSE, Reason.GUEST_PAUSED, "", "the guest resumed, by hand"),
    PowerState.SAVED: (
        Verdict.REFUSE,
        Reason.GUEST_SAVED,
        ": a start would bring its old memory back",
        "its saved state discarded, or the guest restored by hand",
    ),
    PowerState.STOPPING: (Verdict.WAIT, Reason.GUEST_STOPPING, "", "the end of that change"),
    PowerState.ABSENT: (Verdict.REFUSE, Reason.NO_GUEST, "", "a guest"),
    PowerState.UNKNOWN: (Verdict.REFUSE, Reason.GUEST_UNKNOWN, "", "a state that fencer understands"),
}
"""Verdict, reason, what it means and what would help, for each state that is neither running nor stopped."""


def startable(subject: Subject, policy: Policy) -> Answer:
    """The guest is off, and can only start cold: then a copy of its memory in a file does no harm."""
    state, raw, doubt = subject.power_state, subject.evidence.raw, subject.evidence.doubt
    if state is PowerState.STOPPED or (doubt is not None and doubt.kind in ON_DISK):
        return Passed(raw)
    doubted = not_believed(subject.evidence)
    if doubted is not None:
        return doubted
    verdict, reason, meaning, needs = NOT_STARTABLE[state]
    if subject.evidence.powered_off:
        reason, needs = Reason.GUEST_POWERED_OFF, subject.evidence.stuck or needs
    recheck_s = policy.poll_s if verdict is Verdict.WAIT else None
    return Objection(verdict, reason, f"{raw}{meaning}", needs, recheck_s)


def not_started(subject: Subject, policy: Policy) -> Answer:
    """It was not powered on a moment ago."""
    if subject.seen.asked_s is None:
        return Passed("not started yet")
    seen = f"started {age(subject.seen.asked_s)} ago; it still reads off"
    return Objection(Verdict.WAIT, Reason.AWAITING_BOOT, seen, "its first sign of life", policy.poll_s)


def unfenced(subject: Subject, _policy: Policy) -> Answer:
    """Nobody else's out-of-service taint keeps pods off."""
    if subject.node.out_of_service is not None:
        return Objection(
            Verdict.REFUSE,
            Reason.FOREIGN_TAINT,
            "the node carries an out-of-service taint that fencer did not set",
            "that taint taken off by its owner",
        )
    return Passed("no taint")


def reported(subject: Subject, policy: Policy) -> Answer:
    """Its kubelet is heard, and has reported this boot."""
    node = subject.node
    if subject.seen.asked_s is not None:
        seen = f"started {age(subject.seen.asked_s)} ago; the node still reports boot {node.boot_id}"
        return Objection(Verdict.WAIT, Reason.AWAITING_BOOT, seen, "the kubelet to report", policy.poll_s)
    if node.ready is not True or node.heard_s is None or node.heard_s >= LEASE_DURATION_S:
        condition = {True: "True", False: "False", None: "Unknown"}[node.ready]
        heard = "never" if node.heard_s is None else f"{age(node.heard_s)} ago"
        seen = f"Ready={condition}; lease last renewed {heard}"
        return Objection(Verdict.WAIT, Reason.AWAITING_READY, seen, "Ready=True", policy.poll_s)
    lately = told_age_s(subject.seen) < SILENT_PERIODS * policy.lease_period_s
    if not lately and renewals_in_run(subject.history, node) < 1:
        seen = f"{heard_last(subject.seen)}: that may be of before"  # Ready stays True for 50 s
        return Objection(Verdict.WAIT, Reason.AWAITING_READY, seen, "a renewal", policy.poll_s)
    return Passed(f"Ready; boot {node.boot_id}")


def rested(subject: Subject, policy: Policy) -> Answer:
    """A cordon from after a fence stays until caches have settled."""
    cordon = subject.node.cordon
    if not cordoned_after_fence(subject.node) or not isinstance(cordon, Cordon):
        return Passed("no fence was lifted lately")
    passed_s = seconds_between(cordon.since_utc, subject.seen.earliest_utc)
    if passed_s >= policy.settle_s:
        return Passed(f"the fence was lifted {age(passed_s)} ago")
    seen, left_s = f"the fence was lifted {age(max(0.0, passed_s))} ago", policy.settle_s - passed_s
    return Objection(Verdict.WAIT, Reason.SETTLING, seen, f"limit {policy.settle_s:g} s", left_s)


def power_on(subject: Subject, policy: Policy) -> Ending:
    """Power the guest on."""
    order = StartGuest(subject.guest, subject.evidence.incarnation)
    return Ending(Verdict.START, Reason.START_DUE, (order,), policy.poll_s)


def welcome(subject: Subject, policy: Policy) -> Ending:
    """Take off what fencer has put on it; there is nothing else to do."""
    if cordoned_by_drain(subject.node) or cordoned_after_fence(subject.node):
        return Ending(Verdict.RECOVERING, Reason.SETTLED, (Uncordon(),), recheck_s=policy.poll_s)
    return Ending(Verdict.HEALTHY, Reason.STARTED)
