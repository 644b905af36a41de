"""What would follow: for a command that looks once, if the answer depends on what only a watcher knows.

People are told in one sentence with its condition; it is never carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fencer.core.deeds import deed
from fencer.core.ladders import begin, climb, ladder_for
from fencer.core.model import Decision, Observation, PowerState, Reason, Verdict
from fencer.core.policy import Mode, Policy
from fencer.core.proof import held_for_s
from fencer.core.rung import Subject
from fencer.core.word import spoken_for
from fencer.wording.reasons import says

NEEDS_MEMORY: Mapping[Reason, str] = {
    Reason.NOT_HELD: "for how long its guest has been off",
    Reason.PAUSE_TOO_SHORT: "for how long its guest has been paused",
    Reason.FALL_UNSEEN: "whether its guest ran before",
    Reason.AWAITING_RENEWALS: "how often its kubelet has been heard since the boot",
}
"""What one look cannot tell. An agent that watches, or a fence by hand, counts it from its own first look."""

NEVER_WRITTEN: Mapping[Reason, str] = {Reason.BINDING_UNPROVEN: "whether its guest was seen alive with it"}
"""What no other process can know while fencer only observes: it writes nothing on the Nodes."""

UNTOLD: Mapping[Reason, str] = {**NEEDS_MEMORY, **NEVER_WRITTEN}


def untold(policy: Policy, *, first_look: bool) -> Mapping[Reason, str]:
    """Return the reasons that a command without a history may object with, and what it then cannot tell.

    Args:
        policy: For the mode.
        first_look: It has not looked before.
    """
    counted: Mapping[Reason, str] = NEEDS_MEMORY if first_look else {}
    return {**counted, **NEVER_WRITTEN} if policy.mode is Mode.OBSERVE else counted


def foretold(observation: Observation, decision: Decision, policy: Policy) -> tuple[str, bool]:
    """Return what would follow if the watcher's answer were yes, and what one look cannot tell.

    With it comes whether a refusal stands whatever the answer is.

    Args:
        observation: Of one look.
        decision: Its decision; its reason is one of `untold`.
        policy: How careful to be.
    """
    end, conditions = _climb_past(observation, policy)
    would = deed(observation, () if end is None else end.actions, f", {', '.join(conditions)}")
    if would:
        verb = "will" if policy.mode is Mode.ARMED else "would"
        return f"{verb} {would}; one look cannot tell whether that is so", False
    if end is not None and end.objection is not None and end.reason is not Reason.CLOSER_LOOK:
        # This is in the way, whatever the answer would be.
        return (
            f"{says(end)}; and one look cannot tell {UNTOLD[decision.reason]}",
            end.verdict is Verdict.REFUSE,
        )
    seen = observation.evidence.raw if observation.evidence else "no reading"
    return f"{seen}; one look cannot tell {UNTOLD[decision.reason]}", False


def past_untold(observation: Observation, policy: Policy) -> Decision | None:
    """Return what is decided if all that one look cannot tell is so; None: nobody knows which guest it is."""
    return _climb_past(observation, policy)[0]


def _climb_past(observation: Observation, policy: Policy) -> tuple[Decision | None, list[str]]:
    """Climb the ladder past all that one look cannot tell; return how it ends, and its conditions."""
    conditions: list[str] = []
    observation = spoken_for(observation, policy)
    begun = begin(observation, policy)
    if isinstance(begun, Decision):
        return None, conditions
    subject = begun.subject
    ladder, armed = ladder_for(subject, policy), replace(policy, mode=Mode.ARMED)
    passable = untold(policy, first_look=True)
    while (decision := climb(ladder, subject, begun.opening, armed)).reason in passable:
        conditions.append(CONDITIONS[decision.reason](subject, policy))
        ladder = ladder.without(decision.objection)
    return decision, conditions


def _held(subject: Subject, policy: Policy) -> str:
    state = {PowerState.PAUSED: "paused", PowerState.SAVED: "saved"}.get(subject.power_state, "off")
    limit_s = held_for_s(subject, policy)
    return f"once its guest has been {state} for {limit_s:g} s"


CONDITIONS: Mapping[Reason, Callable[[Subject, Policy], str]] = {
    Reason.NOT_HELD: _held,
    Reason.PAUSE_TOO_SHORT: _held,
    Reason.FALL_UNSEEN: lambda *_: "if its guest was seen running before",
    Reason.AWAITING_RENEWALS: lambda _, policy: (
        f"once its kubelet has been heard {policy.unfence_renewals} times since the boot"
    ),
    Reason.BINDING_UNPROVEN: lambda *_: "if the agent has seen its guest alive with it",
}
"""The condition of an answer, for each of the reasons above."""
