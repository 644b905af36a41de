"""What other controllers ask, as an agent knows it: read in every pass, kept while it cannot be read."""

from dataclasses import replace

import pytest

from fencer.core.policy import Remediation
from fencer.core.requests import NO_CALL, REMEMBERED_S, Asked, Call, Strategy
from fencer.errors import ClusterDenied, ClusterUnreachable, FencerError
from fencer.runtime.calls import FRESH_S, TOLD_AFTER_S, Calls
from fencer.simulation.assembly import Shape
from tests.core.test_requests import ASKED, STOPS, TOLD
from tests.runtime.stagehand import ARMED, Stagehand

UNREAD = "what other controllers ask of fencer cannot be read: "
AGAIN = ("what other controllers ask of fencer can be read again", False)


class Port:
    """The `Requests` port, answering what a test lets it answer."""

    def __init__(self, answer):
        self.answer, self.asked_count = answer, 0

    def asked(self):
        self.asked_count += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Known:
    """Calls over such a port, and whom they tell of trouble."""

    def __init__(self, answer=None, remediation=Remediation.STOP, *, heard=True, shape=Shape()):  # noqa: B008 - frozen
        stage = Stagehand(shape=shape)
        policy = replace(ARMED, remediation=remediation)
        self.port, self.clock, self.notes = Port(answer), stage.simulation.clock, stage.notes
        world = replace(stage.world, requests=self.port if heard else None)
        self.calls = Calls(world, policy)

    def look(self, *answer):
        """Ask as every pass does, beside its sweeps; the port answers as before, or this."""
        [self.port.answer] = answer or [self.port.answer]
        answers = {}
        for worker, question in self.calls.questions().items():
            try:
                answers[worker] = question()
            except FencerError as error:
                answers[worker] = error
        self.calls.heard(answers)
        self.calls.tell()

    @property
    def said(self):
        return self.notes.said_


def test_before_anything_was_read_nobody_asks():
    known = Known(Asked((ASKED,)))
    assert (known.calls.requests, known.calls.named, known.calls.of("k8s-2")) == ((), frozenset(), NO_CALL)


def test_what_is_asked_is_known_by_node():
    known = Known(Asked((ASKED, replace(ASKED, uid="uid-3", node="")), {"k8s-1": "nhc"}))
    known.look()
    assert known.calls.requests == known.port.answer.requests
    assert known.calls.named == {"k8s-1", "k8s-2"}
    assert known.calls.of("k8s-1") == Call(reserved_by="nhc")
    assert known.calls.of("k8s-2") == Call(Strategy.PROVE, TOLD)
    assert known.calls.of("k8s-3") == NO_CALL


def test_a_node_for_which_nobody_waits_any_more_is_still_looked_at():
    """The request waits for its release."""
    known = Known(Asked((replace(ASKED, deleting=True),)))
    known.look()
    assert (known.calls.named, known.calls.of("k8s-2")) == ({"k8s-2"}, NO_CALL)


@pytest.mark.parametrize(
    "error", [ClusterUnreachable("no API server answers"), ClusterDenied("may not list")]
)
def test_while_it_cannot_be_read_what_was_read_last_counts(error):
    known = Known(Asked((ASKED,)))
    known.look()
    known.look(error)
    assert known.calls.of("k8s-2").by == TOLD
    known.look(Asked())
    assert known.calls.of("k8s-2") == NO_CALL


def test_but_not_for_ever_and_for_a_power_order_only_what_was_read_now():
    known = Known(Asked((STOPS,), {"k8s-1": "nhc"}))
    known.look()
    known.clock.advance(ARMED.evidence_max_age_s + 0.1)
    known.look(ClusterUnreachable("no API server answers"))
    assert known.calls.of("k8s-2").strategy is Strategy.PROVE
    assert known.calls.of("k8s-1") == Call(reserved_by="nhc")
    known.clock.advance(REMEMBERED_S)
    assert known.calls.of("k8s-2") == known.calls.of("k8s-1") == NO_CALL


