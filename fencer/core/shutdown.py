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
    state, raw = subject.power_state, subject.evidence.raw
    if state is PowerState.RUNNING:
        return Passed(raw)
    doubted = not_believed(subject.evidence)
    if doubted is not None:
        return doubted
    verdict, reason, meaning, needs = NOT_GOING[state]
    recheck_s = policy.poll_s if verdict is Verdict.WAIT else None
    return Objection(verdict, reason, f"{raw}{meaning}", needs, recheck_s)


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
    """It was asked long enough ago."""
    return Passed(f"asked {age(subject.seen.asked_s or 0.0)} ago, and it runs")


def overdue(subject: Subject) -> bool:
    """Whether a guest that was asked to shut down has kept running so long that its power must be cut."""
    asked_s, stop_after_s = subject.seen.asked_s, subject.seen.word.stop_after_s
    return asked_s is not None and stop_after_s is not None and asked_s >= stop_after_s


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
