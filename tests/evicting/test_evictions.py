"""The evictions of one node: who is asked for when, and who stands in the way."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fencer.core.model import PodView
from fencer.evicting.answers import Answer, Meaning, Reply, unanswered, understand
from fencer.evicting.evictions import Evictions
from tests.evicting.build import pod

GOING, BLOCKED = Reply(Meaning.GOING), Reply(Meaning.BUDGET, 2.0, "the budget web", "web")
NEVER = Reply(Meaning.NEVER, text="two budgets")


def seen(*pods: PodView, leaving=(), barred=()) -> Evictions[PodView]:
    state: Evictions[PodView] = Evictions()
    state.saw(pods, leaving, barred)
    return state


def test_nothing_is_done_before_the_pods_were_seen() -> None:
    state = Evictions()
    assert not state.done
    state.saw([], [], [])
    assert (state.done, state.hopeless) == (True, False)


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


def test_all_that_wait_for_a_budget_are_counted_those_whose_turn_has_not_come_too() -> None:
    first, second, free = pod("a", controller="Job/b"), pod("b", controller="Job/b"), pod("c")
    state = seen(first, second, free)
    assert not state.behind()
    state.answered(first, BLOCKED, 0)
    assert state.behind() == {"shop/web": 2}
    state.answered(first, GOING, 2)
    assert state.behind() == {"shop/web": 1}
    state.saw([free], [], [])
    assert not state.behind()


def test_a_budget_that_let_one_go_is_asked_for_the_next_at_once() -> None:
    first, second = pod("a"), pod("b")
    state = seen(first, second)
    for web in (first, second):
        state.answered(web, BLOCKED, 0)
    state.answered(first, GOING, 2)
    assert state.due(2) == [second]


def test_each_that_may_go_doubles_how_many_are_asked_for_and_a_refusal_begins_again() -> None:
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
    assert "no given option" in state.left()[0][1]


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


def test_a_pod_whose_answer_is_not_here_yet_is_not_asked_for_twice() -> None:
    web, shop = pod("a"), pod("b", controller="Job/b")
    state = seen(web, shop)
    state.asked(web)
    assert (state.due(0), state.next_s()) == ([shop], 0)
    state.asked(shop)
    assert (state.due(0), state.next_s(), state.hopeless) == ([], None, False)
    state.answered(web, BLOCKED, 1)
    assert (state.next_s(), state.due(3)) == (3, [web])


def test_behind_one_budget_nobody_else_asks_while_an_answer_is_awaited() -> None:
    first, second, free = pod("a"), pod("b"), pod("c", controller="Job/c")
    state = seen(first, second, free)
    state.answered(first, BLOCKED, 0)
    state.asked(first)
    assert (state.due(60), state.next_s()) == ([free], 0), "one that waits behind nothing may ask"
    state.asked(free)
    assert (state.due(60), state.next_s()) == ([], None), "until an answer comes there is nobody to ask for"
    state.answered(first, GOING, 60)
    assert (state.due(60), state.next_s()) == ([second], 60)
