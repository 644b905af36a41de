"""The pods of one drain: who goes, who stays, who comes back; and that it always ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.evicting.answers import Meaning, Reply
from fencer.evicting.evacuation import LAG_S, Evacuation
from fencer.evicting.lots import Filters, Pod
from fencer.guest.pods import Pod as GuestPod
from tests.drain_cases import LATER, Json, LaterCase
from tests.evicting.test_lots import by_agent, in_guest

BEGAN = "2026-11-20T10:00:00Z"
HERE = Filters(force=True)


def created(after_s: int) -> str:
    """Return a time so many seconds after the drain began."""
    minutes, seconds = divmod(after_s + 600, 60)
    return f"2026-11-20T{'09' if minutes < 10 else '10'}:{(minutes + 50) % 60:02}:{seconds:02}Z"


def pod(name: str, controller: str = "ReplicaSet/web", created_utc: str = "", **facts: Any) -> GuestPod:
    return GuestPod(f"uid-{name}", "shop", name, controller, created_utc, **facts)


def drain(*there: Pod, since_utc: str = "", filters: Filters = HERE) -> Evacuation[Pod]:
    evacuation: Evacuation[Pod] = Evacuation(filters, since_utc)
    evacuation.saw(there)
    return evacuation


def evict_due(state: Evacuation[Pod]) -> list[str]:
    """Evict all that is due; give their names."""
    due = state.evictions.due(0)
    for one in due:
        state.evictions.answered(one, Reply(Meaning.GOING), 0)
    return [one.name for one in due]


@pytest.mark.parametrize("read", [by_agent, in_guest], ids=["by the agent", "in the guest"])
@pytest.mark.parametrize("case", LATER, ids=lambda case: case.name)
def test_what_becomes_of_a_pod_that_comes_later(case: LaterCase, read: Callable[[Json], Pod]) -> None:
    """What a cordon does not keep off comes back as often as it is evicted: it is named, and left."""
    state, later = drain(), read(case.pod())
    assert state.saw([later]) == ([(later, "tolerates the cordon")] if case.returns else [])
    assert state.evictions.done is case.returns
    assert state.staying == ((later,) if case.returns else ())


@pytest.mark.parametrize("case", LATER, ids=lambda case: case.name)
def test_who_is_there_at_the_start_goes_whatever_it_tolerates(case: LaterCase) -> None:
    """As with kubectl: a drain that left them would give no budget a say, and a shutdown would kill them."""
    there = in_guest(case.pod())
    state = drain(there)
    assert (state.evictions.done, state.going, state.returned) == (False, (there,), ())
    assert state.evictions.due(0) == ([] if there.terminating else [there])


def test_who_came_back_is_named_once_and_forgotten_once_it_is_gone() -> None:
    state, back = drain(), pod("a", tolerates_cordon=True)
    assert len(state.saw([back])) == 1
    assert state.saw([back]) == []
    assert state.returned == (back,)
    state.saw([])
    assert (state.returned, state.evictions.gone) == ((), [])


def test_who_stays_anyway_does_not_come_back() -> None:
    """Pods of DaemonSets, and static ones, tolerate everything and come whenever they like."""
    state = drain()
    others = [
        pod("cni", "DaemonSet/cni", tolerates_cordon=True),
        pod("static", mirror=True, tolerates_cordon=True),
        pod("over", finished=True, tolerates_cordon=True),
    ]
    assert state.saw(others) == []
    assert (state.staying, state.returned) == (tuple(others), ())


def test_who_came_meanwhile_and_needs_an_option_is_in_the_way_or_spared() -> None:
    bare = pod("bare", "")
    refuses, spares = drain(filters=Filters()), drain(filters=Filters(spare=True))
    for state in (refuses, spares):
        assert state.saw([bare]) == []
        assert state.going == ()
    assert (refuses.evictions.hopeless, spares.evictions.done) == (True, True)
    assert (refuses.staying, spares.staying) == ((), (bare,))


@pytest.mark.parametrize("at_the_start", [0, 1, 3])
def test_a_controller_that_binds_its_pods_past_the_cordon_ends_no_sooner_than_the_drain(
    at_the_start: int,
) -> None:
    """A template with `spec.nodeName`: nothing keeps its pods off, and nothing they tolerate tells so."""
    others = [pod("other", "ReplicaSet/db")]
    there: list[Pod] = [pod(f"{number}") for number in range(at_the_start)]
    state, evicted, told = drain(*there, *others), [], []
    for number in range(10, 30):
        evicted += evict_due(state)
        there = [one for one in there if one.name not in evicted] or [pod(f"{number}")]
        told += state.saw(there)
    assert len(evicted) - 1 == at_the_start + max(at_the_start, 1)
    assert state.evictions.done
    assert told == [(there[0], "is bound here past the cordon")]
    assert state.returned == tuple(there)


@pytest.mark.parametrize(
    ("after_s", "since_utc", "evicted"),
    [
        (-600, BEGAN, "abc"),
        (0, BEGAN, "abc"),
        (1, BEGAN, "a"),
        (10, BEGAN, "a"),
        (11, BEGAN, ""),
        (None, BEGAN, "a"),
        (-600, "", "a"),
        (11, "", "a"),
        (-600, "10:00", "a"),
        (-600, "2026-11-20T10:00:00", "a"),
    ],
)
def test_when_a_later_pod_was_created_tells_whether_it_was_on_its_way(
    after_s: float | None, since_utc: str, evicted: str
) -> None:
    """Three of a controller that had none here: all, one for a cache that lags, or none of them go."""
    state, at = drain(since_utc=since_utc), "" if after_s is None else created(int(after_s))
    later = [pod(name, created_utc=at) for name in "abc"]
    assert state.saw(later) == [(one, "is bound here past the cordon") for one in later[len(evicted) :]]
    assert evict_due(state) == list(evicted)


def test_who_was_on_its_way_takes_nobody_elses_place() -> None:
    """Who waits for a volume is bound minutes after its node was chosen."""
    state = drain(since_utc=BEGAN)
    early = [pod(name, created_utc=created(-600)) for name in "abc"]
    assert state.saw(early) == []
    lagging = pod("d", created_utc=created(1))
    assert state.saw([*early, lagging]) == []
    assert evict_due(state) == list("abcd")


def test_each_controller_has_its_own_measure_and_pods_without_one_each_theirs() -> None:
    state = drain(pod("a"), pod("b", "ReplicaSet/db"))
    evict_due(state)
    assert state.saw([pod("c"), pod("d", "ReplicaSet/db"), pod("e", ""), pod("f", "")]) == []
    assert sorted(evict_due(state)) == ["c", "d", "e", "f"]


def test_controllers_of_one_name_in_two_namespaces_are_two() -> None:
    state = drain(pod("a"))
    evict_due(state)
    theirs = replace(pod("c"), namespace="other")
    assert state.saw([pod("b"), theirs]) == []
    assert sorted(evict_due(state)) == ["b", "c"]


def test_who_tolerates_the_cordon_is_left_whenever_it_was_created() -> None:
    state, back = drain(since_utc=BEGAN), pod("a", created_utc=created(-600), tolerates_cordon=True)
    assert state.saw([back]) == [(back, "tolerates the cordon")]


def test_who_was_let_in_is_waited_for_until_it_is_gone() -> None:
    """Its measure is full by itself: that must not make it one that is left."""
    state, late = drain(), pod("a")
    state.saw([late])
    evict_due(state)
    ending = pod("a", terminating=True)
    assert state.saw([ending]) == []
    assert state.evictions.left() == [(ending, "still ending")]


@given(st.lists(st.lists(st.tuples(st.integers(-20, 40), st.sampled_from("abcd")), max_size=4), max_size=12))
def test_whoever_makes_pods_for_ever_is_not_evicted_for_ever(looks: list[list[tuple[int, str]]]) -> None:
    """Under one name or ever new ones: nothing goes that was created `LAG_S` after the drain began."""
    there: list[Pod] = [pod("first")]
    state = drain(*there, since_utc=BEGAN)
    for number, look in enumerate(looks):
        came = [
            pod(f"{number}-{at}", f"Thing/{by}{number if by in 'ab' else ''}", created(after_s))
            for at, (after_s, by) in enumerate(look)
        ]
        gone = evict_due(state)
        there = [one for one in there if one.name not in gone] + came
        state.saw(there)
        late = [created(after_s) for after_s in range(int(LAG_S) + 1, 41)]
        assert not {one.created_utc for one in state.evictions.due(0)} & set(late)
    evict_due(state)
    state.saw(state.returned)
    assert state.evictions.done
