"""The rules of the agent's drain, by the table that the guest's drain is held to as well."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.cluster import parse
from fencer.cluster.eviction import answer_of
from fencer.core.drain import (
    Filters,
    Lot,
    Next,
    cordon_for,
    cordon_stands,
    cordoned_by_drain,
    lot,
    next_step,
    of_lot,
    passing_cordon,
)
from fencer.core.evictions import (
    RETRY_AT_MOST_S,
    Answer,
    Evictions,
    Meaning,
    Reply,
    grace_for,
    unanswered,
    understand,
)
from fencer.core.model import Cordon, CordonNode, PodView, Unreadable
from tests.core.build import BOOT, NOW_UTC, VOLUME, node
from tests.drain_cases import ANSWERS, PODS, AnswerCase, PodCase

OURS = Cordon("drain", BOOT, NOW_UTC)
HOOKS = Cordon("hook", BOOT, NOW_UTC)
SETTLING = Cordon("unfence", BOOT, NOW_UTC)
NO_FILTERS = Filters()
GOING, BLOCKED = Reply(Meaning.GOING), Reply(Meaning.BUDGET, 2.0, "the budget web", "web")
NEVER = Reply(Meaning.NEVER, text="two budgets")


@pytest.mark.parametrize("case", PODS, ids=lambda case: case.name)
def test_what_becomes_of_a_pod(case: PodCase) -> None:
    body = case.pod()
    body["metadata"]["resourceVersion"] = "1"
    filters = Filters(force=case.force, delete_emptydir_data=case.delete_emptydir_data)
    assert lot(parse.pod(body), filters).value == case.lot


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case.name)
def test_what_an_answer_means(case: AnswerCase) -> None:
    header = None if case.retry_after_s is None else str(case.retry_after_s)
    reply = understand(answer_of(case.status, case.body, header))
    assert reply.meaning.value == case.meaning
    assert case.says in reply.text
    asked_again = reply.meaning not in {Meaning.GOING, Meaning.NEVER}
    assert (reply.retry_s is not None) == asked_again
    if case.waits_s is not None:
        assert reply.retry_s is not None
        assert reply.retry_s >= case.waits_s


def test_the_budget_in_the_way_is_named_where_the_server_names_it() -> None:
    named = next(case for case in ANSWERS if case.name == "a budget, without Retry-After")
    assert understand(answer_of(named.status, named.body, None)).budget == "web"
    silent = next(case for case in ANSWERS if case.name == "a budget, by its message alone")
    assert understand(answer_of(silent.status, silent.body, None)).budget == ""


CHANGED_MEANING = ("FieldValueInvalid", "spec.nodeName")
BY_A_BUDGET = ("DisruptionBudget", "The disruption budget web needs 2 healthy pods")
ENDING = ("NamespaceTerminating", "shop is being terminated")


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        (Answer(299), Meaning.GOING),
        (Answer(403, "no", (CHANGED_MEANING,)), Meaning.NEVER),
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
    assert understand(answer_of(429, {}, "3600")).retry_s == RETRY_AT_MOST_S


def test_no_answer_is_asked_again_because_nobody_knows_whether_it_was_done() -> None:
    reply = unanswered("no answer within 20 s")
    assert (reply.meaning, reply.retry_s is not None, reply.text) == (
        Meaning.PASSING,
        True,
        "no answer within 20 s",
    )


# -- whose cordon it is -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, CordonNode(OURS)),
        ({"cordon": OURS}, CordonNode(OURS)),
        ({"unschedulable": True}, None),
        ({"unschedulable": True, "cordon": OURS, "cordoner": "fencer"}, None),
        ({"unschedulable": True, "cordon": OURS, "cordoner": "kubectl-cordon"}, None),
        ({"unschedulable": True, "cordon": SETTLING, "cordoner": "fencer"}, CordonNode(OURS)),
        ({"unschedulable": True, "cordon": SETTLING, "cordoner": "kubectl-cordon"}, None),
        ({"cordon": Unreadable("schema 2")}, CordonNode(OURS)),
        ({"unschedulable": True, "cordon": Unreadable("schema 2"), "cordoner": "fencer"}, None),
    ],
    ids=[
        "open",
        "open, an old note",
        "cordoned by an admin",
        "cordoned by an earlier drain",
        "an earlier drain's note, and an admin cordoned since",
        "settling after a fence: taken over",
        "settled, and an admin cordoned since",
        "a newer fencer's note, about no cordon",
        "cordoned, with a newer fencer's note",
    ],
)
def test_how_a_node_is_cordoned(facts, expected) -> None:
    assert cordon_for(node(**facts), NOW_UTC) == expected


@pytest.mark.parametrize(
    ("cordon", "by", "expected"),
    [
        (None, "hook", HOOKS),
        (SETTLING, "hook", HOOKS),
        (HOOKS, "hook", HOOKS),
        (HOOKS, "drain", OURS),
        (OURS, "hook", None),
    ],
)
def test_a_persons_drain_outlasts_a_hooks(cordon, by, expected) -> None:
    """The agent takes a hook's cordon off by itself, so it must not stand for somebody's maintenance."""
    cordoned = {} if cordon is None else {"unschedulable": True, "cordon": cordon, "cordoner": "fencer"}
    found = cordon_for(node(**cordoned), NOW_UTC, by)
    assert found == (None if expected is None else CordonNode(expected))


def test_a_drain_that_spares_waits_for_nothing_of_what_it_leaves() -> None:
    bare, local = pod("bare", controller="", claims=("data",)), pod("cache", local_data=True)
    filters = Filters(spare=True)
    state = Evictions()
    state.saw((), (), ())
    assert of_lot([bare, local], filters, filters.forbidden) == ()
    assert of_lot([bare, local], NO_FILTERS, NO_FILTERS.forbidden) == (bare, local)
    logs = pod("logs", controller="DaemonSet/logs", claims=("logs",))
    for one, left in ((filters, [bare, local]), (NO_FILTERS, [])):
        staying = of_lot([bare, local], one, one.staying)
        assert list(staying) == left
        after = next_step(state, staying, [VOLUME], 0.0)
        assert after is (Next.DONE if left else Next.WAIT_FOR_VOLUMES)
    assert next_step(state, [logs], [VOLUME], 0.0) is Next.DONE


MINE = replace(OURS, run="a1")


@pytest.mark.parametrize(
    ("facts", "mine"),
    [
        ({"cordon": MINE}, True),
        ({"cordon": replace(OURS, run="b2")}, False),
        ({"cordon": OURS}, False),
        ({"cordon": MINE, "cordoner": "kubectl-cordon"}, False),
        ({"cordon": MINE, "unschedulable": False}, False),
    ],
    ids=["mine", "another's of the same second", "an older fencer's", "an admin's since", "taken off"],
)
def test_only_the_very_cordon_that_a_drain_set_is_its_own(facts, mine) -> None:
    there = node(**{"unschedulable": True, "cordoner": "fencer", **facts})
    assert cordon_stands(there, MINE) is mine
    assert not cordon_stands(there, OURS), "one without a name is nobody's"


def test_a_drain_notes_its_name_and_what_it_took_over() -> None:
    assert cordon_for(node(), NOW_UTC, "drain", "a1") == CordonNode(MINE)
    for cordon, passing in ((SETTLING, SETTLING), (HOOKS, HOOKS), (OURS, None), (None, None)):
        assert passing_cordon(node(unschedulable=True, cordon=cordon, cordoner="fencer")) == passing
    assert passing_cordon(node(unschedulable=True, cordon=HOOKS, cordoner="kubectl-cordon")) is None


@pytest.mark.parametrize(
    ("facts", "ours"),
    [
        ({"unschedulable": True, "cordon": OURS, "cordoner": "fencer"}, True),
        ({"unschedulable": True, "cordon": OURS, "cordoner": "fencer-guest"}, True),
        ({"unschedulable": True, "cordon": HOOKS, "cordoner": "fencer"}, True),
        ({"unschedulable": True, "cordon": OURS, "cordoner": "kubectl-cordon"}, False),
        ({"unschedulable": True, "cordon": OURS}, False),
        ({"unschedulable": False, "cordon": OURS, "cordoner": "fencer"}, False),
        ({"unschedulable": True, "cordon": SETTLING, "cordoner": "fencer"}, False),
        ({"unschedulable": True, "cordon": Unreadable("schema 2"), "cordoner": "fencer"}, False),
        ({"unschedulable": True}, False),
    ],
)
def test_a_cordon_is_ours_only_if_a_drain_set_it_and_nobody_cordoned_since(facts, ours) -> None:
    assert cordoned_by_drain(node(**facts)) is ours


# -- the fold -----------------------------------------------------------------------------------------------


def pod(name: str, **traits) -> PodView:
    facts = {"controller": "ReplicaSet/web", **traits}
    return PodView("shop", name, f"uid-{name}", "1", "Running", **facts)


def seen(*pods: PodView, leaving=(), barred=()) -> Evictions:
    state = Evictions()
    state.saw(pods, leaving, barred)
    return state


def test_nothing_is_done_before_the_pods_were_seen() -> None:
    state = Evictions()
    assert not state.done
    state.saw([], [], [])
    assert state.done


def test_a_pod_that_is_listed_on_is_asked_again_though_the_server_said_it_is_not_there() -> None:
    web = pod("a")
    state = seen(web)
    assert not state.answered(web, understand(Answer(404)), 10)
    assert (state.due(10.9), state.due(12), state.hopeless) == ([], [web], False)
    state.saw([], [], [])
    assert (state.due(99), state.next_s(), state.done) == ([], None, True)


def test_an_accepted_pod_is_waited_for_and_not_asked_again() -> None:
    web = pod("a")
    state = seen(web)
    assert state.due(0) == [web]
    assert not state.answered(web, GOING, 0)
    assert (state.due(99), state.next_s(), state.done, state.hopeless) == ([], None, False, False)
    assert state.left() == [(web, "still ending")]
    state.saw([], [replace(web, terminating=True)], [])
    assert not state.done
    state.saw([], [], [])
    assert (state.done, state.gone) == (True, [replace(web, terminating=True)])


def test_a_blocked_pod_is_asked_again_when_its_time_has_come_and_told_once() -> None:
    web = pod("a")
    state = seen(web)
    assert state.answered(web, BLOCKED, 10)
    assert (state.due(11.9), state.next_s(), state.due(12)) == ([], 12, [web])
    assert not state.answered(web, BLOCKED, 12)
    assert state.left() == [(web, "the budget web")]


def test_behind_one_budget_one_pod_asks_at_a_time_and_they_take_turns() -> None:
    first, second, free = pod("a"), pod("b", controller="Job/b"), pod("c", controller="Job/c")
    state = seen(first, second, free)
    assert state.due(0) == [first, second, free]
    for web in (first, second):
        state.answered(web, BLOCKED, 0)
    state.answered(free, GOING, 0)
    assert state.due(2) == [first]
    state.answered(first, BLOCKED, 2)
    assert (state.due(3.9), state.due(4)) == ([], [second])


def test_a_budget_that_let_one_go_is_asked_for_the_next_at_once() -> None:
    first, second = pod("a"), pod("b")
    state = seen(first, second)
    for web in (first, second):
        state.answered(web, BLOCKED, 0)
    state.answered(first, GOING, 2)
    assert state.due(2) == [second]


def test_each_that_may_go_doubles_how_many_are_asked_for_and_a_refusal_begins_anew() -> None:
    pods = [pod(name) for name in "abcdefghijklmnopqrstuvwxyz"]
    state = seen(*pods)
    state.answered(pods[0], BLOCKED, 0)
    assert state.left()[1] == (pods[1], "waits its turn behind the budget web")
    assert state.due(1) == [], "the others of its controller are taken to be behind the same budget"
    asked, now_s = [], 2.0
    while len(asked) < 5:
        due = state.due(now_s)
        asked.append(len(due))
        for one in due:
            state.answered(one, GOING, now_s)
    assert asked == [1, 2, 8, 8, 7]
    state = seen(*pods)
    state.answered(pods[0], BLOCKED, 0)
    state.answered(pods[1], GOING, 2)
    state.answered(pods[2], BLOCKED, 2)
    assert len(state.due(4)) == 1


def test_once_a_budget_lets_one_go_the_others_may_try_at_once_whatever_they_were_told_before() -> None:
    pods = [pod(name) for name in "abc"]
    state = seen(*pods)
    state.answered(pods[0], BLOCKED, 0)
    state.answered(pods[1], GOING, 2)
    assert state.due(2) == [pods[2], pods[0]]
    state.answered(pods[0], BLOCKED, 2)
    assert state.due(2.5) == []
    state.answered(pods[2], GOING, 2.5)
    assert state.due(2.5) == [pods[0]]


def test_the_longest_waiting_is_asked_first_and_otherwise_the_first_by_name() -> None:
    pods = [pod(name, controller=f"Job/{name}") for name in "abcdefghijklmnopqrstuvwxyz"]
    state = seen(*pods)
    assert (state.next_s(), state.due(0)) == (0, pods)
    state = seen(*pods[:2])
    state.answered(pods[0], unanswered("late"), 3)
    state.answered(pods[1], unanswered("late"), 1)
    assert (state.next_s(), state.due(5)) == (3, [pods[1], pods[0]])


def test_a_pod_that_may_go_at_last_or_was_deleted_meanwhile_is_only_waited_for() -> None:
    web, shop = pod("a"), pod("b", controller="Job/b")
    state = seen(web, shop)
    for one in (web, shop):
        state.answered(one, BLOCKED, 0)
    state.answered(web, GOING, 2)
    state.saw([web], [shop], [])
    assert state.left() == [(web, "still ending"), (shop, "waits its turn behind the budget web")]


def test_a_pod_without_a_controller_is_like_no_other() -> None:
    bare, other = pod("a", controller=""), pod("b", controller="")
    state = seen(bare, other)
    state.answered(bare, BLOCKED, 0)
    assert state.due(0) == [other]


def test_a_pod_that_waits_behind_one_budget_is_not_taken_to_be_behind_the_next() -> None:
    pods = [pod(name) for name in "abc"]
    state = seen(*pods)
    state.answered(pods[0], BLOCKED, 0)
    state.answered(pods[1], replace(BLOCKED, budget="other"), 2)
    assert state.left()[2] == (pods[2], "waits its turn behind the budget web")


def test_while_a_pod_may_still_be_asked_for_there_is_hope() -> None:
    web = pod("a")
    state = seen(web)
    state.answered(web, BLOCKED, 0)
    assert not state.hopeless


def test_a_pod_of_another_controller_does_not_wait_for_a_budget_that_may_not_be_its_own() -> None:
    web, shop, bare = pod("a"), pod("b", controller="Job/b"), pod("c", controller="")
    abroad = replace(pod("d"), namespace="elsewhere")
    state = seen(web, shop, bare, abroad)
    state.answered(web, BLOCKED, 0)
    assert state.due(0) == [abroad, shop, bare]


def test_what_one_budget_does_is_nothing_to_the_pods_behind_another() -> None:
    web, shop = pod("a"), pod("b", controller="ReplicaSet/shop")
    state = seen(web, shop)
    state.answered(web, BLOCKED, 0)
    state.answered(shop, replace(BLOCKED, budget="shop", retry_s=5.0), 0)
    state.answered(web, BLOCKED, 4)
    assert state.due(5) == [shop]
    state.answered(shop, GOING, 5)
    assert state.due(5.5) == []
    assert state.due(6) == [web]


def test_a_pod_that_is_refused_for_good_is_not_asked_again_and_the_others_go_on() -> None:
    stuck, web = pod("a"), pod("b")
    state = seen(stuck, web)
    assert state.answered(stuck, NEVER, 0)
    assert not state.hopeless
    state.saw([stuck], [], [])
    assert state.hopeless
    assert (state.due(99), state.next_s()) == ([], None)
    assert state.left() == [(stuck, "two budgets (not asked again)")]


def test_a_pod_that_came_meanwhile_and_may_not_be_evicted_is_never_asked_for() -> None:
    bare = pod("a", controller="")
    state = seen(barred=[bare])
    assert (state.due(99), state.hopeless) == ([], True)
    assert "no option given" in state.left()[0][1]


def test_another_pod_of_the_same_name_is_another_pod() -> None:
    old, new = pod("a"), replace(pod("a"), uid="uid-new")
    state = seen(old)
    state.answered(old, NEVER, 0)
    state.saw([new], [], [])
    assert (state.due(0), state.gone, state.left()) == ([new], [old], [(new, "still ending")])


REPLIES = st.sampled_from([GOING, BLOCKED, NEVER, replace(BLOCKED, budget=""), unanswered("late")])


@given(st.lists(st.tuples(st.integers(0, 3), REPLIES, st.floats(0.1, 10)), max_size=30))
def test_every_pod_is_asked_for_until_it_goes_or_is_refused_for_good(story) -> None:
    """However the answers fall: none is forgotten, and one that was accepted is never asked for again."""
    pods = [pod(name) for name in "abcd"]
    state, now_s, over = seen(*pods), 0.0, set()
    for number, reply, wait_s in story:
        now_s += wait_s
        due = state.due(now_s)
        assert not over & {one.uid for one in due}
        if due:
            asked = due[number % len(due)]
            state.answered(asked, reply, now_s)
            if reply.retry_s is None:
                over.add(asked.uid)
    asked_later = state.due(now_s + 60)
    open_uids = {one.uid for one in pods} - over
    assert bool(asked_later) == bool(open_uids)


# -- how long they may take to end -------------------------------------------------------------------------


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


# -- what comes next ----------------------------------------------------------------------------------------


def test_a_drain_evicts_waits_for_pods_then_for_volumes_and_is_done() -> None:
    web, cni = pod("a"), pod("cni", controller="DaemonSet/cni")
    state = seen(web)
    assert next_step(state, [cni], [VOLUME], 0) is Next.EVICT
    state.answered(web, GOING, 0)
    assert next_step(state, [cni], [VOLUME], 0) is Next.WAIT_FOR_PODS
    state.saw([], [], [])
    assert next_step(state, [cni], [VOLUME], 0) is Next.WAIT_FOR_VOLUMES
    assert next_step(state, [cni], [], 0) is Next.DONE


def test_volumes_of_pods_that_stay_are_not_waited_for() -> None:
    logs = pod("logs", controller="DaemonSet/logs", claims=("logs",))
    over = replace(pod("over", claims=("over",)), phase="Succeeded")
    state = seen()
    assert next_step(state, [logs, over], [VOLUME], 0) is Next.DONE
    assert next_step(state, [logs, over], [VOLUME, VOLUME], 0) is Next.WAIT_FOR_VOLUMES


def test_a_drain_that_only_refused_pods_hold_up_is_hopeless() -> None:
    web = pod("a")
    state = seen(web)
    state.answered(web, NEVER, 0)
    assert next_step(state, [], [], 0) is Next.HOPELESS
    assert lot(web, NO_FILTERS) is Lot.EVICT
