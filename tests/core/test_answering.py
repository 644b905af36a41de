"""What whoever asks for a node is told: a no only for what no time brings, and only once that has stood."""

from dataclasses import replace

import pytest

from fencer.core.answering import answer, answers, may_go
from fencer.core.election import Seat, Tenure
from fencer.core.model import Binding, Cordon, Decision, Judged, Reason, Unreadable, Verdict
from fencer.core.requests import Progress, Request
from tests.core.build import GUEST, MARK, NOW_UTC, TAINT, node, observation

ASKED = Request("medik8s", "k8s-2", "uid-1", "7", "k8s-2", asked_by="NodeHealthCheck workers")
STANDS, NEW, LONG = 10.0, 9.9, 60.0
NO, YES, OPEN = False, True, None

ANSWERS = {
    "the fence is over, and its volumes are free": (YES, {Reason.PODS_CLEARED}),
    "the kubelet is heard: no guest to prove off": (
        NO,
        {Reason.NODE_HEALTHY, Reason.BLIND, Reason.CORDON_UNRECORDED},
    ),
    "nothing was refused: there may be something to move later": (OPEN, {Reason.NOTHING_TO_CLEAR}),
    "nobody knows which guest it is, or it is another one": (
        NO,
        {
            Reason.NO_GUEST,
            Reason.GUEST_AMBIGUOUS,
            Reason.GUEST_TAKEN,
            Reason.BINDING_UNPROVEN,
            Reason.GUEST_REPLACED,
        },
    ),
    "its guest may go on writing, and fencer may not end it": (
        NO,
        {
            Reason.GUEST_RUNNING,
            Reason.GUEST_PAUSED,
            Reason.GUEST_SAVED,
            Reason.GUEST_LEFT,
            Reason.NO_POWER_RIGHTS,
            Reason.POWER_UNAPPROVED,
        },
    ),
    "its end is not believed without a person's word": (
        NO,
        {
            Reason.ABSENCE_UNPROVEN,
            Reason.HOST_CHANGED,
            Reason.WITNESS_CONTRADICTED,
            Reason.DOUBTS_UNREADABLE,
        },
    ),
    "somebody has taken it out of fencer's hands": (
        NO,
        {
            Reason.NODE_EXCLUDED,
            Reason.HANDED_OVER,
            Reason.FOREIGN_TAINT,
            Reason.TAINT_TAKEN_OFF,
        },
    ),
    "silence grows": (
        OPEN,
        {
            Reason.NODE_READY,
            Reason.COUNTING_SILENCE,
            Reason.SILENCE_TOO_SHORT,
            Reason.LEASE_RENEWED,
            Reason.GUEST_UNRESPONSIVE,
            Reason.FALL_UNSEEN,
            Reason.LEASE_UNSEEN,
        },
    ),
    "nobody can say whether the node is fenced": (OPEN, {Reason.MARK_UNREADABLE, Reason.MARK_UNSIGNED}),
    "a hypervisor or a host may answer again": (
        OPEN,
        {Reason.EVIDENCE_MISSING, Reason.EVIDENCE_STALE, Reason.HOST_SILENT, Reason.GUEST_UNKNOWN},
    ),
    "a reading, a task or HA's recovery goes on": (
        OPEN,
        {
            Reason.CLOSER_LOOK,
            Reason.NOT_HELD,
            Reason.PAUSE_TOO_SHORT,
            Reason.GUEST_STOPPING,
            Reason.GUEST_POWERED_OFF,
            Reason.GUEST_UNSETTLED,
            Reason.STORAGE_STALL,
        },
    ),
    "it ends by itself, or by whoever began it": (
        OPEN,
        {
            Reason.FENCING_PAUSED,
            Reason.NODE_PAUSED,
            Reason.MAINTENANCE,
            Reason.NODE_RESERVED,
            Reason.GIVEN_UP,
            Reason.OBSERVE_MODE,
            Reason.NOTES_FIRST,
        },
    ),
    "its turn comes, or it is tried again": (
        OPEN,
        {
            Reason.POWER_WINDOW,
            Reason.STOP_FAILED,
            Reason.DISCARD_FAILED,
            Reason.BRAKE,
            Reason.ALL_NODES_SILENT,
            Reason.QUORUM_AT_RISK,
        },
    ),
    "another agent acts": (OPEN, {Reason.STANDBY, Reason.NO_LEASE}),
    "the fence goes on": (OPEN, {Reason.PROVEN_OFF, Reason.CLEARING_PODS, Reason.RELEASING_VOLUMES}),
    "it comes back": (
        OPEN,
        {
            Reason.AWAITING_BOOT,
            Reason.AWAITING_RENEWALS,
            Reason.OLD_MEMORY,
            Reason.FENCED_WRONGLY,
            Reason.PODS_REMAIN,
            Reason.VOLUMES_REMAIN,
            Reason.BOOTED_ANEW,
            Reason.SETTLING,
            Reason.SETTLED,
        },
    ),
    "a person stops or starts it": (
        OPEN,
        {
            Reason.SHUTDOWN_DUE,
            Reason.SHUTTING_DOWN,
            Reason.SHUTDOWN_HANGS,
            Reason.SHUT_DOWN,
            Reason.RESTARTED,
            Reason.PLANNED_STOP,
            Reason.START_DUE,
            Reason.AWAITING_READY,
            Reason.STARTED,
            Reason.NOT_FENCED,
        },
    ),
}
"""Why → what is told at last, and for which reasons."""

