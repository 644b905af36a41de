"""What ends a drain, what it leaves, whose cordon it is: fencer's two drains and kubectl's, on a real API.

The nodes are stand-ins without guests. Their containers end in their time, whatever the API says of the pods.
The admission policy and RBAC are not asked: see `test_drain` for those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fencer.evicting.lots import Filters
from fencer.guest import drain as inside
from fencer.planned.drain import DrainOptions
from fencer.simulation.kubelet import KubeletTiming
from tests.benchmarks.drain import FENCER_USER, KUBECTL_USER, by_fencer, by_kubectl, drained, requests_of
from tests.e2e.cluster import DrainCluster
from tests.e2e.herd import Doubles, herd
from tests.support import wait_until
from tests.support.controlplane import ControlPlane

NODES = HERE, *ELSEWHERE = ("here", "there-1", "there-2")
KUBELETS = KubeletTiming(start_s=(0.1, 0.2), end_s=6.0, least_s=6.0)
"""Containers start at once, and end within seconds, even those that are to be killed: who waits for a disk
cannot be."""
MAKERS = ("deployments", "statefulsets", "replicasets")
ON_HERE = {"kubernetes.io/hostname": HERE}
KUBELET = f"system:node:{HERE}"

Drain = Callable[[ControlPlane, str], None]


def by_guest(api: ControlPlane, node: str) -> None:
    """Drain as `fencer-guest drain --now` does on the node, with its kubelet's rights."""
    assert inside_drain(api, node, 120.0) == 0


def inside_drain(api: ControlPlane, node: str, timeout_s: float) -> int:
    boot = api.request("GET", f"/api/v1/nodes/{node}").body["status"]["nodeInfo"]["bootID"]
    plan = inside.Plan(boot, Filters(), timeout_s)
    return inside.drain(DrainCluster.client_of(api, node), plan, lambda _text: None)


DRAINS: dict[str, tuple[str, Drain]] = {
    "fencer drain": (FENCER_USER, by_fencer),
    "fencer-guest drain": (KUBELET, by_guest),
    "kubectl drain": (KUBECTL_USER, by_kubectl),
}


@pytest.fixture(scope="module")
def doubles(guest_cluster: ControlPlane) -> Iterator[Doubles]:
    """Three nodes, and what really runs on them."""
    with herd(guest_cluster, NODES, KUBELETS) as seen:
        yield seen


@pytest.fixture
def pods(doubles: Doubles, guest_cluster: ControlPlane) -> Iterator[DrainCluster]:
    """A namespace, with all nodes open."""
    doubles.seen.clear()
    cluster = DrainCluster(guest_cluster, "beside-kubectl")
    for name in NODES:
        cluster.cordon(name, on=False)
    yield cluster
    for what in ("policy/v1/{}/poddisruptionbudgets", *(f"apps/v1/{{}}/{kind}" for kind in MAKERS)):
        path = f"/apis/{what.format(f'namespaces/{cluster.namespace}')}"
        guest_cluster.request("DELETE", path)
    everything = f"/api/v1/namespaces/{cluster.namespace}/pods?gracePeriodSeconds=0"

    def none_left() -> bool:
        guest_cluster.request("DELETE", everything)
        return not cluster.pods()

    wait_until(none_left, "end of the pods", every_s=0.3)
    cluster.remove()


@contextmanager
def kept_off(pods: DrainCluster, *nodes: str) -> Iterator[None]:
    for name in nodes:
        pods.cordon(name)
    yield
    for name in nodes:
        pods.cordon(name, on=False)


def controller(
    pods: DrainCluster, kind: str, name: str, replicas: int, pod: dict[str, Any], **spec: Any
) -> None:
    """Create a controller, and wait until its pods run, all here."""
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "none"}], **pod},
    }
    body = {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec},
    }
    with kept_off(pods, *ELSEWHERE):
        made = pods.control_plane.request("POST", f"/apis/apps/v1/namespaces/{pods.namespace}/{kind}", body)
        assert made.status == 201, made.body
        wait_until(lambda: len(pods.pods(HERE, name, running=True)) == replicas, f"pods of {name}")


