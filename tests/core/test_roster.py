"""Whom a drain moves, by the table that the guest's drain is held to as well; and that it always ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.cluster import parse
from fencer.core.model import PodView
from fencer.core.roster import BOUND_PAST, TOLERATES, Roster
from tests.drain_cases import LATER, LaterCase

BEGAN, SOON, LATER_ON = "2026-11-20T10:00:00Z", "2026-11-20T10:00:05Z", "2026-11-20T10:00:11Z"
BEFORE = "2026-11-20T09:50:00Z"
OTHER = "ReplicaSet/other"


def pod(uid: str, controller: str = "ReplicaSet/web", created_utc: str = SOON, **facts: bool) -> PodView:
    view = PodView("shop", f"web-{uid}", uid, "1", "Running", created_utc, controller=controller)
    return replace(view, **facts)


def left(roster: Roster) -> list[tuple[str, str]]:
    return [(str(one), why) for one, why in roster.returned.values()]


@pytest.mark.parametrize("case", LATER, ids=lambda case: case.name)
def test_what_becomes_of_a_pod_that_comes_later(case: LaterCase) -> None:
    body = case.pod()
    body["metadata"]["resourceVersion"] = "1"
    later, roster = replace(parse.pod(body), created_utc=SOON), Roster(BEGAN)
    first = replace(later, uid="u-0")
    assert roster.mine([first]) == (first,), "whoever is there at first is moved, whatever it tolerates"
    assert roster.mine([first, later]) == ((first,) if case.returns else (first, later))
    assert [why for _, why in left(roster)] == ([TOLERATES] if case.returns else [])


def test_of_those_a_scheduler_may_have_sent_as_many_are_moved_as_were_there() -> None:
    """Its cache may lag; a template that names the node asks no scheduler, and comes again and again."""
    roster = Roster(BEGAN)
    assert len(roster.mine([pod("1"), pod("2")])) == 2
    assert len(roster.mine([pod("3"), pod("4")])) == 2
    assert roster.mine([pod("5"), pod("6", OTHER)]) == (pod("6", OTHER),)
    assert left(roster) == [("shop/web-5", BOUND_PAST)]
    assert roster.mine([pod("7", OTHER)]) == ()


def test_who_was_made_before_it_began_was_on_the_way_however_many_they_are() -> None:
    """Who waits for a volume is bound minutes after its node was chosen."""
    roster = Roster(BEGAN)
    roster.mine([])
    late = [pod(str(number), created_utc=BEFORE) for number in range(3)]
    assert roster.mine(late[:1]) == (late[0],)
    assert roster.mine(late) == tuple(late)


def test_who_is_made_long_after_it_began_was_sent_by_no_scheduler() -> None:
    """Whatever its controller is called: with a new name each time it would have a chance each time."""
    roster = Roster(BEGAN)
    roster.mine([pod("1")])
    assert roster.mine([pod("2", "Thing/a", LATER_ON), pod("3", "", LATER_ON)]) == ()
    assert left(roster) == [("shop/web-2", BOUND_PAST), ("shop/web-3", BOUND_PAST)]


def test_who_came_back_and_went_is_forgotten_and_told_as_it_is_now() -> None:
    roster = Roster(BEGAN)
    roster.mine([])
    back = pod("1", tolerates_cordon=True)
    roster.mine([back])
    roster.mine([replace(back, terminating=True)])
    assert [one.terminating for one, _ in roster.returned.values()] == [True]
    assert roster.mine([]) == ()
    assert not roster.returned


def test_pods_without_a_controller_are_told_apart_by_their_names() -> None:
    roster = Roster(BEGAN)
    roster.mine([])
    assert len(roster.mine([pod("1", ""), pod("2", "")])) == 2


_POD = st.tuples(st.text("abcdefgh", min_size=1, max_size=2), st.booleans())


@given(st.lists(_POD, max_size=6), st.lists(st.lists(_POD, max_size=4), max_size=12))
def test_whatever_comes_once_it_is_under_way_a_drain_moves_none_of_it(first, later) -> None:
    """So it ends: what was there, and what was on the way, are never more."""
    roster = Roster(BEGAN)
    there = [pod(f"0-{at}", f"Thing/{name}", BEFORE) for at, (name, _) in enumerate(first)]
    assert roster.mine(there) == tuple(there)
    for number, batch in enumerate(later, 1):
        came = [
            pod(f"{number}-{at}", f"Thing/{name}", LATER_ON, tolerates_cordon=tolerates)
            for at, (name, tolerates) in enumerate(batch)
        ]
        assert roster.mine([*there, *came]) == tuple(there)
        assert len(roster.returned) == len(came)
