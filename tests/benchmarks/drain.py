"""`fencer drain` beside `kubectl drain`: a node full of pods behind a budget, on a real control plane.

    ./dev bench drain

Both drain the same node with the same pods, in turn: seconds, requests by the API server's audit log, and the
fewest healthy pods by every event of a watch. kubectl is the one of the control plane's own version, with its
defaults.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fencer.cluster.eviction import KubernetesEvictor
from fencer.cluster.kubernetes import KubernetesCluster
from fencer.cluster.settings import ClusterSettings
from fencer.core.policy import Policy
from fencer.planned.campaign import Campaign
from fencer.planned.drain import DrainOptions, NodeDrain
from fencer.planned.turns import DrainTurn
from fencer.runtime.clock import SystemClock
from fencer.runtime.reconcile import Agent
from fencer.runtime.workers import ThreadAsker
from fencer.runtime.world import World
from fencer.simulation.kubelet import KubeletTiming
from tests.benchmarks import fleet
from tests.benchmarks.lab import control_plane
from tests.benchmarks.measure import Row, program
from tests.controlplane.binaries import KUBECTL, find_or_build
from tests.controlplane.flags import COUNTED
from tests.e2e.herd import herd
from tests.e2e.podwatch import budget, pods_watched
from tests.support import wait_until
from tests.support.controlplane import ADMINS, ControlPlane

NAMESPACE, APP = "default", "web"
NODES = ("full", "empty-1", "empty-2")
PODS, AT_A_TIME, ROUNDS = 100, 10, 3
FEW_PODS, FEW_AT_A_TIME = 12, 3
TIMEOUT_S = 600.0
KUBELETS = KubeletTiming(start_s=(0.3, 1.0), end_s=2.0)
"""Containers that start within a second and end within two."""
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
MERGE = "application/merge-patch+json"
FENCER_USER, KUBECTL_USER = COUNTED


@dataclass(frozen=True, slots=True)
class Drained:
    """What one drain took.

    Attributes:
        seconds: Until the tool said that it was done.
        evictions: Requests for evictions.
        requests: All requests of the tool, reads too.
        lowest: The fewest healthy pods meanwhile.
        disrupted: How many pods were marked for deletion.
    """

    seconds: float
    evictions: int
    requests: int
    lowest: int
    disrupted: int


def by_fencer(api: ControlPlane, node: str) -> None:
    """Drain as `fencer drain` does, in this process."""
    drain = drained(api, node, DrainOptions(timeout_s=TIMEOUT_S), keep_cordon=True)
    assert not drain.failed, drain.failed


def drained(api: ControlPlane, node: str, options: DrainOptions, *, keep_cordon: bool) -> NodeDrain:
    """Drain, and return how that ended."""
    settings, clock = ClusterSettings(api.kubeconfig(FENCER_USER, ADMINS)), SystemClock()
    world = World(
        KubernetesCluster(settings),
        {},
        ThreadAsker(clock, patience_s=2.0),
        clock,
        fleet.Silent(),
        evictor=KubernetesEvictor(settings),
    )
    agent = Agent(world, Policy())
    view = world.cluster.fact(node).node

    def tell(*_words: str) -> None:
        """Nobody reads along."""

    drain = NodeDrain(world, agent, node, options, tell)
    Campaign(world, [DrainTurn(view, drain, keep_cordon=keep_cordon)], 1, tell).run()
    return drain


def by_kubectl(api: ControlPlane, node: str) -> None:
    """Drain by kubectl with its defaults."""
    words = ["drain", node, "--ignore-daemonsets", f"--timeout={TIMEOUT_S:g}s"]
    kubeconfig = str(api.kubeconfig(KUBECTL_USER, ADMINS))
    command = [*find_or_build().command(KUBECTL), *words, "--kubeconfig", kubeconfig]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * TIMEOUT_S)
    assert done.returncode == 0, done


TOOLS: Mapping[str, tuple[str, Callable[[ControlPlane, str], None]]] = {
    "fencer drain": (FENCER_USER, by_fencer),
    "kubectl drain": (KUBECTL_USER, by_kubectl),
}


def measure(api: ControlPlane, tool: str, pods: int, at_a_time: int) -> Drained:
    """Fill the node, and have it drained by one of `TOOLS`.

    Args:
        api: The cluster; the nodes are there.
        tool: Which.
        pods: How many are on the node.
        at_a_time: How many of them may be gone at a time.
    """
    user, drain = TOOLS[tool]
    with (
        full_node(api, pods),
        budget(api, NAMESPACE, APP, APP, maxUnavailable=at_a_time),
        pods_watched(api, NAMESPACE, APP) as watched,
    ):
        before, began_s = requests_of(api, user), time.monotonic()
        drain(api, NODES[0])
        took_s = time.monotonic() - began_s
        asked = requests_of(api, user) - before
        assert not on_node(api, NODES[0]), f"{tool} left pods behind"
        return Drained(took_s, asked["eviction"], asked.total(), watched.lowest, len(watched.disrupted))


def requests_of(api: ControlPlane, user: str) -> Counter[str]:
    """Count all requests of a user so far, by subresource (or verb)."""
    return Counter(
        event["objectRef"].get("subresource") or event["verb"]
        for event in api.audit_events()
        if event["user"]["username"] == user and "objectRef" in event
    )


@contextmanager
def full_node(api: ControlPlane, pods: int) -> Iterator[None]:
    """Have a Deployment of so many pods, all Ready, all on the first node, while the others are open."""
    for name in NODES:
        _open(api, name, unschedulable=name != NODES[0])
    labels = {"app": APP}
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(NODES)}
    required = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    pod = {"containers": [{"name": "main", "image": "none"}], "affinity": affinity}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": pods, "selector": {"matchLabels": labels}, "template": template}
    answer = api.request("POST", DEPLOYMENTS, {"metadata": {"name": APP}, "spec": spec})
    assert answer.status == 201, answer.body
    try:
        wait_until(lambda: _ready(api) == pods, f"{pods} Ready pods", timeout_s=300, every_s=0.5)
        for name in NODES[1:]:
            _open(api, name, unschedulable=False)
        yield
    finally:
        api.request("DELETE", f"{DEPLOYMENTS}/{APP}?propagationPolicy=Foreground")
        wait_until(lambda: _gone(api), "end of the Deployment", timeout_s=300, every_s=0.5)


def on_node(api: ControlPlane, name: str) -> list[str]:
    """Return the pods of the Deployment on a node."""
    query = f"labelSelector=app%3D{APP}&fieldSelector=spec.nodeName%3D{name}"
    found = api.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?{query}").body["items"]
    return [pod["metadata"]["name"] for pod in found]


def _open(api: ControlPlane, name: str, *, unschedulable: bool) -> None:
    body: dict[str, Any] = {"spec": {"unschedulable": unschedulable or None}}
    answer = api.request("PATCH", f"/api/v1/nodes/{name}", body, content_type=MERGE)
    assert answer.status == 200, answer.body


def _ready(api: ControlPlane) -> int:
    return int(api.request("GET", f"{DEPLOYMENTS}/{APP}").body["status"].get("readyReplicas", 0))


def _gone(api: ControlPlane) -> bool:
    """Whether the Deployment is gone too: it goes after its pods, and keeps its name until then."""
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3D{APP}"
    there = api.request("GET", f"{DEPLOYMENTS}/{APP}").status != 404
    return not there and not api.request("GET", pods).body["items"]


def run(api: ControlPlane, pods: int = PODS, at_a_time: int = AT_A_TIME, rounds: int = ROUNDS) -> list[Row]:
    """Have the node drained by both tools in turn."""
    seen: dict[str, list[Drained]] = {tool: [] for tool in TOOLS}
    with herd(api, NODES, KUBELETS):
        for _ in range(rounds):
            for tool, drained in seen.items():
                drained.append(measure(api, tool, pods, at_a_time))
    return [_row(tool, drained, pods, at_a_time) for tool, drained in seen.items()] + [_ratio(seen)]


def alone() -> list[Row]:
    """Bring a control plane up for it."""
    with control_plane(controllers=True) as api:
        return [*run(api), *run(api, FEW_PODS, FEW_AT_A_TIME)]


def _row(tool: str, drained: list[Drained], pods: int, at_a_time: int) -> Row:
    lowest = min(one.lowest for one in drained)
    seconds, evictions, requests, disrupted = (
        statistics.median(getattr(one, name) for one in drained)
        for name in ("seconds", "evictions", "requests", "disrupted")
    )
    return Row(
        f"`{tool}`: {pods} pods, {at_a_time} may be gone",
        f"never below {pods - at_a_time} healthy",
        f"{seconds:.1f} s; {requests:.0f} requests, of them {evictions:.0f} evictions",
        lowest >= pods - at_a_time,
        f"median of {len(drained)}; {disrupted:.0f} pods disrupted; never below {lowest} healthy",
    )


def _ratio(seen: Mapping[str, list[Drained]]) -> Row:
    ours, theirs = (
        {
            name: statistics.median(getattr(one, name) for one in seen[tool])
            for name in ("seconds", "evictions", "requests")
        }
        for tool in TOOLS
    )
    times, asks, evictions = (theirs[name] / ours[name] for name in ("seconds", "requests", "evictions"))
    text = f"{times:.1f} × the time, {asks:.1f} × the requests, {evictions:.1f} × the evictions"
    return Row("`kubectl drain` / `fencer drain`", "", text, None, "medians, same run")


if __name__ == "__main__":
    program(__doc__, alone)
