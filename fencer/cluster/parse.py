"""From the API's JSON to small records: pure, strict about types, one object at a time.

For any JSON, a function here returns its record or raises `ClusterProtocol` naming the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from fencer.cluster import podspec
from fencer.cluster.fields import (
    expect,
    flag,
    mapping,
    named,
    number,
    required,
    sequence,
    shown,
    text,
    texts,
    version,
)
from fencer.core import annotations as keys
from fencer.core.cordon import CORDON_TAINT
from fencer.core.model import OUT_OF_SERVICE, AttachmentView, NodeView, PodView, Taint
from fencer.errors import ClusterProtocol

T = TypeVar("T")

TAINT_VALUE = "nodeshutdown"
"""Value of the out-of-service taint. Source: KEP-2268, non-graceful node shutdown."""
MIRROR = "kubernetes.io/config.mirror"
"""Annotation of a mirror pod. Source: kubernetes pkg/kubelet/types/pod_update.go."""
SIGNED_NOTES = (keys.BINDING, keys.MARK, keys.DOUBTS, keys.INCIDENT, keys.APPROVED)
"""Annotations that are read once the key is known, in the order of `SealedNode.notes`."""
_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


@dataclass(frozen=True, slots=True)
class LeaseView:
    """A node's lease: whose, its renewTime as text (None: never renewed), its resourceVersion as a number."""

    node: str
    renew_time: str | None
    version: int


@dataclass(frozen=True, slots=True)
class SealedNode:
    """A Node of which the signed notes are kept as they were written: they are read once a key is known.

    Attributes:
        view: Without what only the agent's own clock can add, and without those notes.
        notes: The texts of `SIGNED_NOTES`; None: there is none.
    """

    view: NodeView
    notes: tuple[str | None, ...]

    def opened(self, key: bytes) -> NodeView:
        """Return the node with its notes.

        Args:
            key: The cluster's, to tell what fencer has signed.
        """
        binding, mark, doubts, claim, approval = self.notes
        seal = keys.Seal(key, self.view.uid)
        return replace(
            self.view,
            binding=keys.read_binding(binding, seal),
            mark=keys.read_mark(mark, seal),
            doubts=keys.read_doubts(doubts, seal),
            claim=keys.read_claim(claim, seal),
            left=keys.read_left(claim, seal),
            approved=keys.read_approval(approval, seal),
        )


def node(data: Any) -> SealedNode:
    """Read a Node."""
    notes, labels = texts(data, "metadata", "annotations"), texts(data, "metadata", "labels")
    view = NodeView(
        name=required(data, "metadata", "name"),
        uid=required(data, "metadata", "uid"),
        version=required(data, "metadata", "resourceVersion"),
        system_uuid=text(data, "status", "nodeInfo", "systemUUID"),
        boot_id=text(data, "status", "nodeInfo", "bootID"),
        ready=_ready(data),
        taints=tuple(_taint(item) for item in sequence(data, "spec", "taints")),
        unschedulable=flag(data, "spec", "unschedulable"),
        excluded_by=keys.excluded_by(notes, labels),
        pause_note=notes.get(keys.PAUSE),
        roles=_roles(labels),
        cordon=keys.read_cordon(notes.get(keys.CORDON)),
        cordoner=_cordoner(data) if keys.CORDON in notes else "",
        recorded=_recorded(data),
        volumes_in_use=len(sequence(data, "status", "volumesInUse")),
        reported_utc=_reported(data),
        has_swap=bool(number(data, "status", "nodeInfo", "swap", "capacity")),
    )
    return SealedNode(view, tuple(map(notes.get, SIGNED_NOTES)))


def node_with(key: bytes) -> Callable[[Any], NodeView]:
    """Return what reads Nodes of the cluster that has this key, their notes too."""

    def read(data: Any) -> NodeView:
        return node(data).opened(key)

    read.__name__ = node.__name__  # it is named in errors
    return read


