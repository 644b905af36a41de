"""What is asked by requests and reservations, summed up for one node."""

from dataclasses import replace

import pytest

from fencer.core.policy import Policy, Remediation
from fencer.core.requests import NO_CALL, Call, Progress, Request, Strategy, call_for, counting

ASKED = Request("medik8s", "k8s-2", "uid-1", "7", "k8s-2", asked_by="NodeHealthCheck workers")
SECOND = replace(ASKED, namespace="capi", name="machine-2", uid="uid-2", asked_by="")
STOPS = replace(SECOND, strategy=Strategy.STOP)
TOLD = "FencerRemediation medik8s/k8s-2 (NodeHealthCheck workers)"
NO, YES, AT_WORK = (Progress(succeeded, "Because") for succeeded in (False, True, None))
GIVEN_UP = replace(ASKED, given_up=True)


def test_a_request_is_told_with_who_asks_if_that_is_known():
    assert (str(ASKED), str(SECOND)) == (TOLD, "FencerRemediation capi/machine-2")


@pytest.mark.parametrize(
    ("changes", "live"),
    [
        ({}, True),
        ({"adopted": True}, True),
        ({"told": NO}, True),
        ({"deleting": True}, False),
        ({"given_up": True}, False),
        ({"problem": "its Machine has no node", "waits": True}, False),
    ],
    ids=str,
)
def test_somebody_waits_for_it_until_it_is_deleted_or_given_up_or_cannot_be_honoured(changes, live):
    assert replace(ASKED, **changes).live is live


def test_a_request_that_is_understood_waits_for_nothing():
    assert not ASKED.waits


@pytest.mark.parametrize(("told", "refused"), [(None, False), (AT_WORK, False), (YES, False), (NO, True)])
def test_only_a_no_refuses(told, refused):
    assert replace(ASKED, told=told).refused is refused


@pytest.mark.parametrize(("told", "final"), [(AT_WORK, False), (YES, True), (NO, True)])
def test_a_yes_and_a_no_are_final(told, final):
    assert told.final is final


def test_in_other_words_the_same_is_no_other_progress():
    """Else it would be written in every pass: a message tells ages."""
    assert replace(AT_WORK, message="silent for 41 s") == replace(AT_WORK, message="silent for 42 s")
    assert replace(AT_WORK, reason="Other") != AT_WORK


@pytest.mark.parametrize(
    ("requests", "reserved_by", "call"),
    [
        ((), "", NO_CALL),
        ((ASKED,), "", Call(Strategy.PROVE, TOLD)),
        ((STOPS,), "", Call(Strategy.STOP, str(STOPS))),
        ((ASKED, STOPS), "", Call(Strategy.STOP, f"{TOLD}, {STOPS}")),
        ((STOPS, ASKED), "", Call(Strategy.STOP, f"{STOPS}, {TOLD}")),
        ((replace(ASKED, told=NO),), "", Call(Strategy.PROVE, TOLD)),
        ((replace(STOPS, told=NO),), "", Call(Strategy.PROVE, str(STOPS))),
        ((replace(STOPS, told=AT_WORK),), "", Call(Strategy.STOP, str(STOPS))),
        ((replace(ASKED, deleting=True),), "", NO_CALL),
        ((replace(ASKED, problem="odd"),), "", NO_CALL),
        ((GIVEN_UP,), "", Call(given_up=TOLD)),
        ((replace(GIVEN_UP, strategy=Strategy.STOP),), "", Call(given_up=TOLD)),
        ((replace(GIVEN_UP, deleting=True),), "", NO_CALL),
        ((replace(GIVEN_UP, deleting=True),), "nhc", Call(reserved_by="nhc")),
        ((replace(ASKED, told=NO, deleting=True),), "nhc", Call(reserved_by="nhc")),
        ((replace(STOPS, told=YES),), "", Call(Strategy.PROVE, str(STOPS))),
        ((GIVEN_UP, SECOND), "", Call(Strategy.PROVE, str(SECOND), TOLD)),
        ((), "nhc", Call(reserved_by="nhc")),
        ((ASKED,), "nhc", Call(Strategy.PROVE, TOLD, reserved_by="nhc")),
        ((replace(ASKED, deleting=True),), "nhc", NO_CALL),
    ],
    ids=[
        "nothing",
        "proof",
        "stop",
        "the farthest of two",
        "in any order",
        "told no: still asked for",
        "told no: but not for power",
        "at work: for power",
        "deleted",
        "not to be honoured",
        "given up",
        "given up: no power",
        "given up and deleted",
        "given up and deleted, and another remedy may be at work",
        "told no and deleted, and another remedy may be at work",
        "done: it asks for no power any more",
        "given up, and asked for anew",
        "reserved",
        "reserved, and asked for",
        "reserved, until what was asked is gone",
    ],
)
def test_all_that_is_asked_amounts_to_one_call(requests, reserved_by, call):
    assert call_for(requests, reserved_by) == call


@pytest.mark.parametrize(
    ("most", "unread_s", "strategy"),
    [
        (Remediation.STOP, 0.0, Strategy.STOP),
        (Remediation.STOP, 10.0, Strategy.STOP),
        (Remediation.STOP, 10.1, Strategy.PROVE),
        (Remediation.STOP, 60.0, Strategy.PROVE),
        (Remediation.STOP, 60.1, None),
        (Remediation.PROVE, 0.0, Strategy.PROVE),
    ],
)
def test_a_stop_rests_on_what_was_read_now_and_all_else_on_what_was_read_a_minute_ago(
    most, unread_s, strategy
):
    policy = Policy(remediation=most)
    assert counting(Call(Strategy.STOP, TOLD, reserved_by="nhc"), policy, unread_s).strategy is strategy
    reserved = Call(reserved_by="nhc")
    assert counting(reserved, policy, unread_s) == (NO_CALL if strategy is None else reserved)
