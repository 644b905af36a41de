"""What an answer to an eviction means, by one table for the agent and the part inside the guest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fencer.cluster import eviction
from fencer.evicting.answers import RETRY_AT_MOST_S, Answer, Meaning, grace_for, unanswered, understand
from fencer.guest import pods
from tests.drain_cases import ANSWERS, AnswerCase
from tests.evicting.build import pod


def by_agent(case: AnswerCase) -> Answer:
    header = None if case.retry_after_s is None else str(case.retry_after_s)
    return eviction.answer_of(case.status, case.body, header)


def in_guest(case: AnswerCase) -> Answer:
    return pods.answer_of(case.status, case.body, case.retry_after_s)


@pytest.mark.parametrize("read", [by_agent, in_guest], ids=["by the agent", "in the guest"])
@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case.name)
def test_what_an_answer_means(case: AnswerCase, read: Callable[[AnswerCase], Answer]) -> None:
    reply = understand(read(case))
    assert reply.meaning.value == case.meaning
    assert case.says in reply.text
    asked_again = reply.meaning not in {Meaning.GOING, Meaning.NEVER}
    assert (reply.retry_s is not None) == asked_again
    if case.waits_s is not None:
        assert reply.retry_s is not None
        assert reply.retry_s >= case.waits_s


def test_the_budget_in_the_way_is_named_where_the_server_names_it() -> None:
    named = next(case for case in ANSWERS if case.name == "a budget, without Retry-After")
    assert understand(eviction.answer_of(named.status, named.body, None)).budget == "web"
    silent = next(case for case in ANSWERS if case.name == "a budget, by its message alone")
    assert understand(eviction.answer_of(silent.status, silent.body, None)).budget == ""


def test_each_meaning_is_that_of_some_answer() -> None:
    assert {case.meaning for case in ANSWERS} == {meaning.value for meaning in Meaning}


CHANGED_MEANING = ("FieldValueInvalid", "spec.nodeName")
BY_A_BUDGET = ("DisruptionBudget", "The disruption budget web needs 2 healthy pods")
ENDING = ("NamespaceTerminating", "shop is being terminated")


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        (Answer(299), Meaning.GOING),
        (Answer(403, "no", (CHANGED_MEANING,)), Meaning.NEVER),
        (Answer(422, "can only evict pods with spec.nodeName set to itself"), Meaning.NEVER),
        (Answer(403, "no", (CHANGED_MEANING, ENDING)), Meaning.NAMESPACE),
        (Answer(500, "no", (ENDING,)), Meaning.PASSING),
        (Answer(408), Meaning.PASSING),
        (Answer(499), Meaning.NEVER),
        (Answer(409, "more than one PodDisruptionBudget"), Meaning.PASSING),
        (Answer(429, "Cannot evict pod", (BY_A_BUDGET,)), Meaning.BUDGET),
        (Answer(429, "slow down", (CHANGED_MEANING,)), Meaning.PASSING),
    ],
    ids=lambda value: f"{value.status} {value.message}" if isinstance(value, Answer) else value.value,
)
def test_neither_a_status_nor_a_cause_means_anything_without_the_other(answer, meaning) -> None:
    assert understand(answer).meaning is meaning


@pytest.mark.parametrize(
    ("answer", "retry_s"),
    [
        (Answer(429, "", (BY_A_BUDGET,)), 1.0),
        (Answer(429), 2.0),
        (Answer(403, "", (ENDING,)), 5.0),
        (Answer(429, "", (BY_A_BUDGET,), retry_after_s=31.0), 30.0),
        (Answer(503, retry_after_s=29.0), 29.0),
    ],
    ids=["a budget", "too much at once", "a namespace", "asked for longer", "asked for so long"],
)
def test_how_soon_it_is_asked_again(answer, retry_s) -> None:
    """A budget is asked about by one pod at a time, so more often than kubectl asks for each, every 5 s."""
    assert understand(answer).retry_s == retry_s


def test_of_several_causes_the_budgets_is_told() -> None:
    reply = understand(Answer(429, "Cannot evict pod", (CHANGED_MEANING, BY_A_BUDGET)))
    assert (reply.budget, reply.text) == ("web", BY_A_BUDGET[1])


def test_a_server_that_asks_for_an_hour_is_asked_again_in_time() -> None:
    answer = eviction.answer_of(429, {}, "3600")
    assert understand(answer).retry_s == RETRY_AT_MOST_S
    assert understand(answer, 15.0).retry_s == 15.0


def test_no_answer_is_asked_again_because_nobody_knows_whether_it_was_done() -> None:
    reply = unanswered("no answer within 20 s")
    assert (reply.meaning, reply.retry_s is not None, reply.text) == (
        Meaning.PASSING,
        True,
        "no answer within 20 s",
    )


@pytest.mark.parametrize(
    ("own_s", "asked_s", "sent_s"),
    [
        (30.0, None, None),
        (30.0, 5.0, 5.0),
        (1.0, None, None),
        (0.0, None, 1.0),
        (0.0, 5.0, 5.0),
        (30.0, 0.0, 1.0),
    ],
)
def test_no_pod_is_deleted_before_its_container_has_ended(own_s, asked_s, sent_s) -> None:
    """With 0 s, by whomever, the API forgets it at once, and its replacement starts beside it."""
    assert grace_for(replace(pod("db-0"), grace_s=own_s), asked_s) == sent_s
