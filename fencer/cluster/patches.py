"""What fencer writes: pure functions from what was read to the JSON that is sent.

Every patch names the UID and the resourceVersion that were read, so the API refuses it (409) when the object
is another one or has changed. They are strategic merge patches: annotations and conditions merge by key, and
a null takes a key away; ``spec.taints`` has no merge key and is replaced as a whole, so all taints are sent.

Source: k8s.io/api core/v1 types.go (NodeSpec.Taints carries no patchStrategy).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencer.cluster.parse import TAINT_VALUE
from fencer.core import annotations as keys
from fencer.core.model import (
    OUT_OF_SERVICE,
    Binding,
    Cordon,
    Doubt,
    FenceMark,
    Left,
    NodeView,
    PodView,
    Taint,
)

Body = dict[str, Any]
Notes = Mapping[str, str | None]

NO_EXECUTE = "NoExecute"
EVENTS_NAMESPACE = "default"
"""Where Events about objects without a namespace belong.

Source: kubernetes pkg/apis/core/validation/events.go.
"""
_APPLIED_BY = "fencer"
_MESSAGE_LIMIT = 1024
"""Characters. Source: kubernetes pkg/apis/core/validation/events.go, NoteLengthLimit, which is for
events.k8s.io/v1; core/v1 takes more, but shares the storage."""


def bind(node: NodeView, binding: Binding, key: bytes) -> Body:
    """Set the binding."""
    return _node(node, {keys.BINDING: keys.write_binding(binding, keys.Seal(key, node.uid))})


def record_doubts(node: NodeView, doubts: tuple[Doubt, ...], key: bytes) -> Body:
    """Set the doubts, or take the annotation off where there are none."""
    text = keys.write_doubts(doubts, keys.Seal(key, node.uid)) if doubts else None
    return _node(node, {keys.DOUBTS: text})


def approve(node: NodeView, uuid: str, by: str, since_utc: str, key: bytes) -> Body:
    """Set a person's approval of a VM as this node's, or take it off where the UUID is empty."""
    text = keys.write_approval(uuid, by, since_utc, keys.Seal(key, node.uid)) if uuid else None
    return _node(node, {keys.APPROVED: text})


def claim(node: NodeView, incident: str, by: str, key: bytes, left: Left | None = None) -> Body:
    """Set the claim on an incident."""
    return _node(node, {keys.INCIDENT: keys.write_claim(incident, by, keys.Seal(key, node.uid), left)})


def taint(node: NodeView, mark: FenceMark, key: bytes) -> Body:
    """Add the taint to the others, and set mark and author with it."""
    ours = Taint(OUT_OF_SERVICE, TAINT_VALUE, NO_EXECUTE, mark.fenced_at_utc)
    notes = {keys.MARK: keys.write_mark(mark, keys.Seal(key, node.uid)), keys.APPLIED_BY: _APPLIED_BY}
    return _node(node, notes, taints=[_taint(item) for item in (*node.taints, ours)])


def untaint(node: NodeView, cordon: Cordon | None) -> Body:
    """Take off the taint and all that came with it; with `cordon`, cordon the node and say that it was us."""
    left = [item for item in node.taints if not is_fence(item)]
    notes: Notes = {keys.MARK: None, keys.APPLIED_BY: None, keys.INCIDENT: None}
    if cordon is None:
        return _node(node, notes, taints=[_taint(item) for item in left])
    notes = {**notes, keys.CORDON: keys.write_cordon(cordon)}
    return _node(node, notes, taints=[_taint(item) for item in left], unschedulable=True)


def forget_mark(node: NodeView) -> Body:
    """Take off the mark and what came with it, and leave taints alone."""
    return _node(node, {keys.MARK: None, keys.APPLIED_BY: None, keys.INCIDENT: None})


def cordon(node: NodeView, cordon: Cordon) -> Body:
    """Cordon the node and say that it was us."""
    return _node(node, {keys.CORDON: keys.write_cordon(cordon)}, unschedulable=True)


def uncordon(node: NodeView) -> Body:
    """Take off the cordon and its annotation."""
    return _node(node, {keys.CORDON: None}, unschedulable=None)


def fail_pod(pod: PodView, why: str, now_utc: str) -> Body:
    """Set a pod's phase to Failed, with the condition that tells its controller not to blame the pod.

    Source: kubernetes pkg/controller/podgc/gc_controller.go, markFailedAndDeletePod (phase before deletion);
    Jobs read the condition (podFailurePolicy).
    """
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByFencer",
        "message": why,
        "lastTransitionTime": now_utc,
    }
    guard = {"uid": pod.uid, "resourceVersion": pod.version}
    return {"metadata": guard, "status": {"phase": "Failed", "conditions": [condition]}}


def delete_pod(pod: PodView) -> Body:
    """Delete at once, if it is still the pod that was read."""
    return {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid, "resourceVersion": pod.version}}


def event(node: NodeView, reason: str, text: str, now_utc: str, *, warning: bool) -> Body:
    """Build an Event about a node.

    Its ``involvedObject.uid`` is the node's *name*, as the kubelet writes it, because that is what
    ``kubectl describe node`` of every age looks for.

    Source: kubectl pkg/describe/describe.go, NodeDescriber.
    """
    return {
        "metadata": {"generateName": "fencer-", "namespace": EVENTS_NAMESPACE},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.name},
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": text if len(text) <= _MESSAGE_LIMIT else text[: _MESSAGE_LIMIT - 1] + "…",
        "source": {"component": "fencer"},
        "reportingComponent": "fencer",
        "firstTimestamp": now_utc,
        "lastTimestamp": now_utc,
        "count": 1,
    }


def is_fence(item: Taint) -> bool:
    """Whether a taint is the one that a fence sets; another effect under the same key is an admin's."""
    return item.key == OUT_OF_SERVICE and item.effect == NO_EXECUTE


def _node(node: NodeView, notes: Notes, **spec: Any) -> Body:
    guard = {"uid": node.uid, "resourceVersion": node.version}
    body: Body = {"metadata": {**guard, "annotations": notes}}
    return {**body, "spec": spec} if spec else body


def _taint(item: Taint) -> Body:
    body = {"key": item.key, "value": item.value, "effect": item.effect, "timeAdded": item.time_added}
    return {name: value for name, value in body.items() if value}