# -- 1: it ends ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", DRAINS)
def test_a_drain_ends_though_a_controllers_pods_tolerate_the_cordon(pods: DrainCluster, tool: str) -> None:
    """As cilium-operator's do: each eviction makes a pod that is scheduled to this very node."""
    tolerant = {"tolerations": [{"operator": "Exists"}], "nodeSelector": ON_HERE}
    controller(pods, "deployments", "operator", 4, tolerant)
    before = set(pods.pods(HERE, "operator"))
    user, drain = DRAINS[tool]
    asked = requests_of(pods.control_plane, user)["eviction"]
    drain(pods.control_plane, HERE)
    assert requests_of(pods.control_plane, user)["eviction"] - asked == len(before)
    wait_until(lambda: len(pods.pods(HERE, "operator", running=True)) == len(before), "pods that came back")
    assert not before & set(pods.pods(HERE, "operator"))


@pytest.mark.parametrize("tool", ["fencer drain", "fencer-guest drain"])
def test_a_drain_ends_though_a_template_names_the_node(pods: DrainCluster, tool: str) -> None:
    """No scheduler is asked; such pods come as often as they are evicted; kubectl evicts them once.

    Those that are made in the second in which the drain begins, as the API tells time, were on their way; of
    those after it two may be.
    """
    controller(pods, "deployments", "named", 2, {"nodeName": HERE})
    user, drain = DRAINS[tool]
    asked = requests_of(pods.control_plane, user)["eviction"]
    drain(pods.control_plane, HERE)
    assert requests_of(pods.control_plane, user)["eviction"] - asked <= 8


# -- 2: one writer at a time --------------------------------------------------------------------------------


@pytest.mark.parametrize(("tool", "twice"), [(tool, tool == "kubectl drain") for tool in DRAINS])
def test_a_pod_that_gives_itself_no_time_is_replaced_when_it_has_ended(
    pods: DrainCluster, doubles: Doubles, tool: str, twice: bool
) -> None:
    """By what runs, not by the API. kubectl's drain shows that such a world makes two writers."""
    hasty = {"terminationGracePeriodSeconds": 0}
    controller(pods, "statefulsets", "db", 6, hasty, serviceName="db", podManagementPolicy="Parallel")
    DRAINS[tool][1](pods.control_plane, HERE)
    wait_until(lambda: len(pods.pods(app="db", running=True)) == 6, "replacements")
    assert bool(doubles.seen) is twice, doubles.seen


# -- 4: whose cordon ----------------------------------------------------------------------------------------


def stuck(pods: DrainCluster) -> None:
    """What no drain gets past."""
    controller(pods, "deployments", "stuck", 1, {})
    pods.budget("never", "stuck", minAvailable=1)


def cordoned(pods: DrainCluster) -> bool:
    return bool(pods.node(HERE)["spec"].get("unschedulable"))


def fails(pods: DrainCluster) -> None:
    """Drain from outside, in vain."""
    done = drained(pods.control_plane, HERE, DrainOptions(timeout_s=4.0), keep_cordon=False)
    assert "The disruption budget never" in done.failed


def test_a_drain_that_fails_takes_its_cordon_back(pods: DrainCluster) -> None:
    stuck(pods)
    fails(pods)
    assert not cordoned(pods)


def test_a_second_drain_that_fails_leaves_the_first_ones_cordon(pods: DrainCluster) -> None:
    stuck(pods)
    first = drained(pods.control_plane, HERE, DrainOptions(timeout_s=4.0), keep_cordon=True)
    assert first.failed
    fails(pods)
    assert cordoned(pods)


def test_a_drain_from_outside_that_fails_leaves_the_guests_cordon(pods: DrainCluster) -> None:
    stuck(pods)
    assert inside_drain(pods.control_plane, HERE, 4.0) == 1
    fails(pods)
    assert cordoned(pods)


def test_an_admins_cordon_stays_whoever_drains(pods: DrainCluster) -> None:
    stuck(pods)
    pods.cordon(HERE)
    fails(pods)
    assert cordoned(pods)
