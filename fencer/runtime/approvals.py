"""Approvals: a person says which VM is a node, so that a tag or a pool gives power over it (C3)."""

from __future__ import annotations

from collections.abc import Mapping

from fencer.core.identity import bound
from fencer.core.model import NodeView
from fencer.core.rung import Objection, Subject
from fencer.runtime.guarded_write import write_on
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World


class Approvals:
    """All nodes, and the VM that each of them seems to be.

    Args:
        world: The ports.
        agent: Looks at the nodes, once.

    Attributes:
        found: Node → its VM; or why it is not certain which one that is.
        errors: Endpoint → why it did not answer.

    Raises:
        ClusterError: the nodes could not be read.
    """

    def __init__(self, world: World, agent: Agent) -> None:
        seen = agent.survey()
        self._world, self._scene, self._shared = world, seen.scene, agent.shared
        self.found: Mapping[str, Subject | Objection] = {
            name: found if isinstance(found := bound(judged.observation), Objection) else found[0]
            for name, judged in seen.judged.items()
        }
        self.errors: Mapping[str, str] = seen.scene.errors

    @property
    def waiting(self) -> dict[str, Subject]:
        """Node → its VM, of those over which a tag or a pool gives power once a person has approved them."""
        return {
            name: found
            for name, found in self.found.items()
            if isinstance(found, Subject) and found.candidate.unapproved
        }

    def approved(self, name: str) -> str:
        """Return the UUID of the VM that was approved as this node's; empty: none."""
        return self._scene.nodes[name].approved

    def approve(self, name: str, uuid: str, by: str) -> bool:
        """Write that a person has approved a VM as this node's, guarded.

        Args:
            name: The node.
            uuid: The VM's; empty: take the approval back.
            by: The person.

        Returns:
            Whether that is written: not if the Node was deleted, or made again, since it was looked at.

        Raises:
            ClusterError: it could not be written.
        """

        def write(node: NodeView) -> None:
            if node.approved != uuid:
                self._world.cluster.approve(node, uuid, by, self._scene.utc)

        return write_on(self._world, self._shared, self._scene.nodes[name], write)
