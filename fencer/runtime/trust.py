"""Trust: writes on Nodes that a person trusts an endpoint again that was wrong about their VMs (D1)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from fencer.core.distrust import against, answered_for, distrusted
from fencer.core.model import Doubt, NodeView
from fencer.errors import ClusterConflict, ClusterNotFound
from fencer.runtime.memory import Scene
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World

TRIES = 5
"""For a Node on which others write meanwhile."""


class Trust:
    """One endpoint, and the nodes that prove it wrong.

    Args:
        world: The ports.
        agent: Reads the Nodes.
        scene: As it has just read them.
        endpoint: Name of the endpoint.

    Attributes:
        doubts: Node → the doubt on it that counts against the endpoint.
    """

    def __init__(self, world: World, agent: Agent, scene: Scene, endpoint: str) -> None:
        self._world, self._shared, self._scene = world, agent.shared, scene
        self._endpoint = endpoint
        self.doubts: Mapping[str, Doubt] = against(scene.nodes.values()).get(endpoint, {})

    @property
    def is_needed(self) -> bool:
        """Whether the endpoint is distrusted."""
        return distrusted(self.doubts.values())

    def restore(self, name: str, why: str) -> None:
        """Write on a Node that the doubt on it counts no more against the endpoint, guarded.

        Args:
            name: The node.
            why: The person's words, with their name.

        Raises:
            ClusterError: it could not be written.
        """
        node, cluster, shared = self._scene.nodes[name], self._world.cluster, self._shared
        for attempt in range(TRIES):
            doubts = answered_for(node, self._endpoint, why)
            if doubts == node.doubts:
                return
            try:
                shared.api(partial(cluster.record_doubts, node, shared.names.doubts(doubts)))
            except ClusterConflict:
                if attempt + 1 == TRIES:
                    raise
            else:
                return
            found = self._read(name)
            if found is None or found.uid != node.uid:
                return  # deleted meanwhile: that ends its doubt, too
            node = found

    def _read(self, name: str) -> NodeView | None:
        shared = self._shared
        try:
            fact = shared.api(partial(self._world.cluster.fact, name))
        except ClusterNotFound:
            return None
        return shared.notes.read(shared.names.read(fact.node))
