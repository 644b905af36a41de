"""Requests to the API server: method, path, query and body, as Kubernetes' API reference has them.

Not by the client's typed methods: they load a model for every kind of object that there is, which takes more
time and memory than all else of `fencer status`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from fencer.core.requests import GROUP

NODES = "/api/v1/nodes"
NODE = "/api/v1/nodes/{}"
PODS = "/api/v1/pods"
PODS_IN = "/api/v1/namespaces/{}/pods"
POD = "/api/v1/namespaces/{}/pods/{}"
SECRETS = "/api/v1/namespaces/{}/secrets"
SECRET = "/api/v1/namespaces/{}/secrets/{}"  # noqa: S105 - a path
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
ATTACHMENT = "/apis/storage.k8s.io/v1/volumeattachments/{}"
REMEDIATIONS_GROUP = f"/apis/{GROUP}/v1alpha1"
REMEDIATIONS = f"{REMEDIATIONS_GROUP}/fencerremediations"
REMEDIATION = f"{REMEDIATIONS_GROUP}/namespaces/{{}}/fencerremediations/{{}}"
"""Source: https://kubernetes.io/docs/reference/kubernetes-api/. A path of one request alone is written
where that is."""

_STRATEGIC = "application/strategic-merge-patch+json"
"""Maps are merged key by key, lists by their merge keys; a Node's taints have none, and go whole."""
_MERGE = "application/merge-patch+json"
"""Maps are merged key by key, and all lists go whole. Custom resources take no other kind of merge."""
_APPLY = "application/apply-patch+yaml"
"""Server-side apply: the body is YAML, and the server keeps account of who set which field."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        method: Like ``GET``.
        path: With every name in it quoted.
        query: By name, like ``{"limit": 500}``.
        body: A JSON object, or a text as it is; None: none.
        merges: How a patch's body is merged.
    """

    method: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: Mapping[str, Any] | str | None = None
    merges: str = _STRATEGIC

    @property
    def headers(self) -> dict[str, str]:
        """What is said of the body, and asked for as an answer."""
        if self.body is None:
            return {"Accept": "application/json"}
        content = self.merges if self.method == "PATCH" else "application/json"
        return {"Accept": "application/json", "Content-Type": content}

    def asking(self, **query: str | int) -> Request:
        """Return the same with more in its query."""
        return replace(self, query={**self.query, **query})


def get(path: str, *names: str, **query: str | int) -> Request:
    """Read.

    Args:
        path: With ``{}`` for each of the names.
        names: Of objects.
        query: By name.
    """
    return Request("GET", _named(path, names), query)


def create(path: str, *names: str, body: Mapping[str, Any], **query: str | int) -> Request:
    """Create an object, or ask a question that takes one. Arguments as in `get`."""
    return Request("POST", _named(path, names), query, body)


def patch(path: str, *names: str, body: Mapping[str, Any], **query: str | int) -> Request:
    """Change an object. Arguments as in `get`."""
    return Request("PATCH", _named(path, names), query, body)


def merge(path: str, *names: str, body: Mapping[str, Any]) -> Request:
    """Change a custom resource. Arguments as in `get`."""
    return Request("PATCH", _named(path, names), body=body, merges=_MERGE)


def applied(path: str, *names: str, text: str, by: str) -> Request:
    """Have an object be as a text says, whoever set its fields before.

    Args:
        path: As in `get`.
        names: As in `get`.
        text: The object in YAML.
        by: The field manager.
    """
    query = {"fieldManager": by, "force": "true"}
    return Request("PATCH", _named(path, names), query, text, merges=_APPLY)


def delete(path: str, *names: str, body: Mapping[str, Any] | None = None) -> Request:
    """Delete an object. Arguments as in `get`; the body is a DeleteOptions."""
    return Request("DELETE", _named(path, names), body=body)


def _named(path: str, names: tuple[str, ...]) -> str:
    return path.format(*(quote(name, safe="") for name in names))


KUBE_SYSTEM = get("/api/v1/namespaces/kube-system")
"""The namespace whose UID is the cluster's identity."""
