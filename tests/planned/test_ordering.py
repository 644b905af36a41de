"""In which order nodes are stopped, and how many at a time."""

from dataclasses import replace

import pytest

from fencer.core.model import Taint
from fencer.planned.ordering import beyond_quorum, elsewhere, in_order, may_begin
from tests.core.build import ARMED, healthy

WORKER = healthy().node
MEMBERS = [replace(WORKER, name=f"cp-{n}", roles=("control-plane",)) for n in range(5)]
NOBODY: frozenset[str] = frozenset()


def test_control_plane_nodes_come_last_because_a_drain_needs_the_api():
    other = replace(WORKER, name="k8s-3")
    assert in_order([MEMBERS[0], WORKER, MEMBERS[1], other]) == (WORKER, other, MEMBERS[0], MEMBERS[1])


@pytest.mark.parametrize(
    ("traits", "takes"),
    [
        ({}, True),
        ({"ready": None}, False),
        ({"unschedulable": True}, False),
        ({"taints": (Taint("node-role.kubernetes.io/control-plane", effect="NoSchedule"),)}, False),
        ({"taints": (Taint("slow", effect="PreferNoSchedule"),)}, True),
        ({"name": WORKER.name}, False),
    ],
)
def test_pods_may_go_elsewhere_if_a_node_that_is_not_asked_takes_any(traits, takes):
    other = replace(WORKER, **{"name": "k8s-9", **traits})
    assert elsewhere([WORKER], [WORKER, other]) is takes


@pytest.mark.parametrize(
    ("node", "under_way", "parallel", "may"),
    [
        (WORKER, [], 1, True),
        (WORKER, [WORKER], 1, False),
        (WORKER, [MEMBERS[0]], 2, True),
        (MEMBERS[1], [WORKER], 2, True),
        (MEMBERS[1], [MEMBERS[0]], 9, False),
        (MEMBERS[1], [WORKER, MEMBERS[0]], 9, False),
    ],
)
def test_so_many_at_a_time_and_of_the_control_plane_one(node, under_way, parallel, may):
    assert may_begin(node, under_way, parallel) is may


@pytest.mark.parametrize(
    ("asked", "down", "refused"),
    [
        (2, NOBODY, []),
        (3, NOBODY, ["cp-2"]),
        (2, frozenset({"cp-4"}), ["cp-1"]),
        (1, {"cp-3", "cp-4"}, ["cp-0"]),
    ],
)
def test_those_that_are_off_by_then_count_against_the_next(asked, down, refused):
    found = beyond_quorum([WORKER, *MEMBERS[:asked]], [WORKER, *MEMBERS], ARMED, frozenset(down))
    assert [node.name for node in found] == refused


def test_a_member_that_is_not_heard_counts_for_nothing():
    silent = [*MEMBERS[:2], *(replace(node, ready=None) for node in MEMBERS[2:4]), MEMBERS[4]]
    assert [node.name for node in beyond_quorum(MEMBERS[:1], silent, ARMED, NOBODY)] == ["cp-0"]


def test_a_worker_may_go_though_the_quorum_is_lost_already():
    lost = [replace(node, ready=None) for node in MEMBERS]
    assert beyond_quorum([WORKER], [WORKER, *lost], ARMED, NOBODY) == ()
