"""Which pods a drain moves, by one table for the agent and the part inside the guest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencer.cluster import parse
from fencer.evicting.lots import Filters, Lot, Pod, lot, of_lot
from fencer.guest import pods
from tests.drain_cases import PODS, Json, PodCase
from tests.evicting.build import pod


def by_agent(body: Json) -> Pod:
    body["metadata"]["resourceVersion"] = "1"
    return parse.pod(body)


def in_guest(body: Json) -> Pod:
    found = pods.pod_of(body)
    assert found is not None
    return found


@pytest.mark.parametrize("read", [by_agent, in_guest], ids=["by the agent", "in the guest"])
@pytest.mark.parametrize("case", PODS, ids=lambda case: case.name)
def test_what_becomes_of_a_pod(case: PodCase, read: Callable[[Json], Pod]) -> None:
    filters = Filters(force=case.force, delete_emptydir_data=case.delete_emptydir_data)
    assert lot(read(case.pod()), filters).value == case.lot


def test_each_lot_is_that_of_some_pod() -> None:
    assert {case.lot for case in PODS} == {each.value for each in Lot}


def test_a_drain_that_spares_leaves_what_another_would_refuse_to_begin_with() -> None:
    bare, local = pod("bare", controller=""), pod("cache", local_data=True)
    refuses, spares = Filters(), Filters(spare=True)
    assert of_lot([bare, local], refuses, refuses.forbidden) == (bare, local)
    assert of_lot([bare, local], spares, spares.forbidden) == ()
    assert of_lot([bare, local], spares, spares.staying) == (bare, local)
    assert lot(pod("web"), spares) is Lot.EVICT
    static, agent = pod("static", mirror=True), pod("cni", controller="DaemonSet/cni")
    for filters in (refuses, spares):
        assert of_lot([static, agent], filters, filters.staying) == (static, agent)
