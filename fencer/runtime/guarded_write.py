"""A person's word on a Node: written at the version that was read, and again where others write meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fencer.core.model import NodeView
from fencer.errors import ClusterConflict, ClusterNotFound
from fencer.runtime.shared import Shared
from fencer.runtime.world import World

TRIES = 5
"""For a Node on which others write meanwhile."""


def write_on(world: World, shared: Shared, node: NodeView, write: Callable[[NodeView], None]) -> bool:
    """Write on a Node, again after each conflict.

    Args:
        world: The ports.
        shared: Calls the API server, and reads Nodes as the agent does.
        node: As it was read.
        write: Writes on a Node at its version; called with the newer one after a conflict.

    Returns:
        Whether it is written; False: that Node was deleted meanwhile, or made again.

    Raises:
        ClusterError: it could not be written.
    """
    for _ in range(TRIES - 1):
        try:
            shared.api(partial(write, node))
        except ClusterConflict:
            try:
                fact = shared.api(partial(world.cluster.fact, node.name))
            except ClusterNotFound:
                return False
            if fact.node.uid != node.uid:
                return False
            node = shared.notes.read(shared.names.read(fact.node))
        else:
            return True
    shared.api(partial(write, node))
    return True