ROWS = [
    pytest.param(reason, told, id=f"{reason.value}: {why}")
    for why, (told, reasons) in ANSWERS.items()
    for reason in sorted(reasons)
]


def judged(reason, **facts):
    return Judged(observation(**facts), Decision(Verdict.REFUSE, reason))


def test_each_reason_stands_in_the_table_once():
    reasons = [reason for _, group in ANSWERS.values() for reason in group]
    assert sorted(reasons) == sorted(Reason)


@pytest.mark.parametrize(("reason", "told"), ROWS)
def test_whoever_asks_is_told_no_for_what_no_time_brings_and_yes_once_all_is_done(reason, told):
    assert answer(ASKED, judged(reason), LONG).succeeded is told


def test_a_healthy_node_is_a_no():
    """Whoever asked may be wrong about it, or may power it off without fencer."""
    healthy = Judged(observation(), Decision(Verdict.HEALTHY, Reason.NODE_HEALTHY))
    assert answer(ASKED, healthy, LONG).succeeded is NO


def test_what_another_agent_may_see_otherwise_has_to_stand_until_it_would_have_taken_over():
    for reason in (Reason.NO_GUEST, Reason.NO_POWER_RIGHTS, Reason.POWER_UNAPPROVED):
        assert answer(ASKED, judged(reason), LONG - 0.1).succeeded is OPEN
    assert answer(ASKED, judged(Reason.GUEST_RUNNING), STANDS).succeeded is NO


@pytest.mark.parametrize("verdict", sorted(set(Verdict) - {Verdict.REFUSE, Verdict.HEALTHY}))
def test_what_is_being_done_or_waited_for_is_no_no(verdict):
    """A guest that is paused is stopped first, and its reason is the pause."""
    goes_on = Judged(observation(), Decision(verdict, Reason.GUEST_PAUSED))
    assert answer(ASKED, goes_on, LONG).succeeded is OPEN


FENCED = {"taints": (TAINT,), "mark": MARK}


@pytest.mark.parametrize("reason", [Reason.AWAITING_BOOT, Reason.ABSENCE_UNPROVEN, Reason.HOST_CHANGED])
def test_of_a_fenced_node_nobody_is_told_no_and_done_once_nothing_is_left_whatever_its_guest_is(reason):
    left = judged(reason, node=node(**FENCED))
    assert answer(ASKED, left, LONG).succeeded is OPEN
    assert answer(ASKED, left, LONG, cleared=True) == Progress(YES, "PodsCleared")
    empty = judged(reason, node=node(**FENCED), pods=(), attachments=())
    assert answer(ASKED, empty, NEW) == Progress(YES, "PodsCleared")
    for some in ({"attachments": ()}, {"pods": ()}, {"pods": None, "attachments": ()}):
        assert answer(ASKED, judged(reason, node=node(**FENCED), **some), LONG).succeeded is OPEN
    unfenced = judged(reason, pods=(), attachments=())
    assert answer(ASKED, unfenced, NEW, cleared=True).succeeded is OPEN


@pytest.mark.parametrize(("reason", "told"), ROWS)
def test_a_no_is_told_once_it_has_stood_and_never_before(reason, told):
    assert answer(ASKED, judged(reason), NEW).succeeded is (YES if told is YES else OPEN)


def test_it_stands_for_longer_than_two_passes_and_than_any_restart_takes():
    assert STANDS > 2 * 1.6


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_a_word_that_conditions_may_have(reason):
    """Source: the CRD's pattern for a condition's reason, less than it allows."""
    word = answer(ASKED, judged(reason), STANDS).reason
    assert word.isalnum()
    assert word[0].isupper()
    assert word.lower() == reason.value.replace("_", "")


def test_words_are_joined_with_capitals():
    assert answer(ASKED, judged(Reason.GUEST_RUNNING), 0.0).reason == "GuestRunning"


@pytest.mark.parametrize(("stood_s", "told"), [(NEW, OPEN), (STANDS, NO)])
@pytest.mark.parametrize(("waits", "ever"), [(False, True), (True, False)])
def test_a_request_that_is_not_understood_is_told_no_unless_that_may_pass(waits, ever, stood_s, told):
    odd = replace(ASKED, node="", problem="its Machine has no node", waits=waits)
    assert answer(odd, None, stood_s) == Progress(told if ever else OPEN, "Unclear")


