"""What keeps fencer's hands off in a simulated cluster, as a person writes it."""

from __future__ import annotations

from fencer.core.annotations import PAUSE
from fencer.errors import ClusterConflict, ClusterDenied, ClusterNotFound, ClusterUnreachable
from fencer.ports import Paused
from fencer.simulation.objects import Api

WHY = "work on the storage"


def hold(api: Api, node: str, annotation: str, text: str | None) -> None:
    """Write an annotation that keeps fencer's hands off, and note since when it is there.

    Args:
        api: The objects.
        node: On which Node; empty: on the namespace kube-system.
        annotation: Which.
        text: Its value; None: it is taken off.
    """
    if not node:
        api.paused_why = text
    elif (found := api.nodes.get(node)) is not None:
        found.annotations.pop(annotation, None)
        found.annotations.update({} if text is None else {annotation: text})
        api.changed(found)
    if text is None:
        api.held_since_s.pop((node, annotation), None)
    else:
        api.held_since_s.setdefault((node, annotation), api.clock.now_s())


class SimulatedPauser:
    """Implements the port `fencer.ports.Pauser`.

    Args:
        api: The objects.
    """

    server = "simulation"

    def __init__(self, api: Api) -> None:
        self.may_write = True
        """Whether the person's account may patch the namespace, and nodes."""
        self._api = api

    def cluster_uid(self) -> str:
        """Say which cluster this is."""
        return self._api.cluster_uid

    def read(self, node: str | None) -> Paused:
        """Read what is written."""
        self._answer()
        utc = self._api.clock.utc()
        if node is None:
            return Paused(None, self._api.paused_why, self._api.cluster_uid, "0", utc)
        found = self._api.nodes.get(node)
        if found is None:
            raise ClusterNotFound(f"no node {node}")
        return Paused(node, found.annotations.get(PAUSE), found.uid, str(found.version), utc)

    def write(self, before: Paused, text: str | None) -> None:
        """Write it, if the object is still as it was read."""
        self._answer()
        if not self.may_write:
            raise ClusterDenied("simulation: forbidden")
        if before.node is None:
            hold(self._api, "", PAUSE, text)
            return
        node = self._api.nodes.get(before.node)
        if node is None:
            raise ClusterNotFound(f"no node {before.node}")
        if (node.uid, str(node.version)) != (before.uid, before.version):
            raise ClusterConflict(f"node {before.node} changed since it was read")
        hold(self._api, before.node, PAUSE, text)

    def _answer(self) -> None:
        if self._api.down_why is not None:
            raise ClusterUnreachable(self._api.down_why)