def test_a_late_answer_counts_from_when_it_was_asked_for():
    known = Known(Asked((STOPS,)))
    [(worker, question)] = known.calls.questions().items()
    answer = question()
    known.clock.advance(ARMED.evidence_max_age_s + 0.1)
    known.calls.heard({worker: answer})
    assert known.calls.of("k8s-2").strategy is Strategy.PROVE


def test_that_is_told_once_and_once_when_it_works_again():
    known = Known(Asked())
    known.look()
    assert known.said == []
    for _ in range(3):
        known.look(ClusterDenied("may not list"))
    assert known.said == [], "a slow answer is none of people's business"
    known.clock.advance(TOLD_AFTER_S)
    for _ in range(3):
        known.look(ClusterDenied("may not list"))
    assert known.said == [(f"{UNREAD}may not list", True)]
    for _ in range(3):
        known.look(Asked())
    assert known.said == [(f"{UNREAD}may not list", True), AGAIN]


def test_so_is_one_that_cannot_be_read_and_the_others_count():
    known = Known()
    for _ in range(3):
        known.look(Asked((ASKED,), malformed=("medik8s/k8s-9: no UID",)))
        known.clock.advance(TOLD_AFTER_S)
    assert known.said == [("medik8s/k8s-9: no UID", True)]
    assert known.calls.of("k8s-2").by == TOLD
    known.look(Asked((ASKED,)))
    assert known.said[1:] == [AGAIN]


def test_once_the_kind_is_gone_nobody_asks_and_nothing_is_told():
    known = Known(Asked((ASKED,), {"k8s-1": "nhc"}))
    known.look()
    known.look(None)
    assert (known.calls.requests, known.calls.named, known.said) == ((), frozenset(), [])


@pytest.mark.parametrize(
    "known", [Known(Asked((ASKED,)), Remediation.IGNORE), Known(heard=False)], ids=["ignored", "no port"]
)
def test_whom_nobody_is_to_hear_is_not_even_read(known):
    known.look()
    known.calls.look_again("k8s-9")
    assert (known.port.asked_count, known.calls.of("k8s-2")) == (0, NO_CALL)


@pytest.mark.parametrize(("later_s", "times"), [(0.0, 1), (FRESH_S - 0.1, 1), (FRESH_S, 2), (60.0, 2)])
def test_before_something_is_done_it_is_read_again_but_not_for_each_node(later_s, times):
    known = Known(Asked())
    known.look()
    known.clock.advance(later_s)
    for _ in range(3):
        known.calls.look_again("k8s-9")
    assert known.port.asked_count == times


def test_what_was_never_read_is_read_before_something_is_done():
    """The first pass may not have waited for the answer."""
    known = Known(Asked((ASKED,)))
    known.calls.look_again("k8s-9")
    assert known.calls.of("k8s-2").by == TOLD


def test_a_slow_answer_that_is_on_its_way_is_taken_up_and_not_asked_for_again():
    """It takes longer than fencer waits: a new request before each action would never be answered in time."""
    known = Known(Asked((ASKED,)), shape=Shape(api_s=3.0))
    for _ in range(2):
        known.calls.look_again("k8s-9")
        known.clock.advance(FRESH_S)
    assert known.calls.of("k8s-2").by == TOLD


def test_where_the_cluster_does_not_know_the_kind_it_is_not_read_again():
    known = Known()
    known.look()
    known.clock.advance(60.0)
    known.calls.look_again("k8s-9")
    assert known.port.asked_count == 1


@pytest.mark.parametrize(
    ("most", "strategy"), [(Remediation.STOP, Strategy.STOP), (Remediation.PROVE, Strategy.PROVE)]
)
def test_no_more_is_done_than_the_policy_lets_anybody_ask_for(most, strategy):
    known = Known(Asked((STOPS,), {"k8s-2": "nhc"}), most)
    known.look()
    assert known.calls.of("k8s-2") == Call(strategy, str(STOPS), reserved_by="nhc")
