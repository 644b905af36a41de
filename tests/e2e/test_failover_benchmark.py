"""The benchmark of `tests.benchmarks.failover` measures what it says, on the quick lab."""

import pytest

from tests.benchmarks.failover import Milestones, Recipe, measure, recipes, table
from tests.e2e.kubelet import LEASES
from tests.e2e.lab import Lab
from tests.e2e.operator import Operator
from tests.support import wait_until


@pytest.mark.usefixtures("sound")
def test_kubernetes_alone_leaves_the_pods_where_they_are(lab: Lab, operator: Operator) -> None:
    """The row without fencer: the node is not Ready, its pods are marked, and nothing moves."""
    alone = recipes(alone_s=24)[0]  # they are marked after ten, or later on a busy machine
    [seen] = measure(lab, operator, alone, 1, alone.name)
    assert seen.not_ready_s is not None
    assert seen.fenced_s is seen.gone_s is seen.attached_s is seen.ready_s is None
    assert seen.stuck
    assert not seen.unsafe


def wait_for_renewal(lab: Lab, name: str) -> None:
    """Wait until a node's lease was renewed just now: the next renewal is a second away.

    One that comes after its guest's end was read is a sign of life: fencer would wait a minute for another.
    """

    def renewed_at() -> str:
        return str(lab.client.get(f"{LEASES}/{name}")["spec"]["renewTime"])

    before = renewed_at()
    wait_until(lambda: renewed_at() != before, f"renewal of {name}", every_s=0.01)


@pytest.mark.usefixtures("sound")
def test_the_seconds_recipe_does_not_wait_for_kubernetes(lab: Lab, operator: Operator) -> None:
    """A fall that was seen is enough: the pods are given away while Kubernetes still calls the node Ready."""
    policy = {"require_not_ready": False, "lease_silent_s": 0}
    [seen] = measure(lab, operator, Recipe("seconds", policy, wait_for_renewal), 1, "seconds")
    assert seen.fenced_s is not None
    assert seen.gone_s is not None
    assert seen.attached_s is not None
    assert seen.ready_s is not None
    assert seen.fenced_s <= seen.gone_s <= seen.attached_s
    assert seen.not_ready_s is None or seen.fenced_s < seen.not_ready_s
    assert not seen.unsafe


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        ([None], "never (looked for 60 s)"),
        ([2.04], "2.0 s"),
        ([3.0, 1.0, 2.0], "1.0 / 2.0 / 3.0 s"),
        ([3.0, None, 2.0], "2.0 / 2.5 / 3.0 s; never in 1"),
    ],
)
def test_what_never_came_is_said(seconds: list[float | None], told: str) -> None:
    """A run without an end must not vanish from a median."""
    runs = [Milestones(ready_s=value) for value in seconds]
    row = table({"one": runs}, {"one": 60.0}).splitlines()[-1]
    assert row.endswith(f"| {told} |")


def test_what_was_not_waited_for_is_no_never() -> None:
    """The quick recipes are over before Kubernetes has noticed anything."""
    row = table({"one": [Milestones(fenced_s=0.3, ready_s=5.0)]}, {"one": 60.0}).splitlines()[-1]
    assert row.startswith("| one | 1 | not waited for | 0.3 s |")
