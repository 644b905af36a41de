"""A cluster for drains: the real control plane, nodes with stand-in kubelets, and workloads with budgets."""

import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fencer.guest import kubeconfig
from fencer.guest.api import Api
from fencer.guest.node import NodeClient
from fencer.guest.system import Ran
from tests.debian.standin_kubelet import StandInKubelet, tick_until
from tests.support import wait_until
from tests.support.controlplane import ControlPlane

Json = dict[str, Any]
MERGE = "application/merge-patch+json"
_NUMBERS = itertools.count(1)


class DrainCluster:
    """What a test of drains asks of a cluster, as its administrator.

    Args:
        control_plane: The real one, with the default patience.
        namespace: Of its own for each test; numbered, as the first try's is not gone yet at the second.
    """

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.control_plane = control_plane
        self.namespace = f"{namespace}-{next(_NUMBERS)}"
        self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        wait_until(lambda: control_plane.request("GET", account).status == 200, "service account")

    # -- nodes --------------------------------------------------------------------------------------------

    def client(self, node: str) -> NodeClient:
        """Return what `fencer-guest` on a node would use: the kubelet's rights and no other."""
        return self.client_of(self.control_plane, node)

    @staticmethod
    def client_of(control_plane: ControlPlane, node: str) -> NodeClient:
        """Return the same for any control plane."""
        return NodeClient(_api(control_plane, node), node)

    @contextmanager
    def kubelet(self, node: str, boot: str) -> Iterator[None]:
        """Run a stand-in kubelet in a thread; its node is gone afterwards."""
        over = threading.Event()
        standin = StandInKubelet(_api(self.control_plane, node), node, boot)
        thread = threading.Thread(target=tick_until, args=(over, standin, lambda _: None))
        thread.start()
        try:
            wait_until(lambda: self.ready(node), f"node {node}")
            yield
        finally:
            over.set()
            thread.join()
            self.control_plane.request("DELETE", f"/api/v1/nodes/{node}")

    @contextmanager
    def silent_node(self, node: str) -> Iterator[None]:
        """Have a node without a kubelet. Pods of no node at all are deleted 40 s later, one after the other.

        Source: kubernetes pkg/controller/podgc/gc_controller.go, gcOrphaned.
        """
        self._ask("POST", "/api/v1/nodes", {"metadata": {"name": node}})
        try:
            yield
        finally:
            self._ask("DELETE", f"/api/v1/nodes/{node}")

    def remove(self) -> None:
        """Delete the namespace; the controllers empty it."""
        self._ask("DELETE", f"/api/v1/namespaces/{self.namespace}")

    def ready(self, node: str) -> bool:
        """Whether a node is there, Ready, and free of the taints of a new one."""
        found = self.control_plane.request("GET", f"/api/v1/nodes/{node}")
        if found.status != 200:
            return False
        conditions = found.body.get("status", {}).get("conditions", [])
        taints = [taint["key"] for taint in found.body.get("spec", {}).get("taints", [])]
        return any(it["type"] == "Ready" and it["status"] == "True" for it in conditions) and not any(
            "not-ready" in key or "unreachable" in key for key in taints
        )

    def node(self, name: str) -> Json:
        """Read a node."""
        return self._ask("GET", f"/api/v1/nodes/{name}")

    def patch_node(self, name: str, patch: Json, manager: str = "kubectl") -> None:
        """Change a node as somebody else."""
        self._ask("PATCH", f"/api/v1/nodes/{name}?fieldManager={manager}", patch)

    def cordon(self, name: str, *, on: bool = True) -> None:
        """`kubectl cordon` or `kubectl uncordon`."""
        self.patch_node(name, {"spec": {"unschedulable": True if on else None}}, "kubectl-cordon")

    # -- workloads ----------------------------------------------------------------------------------------

    def deploy(
        self,
        name: str,
        replicas: int,
        *,
        on: str,
        keep_off: Sequence[str] = (),
        pod: Json | None = None,
        **annotations: str,
    ) -> None:
        """Create a Deployment whose pods are all on one node at first, and may move to any.

        Args:
            name: Its name, and its pods' label `app`.
            replicas: How many.
            on: The node.
            keep_off: The other nodes.
            pod: More of its pods' spec.
            annotations: Of its pods, `_` for `/`.
        """
        for node in keep_off:
            self.cordon(node)
        labels = {"app": name}
        meta = {
            "labels": labels,
            "annotations": {key.replace("_", "/"): it for key, it in annotations.items()},
        }
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": meta,
                "spec": {"containers": [{"name": "main", "image": "none"}], **(pod or {})},
            },
        }
        self._ask("POST", f"/apis/apps/v1/namespaces/{self.namespace}/deployments", _named(name, spec))
        wait_until(
            lambda: len(self.pods(on, name, running=True)) == replicas, f"{replicas} pods of {name} on {on}"
        )
        for node in keep_off:
            self.cordon(node, on=False)

    def daemon_set(self, name: str) -> None:
        """Create a DaemonSet as people write them, and wait until its pods run; nothing tolerates a fence."""
        labels = {"app": name}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
        spec = {"selector": {"matchLabels": labels}, "template": pod}
        path = f"/apis/apps/v1/namespaces/{self.namespace}/daemonsets"
        self._ask("POST", path, _named(name, spec))

        def everywhere() -> bool:
            status = self._ask("GET", f"{path}/{name}").get("status", {})
            return bool(0 < status.get("desiredNumberScheduled", 0) == status.get("numberReady"))

        wait_until(everywhere, f"DaemonSet {name}")

    def budget(self, name: str, app: str, **spec: Any) -> None:
        """Create a PodDisruptionBudget for the pods of an app, and wait until it is computed."""
        path = f"/apis/policy/v1/namespaces/{self.namespace}/poddisruptionbudgets"
        self._ask("POST", path, _named(name, {"selector": {"matchLabels": {"app": app}}, **spec}))
        expected = len(self.pods(app=app))
        wait_until(
            lambda: self._ask("GET", f"{path}/{name}").get("status", {}).get("expectedPods") == expected,
            f"budget {name}",
        )

    def pod(self, name: str, node: str, **spec: Any) -> None:
        """Create a pod without a controller on a node."""
        pod = {"containers": [{"name": "main", "image": "none"}], "nodeName": node, **spec}
        self._ask("POST", f"/api/v1/namespaces/{self.namespace}/pods", _named(name, pod))

    def pods(self, node: str | None = None, app: str | None = None, *, running: bool = False) -> list[str]:
        """Return the names of this namespace's pods on a node, of an app; only Ready ones if asked."""
        found = self._ask("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return sorted(
            pod["metadata"]["name"]
            for pod in found
            if (node is None or pod["spec"].get("nodeName") == node)
            and (app is None or pod["metadata"].get("labels", {}).get("app") == app)
            and (not running or pod["status"].get("phase") == "Running")
        )

    def evictions(self, node: str) -> list[Json]:
        """Return what the audit log has of evictions that a node's kubelet asked for in this namespace."""
        return [
            event
            for event in self.by_kubelet(node)
            if event["objectRef"].get("subresource") == "eviction"
            and event["objectRef"].get("namespace") == self.namespace
        ]

    def by_kubelet(self, node: str) -> list[Json]:
        """Return all writes that a node's kubelet tried."""
        user = f"system:node:{node}"
        return [event for event in self.control_plane.audit_events() if event["user"]["username"] == user]

    def _ask(self, method: str, path: str, body: Json | None = None) -> Json:
        content_type = MERGE if method == "PATCH" else "application/json"
        answer = self.control_plane.request(method, path, body, content_type=content_type)
        if answer.status >= 300:
            raise AssertionError(f"{method} {path}: {answer.status} {json.dumps(answer.body)}")
        return answer.body


def _api(control_plane: ControlPlane, node: str) -> Api:
    path: Path = control_plane.kubeconfig(f"system:node:{node}", ["system:nodes"])
    return Api(kubeconfig.read(path, lambda _: Ran(None)))


def _named(name: str, spec: Json) -> Json:
    return {"metadata": {"name": name}, "spec": spec}
