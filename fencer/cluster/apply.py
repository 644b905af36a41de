"""Applies a manifest with an administrator's kubeconfig. Only setup uses it.

It does as ``kubectl apply --server-side --force-conflicts``.
Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fencer.cluster.client import Connection
from fencer.cluster.fields import mapping
from fencer.cluster.requests import applied, get
from fencer.cluster.settings import ClusterSettings
from fencer.errors import ClusterNotFound, ConfigError

MANAGER = "fencer-setup"
"""As whom it owns the fields that it sets."""

_PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "CustomResourceDefinition": "customresourcedefinitions",
    "Lease": "leases",
    "Namespace": "namespaces",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ServiceAccount": "serviceaccounts",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
"""The kinds in fencer's manifests, as parts of a path."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object as a manifest has it.

    Attributes:
        version: Its apiVersion.
        kind: Its kind.
        name: Its name.
        namespace: Empty: it is in none.
        text: Its YAML.
    """

    version: str
    kind: str
    name: str
    namespace: str
    text: str

    def __str__(self) -> str:
        """Name it as kubectl does: ``role/fencer in fencer``."""
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.kind.lower()}/{self.name}{place}"


def apply(
    settings: ClusterSettings, objects: Iterable[Wanted], sleep: Callable[[float], object]
) -> Iterator[Wanted]:
    """Make each object as it is wanted, in their order; whatever is so already stays untouched.

    Args:
        settings: The administrator's kubeconfig.
        objects: What is wanted.
        sleep: Pauses between two tries of a read.

    Yields:
        The objects that are new, or are other than before.

    Raises:
        ConfigError: the kubeconfig cannot be used, or a kind is none of fencer's.
        ClusterError: the API server refused one, or did not answer; those before it are done.
    """
    connection = Connection(settings, sleep)
    for wanted in objects:
        path = _path(wanted)
        before = None
        with suppress(ClusterNotFound):
            before = _meant(connection.read(f"get {wanted}", get(path, wanted.name)).body)
        answer = connection.write(f"apply {wanted}", applied(path, wanted.name, text=wanted.text, by=MANAGER))
        if _meant(answer.body) != before:
            yield wanted


def _meant(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what people and manifests say of an object, without what servers and controllers note on it."""
    metadata = {key: value for key, value in mapping(body, "metadata").items() if key not in _NOTED}
    return {**body, "metadata": metadata, "status": None}


_NOTED = {"generation", "managedFields", "resourceVersion"}


def _path(wanted: Wanted) -> str:
    """Return the path of an object, with ``{}`` for its name."""
    plural = _PLURALS.get(wanted.kind)
    if plural is None:
        raise ConfigError(f"{wanted}: fencer applies no {wanted.kind}; use `kubectl apply`")
    root = f"/apis/{wanted.version}" if "/" in wanted.version else f"/api/{wanted.version}"
    inside = f"/namespaces/{wanted.namespace}" if wanted.namespace else ""
    return f"{root}{inside}/{plural}/{{}}"
