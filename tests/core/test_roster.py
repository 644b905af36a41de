"""Whom a drain moves, by the table that the guest's drain is held to as well; and that it always ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.cluster import parse
from fencer.core.model import PodView
from fencer.core.roster import BOUND_AGAIN, TOLERATES, Roster
from tests.drain_cases import LATER, LaterCase


def pod(uid: str, controller: str = "ReplicaSet/web", **facts: bool) -> PodView:
    view = PodView("shop", f"web-{uid}", uid, "1", "Running", controller=controller)
    return replace(view, **facts)


@pytest.mark.parametrize("case", LATER, ids=lambda case: case.name)
def test_what_becomes_of_a_pod_that_comes_later(case: LaterCase) -> None:
    body = case.pod()
    body["metadata"]["resourceVersion"] = "1"
    later, roster = parse.pod(body), Roster()
    first = replace(later, uid="u-0")
    assert roster.mine([first]) == (first,), "whoever is there at first is moved, whatever it tolerates"
    assert roster.mine([first, later]) == ((first,) if case.returns else (first, later))
    assert [why for _, why in roster.returned.values()] == ([TOLERATES] if case.returns else [])


def test_who_was_on_the_way_is_moved_and_who_is_bound_again_and_again_is_left() -> None:
    """A template that names the node asks no scheduler; it has as many chances as it had pods."""
    roster = Roster()
    assert len(roster.mine([pod("1"), pod("2")])) == 2
    assert len(roster.mine([pod("3"), pod("4")])) == 2
    assert roster.mine([pod("5"), pod("6", "ReplicaSet/other")]) == (pod("6", "ReplicaSet/other"),)
    assert [(str(one), why) for one, why in roster.returned.values()] == [("shop/web-5", BOUND_AGAIN)]
    assert roster.mine([pod("7", "ReplicaSet/other")]) == ()


def test_who_came_back_and_went_is_forgotten_and_told_as_it_is_now() -> None:
    roster = Roster()
    roster.mine([])
    back = pod("1", tolerates_cordon=True)
    roster.mine([back])
    roster.mine([replace(back, terminating=True)])
    assert [one.terminating for one, _ in roster.returned.values()] == [True]
    assert roster.mine([]) == ()
    assert not roster.returned


def test_pods_without_a_controller_are_told_apart_by_their_names() -> None:
    roster = Roster()
    roster.mine([])
    assert len(roster.mine([pod("1", ""), pod("2", "")])) == 2


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=6),
    st.lists(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=4), max_size=12),
)
def test_however_many_come_a_drain_moves_few_of_them(first, later) -> None:
    """At most twice what was there, and one of each controller that was not."""
    roster, number, moved = Roster(), 0, set()
    for batch in (first, *later):
        pods = []
        for controller, tolerates in batch:
            number += 1
            pods.append(pod(str(number), f"ReplicaSet/{controller}", tolerates_cordon=tolerates))
        moved |= {one.uid for one in roster.mine(pods)}
    for controller in "abcd":
        there = sum(one == controller for one, _ in first)
        mine = [uid for uid in moved if controller == _controllers(first, later)[int(uid) - 1]]
        assert len(mine) <= there + max(there, 1)


def _controllers(first, later) -> list[str]:
    return [controller for batch in (first, *later) for controller, _ in batch]
