"""What waiting would come to, for a verb by hand: what certainly refuses is said before the wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.foreseen import refusal, waits_for_others
from fencer.core.model import (
    Candidate,
    Decision,
    Fleet,
    GuestHistory,
    Intent,
    PowerState,
    Reason,
    Verdict,
    Via,
    Word,
)
from tests.core.build import ARMED, BOOT, GUEST, TAINT, evidence, in_state, node, observation, run


def by_hand(**facts):
    """A node that is silent for 3 s only, and whose guest was read off once: both take time."""
    young = GuestHistory(run(since_s=999.0, last_s=999.0, readings=1), boot_id=BOOT)
    return observation(
        **{"intent": Intent.FENCE, "node": node(lease_age_s=3.0), "history": young, "close": True} | facts
    )


def test_where_only_time_is_missing_nothing_refuses():
    assert refusal(by_hand(), ARMED) is None


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"fleet": Fleet(nodes=7, silent=2, young_fences=3)}, Reason.BRAKE),
        ({"fleet": Fleet(nodes=7, silent=7)}, Reason.ALL_NODES_SILENT),
        ({"pods": (), "attachments": ()}, Reason.NOTHING_TO_CLEAR),
        ({"node": node(lease_age_s=3.0, taints=(TAINT,))}, Reason.FOREIGN_TAINT),
        ({"node": node(lease_age_s=3.0, binding=None)}, Reason.BINDING_UNPROVEN),
    ],
)
def test_what_will_still_stand_then_is_said_now(facts, reason):
    found = refusal(by_hand(**facts), ARMED)
    assert found is not None
    assert (found.verdict, found.reason) == (Verdict.REFUSE, reason)


def test_a_paused_guest_that_may_not_be_stopped_is_said_before_its_pause_is_waited_for():
    paused = in_state(PowerState.PAUSED, intent=Intent.FENCE, node=node(lease_age_s=3.0), close=True)
    forbidden = replace(paused, candidates=(Candidate(GUEST, Via.UUID, admitted_by=()),))
    found = refusal(forbidden, ARMED)
    assert found is not None
    assert found.reason is Reason.NO_POWER_RIGHTS
    unapproved = replace(paused, candidates=(Candidate(GUEST, Via.UUID, unapproved=("tag:k8s",)),))
    found = refusal(unapproved, ARMED)
    assert found is not None
    assert found.reason is Reason.POWER_UNAPPROVED
    assert refusal(paused, ARMED) is None


def test_a_running_guest_may_stop_meanwhile():
    assert refusal(in_state(PowerState.RUNNING, intent=Intent.FENCE, close=True), ARMED) is None


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"node": node(lease_age_s=3.0, roles=("control-plane",))}, Reason.QUORUM_AT_RISK),
        ({"claimed_by": ("k8s-9",)}, Reason.GUEST_AMBIGUOUS),
        (
            {
                "evidence": evidence(PowerState.PAUSED, io_error=True),
                "fleet": Fleet(nodes=7, stalled=frozenset({"lab"})),
            },
            Reason.STORAGE_STALL,
        ),
    ],
)
def test_what_keeps_a_paused_guest_from_being_stopped_is_said_before_its_pause_is_waited_for(facts, reason):
    paused = in_state(PowerState.PAUSED, intent=Intent.FENCE, node=node(lease_age_s=3.0), close=True)
    found = refusal(replace(paused, **facts), ARMED)
    assert found is not None
    assert found.reason is reason


def test_a_planned_shutdown_whose_guest_is_not_proven_yet_waits_for_that():
    """The same reason refuses a fence, because there no renewal will prove it."""
    young = node(binding=None, lease_age_s=3.0, ready=True, not_ready_s=None)
    runs = GuestHistory(run(PowerState.RUNNING, renewals_at_start=5))
    seen = in_state(PowerState.RUNNING, intent=Intent.SHUTDOWN, node=young, history=runs, close=True)
    decision = decide(seen, ARMED)
    assert (decision.verdict, decision.reason) == (Verdict.WAIT, Reason.BINDING_UNPROVEN)
    assert refusal(seen, ARMED) is None


def test_a_persons_word_goes_past_the_brake():
    over = Word(over_brake_why="a power cut")
    assert refusal(by_hand(fleet=Fleet(nodes=7, silent=2, young_fences=3), word=over), ARMED) is None


def test_which_guest_it_is_was_decided_before():
    assert refusal(by_hand(candidates=()), ARMED) is None


def test_a_note_that_is_due_is_written_first_and_all_judged_anew():
    """Here, that its guest has moved away: nobody may know of it yet but who looks now."""
    tainted = by_hand(node=node(lease_age_s=3.0, taints=(TAINT,)))
    assert refusal(tainted, ARMED) is not None
    assert refusal(replace(tainted, evidence=evidence(away=True)), ARMED) is None


@pytest.mark.parametrize(
    ("verdict", "reason", "waits"),
    [
        (Verdict.FENCED, Reason.AWAITING_BOOT, True),
        (Verdict.RECOVERING, Reason.AWAITING_BOOT, False),
        (Verdict.FENCED, Reason.CLEARING_PODS, False),
        (Verdict.WAIT, Reason.LEASE_UNSEEN, True),
        (Verdict.REFUSE, Reason.OLD_MEMORY, True),
        (Verdict.REFUSE, Reason.GUEST_REPLACED, True),
        (Verdict.WAIT, Reason.NOT_HELD, False),
    ],
)
def test_what_only_somebody_brings_is_not_waited_for(verdict, reason, waits):
    assert waits_for_others(Decision(verdict, reason)) is waits
