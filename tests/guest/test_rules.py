"""The rules of the guest's drain, by the table that the agent's drain is held to as well."""

import pytest

from fencer.guest.evictions import Evictions
from fencer.guest.notes import CORDON, MARK, OUT_OF_SERVICE, own_node
from fencer.guest.rules import (
    RETRY_AT_MOST_S,
    Filters,
    Lot,
    Meaning,
    Pod,
    Reply,
    Step,
    after_boot,
    pod_of,
    read_reply,
)
from tests.drain_cases import ANSWERS, PODS, AnswerCase, PodCase

NOW_BOOT, LAST_BOOT = "b-2", "b-1"
OURS = '{"bootID":"b-1","by":"drain","schema":1,"since":"2026-11-20T10:00:00Z"}'


@pytest.mark.parametrize("case", PODS, ids=lambda case: case.name)
def test_what_becomes_of_a_pod(case: PodCase) -> None:
    filters = Filters(force=case.force, delete_emptydir_data=case.delete_emptydir_data)
    pod = pod_of(case.pod(), filters)
    assert pod is not None
    assert pod.lot.value == case.lot


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case.name)
def test_what_an_answer_means(case: AnswerCase) -> None:
    reply = read_reply(case.status, case.body, case.retry_after_s)
    assert reply.meaning.value == case.meaning
    assert case.says in reply.text
    asked_again = reply.meaning in (Meaning.BUDGET, Meaning.PASSING, Meaning.NAMESPACE)
    assert (reply.retry_s is not None) == asked_again
    if case.waits_s is not None:
        assert reply.retry_s is not None
        assert reply.retry_s >= case.waits_s


def test_a_server_that_asks_for_an_hour_is_asked_again_in_time() -> None:
    """A shutdown has two minutes."""
    assert read_reply(429, {}, 3600).retry_s == RETRY_AT_MOST_S


@pytest.mark.parametrize(
    "body", [None, [], {}, {"metadata": {"name": "a"}}, {"metadata": {"uid": 1}, "spec": 2}]
)
def test_what_is_no_pod_is_set_aside(body: object) -> None:
    assert pod_of(body, Filters()) is None


# -- the fold ---------------------------------------------------------------------------------------------


def _pod(name: str, lot: Lot = Lot.EVICT) -> Pod:
    return Pod(f"uid-{name}", "shop", name, lot)


def test_nothing_is_done_before_the_pods_were_seen() -> None:
    """An empty state is not an empty node."""
    state = Evictions()
    assert not state.done
    state.saw([])
    assert state.done


def test_an_accepted_pod_is_waited_for_and_not_asked_again() -> None:
    state, pod = Evictions(), _pod("a")
    state.saw([pod])
    assert state.due(0) == [pod]
    state.asked(pod)
    assert state.due(0) == []
    state.answered(pod, Reply(Meaning.GOING), 1)
    assert (state.due(99), state.next_s(), state.done) == ([], None, False)
    state.saw([])
    assert state.done
    assert state.gone == 1


def test_a_blocked_pod_is_asked_again_when_its_time_has_come() -> None:
    state, pod = Evictions(), _pod("a")
    state.saw([pod])
    state.asked(pod)
    assert state.answered(pod, Reply(Meaning.BUDGET, 3, "the budget web"), 10)
    assert (state.due(12.9), state.next_s(), state.due(13)) == ([], 13, [pod])
    assert state.left() == [(pod, "the budget web")]


def test_what_blocks_is_news_only_when_it_changes() -> None:
    """One line per pod that blocks, not one per try."""
    state, pod = Evictions(), _pod("a")
    state.saw([pod])
    told = [state.answered(pod, Reply(Meaning.BUDGET, 3, text), 0) for text in ("x", "x", "y", "y", "x")]
    assert told == [True, False, True, False, True]


def test_a_replacement_of_the_same_name_is_another_pod() -> None:
    """A StatefulSet's pod comes back under its name; only the UID tells."""
    state = Evictions()
    state.saw([Pod("uid-1", "shop", "db-0", Lot.EVICT)])
    state.answered(Pod("uid-1", "shop", "db-0", Lot.EVICT), Reply(Meaning.GOING), 0)
    other = Pod("uid-2", "shop", "db-0", Lot.EVICT)
    state.saw([other])
    assert state.due(0) == [other]
    assert state.gone == 1


def test_pods_that_stay_are_not_waited_for() -> None:
    state = Evictions()
    state.saw([_pod("a", Lot.DAEMON), _pod("b", Lot.MIRROR), _pod("c", Lot.FINISHED)])
    assert state.done
    assert len(state.kept) == 3