def lease(data: Any) -> LeaseView:
    """Read a Lease of the namespace kube-node-lease."""
    return LeaseView(
        node=required(data, "metadata", "name"),
        renew_time=text(data, "spec", "renewTime") or None,
        version=version(data),
    )


def pod(data: Any) -> PodView:
    """Read a Pod."""
    terminating = text(data, "metadata", "deletionTimestamp") != ""
    finalizers = sequence(data, "metadata", "finalizers")
    volumes = sequence(data, "spec", "volumes")
    tolerations = sequence(data, "spec", "tolerations")
    return PodView(
        namespace=required(data, "metadata", "namespace"),
        name=required(data, "metadata", "name"),
        uid=required(data, "metadata", "uid"),
        version=required(data, "metadata", "resourceVersion"),
        phase=text(data, "status", "phase") or "Unknown",
        created_utc=text(data, "metadata", "creationTimestamp"),
        terminating=terminating,
        mirror=MIRROR in texts(data, "metadata", "annotations"),
        tolerates_out_of_service=tolerates_out_of_service(tolerations, terminating=terminating),
        finalizers=tuple(expect(item, str, "metadata.finalizers[]") for item in finalizers),
        controller=podspec.controller(data),
        local_data=podspec.local_data(volumes),
        claims=podspec.claims(volumes, required(data, "metadata", "name")),
        grace_s=podspec.grace_s(data),
        ready=_ready(data) is True,
        labels=tuple(sorted(texts(data, "metadata", "labels").items())),
        tolerates_cordon=tolerates_cordon(tolerations),
    )


def attachment(data: Any) -> AttachmentView:
    """Read a VolumeAttachment. An inline volume has no name of its own and reads ``(inline)``."""
    return AttachmentView(
        name=required(data, "metadata", "name"),
        uid=required(data, "metadata", "uid"),
        node=required(data, "spec", "nodeName"),
        volume=text(data, "spec", "source", "persistentVolumeName") or "(inline)",
        attached=flag(data, "status", "attached"),
        terminating=text(data, "metadata", "deletionTimestamp") != "",
    )


def attached_to(data: Any) -> str:
    """Return the node that a VolumeAttachment names, also of one that cannot be read else; empty: none."""
    try:
        return text(data, "spec", "nodeName")
    except ClusterProtocol:
        return ""


def bound_volume(data: Any) -> str:
    """Return the volume that a PersistentVolumeClaim is bound to; empty: not bound yet.

    A claim may name any volume that it wants before it has it, and one that says that it was bound to a
    volume which is another's reads Lost.

    Source: k8s.io/api core/v1, PersistentVolumeClaimPhase; kubernetes
    pkg/controller/volume/persistentvolume/pv_controller.go.
    """
    bound = text(data, "status", "phase") == "Bound"
    return text(data, "spec", "volumeName") if bound else ""


def tolerates_out_of_service(tolerations: list[Any], *, terminating: bool) -> bool:
    """Whether a pod may stay on a node with the taint out-of-service=nodeshutdown:NoExecute.

    As the taint eviction controller has it: the first toleration that matches counts. One with
    `tolerationSeconds` lets the pod stay for that long, and then the controller deletes it. So such a pod
    tolerates the taint until it is terminating; with zero seconds or less it does not at all.

    Args:
        tolerations: The pod's ``spec.tolerations``.
        terminating: The pod has a deletionTimestamp.

    Source: kubernetes pkg/controller/tainteviction/taint_eviction.go, getMinTolerationTime.
    """
    for item in tolerations:
        toleration = expect(item, dict, "spec.tolerations[]")
        if not matches(toleration, OUT_OF_SERVICE, TAINT_VALUE, "NoExecute"):
            continue
        seconds = toleration.get("tolerationSeconds")
        if seconds is None:
            return True
        return expect(seconds, int, "spec.tolerations[].tolerationSeconds") > 0 and not terminating
    return False


