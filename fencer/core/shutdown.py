"""A planned end: ask the guest to shut down, wait, and take it for off only when it is proven off.

What is left on the node then is the fence's business, by the same proof as ever.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core import rungs
from fencer.core.identity import resolve
from fencer.core.ladder import Ending, Objection, Passed, Rung, climb
from fencer.core.model import (
    Decision,
    Evidence,
    Observation,
    PowerState,
    Reason,
    ShutdownGuest,
    StopGuest,
    Verdict,
)
from fencer.core.off import off
from fencer.core.policy import Policy
from fencer.core.rungs import age

PASSING = frozenset(
    {
        Reason.EVIDENCE_MISSING,
        Reason.EVIDENCE_STALE,
        Reason.GUEST_UNKNOWN,
        Reason.HOST_SILENT,
        Reason.LEASE_RENEWED,
    }
)
"""What may pass while a guest that was asked to shut down is waited for.

One renewal was under way when its guest fell, and silence makes it forgotten; two are WITNESS_CONTRADICTED.
"""

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
        "the guest restored and shut down, or its saved state discarded",
    ),
    PowerState.STOPPING: (Verdict.WAIT, Reason.GUEST_STOPPING, "", "what it becomes"),
    PowerState.ABSENT: (Verdict.REFUSE, Reason.ABSENCE_UNPROVEN, "", "a record of its end"),
    PowerState.UNKNOWN: (Verdict.REFUSE, Reason.GUEST_UNKNOWN, "", "a state that is understood"),
}
"""Verdict, reason, what it means and what would help, for each state that is neither running nor off."""


def decide_shutdown(observation: Observation, policy: Policy) -> Decision:
    """Judge a node whose guest is to be shut down."""
    evidence = observation.evidence
    if evidence is not None and _off(evidence):
        decision = climb(CONFIRM, _confirmed, observation, policy)
    elif _hangs(observation):
        decision = climb(STOP, _stop, observation, policy)
    else:
        decision = climb(ASK, _ask, observation, policy)
    if decision.reason in PASSING and observation.asked_s is not None:
        return replace(decision, verdict=Verdict.WAIT, recheck_s=policy.poll_s)
    return decision


def running(observation: Observation, policy: Policy) -> Passed | Objection:
    """The guest runs, and so can be asked."""
    evidence = observation.evidence
    state = evidence.power_state if evidence else PowerState.UNKNOWN
    raw = evidence.raw if evidence else "nothing"
    if state is PowerState.RUNNING:
        return Passed(raw)
    verdict, reason, meaning, needs = NOT_GOING[state]
    recheck_s = policy.poll_s if verdict is Verdict.WAIT else None
    return Objection(verdict, reason, f"{raw}{meaning}", needs, recheck_s)


def not_asked(observation: Observation, policy: Policy) -> Passed | Objection:
    """It was not asked yet; once asked, it is waited for."""
    asked_s, stop_after_s = observation.asked_s, observation.word.stop_after_s
    if asked_s is None:
        return Passed("not asked yet")
    needs = "its end" if stop_after_s is None else f"limit {stop_after_s:g} s, then its power is cut"
    return Objection(
        Verdict.WAIT, Reason.SHUTTING_DOWN, f"asked {age(asked_s)} ago, and it runs", needs, policy.poll_s
    )


def hanging(observation: Observation, _policy: Policy) -> Passed | Objection:
    """It was asked long enough ago."""
    return Passed(f"asked {age(observation.asked_s or 0.0)} ago, and it runs")


def reads_off(observation: Observation, policy: Policy) -> Passed | Objection:
    """The hypervisor says that no process holds this guest's memory."""
    assert observation.evidence is not None  # noqa: S101 - `fresh` held
    return off(observation.evidence, policy)


APPROACH: tuple[tuple[str, Rung], ...] = (
    ("wanted", rungs.wanted),
    ("bound", rungs.bound),
    ("proven", rungs.proven),
    ("fresh", rungs.known),
)
POWER: tuple[tuple[str, Rung], ...] = (
    ("running", running),
    ("power rights", rungs.may_power),
    ("quorum", rungs.quorate_without),
)
ASK = (*APPROACH, *POWER, ("not asked", not_asked), ("settled", rungs.settled))
STOP = (*APPROACH, *POWER, ("hanging", hanging), ("looked closely", rungs.looked_closely))
CONFIRM: tuple[tuple[str, Rung], ...] = (
    *APPROACH,
    ("off", reads_off),
    ("no renewal", rungs.not_renewed),
    ("in place", rungs.in_place),
    ("settled", rungs.settled),
    ("looked closely", rungs.looked_closely),
    ("held", rungs.held),
)
"""The same proof as for a fence."""


def _off(evidence: Evidence) -> bool:
    """Off for good. A pause that is trusted not to end is no shutdown."""
    return evidence.power_state is PowerState.STOPPED or (
        evidence.power_state is PowerState.ABSENT and evidence.end_recorded
    )


def _hangs(observation: Observation) -> bool:
    asked_s, stop_after_s = observation.asked_s, observation.word.stop_after_s
    state = observation.evidence.power_state if observation.evidence else PowerState.UNKNOWN
    if state is not PowerState.RUNNING or asked_s is None or stop_after_s is None:
        return False
    return asked_s >= stop_after_s


def _ask(observation: Observation, policy: Policy) -> Ending:
    candidate = resolve(observation).candidate
    assert candidate is not None  # noqa: S101 - `bound` held
    return Ending(
        Verdict.STOP_FIRST, Reason.SHUTDOWN_DUE, (ShutdownGuest(candidate.guest),), recheck_s=policy.poll_s
    )


def _stop(observation: Observation, policy: Policy) -> Ending:
    candidate, evidence = resolve(observation).candidate, observation.evidence
    assert candidate is not None  # noqa: S101 - `bound` held
    assert evidence is not None  # noqa: S101 - `fresh` held
    stop = StopGuest(candidate.guest, evidence.incarnation)
    return Ending(Verdict.STOP_FIRST, Reason.SHUTDOWN_HANGS, (stop,), recheck_s=policy.poll_s)


def _confirmed(_observation: Observation, _policy: Policy) -> Ending:
    return Ending(Verdict.OFF, Reason.SHUT_DOWN)
