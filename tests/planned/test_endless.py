"""What a drain never gets past is refused beforehand; what may pass while it waits is not."""

from __future__ import annotations

import pytest

from fencer.core.model import PowerState
from fencer.core.policy import Policy
from fencer.planned.plan.case import Terms
from fencer.planned.plan.endless import asleep, endless
from fencer.planned.plan.words import What
from tests.core.build import node, observation
from tests.planned.test_plan import ALL, budget, inventory, machine, pod

HERE = (machine("k8s-1"), machine("k8s-2"))
SILENT = (machine("k8s-1", ready=None), machine("k8s-2"))
NEVER = budget(allowed=0, desired=2)
"""It needs both of its pods."""


def whats(seen, off=None) -> list[What]:
    return [one.what for one in endless(("k8s-1",), seen, Terms(), off or {})]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"allowed": 0, "desired": 2}, [What.BUDGET_NEVER]),
        ({"allowed": 0, "problem": "no controllers"}, [What.BUDGET_BROKEN]),
        ({"allowed": 0}, []),
        ({"allowed": 0, "desired": 2, "counted": False}, []),
        ({"allowed": 1}, []),
    ],
    ids=["never", "broken", "not now", "not counted yet", "allows one"],
)
def test_a_budget_is_refused_only_where_waiting_would_not_help(facts, expected) -> None:
    two = (pod("web-a"), pod("web-b", "k8s-2"))
    assert whats(inventory(*two, nodes=HERE, budgets=(budget(**facts),))) == expected


def test_a_budget_of_pods_that_stay_is_no_matter() -> None:
    elsewhere = (pod("web-a", "k8s-2"), pod("web-b", "k8s-2"))
    assert whats(inventory(*elsewhere, nodes=HERE, budgets=(NEVER,))) == []


CLOSED = (machine("k8s-1"), machine("k8s-2", unschedulable=True))
ONE_AT_A_TIME = budget(allowed=1, desired=1)


@pytest.mark.parametrize(
    ("nodes", "facts", "expected"),
    [
        (CLOSED, {}, [What.BUDGET_STALLS]),
        (HERE, {}, []),
        (CLOSED, {"tolerates_cordon": True}, []),
    ],
    ids=["no other takes pods", "another does", "they may come back to this one"],
)
def test_where_no_other_node_takes_pods_a_budget_lets_the_first_go_and_no_more(
    nodes, facts, expected
) -> None:
    """Moved to nowhere, it is never Ready again."""
    two = (pod("web-a", **facts), pod("web-b", **facts))
    assert whats(inventory(*two, nodes=nodes, budgets=(ONE_AT_A_TIME,))) == expected


def test_of_several_nodes_the_first_ones_pods_may_go_to_the_next_one() -> None:
    seen = inventory(pod("web-a"), pod("web-b"), nodes=HERE, budgets=(ONE_AT_A_TIME,))
    assert endless(("k8s-1", "k8s-2"), seen, Terms(), {}) == ()


def test_two_budgets_never_let_a_pod_go() -> None:
    both = (budget(), budget("all", selector=ALL))
    assert whats(inventory(pod("web-a"), pod("web-b", "k8s-2"), nodes=HERE, budgets=both)) == [
        What.TWO_BUDGETS
    ]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ((pod("web-a"),), [What.NODE_SILENT]),
        ((pod("web-a", terminating=True),), [What.NODE_SILENT]),
        ((pod("cni", controller="DaemonSet/cni"),), []),
        ((), []),
    ],
    ids=["a pod to go", "a pod that ends", "a pod that stays", "none"],
)
def test_a_node_that_ends_no_pod_matters_where_one_has_to_go(pods, expected) -> None:
    """One that was drained and shut down goes on to be shut down."""
    assert whats(inventory(*pods, nodes=SILENT)) == expected
    assert whats(inventory(*pods, nodes=HERE), off={"k8s-1": "stopped"}) == expected


def test_of_a_silent_node_the_guest_is_told_where_that_is_known() -> None:
    (found,) = endless(("k8s-1",), inventory(pod("web-a"), nodes=SILENT), Terms(), {"k8s-1": "stopped"})
    assert (found.about, found.text) == (
        "k8s-1",
        "its guest reads stopped: evicted pods would stay Terminating",
    )


@pytest.mark.parametrize(
    ("state", "renewed_utc", "ends_no_pod"),
    [
        (PowerState.STOPPED, "2026-11-20T09:59:40Z", True),
        (PowerState.PAUSED, "2026-11-20T09:59:45Z", True),
        (PowerState.ABSENT, "", True),
        (PowerState.STOPPED, "2026-11-20T09:59:46Z", False),
        (PowerState.RUNNING, "2026-11-20T09:00:00Z", False),
        (PowerState.UNKNOWN, "2026-11-20T09:00:00Z", False),
        (None, "2026-11-20T09:00:00Z", False),
    ],
)
def test_a_guest_that_reads_off_ends_no_pod_unless_its_node_is_heard(state, renewed_utc, ends_no_pod) -> None:
    """A hypervisor may lie, or not know: then the drain is the way to empty a node that lives."""
    seen = observation(node=node(renewed_utc=renewed_utc), utc="2026-11-20T10:00:00Z")
    assert asleep(state, seen, Policy()) == (state if ends_no_pod else None)
