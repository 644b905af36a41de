"""`fencer plan` on real parts: budgets that their controller counts, volumes that a CSI attacher holds."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.kubelet import CRASHES
from tests.e2e.lab import Lab, is_ready
from tests.e2e.operator import Operator
from tests.e2e.podwatch import budget
from tests.e2e.workloads import DATABASE, DATABASE_PODS, NAMESPACE
from tests.support import wait_until

pytestmark = pytest.mark.usefixtures("sound")

DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CRASH, WANDERER = "crash", "wanderer"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@contextmanager
def allowed_to_plan(lab: Lab) -> Iterator[None]:
    """Bind the role as the manifest's comment says; take it away afterwards."""
    binding = {
        "metadata": {"name": "fencer-plan"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "fencer-plan"},
        "subjects": [{"kind": "ServiceAccount", "name": "fencer", "namespace": "fencer"}],
    }
    answer = lab.cluster.request("POST", BINDINGS, binding)
    assert answer.status == 201, answer.body
    try:
        yield
    finally:
        lab.cluster.request("DELETE", f"{BINDINGS}/fencer-plan")


def plan(operator: Operator, config: str, *nodes: str) -> tuple[int, dict[str, Any], set[tuple[str, str]]]:
    """Return the exit code, the plan, and what was found about whom in the lab's namespace."""
    done = operator.run("plan", *nodes, "-o", "json", "-c", config)
    made = json.loads(done.stdout)
    found = {(one["what"], one["about"]) for one in made["findings"]}
    return done.returncode, made, {one for one in found if one[1].startswith(f"{NAMESPACE}/")}


def test_a_plan_of_a_real_node(lab: Lab, operator: Operator) -> None:
    """Without the role it cannot tell all; with it, it says of budgets what their controller has counted."""
    config = str(operator.configure())
    name = lab.busiest()
    before = len(operator.writes(events=True))
    code, made, _ = plan(operator, config, name)
    assert (code, made["verdict"]) == (0, "disruptive")
    assert "not looked at: forbidden: list persistentvolumeclaims" in {
        one["text"] for one in made["findings"]
    }

    with allowed_to_plan(lab):
        code, made, found = plan(operator, config, name)
        assert (code, made["takes"]["high_s"] is None) == (0, False), made
        assert ("volume-moves", f"{NAMESPACE}/StatefulSet/{DATABASE}") in found
        with budget(lab.cluster, NAMESPACE, "db", DATABASE, minAvailable=DATABASE_PODS - 1):
            code, made, found = plan(operator, config, name)
            assert (code, ("budget-waves", f"{NAMESPACE}/db") in found) == (0, True), made
        with budget(lab.cluster, NAMESPACE, "db", DATABASE, minAvailable=DATABASE_PODS):
            code, made, found = plan(operator, config, name)
            assert (code, made["verdict"]) == (1, "blocked")
            assert ("budget-never", f"{NAMESPACE}/db") in found
            with budget(lab.cluster, NAMESPACE, "more", DATABASE, minAvailable=1):
                code, made, found = plan(operator, config, name)
                assert ("two-budgets", f"{NAMESPACE}/StatefulSet/{DATABASE}") in found
    assert len(operator.writes(events=True)) == before, "a plan touches nothing"


@contextmanager
def deployment(lab: Lab, name: str, replicas: int, labels: dict[str, str], **spec: Any) -> Iterator[None]:
    """Make a Deployment, and take it away again with its pods."""
    labels = {"app": name, **labels}
    pod = {"containers": [{"name": "main", "image": "none"}], **spec}
    template = {"metadata": {"labels": labels}, "spec": pod}
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    lab.client.post(DEPLOYMENTS, {"metadata": {"name": name}, "spec": body})
    try:
        yield
    finally:
        path = f"{DEPLOYMENTS}/{name}"
        lab.client.delete(path, {"propagationPolicy": "Foreground"})
        wait_until(lambda: lab.cluster.request("GET", path).status == 404, f"end of {name} and its pods")


def evict(lab: Lab, pod: str, *, really: bool = False) -> int:
    """Ask the API server for an eviction, or what it would answer to one; return its status."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": NAMESPACE},
        "deleteOptions": {} if really else {"dryRun": ["All"]},
    }
    return int(lab.cluster.request("POST", f"{PODS}/{pod}/eviction", body).status)


@pytest.mark.parametrize(
    ("replicas", "spec", "answer", "found"),
    [
        (1, {"minAvailable": 1}, 429, "budget-never"),
        (2, {"minAvailable": 1}, 429, "budget-unhealthy"),
        (1, {"maxUnavailable": 1}, 429, "budget-unhealthy"),
        (2, {"minAvailable": 1, "unhealthyPodEvictionPolicy": "IfHealthyBudget"}, 429, "budget-unhealthy"),
        (1, {"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, 201, ""),
        (1, {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, 201, ""),
    ],
)
def test_a_crash_loop_behind_a_budget_is_judged_as_its_eviction_is(
    lab: Lab, operator: Operator, replicas: int, spec: dict[str, Any], answer: int, found: str
) -> None:
    """Of a pod that runs and is never Ready, by budgets that their controller counts."""
    config = str(operator.configure())
    with allowed_to_plan(lab), deployment(lab, CRASH, replicas, {CRASHES: "true"}):

        def crashing() -> dict[str, Any] | None:
            return next((pod for pod in lab.look().of(CRASH) if pod["status"].get("containerStatuses")), None)

        pod = wait_until(crashing, "crash loop")
        assert (pod["status"]["phase"], is_ready(pod)) == ("Running", False)
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        with budget(lab.cluster, NAMESPACE, CRASH, CRASH, **spec):
            code, made, whats = plan(operator, config, node)
            told = {what for what, about in whats if about == f"{NAMESPACE}/{CRASH}"}
            assert (evict(lab, name), told) == (answer, {found} - {""})
            assert made["goes"] is (answer == 201) is (code == 0)
        if found:
            (text,) = [one["text"] for one in made["findings"] if one["what"] == found]
            assert "CrashLoopBackOff, 17 restarts" in text


def test_a_pod_that_tolerates_the_cordon_comes_back_as_the_plan_says(lab: Lab, operator: Operator) -> None:
    """Evicted from a cordoned node, it is bound there once more."""
    config = str(operator.configure())
    name = lab.busiest()
    here = {"nodeSelector": {"kubernetes.io/hostname": name}, "tolerations": [{"operator": "Exists"}]}
    with allowed_to_plan(lab), deployment(lab, WANDERER, 1, {}, **here):

        def ready() -> dict[str, str]:
            return lab.look().ready(WANDERER)

        (old,) = wait_until(ready, "Ready wanderer")
        code, _, found = plan(operator, config, name, "--ignore-daemonsets")
        back = {about for what, about in found if what == "comes-back"}
        assert (code, len(back)) == (0, 1)
        assert back.pop().startswith(f"{NAMESPACE}/ReplicaSet/{WANDERER}-")
        lab.patch_node(name, {"spec": {"unschedulable": True}})
        try:
            assert evict(lab, old, really=True) == 201
            (new,) = wait_until(lambda: ready().keys() - {old}, "another wanderer")
            assert ready()[new] == name
        finally:
            lab.patch_node(name, {"spec": {"unschedulable": None}})
