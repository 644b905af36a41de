"""The rights fencer needs, and nothing more. The manifests in ``config/kubernetes`` grant exactly these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fencer.cluster.fields import flag
from fencer.cluster.requests import create
from fencer.core.election import CLUSTER_LEASE, NAMESPACE
from fencer.core.requests import GROUP, RESERVATIONS

if TYPE_CHECKING:
    from fencer.cluster.client import Connection


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource.

    Attributes:
        verb: As RBAC has it.
        resource: With its subresource, like ``pods/status``.
        group: API group; empty for core.
        namespace: Empty: in all namespaces, or a resource without one.
        name: Only this object; empty: all.
    """

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        """``patch nodes``, ``list leases in kube-node-lease``, ``get namespaces kube-system``."""
        named = f" {self.name}" if self.name else ""
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{named}{place}"

    def review(self) -> dict[str, Any]:
        """Build the question whether we have it."""
        resource, _, subresource = self.resource.partition("/")
        attributes = {
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": self.namespace,
            "name": self.name,
        }
        return {"spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}}}


def granted(api: Connection, right: Right) -> bool:
    """Ask the API whether we have a right; a yes is remembered.

    There is a request for each. Where all of them take longer than a caller waits, the next try goes on from
    there: an agent has to start with a slow API server, too.
    """
    if right not in api.granted:
        answer = api.read(
            "create selfsubjectaccessreview",
            create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=right.review()),
        )
        if not answer.read(lambda body: flag(body, "status", "allowed")):
            return False
        api.granted.add(right)
    return True


_COORDINATION = "coordination.k8s.io"

RIGHTS = (
    Right("get", "namespaces", name="kube-system"),
    Right("get", "nodes"),
    Right("list", "nodes"),
    Right("patch", "nodes"),
    Right("get", "leases", _COORDINATION, "kube-node-lease"),
    Right("list", "leases", _COORDINATION, "kube-node-lease"),
    Right("get", "pods"),
    Right("list", "pods"),
    Right("patch", "pods/status"),
    Right("delete", "pods"),
    Right("list", "volumeattachments", "storage.k8s.io"),
    Right("create", "events", namespace="default"),
    Right("get", "secrets", namespace="fencer", name="fencer-key"),
    Right("create", "secrets", namespace="fencer"),
)

LESSER_RIGHTS = (Right("watch", "nodes"), Right("get", "persistentvolumeclaims"))
"""What fencer can do without: nodes are listed instead of watched, and of a pod that tolerates the
out-of-service taint it is not told which volumes it has."""

BUDGETS = Right("list", "poddisruptionbudgets", "policy")
"""What tells a drain beforehand that it would never end; ``drain.yaml`` and ``fencer-plan`` grant it."""

PLAN_RIGHTS = (
    BUDGETS,
    Right("list", "services"),
    Right("list", "persistentvolumeclaims"),
    Right("list", "persistentvolumes"),
)
"""What `fencer plan` and `fencer topology` read beyond `RIGHTS`; the ClusterRole ``fencer-plan`` grants it to
those it is bound to."""

DRAIN_RIGHTS = (Right("create", "pods/eviction"),)
"""What `fencer drain` and `fencer shutdown` need beyond `RIGHTS`; ``drain.yaml`` grants it. The agent works
without it."""

ATTACHMENT_RIGHTS = (Right("delete", "volumeattachments", "storage.k8s.io"),)
"""The right to release at once the volumes of a Node that was deleted while fenced: ``attachments.yaml``
grants it. Without it Kubernetes does so after six minutes."""

REMEDIATION_RIGHTS = (
    Right("list", "fencerremediations", GROUP),
    Right("get", "fencerremediations", GROUP),
    Right("patch", "fencerremediations", GROUP),
    Right("patch", "fencerremediations/status", GROUP),
    Right("get", "machines", "cluster.x-k8s.io"),
    Right("list", "leases", _COORDINATION, RESERVATIONS),
)
"""What answering other controllers needs, where their requests are known: ``remediation.yaml`` grants it."""


def lease_rights(name: str) -> tuple[Right, ...]:
    """Return the rights to one of fencer's Leases, without which no power order is given. Fences go on.

    `fencer setup kubernetes` makes a Lease and a Role for each hypervisor of a configuration.
    """
    return tuple(Right(verb, "leases", _COORDINATION, NAMESPACE, name) for verb in ("get", "patch"))


CLUSTER_LEASE_RIGHTS = lease_rights(CLUSTER_LEASE)
"""The rights to the Lease on which all agents write what they share; ``rbac.yaml`` grants them."""
