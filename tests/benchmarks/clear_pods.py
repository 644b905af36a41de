"""How long after the taint the last of a hundred pods is deleted, on a real API server.

    ./dev bench clear_pods

Alone, and with Kubernetes' own controllers, which mark and delete the same pods in the same moment.
"""

from __future__ import annotations

import statistics
from dataclasses import replace

from fencer.errors import ClusterError
from tests.benchmarks import fleet
from tests.benchmarks.lab import (
    AT_ONCE,
    Watcher,
    control_plane,
    make_nodes,
    remove_nodes,
    seconds_of,
    watcher,
)
from tests.benchmarks.measure import Row, cpu, program
from tests.support import wait_until
from tests.support.controlplane import ControlPlane

TARGET_S = 2.0
PODS, ROUNDS = 100, 3


def run(
    api: ControlPlane, pods: int = PODS, rounds: int = ROUNDS, *, beside: str = "no controller"
) -> list[Row]:
    """Fence nodes full of pods, one after the other.

    Args:
        api: The cluster.
        pods: How many are on each node.
        rounds: How many nodes.
        beside: Who else is at work in the cluster, for people.
    """
    numbers = range(rounds + 1)
    make_nodes(api, numbers[:-1], pods=pods)
    make_nodes(api, numbers[-1:], pods=1)
    try:
        agent = watcher(api, numbers, replace(AT_ONCE, max_fenced=rounds))
        with cpu() as cost:
            taken = [_cleared_after_s(agent, number) for number in range(rounds)]
        (pod,) = agent.cluster.pods(fleet.node_view(rounds).name)
        trip_s = seconds_of(lambda: agent.cluster.clear(pod, "benchmark"))
    finally:
        remove_nodes(api, numbers)
    middle_s = statistics.median(taken)
    return [
        Row(
            f"taint → last of {pods} pods deleted ({beside})",
            f"≤ {TARGET_S:g} s",
            f"{middle_s:.2f} s",
            middle_s <= TARGET_S,
            f"median of {rounds}, worst {max(taken):.2f} s; {cost.cpu_s / rounds:.2f} s of it fencer's CPU; "
            f"two writes a pod, {AT_ONCE.clear_parallel} pods at a time; one alone takes {trip_s:.3f} s here",
        )
    ]


def _cleared_after_s(agent: Watcher, number: int) -> float:
    name = fleet.node_view(number).name
    agent.kill(number)

    def empty() -> bool:
        try:
            if not agent.cluster.pods(name):
                return True
            agent.agent.tick()
        except ClusterError:
            return False
        return False

    wait_until(empty, f"end of the pods of {name}")
    return agent.cluster.cleared_s - agent.cluster.tainted_s[name]


def alone() -> list[Row]:
    """Measure at full size, on control planes of its own."""
    with control_plane(controllers=False) as api:
        quiet = run(api)
    with control_plane(controllers=True) as api:
        return [*quiet, *run(api, beside="beside Kubernetes' controllers")]


if __name__ == "__main__":
    program(__doc__, alone)
