"""The test control plane is a real one: it schedules, judges nodes and rights, dies and comes back."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.binaries import API_SERVER, ETCD, SCHEDULER, find_or_build
from tests.support import wait_until
from tests.support.controlplane import ControlPlane, ControlPlaneError, Response

MERGE = "application/merge-patch+json"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
# A test process that starts etcd from a thread of short life, says its pid, and then waits to be killed.
ORPHAN_MAKER = """
import sys, threading
from pathlib import Path
from tests.controlplane.binaries import find_or_build
from tests.support.controlplane import ControlPlane
cluster = ControlPlane(Path(sys.argv[1]), find_or_build())
thread = threading.Thread(target=cluster.start_component, args=["etcd"])
thread.start()
thread.join()
print(cluster.pid("etcd"), flush=True)
threading.Event().wait()
"""


def beat(cluster: ControlPlane, name: str) -> None:
    """Report a node Ready, as its kubelet would."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
    status = {"conditions": [ready], "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    answer = patch_status(cluster, name, status, kubelet_of=name)
    assert answer.status == 200, answer.body


def patch_status(cluster: ControlPlane, name: str, status: dict[str, Any], *, kubelet_of: str) -> Response:
    return cluster.request(
        "PATCH",
        f"/api/v1/nodes/{name}/status",
        {"status": status},
        user=f"system:node:{kubelet_of}",
        groups=["system:nodes"],
        content_type=MERGE,
    )


def ready_status(cluster: ControlPlane, name: str) -> str | None:
    status = cluster.request("GET", f"/api/v1/nodes/{name}").body["status"]
    return next((it["status"] for it in status.get("conditions", []) if it["type"] == "Ready"), None)


def deployment(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": "none"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def add_node(cluster: ControlPlane, name: str) -> str:
    metadata = {"name": name, "labels": {"made-for": "test-controlplane"}}
    answer = cluster.request("POST", "/api/v1/nodes", {"metadata": metadata})
    assert answer.status == 201, answer.body
    beat(cluster, name)
    return name


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[str]:
    """A node that reported Ready once; whatever the test put into the cluster is gone afterwards."""
    yield add_node(control_plane, "silent")
    control_plane.request("DELETE", "/api/v1/nodes?labelSelector=made-for%3Dtest-controlplane")
    control_plane.request("DELETE", f"{DEPLOYMENTS}?propagationPolicy=Foreground")

    def emptied() -> bool:  # a controller may have made one more pod before it was deleted itself
        control_plane.request("DELETE", f"{PODS}?gracePeriodSeconds=0")
        return not any(control_plane.request("GET", path).body["items"] for path in (PODS, DEPLOYMENTS))

    wait_until(emptied, "end of pods and deployments", every_s=0.3)


def test_is_the_pinned_version(control_plane: ControlPlane) -> None:
    """Facts about Kubernetes were read in 1.36: another version would prove something else."""
    assert control_plane.request("GET", "/version").body["gitVersion"].startswith("v1.36.")


def test_pods_of_a_deployment_are_bound_to_a_ready_node(control_plane: ControlPlane, node: str) -> None:
    """Deployment controller, service accounts, node lifecycle and scheduler all work."""
    answer = control_plane.request("POST", DEPLOYMENTS, deployment("web", 3))
    assert answer.status == 201, answer.body

    def bound() -> list[str]:
        beat(control_plane, node)
        pods = control_plane.request("GET", f"{PODS}?labelSelector=app%3Dweb").body["items"]
        nodes = [pod["spec"].get("nodeName", "") for pod in pods]
        return nodes if len(nodes) == 3 and all(nodes) else []

    assert wait_until(bound, "binding of the pods") == [node] * 3


def test_pods_get_the_short_tolerations(control_plane: ControlPlane, node: str) -> None:
    """Timing reaches the API server: eviction must not take Kubernetes' five minutes."""
    control_plane.request("POST", DEPLOYMENTS, deployment("brief", 1))
    query = f"{PODS}?labelSelector=app%3Dbrief"
    pods = wait_until(lambda: control_plane.request("GET", query).body["items"], "pod")
    seconds = {it["key"]: it["tolerationSeconds"] for it in pods[0]["spec"]["tolerations"]}
    assert seconds == {"node.kubernetes.io/not-ready": 5, "node.kubernetes.io/unreachable": 5}


def test_a_silent_node_becomes_unknown_and_tainted(control_plane: ControlPlane, node: str) -> None:
    """Timing reaches the controller manager: with the default of 50 s this would not come in time.

    A second node lives on: when all of them are silent, Kubernetes suspects itself and evicts nothing.
    """
    living = add_node(control_plane, "living")

    def is_unknown() -> bool:
        beat(control_plane, living)
        return ready_status(control_plane, node) == "Unknown"

    def taints() -> list[str]:
        beat(control_plane, living)
        spec = control_plane.request("GET", f"/api/v1/nodes/{node}").body["spec"]
        return [it["key"] for it in spec.get("taints", []) if it["effect"] == "NoExecute"]

    wait_until(is_unknown, "judgement of the silent node", timeout_s=40)
    assert wait_until(taints, "NoExecute taint") == ["node.kubernetes.io/unreachable"]


def test_a_user_without_rights_is_refused(control_plane: ControlPlane) -> None:
    """RBAC is on: a test of fencer's manifest would otherwise pass with no rights at all."""
    nobody = control_plane.request("GET", "/api/v1/nodes", user="nobody", groups=[])
    admin = control_plane.request("GET", "/api/v1/nodes")
    assert (nobody.status, admin.status) == (403, 200)
    assert 'User "nobody" cannot list resource "nodes"' in nobody.body["message"]


def test_a_role_gives_just_its_rights(control_plane: ControlPlane) -> None:
    """RBAC is on: what a role names is allowed, what it does not name is not."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    control_plane.request("POST", f"{rbac}/clusterroles", {"metadata": {"name": "looker"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looker"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "lookers"}]
    binding = {"metadata": {"name": "lookers"}, "roleRef": role, "subjects": subjects}
    control_plane.request("POST", f"{rbac}/clusterrolebindings", binding)

    def ask(path: str) -> int:
        return control_plane.request("GET", path, user="somebody", groups=["lookers"]).status

    wait_until(lambda: ask("/api/v1/nodes") == 200, "right to list nodes")
    assert ask("/api/v1/pods") == 403


def test_a_kubelet_may_not_touch_another_node(control_plane: ControlPlane, node: str) -> None:
    """NodeRestriction is on: the stand-in kubelets have no more rights than real ones."""
    answer = patch_status(control_plane, node, {"phase": "Running"}, kubelet_of="another")
    assert answer.status == 403
    assert "is not allowed to modify node" in answer.body["message"]


def test_the_audit_log_tells_who_wrote_what_to_a_node(control_plane: ControlPlane, node: str) -> None:
    """Tests of guarded writes look here for what was really sent."""
    path = f"/api/v1/nodes/{node}"
    change = {"metadata": {"annotations": {"example.org/seen": "yes"}}}
    control_plane.request("GET", path)
    control_plane.request("PATCH", path, change, content_type=MERGE)

    def patches() -> list[dict[str, Any]]:
        return [
            event
            for event in control_plane.audit_events()
            if event["verb"] == "patch" and event["objectRef"]["name"] == node and "requestObject" in event
            if event["user"]["username"] == "admin"
        ]

    [written] = wait_until(patches, "audit of the PATCH")
    assert written["requestObject"] == change
    assert written["responseStatus"]["code"] == 200
    assert not [event for event in control_plane.audit_events() if event["verb"] in {"get", "list", "watch"}]


def test_controllers_write_under_their_own_names(control_plane: ControlPlane, node: str) -> None:
    """Only so can a test tell what fencer did from what Kubernetes did."""
    control_plane.request("POST", DEPLOYMENTS, deployment("owned", 1))
    who = "system:serviceaccount:kube-system:replicaset-controller"

    def creations() -> list[dict[str, Any]]:
        events = control_plane.audit_events()
        pods = [it for it in events if it["verb"] == "create" and it["objectRef"].get("resource") == "pods"]
        return [it for it in pods if it["user"]["username"] == who]

    wait_until(creations, f"pod created by {who}")


def test_an_api_server_that_died_comes_back_with_its_state(control_plane: ControlPlane, node: str) -> None:
    """An outage of the API is a fault that tests make, at an address that stays."""
    control_plane.stop_component(API_SERVER)
    try:
        with pytest.raises(ConnectionRefusedError):
            control_plane.request("GET", "/readyz")
    finally:
        control_plane.start_component(API_SERVER)
    assert control_plane.request("GET", f"/api/v1/nodes/{node}").status == 200


def test_a_scheduler_that_ended_by_itself_is_revived(control_plane: ControlPlane) -> None:
    control_plane.revive()  # it may have ended when the API server did, in the test before
    pid = control_plane.pid(SCHEDULER)
    control_plane.revive()
    assert control_plane.pid(SCHEDULER) == pid
    os.kill(pid, signal.SIGKILL)

    def revived() -> bool:
        control_plane.revive()
        return control_plane.pid(SCHEDULER) != pid

    wait_until(revived, "new scheduler")


def test_a_frozen_api_server_does_not_answer(control_plane: ControlPlane) -> None:
    """A hung API is another fault than a dead one: the connection opens and nothing comes."""
    control_plane.freeze_component(API_SERVER)
    try:
        with pytest.raises(TimeoutError):
            control_plane.request("GET", "/readyz", timeout_s=0.5)
    finally:
        control_plane.thaw_component(API_SERVER)
    wait_until(lambda: control_plane.request("GET", "/readyz").status == 200, "ready API server")


def test_a_component_that_cannot_start_says_why(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The reason stands in the log, so that its tail stands in the failure."""
    flags = {ETCD: ["--listen-client-urls=http://nowhere.invalid:1"]}
    broken = ControlPlane(tmp_path / "broken", find_or_build(), flags=flags)
    with pytest.raises(ControlPlaneError, match=r"(?s)etcd ended with code .*nowhere\.invalid"):
        broken.start()


def test_nothing_outlives_a_killed_test_process(control_plane: ControlPlane, tmp_path: Path) -> None:
    """Killed so that no clean-up runs; until then a component also outlives the thread that asked for it."""
    command = [sys.executable, "-c", ORPHAN_MAKER, str(tmp_path / "orphan")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout is not None
        pid = int(maker.stdout.readline())
        assert is_etcd(pid)
        maker.kill()
    wait_until(lambda: not is_etcd(pid), f"end of the orphan {pid}")


def is_etcd(pid: int) -> bool:
    try:
        return b"etcd" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it ended before, or between opening and reading
        return False
