"""What fencer has left on Nodes, and what would stay for ever once fencer is gone. Pure.

Asked before fencer's account, its key, its token or its hook is taken away: without the key nobody can read
whose fence it is, and without an agent nobody lifts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fencer.core.cordon import DRAINERS, HOOK
from fencer.core.model import OUT_OF_SERVICE, Cordon, FenceMark, NodeView, Unreadable
from fencer.core.requests import Request
from fencer.core.text import age
from fencer.core.times import seconds_between

NOTES = tuple(f"fencer.dev/{name}" for name in ("binding", "doubts", "incident", "cordon", "mark"))
"""Annotations that stay on Nodes, and mean nothing then. What people set (pause, exclude) is theirs."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One thing that fencer set and that somebody has to end.

    Attributes:
        node: On which Node, or about which.
        text: What it is, since when, and by whom.
        ends: What ends it: commands, in this order.
    """

    node: str
    text: str
    ends: tuple[str, ...]


def standing(nodes: Iterable[NodeView], utc: str) -> tuple[Standing, ...]:
    """Return every fence, cordon and claim that fencer set.

    A taint or a cordon that somebody else set is theirs, even with an old note of ours.

    Args:
        nodes: All Nodes.
        utc: The API server's clock.
    """
    return tuple(
        found
        for node in nodes
        for found in (_fence(node, utc) or _claim(node), _cordon(node, utc))
        if found is not None
    )


def hooked(nodes: Iterable[NodeView], utc: str) -> tuple[Standing, ...]:
    """Return the cordons that a hookscript asked for. Arguments as in `standing`."""
    asked = (node for node in nodes if isinstance(node.cordon, Cordon) and node.cordon.by == HOOK)
    return tuple(found for node in asked if (found := _cordon(node, utc)) is not None)


def kept(requests: Iterable[Request]) -> tuple[Standing, ...]:
    """Return the requests of other controllers that stay in the API until fencer lets them go.

    Args:
        requests: All of them.
    """
    return tuple(
        Standing(
            one.node or one.name,
            f"{one}: it stays until fencer takes its finalizer off",
            (
                f"kubectl -n {one.namespace} delete fencerremediation {one.name}   (while an agent runs)",
                f"kubectl -n {one.namespace} patch fencerremediation {one.name} --type merge -p "
                """'{"metadata":{"finalizers":null}}'   (if none will ever run again)""",
            ),
        )
        for one in requests
        if one.adopted
    )


def _fence(node: NodeView, utc: str) -> Standing | None:
    mark = node.mark
    if isinstance(mark, FenceMark) and node.fenced:
        since = age(seconds_between(mark.fenced_at_utc, utc))
        word = "" if mark.signed else " --adopt WHY"
        text = f"fenced {since} ago by {mark.by}, as {mark.guest} was off"
        gone = f"kubectl delete node {node.name}   (if its machine is gone for good)"
        return Standing(node.name, text, (f"fencer unfence {node.name}{word}", gone))
    if isinstance(mark, Unreadable) and node.out_of_service is not None:
        by_hand = (
            f"kubectl taint nodes {node.name} {OUT_OF_SERVICE}-   (once its guest has booted again)",
            f"kubectl annotate nodes {node.name} fencer.dev/mark-",
        )
        return Standing(node.name, f"fenced, by a mark that cannot be read ({mark.text})", by_hand)
    return None


def _claim(node: NodeView) -> Standing | None:
    if not node.claim:
        return None
    text = f"claimed for a power action on its guest, in incident {node.claim}"
    ends = f"kubectl annotate nodes {node.name} fencer.dev/incident-   (once no agent works on it any more)"
    return Standing(node.name, text, (ends,))


def _cordon(node: NodeView, utc: str) -> Standing | None:
    """Return the cordon, unless somebody else cordoned the node since, as far as the API server tells."""
    if not node.unschedulable or node.cordon is None or node.cordoner not in {*DRAINERS, ""}:
        return None
    return Standing(node.name, _cordoned(node.cordon, utc), (f"kubectl uncordon {node.name}",))


def _cordoned(cordon: Cordon | Unreadable, utc: str) -> str:
    if isinstance(cordon, Unreadable):
        return f"cordoned by fencer, by a note that cannot be read ({cordon.text})"
    since = age(seconds_between(cordon.since_utc, utc))
    match cordon.by:
        case "unfence":
            return f"cordoned {since} ago, when its fence was lifted"
        case "hook":
            return f"cordoned {since} ago by a drain that the hookscript asked for"
        case by:
            return f"cordoned {since} ago by fencer ({by})"