@pytest.mark.parametrize(("stood_s", "told"), [(NEW, OPEN), (STANDS, NO)])
def test_a_node_that_is_not_there_is_waited_for_a_while(stood_s, told):
    assert answer(ASKED, None, stood_s) == Progress(told, "NoSuchNode")


@pytest.mark.parametrize("reason", [Reason.GUEST_UNRESPONSIVE, Reason.PODS_CLEARED, Reason.NODE_HEALTHY])
def test_one_that_was_given_up_is_told_so_at_once_whatever_the_node_is(reason):
    given_up = replace(ASKED, given_up=True)
    assert answer(given_up, judged(reason), 0.0) == Progress(NO, "GivenUp")


@pytest.mark.parametrize("final", [YES, NO])
@pytest.mark.parametrize("reason", [Reason.PODS_CLEARED, Reason.GUEST_RUNNING, Reason.NODE_HEALTHY])
@pytest.mark.parametrize("more", [{}, {"given_up": True}, {"problem": "odd"}], ids=str)
def test_what_was_told_for_good_stays(final, reason, more):
    told = replace(ASKED, told=Progress(final, "Because"), **more)
    assert answer(told, judged(reason), STANDS) is None


def test_one_that_was_deleted_is_told_nothing():
    assert answer(replace(ASKED, deleting=True), judged(Reason.GUEST_RUNNING), STANDS) is None


def test_the_same_is_told_once():
    waits = replace(ASKED, told=Progress(OPEN, "GuestRunning", "its guest runs"))
    assert answer(waits, judged(Reason.GUEST_RUNNING), NEW) is None
    assert answer(waits, judged(Reason.GUEST_RUNNING), STANDS) == Progress(NO, "GuestRunning")
    assert answer(waits, judged(Reason.NOT_HELD), NEW) == Progress(OPEN, "NotHeld")


@pytest.mark.parametrize(
    ("tenure", "ours"),
    [
        (None, True),
        (Tenure(Seat.HOLDER), True),
        (Tenure(Seat.STANDBY), False),
        (Tenure(Seat.UNSETTLED), True),
        (Tenure(Seat.UNFILLED), True),
    ],
)
def test_of_several_agents_the_one_that_gives_orders_answers_and_where_there_is_none_any(tenure, ours):
    assert answers(judged(Reason.GUEST_RUNNING, tenure=tenure)) is ours


@pytest.mark.parametrize(
    ("binding", "ours"),
    [(None, True), (Unreadable("forged"), True), (Binding(GUEST, ("boot-1",)), False)],
    ids=["bound to nobody", "to nobody knows whom", "to a guest that another agent knows"],
)
def test_an_agent_that_knows_no_guest_of_a_bound_node_leaves_the_answer_to_others(binding, ours):
    assert answers(judged(Reason.NO_GUEST, node=node(binding=binding), candidates=())) is ours


def test_one_answers_that_knows_the_guest_as_another_nodes():
    """Its kubelet lies about its UUID: every agent sees that, and none has a guest for it."""
    taken = judged(Reason.GUEST_TAKEN, node=node(), candidates=(), taken_by="k8s-1")
    assert answers(taken)


def test_of_a_node_that_is_not_there_any_agent_answers():
    assert answers(None)


CORDON = Cordon("unfence", "boot-2", NOW_UTC)


@pytest.mark.parametrize(
    ("facts", "gone"),
    [
        ({}, True),
        ({"ready": True}, True),
        ({"mark": Unreadable("forged")}, True),
        ({"taints": (TAINT,), "mark": MARK}, False),
        ({"cordon": CORDON, "unschedulable": True, "cordoner": "fencer", "ready": True}, False),
        ({"cordon": CORDON, "unschedulable": True, "cordoner": "fencer", "ready": None}, True),
        ({"cordon": CORDON, "unschedulable": True, "cordoner": "kubelet"}, True),
        ({"cordon": CORDON, "cordoner": "fencer"}, True),
        ({"cordon": replace(CORDON, by="drain"), "unschedulable": True, "cordoner": "fencer"}, True),
        ({"cordon": Unreadable("newer")}, True),
        ({"taints": (TAINT,)}, True),
        ({"taints": (TAINT,), "mark": Unreadable("forged")}, False),
        ({"taints": (TAINT,), "mark": MARK, "gone": True}, True),
    ],
    ids=[
        "as before",
        "healthy",
        "a mark without a taint",
        "fenced",
        "settling",
        "dead again while it settled",
        "a note that a kubelet wrote",
        "uncordoned",
        "a drain's cordon",
        "nobody knows whose cordon",
        "foreign taint",
        "nobody knows whose taint",
        "its Node is deleted",
    ],
)
def test_a_deleted_request_goes_once_nothing_is_left_of_what_was_done_for_it(facts, gone):
    assert may_go(ASKED, node(**facts)) is gone


def test_nor_is_anything_left_where_there_is_no_node():
    assert may_go(ASKED, None)
    fenced = node(**FENCED)
    assert may_go(replace(ASKED, node=""), fenced)
