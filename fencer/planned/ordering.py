"""In which order several nodes are stopped, and how many at a time. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from fencer.core.fleet import quorum
from fencer.core.model import NodeView
from fencer.core.policy import Policy


def in_order(nodes: Iterable[NodeView]) -> tuple[NodeView, ...]:
    """Return workers first, as they were named, and control-plane nodes last: a drain needs the API."""
    return tuple(sorted(nodes, key=lambda node: node.control_plane))


def elsewhere(asked: Collection[NodeView], nodes: Iterable[NodeView]) -> bool:
    """Whether pods that leave the asked nodes may go to a node that is not among them.

    If not, as when a whole cluster is shut down, the asked nodes have to take each other's pods.
    """
    names = {node.name for node in asked}
    return any(node.name not in names and _takes_pods(node) for node in nodes)


def _takes_pods(node: NodeView) -> bool:
    tainted = any(taint.effect in {"NoSchedule", "NoExecute"} for taint in node.taints)
    return node.ready is True and not node.unschedulable and not tainted


def may_begin(node: NodeView, under_way: Sequence[NodeView], parallel: int) -> bool:
    """Whether a node's turn may begin now: control-plane nodes one at a time.

    Args:
        node: The node.
        under_way: Nodes whose turn is not over.
        parallel: How many at a time.
    """
    if len(under_way) >= parallel:
        return False
    return not (node.control_plane and any(other.control_plane for other in under_way))


def beyond_quorum(
    asked: Iterable[NodeView], nodes: Collection[NodeView], policy: Policy, down: frozenset[str]
) -> tuple[NodeView, ...]:
    """Return the asked control-plane nodes without which etcd would lose its quorum.

    They stay off, so each one that may go counts against those after it.

    Args:
        asked: The nodes to shut down, in order.
        nodes: All nodes.
        policy: What counts as heard.
        down: Nodes whose guests do not run already.
    """
    healthy, majority = quorum(nodes, policy, down)
    refused = []
    for node in asked:
        if node.control_plane and len(healthy - {node.name}) < majority:
            refused.append(node)
        else:
            healthy -= {node.name}
    return tuple(refused)
