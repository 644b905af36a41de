"""A planned stop: ask the guest to shut down, wait, and count it as off only when it is proven off.

What is left on the node then is for the fence, with the same proof as always.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core.cordon import FROM_OUTSIDE, cordoned_for_shutdown
from fencer.core.model import (
    Check,
    Cordon,
    Decision,
    Evidence,
    Intent,
    Observation,
    Outcome,
    PowerState,
    Reason,
    ShutdownGuest,
    StopGuest,
    Verdict,
)
from fencer.core.policy import Policy
from fencer.core.proof import not_believed
from fencer.core.rung import Answer, Ending, Objection, Passed, Subject
from fencer.core.text import age
from fencer.core.times import seconds_between

PASSING = frozenset(
    {
        Reason.EVIDENCE_MISSING,
        Reason.EVIDENCE_STALE,
        Reason.GUEST_UNKNOWN,
        Reason.HOST_SILENT,
        Reason.LEASE_RENEWED,
        Reason.LEASE_UNSEEN,
    }
)
"""Objections that may pass while fencer waits for a guest that was asked to shut down.

One renewal was under way when its guest fell, and silence makes it forgotten; two are WITNESS_CONTRADICTED.
"""

PLANNED = frozenset(
    {
        Reason.COUNTING_SILENCE,
        Reason.NODE_READY,
        Reason.SILENCE_TOO_SHORT,
        Reason.GUEST_RUNNING,
        Reason.GUEST_STOPPING,
        Reason.NOTHING_TO_CLEAR,
    }
)
"""What an agent sees of a node that is shut down and started again on purpose."""

MAY_TAKE_S = 600.0
"""So long a guest may run unheard around a planned stop: longer than hypervisors wait for a shutdown."""

NOT_GOING: dict[PowerState, tuple[Verdict, Reason, str, str]] = {
    PowerState.PAUSED: (
        Verdict.REFUSE,
        Reason.GUEST_PAUSED,
        ": it cannot shut down",
        "the guest resumed, or `fencer fence`, which stops it",
    ),
    PowerState.SAVED: (
        Verdict.REFUSE,
        Reason.GUEST_SAVED,
        ": its memory waits on disk",
        "the guest restored and shut down",
    ),
    PowerState.STOPPING: (Verdict.WAIT, Reason.GUEST_STOPPING, "", "the end of that change"),
    PowerState.ABSENT: (Verdict.REFUSE, Reason.ABSENCE_UNPROVEN, "", "a record of its end"),
    PowerState.UNKNOWN: (Verdict.REFUSE, Reason.GUEST_UNKNOWN, "", "a state that fencer understands"),
}
"""Verdict, reason, what it means and what would help, for each state that is neither running nor off."""


def running(subject: Subject, policy: Policy) -> Answer:
    """The guest runs, and so can be asked."""
    state, raw, powered_off = subject.power_state, subject.evidence.raw, subject.evidence.powered_off
    if state is PowerState.RUNNING or (powered_off and overdue(subject)):
        return Passed(raw)
    doubted = not_believed(subject.evidence)
    if doubted is not None:
        return doubted
    verdict, reason, meaning, needs = NOT_GOING[state]
    if powered_off:
        reason, needs = Reason.GUEST_POWERED_OFF, subject.evidence.stuck or needs
        meaning = "" if needs in raw else f"; what ends its process: {needs}"
    recheck_s = policy.poll_s if verdict is Verdict.WAIT else None
    return Objection(verdict, reason, f"{raw}{meaning}", needs, recheck_s)


def same_run(subject: Subject, policy: Policy) -> Answer:
    """The VM is in the run that the order was for: no boot that something started since is ended (S12).

    A VM that moves with its memory gets another run on another host. While its Node shows the same boot, a
    shutdown waits for what comes of it.
    """
    first, now, boot_id = subject.seen.ordered_run, subject.evidence, subject.node.boot_id
    if first is None:
        return Passed("nothing was ordered yet")
    rebooted = boot_id != first.boot_id
    same = now.guest.key == first.guest.key and None in {now.incarnation, first.incarnation}
    same = same or (now.guest.key, now.incarnation) == (first.guest.key, first.incarnation)
    if not rebooted and same and not first.ended:
        return Passed("in the run that was meant")
    shutdown = subject.seen.intent is Intent.SHUTDOWN
    order = "asked to shut down" if shutdown else "stopped"
    here = now.guest.endpoint == first.guest.endpoint and now.guest.shares_host(first.guest)
    if shutdown and not rebooted and not here and not first.ended:
        seen = f"{first.guest} was {order}, and runs as {now.guest} now: it moved, or was started there"
        needs = "the VM off, or its Node showing another boot"
        return Objection(Verdict.WAIT, Reason.SHUTTING_DOWN, seen, needs, policy.poll_s)
    newer = f"boot {boot_id}" if rebooted else "another run"
    seen = f"{first.guest} was {order}, and runs again, in {newer}"
    return Objection(Verdict.REFUSE, Reason.RESTARTED, seen)


def not_asked(subject: Subject, policy: Policy) -> Answer:
    """It was not asked yet; once asked, it is waited for."""
    asked_s, stop_after_s = subject.seen.asked_s, subject.seen.word.stop_after_s
    if asked_s is None:
        return Passed("not asked yet")
    needs = "the guest off" if stop_after_s is None else f"limit {stop_after_s:g} s, then its power is cut"
    return Objection(
        Verdict.WAIT, Reason.SHUTTING_DOWN, f"asked {age(asked_s)} ago, and it runs", needs, policy.poll_s
    )


def hanging(subject: Subject, _policy: Policy) -> Answer:
    """It was asked, or has powered itself off, long enough ago."""
    now, asked_s = "its process is left" if subject.evidence.powered_off else "it runs", subject.seen.asked_s
    since = f"off for {age(_off_s(subject))}" if asked_s is None else f"asked {age(asked_s)} ago"
    return Passed(f"{since}, and {now}")


def overdue(subject: Subject) -> bool:
    """Whether a guest that was asked to shut down has kept running so long that its power must be cut.

    Or has powered itself off, unasked, and has left its process for so long.
    """
    asked_s, stop_after_s = subject.seen.asked_s, subject.seen.word.stop_after_s
    asked_s = _off_s(subject) if asked_s is None and subject.evidence.powered_off else asked_s
    return asked_s is not None and stop_after_s is not None and asked_s >= stop_after_s


def _off_s(subject: Subject) -> float:
    """Return for how long a guest that has powered itself off has been seen so, with nothing in the way."""
    run = subject.history.run
    return run.lasted_s if run is not None and run.power_state is subject.power_state else 0.0


def ask(subject: Subject, policy: Policy) -> Ending:
    """Ask it to shut down."""
    order = ShutdownGuest(subject.guest, subject.evidence.incarnation)
    return Ending(Verdict.ASK, Reason.SHUTDOWN_DUE, (order,), policy.poll_s)


def cut(subject: Subject, policy: Policy) -> Ending:
    """Cut its power: it was asked, and keeps running."""
    order = StopGuest(subject.guest, subject.evidence.incarnation)
    return Ending(Verdict.STOP_FIRST, Reason.SHUTDOWN_HANGS, (order,), policy.poll_s)


def confirmed(_subject: Subject, _policy: Policy) -> Ending:
    """It is off, as asked."""
    return Ending(Verdict.OFF, Reason.SHUT_DOWN)


def over_brake(intent: Intent, evidence: Evidence | None) -> str | None:
    """Say why the brake, which is for crashes, does not stop a planned shutdown's fence; None: not yet.

    Args:
        intent: On whose behalf that shutdown asks now: FENCE, once its guest was proven off.
        evidence: What its guest was last read as.
    """
    off = evidence is not None and evidence.power_state is PowerState.STOPPED
    return "a planned shutdown" if intent is Intent.FENCE and off else None


def as_planned(observation: Observation, decision: Decision) -> Decision:
    """Call a node that was drained and shut down on purpose just that, while nothing has to be done about it.

    Only the words change. What is left on it is still cleared by the same proof, and a guest that runs
    unheard for long is still told of.
    """
    if observation.intent is not Intent.WATCH or decision.reason not in PLANNED:
        return decision
    cordon = observation.node.cordon
    if not isinstance(cordon, Cordon) or not cordoned_for_shutdown(observation.node):
        return decision
    if decision.reason is Reason.GUEST_RUNNING and not _on_its_way(observation):
        return decision
    since = age(max(0.0, seconds_between(cordon.since_utc, observation.utc)))
    reads = observation.evidence.raw if observation.evidence else "nothing"
    who = "fencer" if observation.node.cordoner == FROM_OUTSIDE else "its own system, after a drain"
    seen = f"by {who}; cordoned for it {since} ago; its guest reads {reads}"
    if decision.reason is Reason.GUEST_RUNNING:
        seen = f"{seen}, and its kubelet is not heard yet"
    checks = (
        *decision.checks,
        Check("unplanned", Outcome.FAILED, seen, f"`fencer start {observation.node.name}`"),
    )
    passed = tuple(check for check in checks if check is not decision.objection)
    return replace(decision, verdict=Verdict.OFF, reason=Reason.PLANNED_STOP, checks=passed)


def _on_its_way(observation: Observation) -> bool:
    """Whether a guest that runs unheard is going down or coming up, as far as time tells."""
    run, unheard_s = observation.history.run, observation.node.not_ready_s or 0.0
    return min(unheard_s, run.lasted_s if run else 0.0) < MAY_TAKE_S
