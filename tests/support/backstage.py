"""The scene behind a real API, set by an administrator's plain requests: the contract's `Backstage`."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from fencer.cluster.rights import Right
from fencer.core import annotations as keys
from fencer.core.model import Taint
from tests.support import wait_until
from tests.support.controlplane import ControlPlane

MERGE = "application/merge-patch+json"
NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
OUR_LEASES = "/apis/coordination.k8s.io/v1/namespaces/fencer/leases"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
REMEDIATIONS = "/apis/remediation.fencer.dev/v1alpha1/namespaces/default/fencerremediations"
MACHINES = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines"
MEDIK8S_LEASES = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

_ticks = itertools.count(1)


class ApiBackstage:
    """Implements `tests.contract.cluster_contract.Backstage` for a control plane without controllers."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._api = control_plane

    def make_node(
        self, name: str, *, ready: bool | None = True, boot_id: str = "boot-1", taints: Sequence[Taint] = ()
    ) -> None:
        spec = {"taints": [_taint(taint) for taint in taints]}
        # As a kubelet makes it: of an object that is made without any field the API server never records who
        # writes which. Source: apimachinery pkg/util/managedfields/internal/skipnonapplied.go.
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        made = self.send("POST", f"{NODES}?fieldManager=kubelet", {"metadata": metadata, "spec": spec})
        # All of nodeInfo's fields are required together.
        rest = "machineID kernelVersion osImage containerRuntimeVersion kubeletVersion kubeProxyVersion"
        info = dict.fromkeys([*rest.split(), "operatingSystem", "architecture"], "")
        info |= {"bootID": boot_id, "systemUUID": f"uuid-of-{name}"}
        condition = {"type": "Ready", "status": {True: "True", False: "False", None: "Unknown"}[ready]}
        made["status"] = {"nodeInfo": info, "conditions": [condition | {"lastHeartbeatTime": _second()}]}
        self.send("PUT", f"{NODES}/{name}/status", made)

    def touch_node(self, name: str) -> None:
        self._label(f"{NODES}/{name}")

    def forget_writers(self, name: str) -> None:
        # Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/, "Clearing managedFields".
        self.send("PATCH", f"{NODES}/{name}", {"metadata": {"managedFields": [{}]}})

    def drop_node(self, name: str) -> None:
        self.send("DELETE", f"{NODES}/{name}")

    def annotate_node(self, name: str, key: str, value: str) -> None:
        self.send("PATCH", f"{NODES}/{name}", {"metadata": {"annotations": {key: value}}})

    def node_annotations(self, name: str) -> Mapping[str, str]:
        return dict(self.send("GET", f"{NODES}/{name}")["metadata"].get("annotations", {}))

    def renew_lease(self, name: str) -> None:
        spec = {"holderIdentity": name, "renewTime": f"2026-11-20T10:00:00.{next(_ticks):06}Z"}
        body = {"metadata": {"name": name}, "spec": spec}
        if self._api.request("GET", f"{LEASES}/{name}").status == 404:
            self.send("POST", LEASES, body)
        else:
            self.send("PATCH", f"{LEASES}/{name}", body)

    def report_status(self, name: str) -> None:
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": _second()}
        self.send("PATCH", f"{NODES}/{name}/status", {"status": {"conditions": [ready]}})

    def mark_unknown(self, name: str) -> None:
        status = self.send("GET", f"{NODES}/{name}")["status"]
        unknown = {"status": "Unknown", "reason": "NodeStatusUnknown"}
        conditions = [one | unknown for one in status["conditions"]]
        self.send("PATCH", f"{NODES}/{name}/status", {"status": {"conditions": conditions}})

    def make_space(self, name: str) -> None:
        """Make a namespace, if it is not there."""
        if self._api.request("GET", f"/api/v1/namespaces/{name}").status == 404:
            self.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def make_lease(self, name: str) -> None:
        self.send("POST", OUR_LEASES, {"metadata": {"name": name}})

    def drop_lease(self, name: str) -> None:
        self.send("DELETE", f"{OUR_LEASES}/{name}")

    def annotate_lease(self, name: str, key: str, text: str) -> None:
        self.send("PATCH", f"{OUR_LEASES}/{name}", {"metadata": {"annotations": {key: text}}})

    def hold_lease(self, name: str, holder: str, transitions: int = 0) -> None:
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": transitions}
        self.send("PATCH", f"{OUR_LEASES}/{name}", {"spec": spec})

    def make_pod(
        self,
        node: str,
        name: str,
        *,
        finalizers: Sequence[str] = (),
        mirror: bool = False,
        tolerates: bool = False,
        claim: str = "",
    ) -> None:
        notes = {"kubernetes.io/config.mirror": "digest"} if mirror else {}
        spec: dict[str, Any] = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
        if tolerates:
            spec["tolerations"] = [{"operator": "Exists"}]
        if claim:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        if mirror:
            # A mirror pod belongs to a node and has no service account, or admission refuses it.
            uid = self.send("GET", f"{NODES}/{node}")["metadata"]["uid"]
            owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
            metadata = {"name": name, "annotations": notes, "ownerReferences": [owner]}
            spec["automountServiceAccountToken"] = False
        else:
            metadata = {"name": name, "finalizers": list(finalizers)}
        self.send("POST", PODS, {"metadata": metadata, "spec": spec})
        self.send("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running"}})

    def make_claim(self, name: str, *, phase: str = "Bound") -> str:
        """Make a claim for a volume, and play the controller that says what became of it (`phase`)."""
        volume = f"pv-of-{name}"
        room = {"requests": {"storage": "1Gi"}}
        spec = {"accessModes": ["ReadWriteOnce"], "resources": room, "volumeName": volume}
        self.send("POST", CLAIMS, {"metadata": {"name": name}, "spec": spec})
        self.send("PATCH", f"{CLAIMS}/{name}/status", {"status": {"phase": phase}})
        return volume

    def touch_pod(self, name: str) -> None:
        self._label(f"{PODS}/{name}")

    def drop_pod(self, name: str) -> None:
        self.send("PATCH", f"{PODS}/{name}", {"metadata": {"finalizers": None}})
        self.send("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})

    def disruption_of(self, name: str) -> str | None:
        for condition in self.send("GET", f"{PODS}/{name}")["status"].get("conditions", []):
            if (condition["type"], condition["status"]) == ("DisruptionTarget", "True"):
                return str(condition["message"])
        return None

    def make_attachment(self, node: str, name: str, volume: str, *, attached: bool) -> None:
        spec = {"attacher": "csi.example.com", "nodeName": node, "source": {"persistentVolumeName": volume}}
        self.send("POST", ATTACHMENTS, {"metadata": {"name": name}, "spec": spec})
        self.send("PATCH", f"{ATTACHMENTS}/{name}/status", {"status": {"attached": attached}})

    def events_of(self, node: str) -> Sequence[tuple[str, str, str]]:
        # kubectl describe node asks with the node's real UID and with its name as the UID.
        # Source: kubectl pkg/describe/describe.go, NodeDescriber and searchEvents.
        found = []
        for uid in (self.send("GET", f"{NODES}/{node}")["metadata"]["uid"], node):
            selector = f"involvedObject.name={node},involvedObject.kind=Node,involvedObject.uid={uid}"
            answer = self.send("GET", f"/api/v1/events?{urlencode({'fieldSelector': selector})}")
            found += [(event["type"], event["reason"], event["message"]) for event in answer["items"]]
        return found

    def pause(self, why: str | None) -> None:
        self.send("PATCH", "/api/v1/namespaces/kube-system", {"metadata": {"annotations": {keys.PAUSE: why}}})

    def allows(self, right: Right, user: str, groups: Sequence[str] = ()) -> bool:
        """Tell whether the API server grants a user in groups a right."""
        spec = {**right.review()["spec"], "user": user, "groups": list(groups)}
        allowed: bool = self.send("POST", REVIEWS, {"spec": spec})["status"]["allowed"]
        return allowed

    def wait_for_rights(self, rights: Iterable[Right], user: str, groups: Sequence[str] = ()) -> None:
        """Return once a user has rights whose roles and bindings were made just now.

        The API server learns of its own roles by a watch, and may refuse what comes right after their making.
        """
        wanted = list(rights)
        wait_until(lambda: all(self.allows(right, user, groups) for right in wanted), f"all rights of {user}")

    def wait_for_kind(self, path: str) -> None:
        """Return once objects of a kind that was defined just now can be listed."""
        wait_until(lambda: self._api.request("GET", path).status == 200, f"objects at {path}")

    def define_machines(self) -> None:
        """Define the kind Machine as Cluster API does, but for what its fields may be; once."""
        name, free = (
            "machines.cluster.x-k8s.io",
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        )
        if self._api.request("GET", f"{DEFINITIONS}/{name}").status == 404:
            version = {"name": "v1beta2", "served": True, "storage": True, "subresources": {"status": {}}}
            spec = {
                "group": "cluster.x-k8s.io",
                "scope": "Namespaced",
                "names": {"kind": "Machine", "plural": "machines"},
                "versions": [{**version, "schema": {"openAPIV3Schema": free}}],
            }
            self.send("POST", DEFINITIONS, {"metadata": {"name": name}, "spec": spec})
        self.wait_for_kind(MACHINES)

    def make_machine(self, name: str, provider_id: str = "", status: Mapping[str, Any] | None = None) -> str:
        """Make a Machine as Cluster API does; return its UID."""
        body = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": name}}
        made = self.send("POST", MACHINES, {**body, "spec": {"providerID": provider_id}})
        self.set_machine(name, status or {})
        return str(made["metadata"]["uid"])

    def set_machine(self, name: str, status: Mapping[str, Any]) -> None:
        """Change the status of a Machine."""
        self.send("PATCH", f"{MACHINES}/{name}/status", {"status": status})

    def make_request(self, name: str, **metadata: Any) -> str:
        """Make a FencerRemediation; return its path."""
        body = {"apiVersion": "remediation.fencer.dev/v1alpha1", "kind": "FencerRemediation"}
        self.send("POST", REMEDIATIONS, {**body, "metadata": {"name": name, **metadata}})
        return f"{REMEDIATIONS}/{name}"

    def drop_request(self, name: str) -> None:
        self.send("PATCH", f"{REMEDIATIONS}/{name}", {"metadata": {"finalizers": None}})
        self.send("DELETE", f"{REMEDIATIONS}/{name}")

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request as an administrator; one that does not succeed is a fault of the test."""
        kind = MERGE if method == "PATCH" else "application/json"
        answer = self._api.request(method, path, body, content_type=kind)
        assert answer.status < 300, f"{method} {path}: {answer.status} {answer.body}"
        return answer.body

    def _label(self, path: str) -> None:
        self.send("PATCH", path, {"metadata": {"labels": {"example.com/touched": str(next(_ticks))}}})


def _second() -> str:
    """Return a time that no other call returns; the API server keeps whole seconds."""
    return (datetime(2026, 11, 20, 10, tzinfo=UTC) + timedelta(seconds=next(_ticks))).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )


def _taint(taint: Taint) -> dict[str, str]:
    body = {"key": taint.key, "value": taint.value, "effect": taint.effect, "timeAdded": taint.time_added}
    return {name: value for name, value in body.items() if value}