def tolerates_cordon(tolerations: list[Any]) -> bool:
    """Whether a pod may be scheduled to a cordoned node: a drain that evicts it may see it come back.

    Args:
        tolerations: The pod's ``spec.tolerations``.
    """
    found = [expect(item, dict, "spec.tolerations[]") for item in tolerations]
    return any(matches(toleration, CORDON_TAINT, "", "NoSchedule") for toleration in found)


def matches(toleration: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    """Whether a toleration matches a taint.

    An empty effect or key matches all, an empty operator means Equal, comparisons match numbers only.

    Source: k8s.io/api core/v1 toleration.go, ToleratesTaint.
    """
    if text(toleration, "effect") not in {"", effect} or text(toleration, "key") not in {"", key}:
        return False
    match text(toleration, "operator"):
        case "Exists":
            return True
        case "" | "Equal":
            return text(toleration, "value") == value
        case _:
            return False


def moment(header: str | None) -> str:
    """Turn an HTTP Date header, the API server's clock, into RFC 3339."""
    try:
        return parsedate_to_datetime(header or "").astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (TypeError, ValueError, OverflowError) as error:
        raise ClusterProtocol(f"the answer has no readable Date header: {shown(header)}") from error


def paused_why(namespace: Any) -> str | None:
    """Return the pause annotation's text, from the namespace kube-system; None: there is none.

    What it means, and whether it is over, `fencer.core.pause` says.
    """
    return texts(namespace, "metadata", "annotations").get(keys.PAUSE)


def name_in_error(read: Callable[[Any], T], data: Any) -> T:
    """Read one object; if that fails, the error names the object too."""
    try:
        return read(data)
    except ClusterProtocol as error:
        raise ClusterProtocol(f"{read.__name__} {named(data)}: {error}") from error


def set_aside(read: Callable[[Any], T], data: Any) -> T | str:
    """Read one object of a list; if that fails, return its name and why, so that the others go on."""
    try:
        return name_in_error(read, data)
    except ClusterProtocol as error:
        return str(error)


def _ready(data: Any) -> bool | None:
    for item in sequence(data, "status", "conditions"):
        if text(item, "type") == "Ready":
            return {"True": True, "False": False}.get(text(item, "status"))
    return None


def _reported(data: Any) -> str:
    """Return when the kubelet last reported its status: controllers that change the condition leave it alone.

    Source: kubernetes pkg/controller/nodelifecycle/node_lifecycle_controller.go, tryUpdateNodeHealth.
    """
    conditions = sequence(data, "status", "conditions")
    return next((text(item, "lastHeartbeatTime") for item in conditions if text(item, "type") == "Ready"), "")


def _cordoner(data: Any) -> str:
    """Return who set ``spec.unschedulable`` last: setting a field to a new value makes its setter the owner.

    Where several share it (by apply, or by a forged record), all are named: it belongs to none alone.

    Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/, "Field management"
    (plain updates and patches are tracked too).
    """
    record = sequence(data, "metadata", "managedFields")
    owners = [entry for entry in record if "f:unschedulable" in mapping(entry, "fieldsV1", "f:spec")]
    return " and ".join(dict.fromkeys(text(entry, "manager") for entry in owners))


def _recorded(data: Any) -> bool:
    """Whether the API server records which program writes which field of this object.

    If the record was emptied, or the object is older than it, updates and patches never begin one again; only
    a server-side apply does.

    Source: k8s.io/apimachinery pkg/util/managedfields/internal/skipnonapplied.go, Update and Apply.
    """
    return bool(sequence(data, "metadata", "managedFields"))


def _taint(item: Any) -> Taint:
    return Taint(
        key=required(item, "key"),
        value=text(item, "value"),
        effect=required(item, "effect"),
        time_added=text(item, "timeAdded") or None,
    )


def _roles(labels: Mapping[str, str]) -> tuple[str, ...]:
    # Both labels name roles. Source: kubectl pkg/describe/describe.go, findNodeRoles.
    keys = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return tuple(sorted((keys | {labels.get(_ROLE_LABEL, "")}) - {""}))