def test_only_refused_for_good_is_hopeless() -> None:
    """Waiting on would only delay the shutdown."""
    state, refused, going = Evictions(), _pod("a"), _pod("b")
    state.saw([refused, going])
    state.answered(refused, Reply(Meaning.NEVER, text="two budgets"), 0)
    assert not state.hopeless
    state.answered(going, Reply(Meaning.GOING), 0)
    assert not state.hopeless
    state.saw([refused])
    assert state.hopeless
    assert state.left() == [(refused, "two budgets (not asked again)")]


def test_the_longest_waiting_is_asked_first() -> None:
    """With more pods than may be asked at a time, none is left behind."""
    state, pods = Evictions(), [_pod(name) for name in "abc"]
    state.saw(pods)
    for wait_s, pod in zip((5, 1, 3), pods, strict=True):
        state.answered(pod, Reply(Meaning.BUDGET, wait_s, "x"), 0)
    assert [pod.name for pod in state.due(9)] == ["b", "c", "a"]


# -- after boot -------------------------------------------------------------------------------------------


def _node(**changes: object) -> dict[str, object]:
    said = {
        "note": OURS,
        "unschedulable": True,
        "manager": "fencer-guest",
        "boot": NOW_BOOT,
        "taints": [],
        "mark": None,
    }
    said.update(changes)
    notes = {CORDON: said["note"], MARK: said["mark"]}
    owner = {"manager": said["manager"], "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
    return {
        "metadata": {
            "name": "k8s-1",
            "annotations": {key: value for key, value in notes.items() if value is not None},
            "managedFields": [
                {"manager": "kubelet", "fieldsV1": {"f:status": {}}},
                *([owner] if said["manager"] else []),
            ],
        },
        "spec": {"unschedulable": said["unschedulable"], "taints": said["taints"]},
        "status": {"nodeInfo": {"bootID": said["boot"]}},
    }


@pytest.mark.parametrize(
    ("changes", "step", "says"),
    [
        ({}, Step.UNCORDON, "earlier boot"),
        ({"note": None}, Step.LEAVE, "somebody else"),
        ({"note": None, "manager": "kubectl-cordon"}, Step.LEAVE, "somebody else"),
        ({"manager": "kubectl-cordon"}, Step.LEAVE, "kubectl-cordon"),
        ({"manager": "fencer"}, Step.LEAVE, "not by the drain in this guest"),
        ({"manager": None}, Step.LEAVE, "somebody"),
        ({"note": OURS.replace("drain", "unfence")}, Step.LEAVE, "unfence"),
        ({"note": OURS.replace('"schema":1', '"schema":2')}, Step.LEAVE, "another version"),
        ({"note": "{"}, Step.LEAVE, "another version"),
        ({"note": OURS.replace(LAST_BOOT, NOW_BOOT)}, Step.LEAVE, "this very boot"),
        ({"boot": LAST_BOOT}, Step.WAIT, "not reported"),
        ({"boot": ""}, Step.WAIT, "not reported"),
        ({"taints": [{"key": OUT_OF_SERVICE, "effect": "NoExecute"}]}, Step.WAIT, OUT_OF_SERVICE),
        ({"taints": [{"key": OUT_OF_SERVICE, "effect": "NoSchedule"}]}, Step.WAIT, OUT_OF_SERVICE),
        ({"taints": [{"key": "node.kubernetes.io/unschedulable"}]}, Step.UNCORDON, ""),
        ({"mark": "{}"}, Step.WAIT, "mark"),
        ({"mark": "{}", "note": None}, Step.LEAVE, "somebody else"),
        ({"unschedulable": None}, Step.FORGET, "uncordoned by somebody else"),
        ({"unschedulable": None, "note": None}, Step.LEAVE, "not cordoned"),
        ({"unschedulable": None, "note": OURS.replace("drain", "unfence")}, Step.LEAVE, "not cordoned"),
    ],
)
def test_whose_cordon_is_taken_off_after_boot(changes: dict[str, object], step: Step, says: str) -> None:
    found, text = after_boot(own_node(_node(**changes)), NOW_BOOT, "fencer-guest")
    assert found is step
    assert says in text


def test_a_cordon_that_is_not_ours_alone_stays() -> None:
    """The record is sorted by time: whoever is first in it is not the last who set the field."""
    body = _node()
    record = body["metadata"]["managedFields"]  # type: ignore[index]
    record.append({"manager": "kubectl-cordon", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}})
    found, text = after_boot(own_node(body), NOW_BOOT, "fencer-guest")
    assert found is Step.LEAVE
    assert "by fencer-guest and kubectl-cordon" in text
