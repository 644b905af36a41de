"""A planned beginning: power the guest on, wait for its node, and take off what fencer put on it."""

from __future__ import annotations

from fencer.core import rungs
from fencer.core.drain import cordoned_by_drain
from fencer.core.history import LEASE_DURATION_S
from fencer.core.identity import resolve
from fencer.core.ladder import Ending, Objection, Passed, Rung, climb
from fencer.core.model import (
    Cordon,
    Decision,
    FenceMark,
    Observation,
    PowerState,
    Reason,
    StartGuest,
    Uncordon,
    Verdict,
)
from fencer.core.pods import seconds_between
from fencer.core.policy import Policy
from fencer.core.recover import decide_fenced
from fencer.core.rungs import age

NOT_STARTABLE: dict[PowerState, tuple[Verdict, Reason, str, str]] = {
    PowerState.PAUSED: (Verdict.REFUSE, Reason.GUEST_PAUSED, "", "the guest resumed, by hand"),
    PowerState.SAVED: (
        Verdict.REFUSE,
        Reason.GUEST_SAVED,
        ": a start would bring its old memory back",
        "its saved state discarded, or the guest restored by hand",
    ),
    PowerState.STOPPING: (Verdict.WAIT, Reason.GUEST_STOPPING, "", "what it becomes"),
    PowerState.ABSENT: (Verdict.REFUSE, Reason.NO_GUEST, "", "a guest"),
    PowerState.UNKNOWN: (Verdict.REFUSE, Reason.GUEST_UNKNOWN, "", "a state that is understood"),
}
"""Verdict, reason, what it means and what would help, for each state that is neither running nor stopped."""


def decide_start(observation: Observation, policy: Policy) -> Decision:
    """Judge a node whose guest is to run, and which is to take pods again."""
    node = observation.node
    state = observation.evidence.power_state if observation.evidence else PowerState.UNKNOWN
    fenced = isinstance(node.mark, FenceMark) and node.out_of_service is not None
    if fenced and (state is not PowerState.STOPPED or climb(START, _start, observation, policy).actions):
        return decide_fenced(observation, policy)
    if state is PowerState.RUNNING:
        return climb(WELCOME, _welcome, observation, policy)
    return climb(START, _start, observation, policy)


def startable(observation: Observation, policy: Policy) -> Passed | Objection:
    """The guest is off, and can only start cold."""
    evidence = observation.evidence
    state = evidence.power_state if evidence else PowerState.UNKNOWN
    raw = evidence.raw if evidence else "nothing"
    if state is PowerState.STOPPED:
        return Passed(raw)
    verdict, reason, meaning, needs = NOT_STARTABLE[state]
    recheck_s = policy.poll_s if verdict is Verdict.WAIT else None
    return Objection(verdict, reason, f"{raw}{meaning}", needs, recheck_s)


def not_started(observation: Observation, policy: Policy) -> Passed | Objection:
    """It was not powered on a moment ago."""
    if observation.asked_s is None:
        return Passed("not started yet")
    seen = f"started {age(observation.asked_s)} ago; it still reads off"
    return Objection(Verdict.WAIT, Reason.AWAITING_BOOT, seen, "its first sign of life", policy.poll_s)


def unfenced(observation: Observation, _policy: Policy) -> Passed | Objection:
    """No out-of-service taint of somebody else keeps pods off."""
    if observation.node.out_of_service is not None:
        return Objection(
            Verdict.REFUSE,
            Reason.FOREIGN_TAINT,
            "the node carries an out-of-service taint that fencer did not set",
            "whoever set it to take it off",
        )
    return Passed("no taint")


def reported(observation: Observation, policy: Policy) -> Passed | Objection:
    """Its kubelet is heard, and has told of this boot."""
    node = observation.node
    if observation.asked_s is not None:
        seen = f"started {age(observation.asked_s)} ago; the node still tells of boot {node.boot_id}"
        return Objection(Verdict.WAIT, Reason.AWAITING_BOOT, seen, "the kubelet to report", policy.poll_s)
    if node.ready is not True or node.lease_age_s is None or node.lease_age_s >= LEASE_DURATION_S:
        condition = {True: "True", False: "False", None: "Unknown"}[node.ready]
        heard = "never" if node.lease_age_s is None else f"{age(node.lease_age_s)} ago"
        seen = f"Ready={condition}; lease last renewed {heard}"
        return Objection(Verdict.WAIT, Reason.AWAITING_READY, seen, "Ready=True", policy.poll_s)
    return Passed(f"Ready; boot {node.boot_id}")


def rested(observation: Observation, policy: Policy) -> Passed | Objection:
    """A cordon from after a fence stays until caches have settled."""
    cordon = observation.node.cordon
    if not _settling(observation) or not isinstance(cordon, Cordon):
        return Passed("no fence was lifted lately")
    passed_s = seconds_between(cordon.since_utc, observation.utc)
    if passed_s >= policy.settle_s:
        return Passed(f"the fence was lifted {age(passed_s)} ago")
    seen, left_s = f"the fence was lifted {age(max(0.0, passed_s))} ago", policy.settle_s - passed_s
    return Objection(Verdict.WAIT, Reason.SETTLING, seen, f"limit {policy.settle_s:g} s", left_s)


START: tuple[tuple[str, Rung], ...] = (
    ("wanted", rungs.wanted),
    ("bound", rungs.bound),
    ("proven", rungs.proven),
    ("fresh", rungs.known),
    ("startable", startable),
    ("not started", not_started),
    ("power rights", rungs.may_power),
    ("settled", rungs.settled),
)
WELCOME: tuple[tuple[str, Rung], ...] = (
    ("wanted", rungs.wanted),
    ("bound", rungs.bound),
    ("fresh", rungs.known),
    ("unfenced", unfenced),
    ("reported", reported),
    ("rested", rested),
)


def _settling(observation: Observation) -> bool:
    node = observation.node
    return node.unschedulable and isinstance(node.cordon, Cordon) and node.cordon.by == "unfence"


def _start(observation: Observation, policy: Policy) -> Ending:
    candidate = resolve(observation).candidate
    assert candidate is not None  # noqa: S101 - `bound` held
    return Ending(
        Verdict.STOP_FIRST, Reason.START_DUE, (StartGuest(candidate.guest),), recheck_s=policy.poll_s
    )


def _welcome(observation: Observation, policy: Policy) -> Ending:
    if cordoned_by_drain(observation.node) or _settling(observation):
        return Ending(Verdict.RECOVERING, Reason.SETTLED, (Uncordon(),), recheck_s=policy.poll_s)
    return Ending(Verdict.HEALTHY, Reason.STARTED)
