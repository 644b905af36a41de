"""What waiting would come to: told by a verb by hand before it waits, and never carried out."""

from __future__ import annotations

from fencer.core.ladders import begin, climb, ladder_for
from fencer.core.learn import learn
from fencer.core.model import Decision, Observation, Reason, Verdict
from fencer.core.policy import Policy
from fencer.core.word import spoken_for

TIME_BRINGS = frozenset({Reason.SILENCE_TOO_SHORT, Reason.PAUSE_TOO_SHORT, Reason.NOT_HELD})
"""What only takes time: no verb by hand is refused for it."""

STANDS = frozenset(
    {
        *(Reason.BRAKE, Reason.ALL_NODES_SILENT, Reason.NO_POWER_RIGHTS, Reason.QUORUM_AT_RISK),
        *(Reason.NOTHING_TO_CLEAR, Reason.BINDING_UNPROVEN, Reason.FOREIGN_TAINT, Reason.GUEST_AMBIGUOUS),
        *(Reason.STORAGE_STALL, Reason.POWER_UNAPPROVED),
    }
)
"""What refuses now, and after the wait as well. All else may pass meanwhile, or is read anew then."""

OTHERS_BRING = frozenset({Reason.LEASE_UNSEEN, Reason.OLD_MEMORY, Reason.GUEST_REPLACED})
"""What no time brings, but only somebody, or the guest: a rehearsal does not wait for it."""


def refusal(observation: Observation, policy: Policy) -> Decision | None:
    """Return what will refuse, as things are, once all is so that only takes time; None: nothing will.

    Args:
        observation: A close one, of a verb by hand.
        policy: How careful to be.
    """
    begun = begin(spoken_for(observation, policy), policy)
    if isinstance(begun, Decision):
        return None  # then it is decided already
    subject = begun.subject
    ladder = ladder_for(subject, policy)
    while (decision := climb(ladder, subject, begun.opening, policy)).reason in TIME_BRINGS:
        ladder = ladder.without(decision.objection)
    note_due = bool(learn(observation, policy).notes)
    stands = decision.verdict is Verdict.REFUSE and decision.reason in STANDS
    return decision if stands and not note_due else None


def waits_for_others(decision: Decision) -> bool:
    """Whether no time brings what a decision waits for: a guest that does not run boots for somebody."""
    off = decision.verdict is Verdict.FENCED and decision.reason is Reason.AWAITING_BOOT
    return off or decision.reason in OTHERS_BRING
