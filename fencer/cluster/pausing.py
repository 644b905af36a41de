"""The pause annotation, by a person's kubeconfig. Only `fencer pause` and `fencer resume` use it."""

from __future__ import annotations

from collections.abc import Callable

from fencer.cluster.client import Connection
from fencer.cluster.fields import shown, texts
from fencer.cluster.names import NAME
from fencer.cluster.requests import KUBE_SYSTEM, NODE, get, patch
from fencer.cluster.settings import ClusterSettings
from fencer.core.annotations import PAUSE
from fencer.errors import ClusterNotFound
from fencer.ports import Paused


class KubernetesPauser:
    """Implements the port `fencer.ports.Pauser`; its contract stands there.

    Args:
        settings: The person's kubeconfig.
        sleep: Pauses between two tries of a read, in seconds.

    Raises:
        ConfigError: the kubeconfig cannot be used.
    """

    def __init__(self, settings: ClusterSettings, sleep: Callable[[float], object]) -> None:
        self._api = Connection(settings, sleep)

    @property
    def server(self) -> str:
        """See `Pauser.server`."""
        return self._api.server

    def cluster_uid(self) -> str:
        """See `Pauser.cluster_uid`."""
        return self._api.kube_system().required("metadata", "uid")

    def read(self, node: str | None) -> Paused:
        """See `Pauser.read`."""
        if node is not None and not NAME.fullmatch(node):
            raise ClusterNotFound(f"{shown(node)}: no such node: this cannot be the name of one")
        what, request = (
            ("get namespace kube-system", KUBE_SYSTEM)
            if node is None
            else (f"get node {node}", get(NODE, node))
        )
        answer = self._api.read(what, request)
        return Paused(
            node,
            answer.read(lambda body: texts(body, "metadata", "annotations").get(PAUSE)),
            answer.required("metadata", "uid"),
            answer.required("metadata", "resourceVersion"),
            answer.utc,
        )

    def write(self, before: Paused, text: str | None) -> None:
        """See `Pauser.write`."""
        guard = {"uid": before.uid, "resourceVersion": before.version}
        body = {"metadata": {**guard, "annotations": {PAUSE: text}}}
        if before.node is None:
            self._api.write("pause the cluster", patch(KUBE_SYSTEM.path, body=body))
        else:
            self._api.write(f"pause node {before.node}", patch(NODE, before.node, body=body))
