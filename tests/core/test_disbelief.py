"""Whose word a contradiction ends, where, and for which kinds of proof."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.doubt import believe, contradicted, without_saved
from fencer.core.model import (
    Doubted,
    Fleet,
    GuestHistory,
    Heard,
    Intent,
    PowerState,
    Proof,
    Reason,
    Unreadable,
    Verdict,
    Word,
)
from fencer.core.policy import PausedGuest
from tests.core.build import (
    ARMED,
    GUEST,
    MARK,
    NOW_UTC,
    OTHER,
    TAINT,
    doubt,
    evidence,
    in_state,
    node,
    observation,
)

HEARD = GuestHistory(heard=Heard(GUEST, "test:lab", "run-1", NOW_UTC, renewals=2))


@pytest.mark.parametrize(
    ("proof", "wrong"),
    [
        (Proof.POWER, True),
        (Proof.ABSENCE, True),
        (Proof.HOST_POWER, False),
        (Proof.HA_RECOVERY, False),
        (Proof.OPERATOR, False),
    ],
)
def test_a_sign_of_life_refutes_the_hypervisors_own_word_and_no_other(proof, wrong):
    assert contradicted(HEARD, evidence(proof=proof)) is wrong
    erred = observation(
        fleet=Fleet(7, 1, contradicted_endpoints=frozenset({"lab"})), evidence=evidence(proof=proof)
    )
    assert (decide(erred, ARMED).reason is Reason.WITNESS_CONTRADICTED) is wrong


def test_and_only_of_that_guest_on_that_host():
    here = replace(GUEST, host="lab1")
    heard = replace(HEARD, heard=replace(HEARD.heard, guest=here))
    assert contradicted(heard, evidence(guest=here))
    assert not contradicted(heard, evidence(guest=replace(GUEST, host="lab2")))
    assert not contradicted(heard, evidence(guest=replace(OTHER, host="lab1")))


@pytest.mark.parametrize("proof", sorted(set(Proof) - {Proof.OPERATOR}))
@pytest.mark.parametrize("kind", [Doubted.SAVED, Doubted.MIGRATED])
def test_memory_that_is_elsewhere_is_gone_by_no_proof_but_a_persons_word(proof, kind):
    off = evidence(proof=proof, witness="test:lab")
    assert believe(off, node(doubts=(doubt(kind),)), GuestHistory()).power_state is PowerState.UNKNOWN


def test_nothing_read_is_nothing_to_doubt_and_what_cannot_be_read_doubts_nobody():
    assert believe(None, node(doubts=(doubt(),)), GuestHistory()) is None
    assert believe(evidence(), node(doubts=Unreadable("schema 9")), GuestHistory()) == evidence()


def test_once_saved_memory_is_thrown_away_only_that_doubt_of_that_guest_ends():
    elsewhere = doubt(Doubted.SAVED, witness="another hypervisor")
    other_kinds = (doubt(Doubted.MIGRATED), doubt(Doubted.CONTRADICTED))
    standing = (doubt(Doubted.SAVED), elsewhere, *other_kinds)
    assert without_saved(node(doubts=standing), evidence()) == (elsewhere, *other_kinds)


def test_a_paused_guest_of_a_fenced_node_that_is_left_alone_is_waited_for():
    paused = in_state(PowerState.PAUSED, node=node(taints=(TAINT,), mark=MARK))
    left = decide(paused, replace(ARMED, paused_guest=PausedGuest.REFUSE))
    assert (left.verdict, left.reason, left.actions) == (Verdict.FENCED, Reason.AWAITING_BOOT, ())


def test_a_guest_that_fell_after_its_time_was_up_is_confirmed_as_any_other():
    off = observation(intent=Intent.SHUTDOWN, asked_s=60.0, word=Word(stop_after_s=30.0))
    assert decide(off, ARMED).reason is Reason.SHUT_DOWN
