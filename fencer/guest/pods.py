"""A node's pods, and the answers to their evictions, from the API's JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fencer.evicting.answers import Answer
from fencer.guest.fields import items, mapping

MIRROR = "kubernetes.io/config.mirror"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
"""A cordon as a taint for the scheduler: without a value, against new pods (NoSchedule)."""
_OWN_GRACE_S = 30.0
"""Source: kubernetes pkg/apis/core/types.go, DefaultTerminationGracePeriodSeconds."""


@dataclass(frozen=True)
class Pod:
    """A pod on this node.

    Attributes:
        uid: Its UID.
        namespace: Its namespace.
        name: Its name.
        controller: Kind and name of the owner that recreates it; empty: none.
        created_utc: When it was created, by the API server's clock; empty: not known.
        mirror: It is a static pod.
        finished: Its containers are over.
        terminating: It is deleted already.
        local_data: It uses an emptyDir.
        tolerates_cordon: A cordon does not keep it off.
        grace_s: How long it may take to end.
        claims: How many volume claims it uses.
    """

    uid: str
    namespace: str
    name: str
    controller: str = ""
    created_utc: str = ""
    mirror: bool = False
    finished: bool = False
    terminating: bool = False
    local_data: bool = False
    tolerates_cordon: bool = False
    grace_s: float = _OWN_GRACE_S
    claims: int = 0

    def __str__(self) -> str:
        """As people and kubectl write it."""
        return f"{self.namespace}/{self.name}"


def pod_of(body: Any) -> Pod | None:
    """Read a pod from its JSON; None: it has no identity."""
    meta, spec, status = (mapping(mapping(body).get(key)) for key in ("metadata", "spec", "status"))
    uid, namespace, name = (meta.get(key) for key in ("uid", "namespace", "name"))
    if not (isinstance(uid, str) and isinstance(namespace, str) and isinstance(name, str) and uid and name):
        return None
    volumes = [mapping(volume) for volume in items(spec.get("volumes"))]
    owners = [mapping(owner) for owner in items(meta.get("ownerReferences"))]
    controller = next((owner for owner in owners if owner.get("controller") is True), None)
    return Pod(
        uid,
        namespace,
        name,
        controller=f"{controller.get('kind')}/{controller.get('name')}" if controller else "",
        created_utc=str(meta.get("creationTimestamp") or ""),
        mirror=MIRROR in mapping(meta.get("annotations")),
        finished=str(status.get("phase")) in ("Succeeded", "Failed"),
        terminating=bool(meta.get("deletionTimestamp")),
        local_data=any("emptyDir" in volume for volume in volumes),
        tolerates_cordon=any(_tolerates_cordon(mapping(one)) for one in items(spec.get("tolerations"))),
        grace_s=0.0 if spec.get("terminationGracePeriodSeconds") == 0 else _OWN_GRACE_S,
        claims=sum("persistentVolumeClaim" in volume or "ephemeral" in volume for volume in volumes),
    )


def _tolerates_cordon(toleration: dict[str, Any]) -> bool:
    """Whether the scheduler ignores a cordon for this pod.

    Source: k8s.io/api core/v1 toleration.go, ToleratesTaint.
    """
    key, operator, value, effect = (
        str(toleration.get(name) or "") for name in ("key", "operator", "value", "effect")
    )
    matches = operator == "Exists" or (operator in ("", "Equal") and not value)
    return matches and key in ("", UNSCHEDULABLE) and effect in ("", "NoSchedule")


def answer_of(status: int, body: dict[str, Any], retry_after_s: float | None = None) -> Answer:
    """Read an answer to an eviction.

    Args:
        status: The HTTP status.
        body: The Status object that came with it.
        retry_after_s: The header Retry-After.
    """
    causes = [mapping(cause) for cause in items(mapping(body.get("details")).get("causes"))]
    told = tuple((str(cause.get("reason") or ""), str(cause.get("message") or "")) for cause in causes)
    return Answer(status, str(body.get("message") or ""), told, retry_after_s)
