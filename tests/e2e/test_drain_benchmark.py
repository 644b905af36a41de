"""A node full of pods behind a budget, drained on a real control plane: by fencer, and by kubectl beside it.

The nodes are stand-ins without guests. The benchmark `tests.benchmarks.drain` compares the two at full size;
here both have to be right.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.benchmarks.drain import KUBELETS, NODES, TOOLS, measure
from tests.e2e.herd import herd
from tests.support.controlplane import ControlPlane


@pytest.fixture(scope="module")
def cluster(guest_cluster: ControlPlane) -> Iterator[ControlPlane]:
    """The patient control plane, with three nodes that always run."""
    with herd(guest_cluster, NODES, KUBELETS):
        yield guest_cluster


@pytest.mark.parametrize("tool", TOOLS)
def test_both_drain_the_node_and_never_go_below_the_budget(cluster: ControlPlane, tool: str) -> None:
    drained = measure(cluster, tool, 8, 2)
    assert drained.lowest >= 6
    assert drained.disrupted == 8
    assert drained.requests >= drained.evictions >= 8


def test_a_node_with_a_hundred_pods_never_goes_below_its_budget(cluster: ControlPlane) -> None:
    """No pod is disrupted twice, and none but those of the node."""
    drained = measure(cluster, "fencer drain", 100, 10)
    assert drained.lowest >= 90
    assert drained.disrupted == 100
    assert drained.evictions < 400, "pods behind one budget take turns: they do not all ask again and again"
