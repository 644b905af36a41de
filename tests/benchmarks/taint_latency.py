"""How long after the last confirming reading the taint stands on the Node, on a real API server.

    ./dev bench taint_latency

In between, the agent reads node, lease, pods and attachments live, and decides.
"""

from __future__ import annotations

import statistics
from dataclasses import replace

from tests.benchmarks import fleet
from tests.benchmarks.lab import AT_ONCE, control_plane, make_nodes, remove_nodes, seconds_of, watcher
from tests.benchmarks.measure import Row, percentile, program
from tests.support.backstage import ApiBackstage
from tests.support.controlplane import ControlPlane

TARGET_S = 0.3
DEATHS = 60


def run(api: ControlPlane, deaths: int = DEATHS) -> list[Row]:
    """Let guests die one after the other.

    Args:
        api: Without controllers.
        deaths: How many. One node stays alive and goes on renewing its lease, or the brake would hold.
    """
    numbers = range(deaths + 1)
    make_nodes(api, numbers, pods=1)
    try:
        agent = watcher(api, numbers, replace(AT_ONCE, max_fenced=deaths))
        name = fleet.node_view(deaths).name
        trip_s = statistics.median(seconds_of(lambda: agent.cluster.fact(name)) / 2 for _ in range(20))
        for number in range(deaths):
            ApiBackstage(api).renew_lease(name)
            agent.kill(number)
        taken = sorted(agent.cluster.proof_to_taint_s.values())
    finally:
        remove_nodes(api, numbers)
    p95 = percentile(taken, 0.95) if taken else float("inf")
    return [
        Row(
            "last confirming reading → taint on the Node, p95",
            f"≤ {TARGET_S:g} s",
            f"{p95:.3f} s",
            p95 <= TARGET_S and len(taken) == deaths,
            f"{len(taken)} of {deaths} deaths, median {statistics.median(taken):.3f} s, "
            f"worst {taken[-1]:.3f} s; one GET takes {trip_s:.3f} s here",
        )
    ]


def alone() -> list[Row]:
    """Measure at full size, on a control plane of its own."""
    with control_plane(controllers=False) as api:
        return run(api)


if __name__ == "__main__":
    program(__doc__, alone)
