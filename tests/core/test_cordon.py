"""Whose cordon it is, and how a node is cordoned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencer.core.cordon import (
    CORDON_TAINT,
    Watched,
    by_own_watch,
    cordon_for,
    cordon_stands,
    cordoned_by,
    cordoned_by_drain,
    cordoned_for_shutdown,
    passing_cordon,
    still_watched,
    unrecorded_cordon,
)
from fencer.core.model import Cordon, CordonNode, Taint, Unreadable
from tests.core.build import BOOT, NOW_UTC, node

OURS = Cordon("drain", BOOT, NOW_UTC)
HOOKS = Cordon("hook", BOOT, NOW_UTC)
SETTLING = Cordon("unfence", BOOT, NOW_UTC)


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


def test_a_cordon_before_a_shutdown_is_noted_as_such() -> None:
    assert cordon_for(node(), NOW_UTC, shutdown=True) == CordonNode(replace(OURS, shutdown=True))


@pytest.mark.parametrize(
    ("facts", "planned"),
    [
        ({}, True),
        ({"cordon": OURS}, False),
        ({"cordon": None}, False),
        ({"cordon": Unreadable("schema 2")}, False),
        ({"boot_id": "boot-2"}, False),
        ({"cordoner": "kubectl-cordon"}, False),
    ],
    ids=[
        "before a shutdown",
        "a drain's",
        "without a note",
        "unreadable",
        "of an earlier boot",
        "an admin's",
    ],
)
def test_a_shutdown_is_planned_if_its_drain_cordoned_the_node_in_this_boot(facts, planned) -> None:
    before = {"unschedulable": True, "cordon": replace(OURS, shutdown=True), "cordoner": "fencer"}
    assert cordoned_for_shutdown(node(**{**before, **facts})) is planned


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


@pytest.mark.parametrize(
    ("facts", "who"),
    [
        ({}, None),
        ({"cordon": OURS, "cordoner": "fencer"}, None),
        ({"unschedulable": True}, "others"),
        ({"unschedulable": True, "cordon": OURS, "cordoner": "fencer"}, "fencer-drain"),
        ({"unschedulable": True, "cordon": OURS, "cordoner": "fencer-guest"}, "fencer-drain"),
        ({"unschedulable": True, "cordon": HOOKS, "cordoner": "fencer"}, "fencer-hook"),
        ({"unschedulable": True, "cordon": SETTLING, "cordoner": "fencer"}, "fencer-unfence"),
        ({"unschedulable": True, "cordon": OURS, "cordoner": "kubectl-cordon"}, "others"),
        ({"unschedulable": True, "cordon": Unreadable("schema 2"), "cordoner": "fencer"}, "others"),
    ],
)
def test_who_keeps_new_pods_off_a_node(facts, who) -> None:
    assert cordoned_by(node(**facts)) == who


class TestNoRecord:
    """The API server has no record of who wrote what on the Node."""

    BEFORE = node(version="10")
    OWN = Watched(SETTLING, BEFORE, 100.0)
    APART_S = 20.0

    def cordoned(self, **facts):
        stands = {"unschedulable": True, "cordon": SETTLING, "recorded": False, "version": "11"}
        return node(**(stands | facts))

    @pytest.mark.parametrize(
        ("facts", "expected"),
        [
            ({}, SETTLING),
            ({"cordon": OURS}, OURS),
            ({"cordoner": "fencer"}, None),
            ({"recorded": True}, None),
            ({"recorded": True, "cordoner": "kubectl-cordon"}, None),
            ({"unschedulable": False}, None),
            ({"cordon": None}, None),
            ({"cordon": Unreadable("schema 2")}, None),
        ],
        ids=[
            *("a note", "a drain's note", "set and watched here", "a record that names nobody"),
            *("a record of another", "not cordoned", "no note", "a note that cannot be read"),
        ],
    )
    def test_whose_cordon_only_the_note_tells(self, facts, expected):
        there = self.cordoned(**facts)
        assert unrecorded_cordon(there) == expected
        assert (cordoned_by(there) == "unrecorded") is (expected is not None)

    def test_it_is_not_fencers_to_lift_or_to_take_over(self):
        assert passing_cordon(self.cordoned()) is None
        assert cordon_for(self.cordoned(), NOW_UTC) is None
        assert not cordoned_by_drain(self.cordoned(cordon=OURS))
        assert not cordon_stands(self.cordoned(cordon=replace(OURS, run="1")), replace(OURS, run="1"))

    def test_it_is_fencers_where_this_process_has_watched_it(self):
        seen = still_watched(self.OWN, self.cordoned(), 105.0, self.APART_S)
        assert seen == replace(self.OWN, seen_s=105.0)
        assert passing_cordon(by_own_watch(seen, self.cordoned())) == SETTLING

    @pytest.mark.parametrize(
        "facts",
        [
            {"unschedulable": False},
            {"cordon": replace(SETTLING, since_utc="2026-11-20T10:00:01Z")},
            {"cordon": None},
        ],
        ids=["uncordoned", "another note", "no note"],
    )
    def test_a_look_that_shows_anything_else_is_a_gap(self, facts):
        assert still_watched(self.OWN, self.cordoned(**facts), 105.0, self.APART_S) is None

    @pytest.mark.parametrize("later", ["2026-11-20T10:00:09Z", ""], ids=["another", "none"])
    def test_so_is_the_taint_of_another_cordon(self, later):
        """Each cordon gets one with a time of its own: an administrator has cordoned the Node again."""

        def at(utc, **facts):
            others = (Taint("example.org/disk", "", "NoSchedule", f"2026-11-20T{utc[11:] or 'later'}"),)
            taints = (*others, *((Taint(CORDON_TAINT, "", "NoSchedule", utc),) if utc else ()))
            return self.cordoned(taints=taints, **facts)

        first = still_watched(self.OWN, at(""), 101.0, self.APART_S)
        own = still_watched(first, at("2026-11-20T10:00:02Z"), 103.0, self.APART_S)
        assert still_watched(own, at("2026-11-20T10:00:02Z"), 105.0, self.APART_S) is not None
        assert still_watched(own, at(later), 105.0, self.APART_S) is None

    def test_so_are_looks_too_far_apart(self):
        assert still_watched(self.OWN, self.cordoned(), 120.0, self.APART_S) is not None
        assert still_watched(self.OWN, self.cordoned(), 120.1, self.APART_S) is None

    @pytest.mark.parametrize(
        "facts", [{"version": "10"}, {"version": "9"}, {"uid": "another", "version": "12"}]
    )
    def test_a_look_that_is_no_newer_than_the_cordon_shows_nothing(self, facts):
        old = self.cordoned(unschedulable=False, **facts)
        assert still_watched(self.OWN, old, 105.0, self.APART_S) == self.OWN
        assert by_own_watch(self.OWN, old) == old

    def test_a_record_decides_where_there_is_one(self):
        recorded = self.cordoned(recorded=True, cordoner="kubectl-cordon")
        assert by_own_watch(self.OWN, recorded) == recorded
