"""Cordons: who set one, whose it is, and how to cordon a node for a drain. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from fencer.core.model import Cordon, CordonNode, NodeView

DRAIN = "drain"
"""Who cordoned: a drain, of the agent or of the part inside the guest."""
HOOK = "hook"
"""A drain that a hookscript asked for, because its guest is about to be stopped: the agent takes its cordon
off when the node is back."""
AFTER_FENCE = "unfence"
"""A fence was lifted a moment ago, and caches have to settle."""
OTHERS = "others"
"""Anybody but fencer."""
UNRECORDED = "unrecorded"
"""Fencer by its note; but the API server keeps no record that says who it was."""
PASSING = frozenset({AFTER_FENCE, HOOK})
"""Cordons that the agent takes off by itself."""
CORDON_TAINT = "node.kubernetes.io/unschedulable"
"""Key of a cordoned node's taint, without a value and with the effect NoSchedule; a pod that tolerates it
passes the cordon as well.

Source: kubernetes pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go.
"""
FROM_OUTSIDE = "fencer"
DRAINERS = frozenset({FROM_OUTSIDE, "fencer-guest"})
"""The names under which the two write: the user agent up to its slash.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/, "Field management".
"""


def cordoned_by(node: NodeView) -> str | None:
    """Return who keeps new pods off the node, for people and programs; None: nobody does.

    Returns:
        ``fencer-drain``, ``fencer-hook`` or ``fencer-unfence``, by the note beside the cordon; ``unrecorded``
        if only that note tells; ``others`` if there is no note of ours, or somebody else has cordoned the
        node since.
    """
    if not node.unschedulable:
        return None
    if unrecorded_cordon(node) is not None:
        return UNRECORDED
    return next((f"fencer-{by}" for by in (DRAIN, HOOK, AFTER_FENCE) if _cordoned_by(node, {by})), OTHERS)


def cordoned_by_drain(node: NodeView) -> bool:
    """Whether a fencer drain set the node's cordon, and nobody has cordoned it since.

    The note alone does not tell: `kubectl uncordon` and `kubectl cordon` leave it in place.
    """
    return _cordoned_by(node, {DRAIN, HOOK})


def cordoned_for_shutdown(node: NodeView) -> bool:
    """Whether the drain before a shutdown set the node's cordon, in this boot. As `cordoned_by_drain`.

    For words only: a kubelet may write such a note.
    """
    cordon = node.cordon
    planned = isinstance(cordon, Cordon) and cordon.shutdown and cordon.boot_id == node.boot_id
    return planned and cordoned_by_drain(node)


def cordoned_after_fence(node: NodeView) -> bool:
    """Whether it was set when a fence was lifted. As `cordoned_by_drain`."""
    return _cordoned_by(node, {AFTER_FENCE})


def _cordoned_by(node: NodeView, whose: Collection[str]) -> bool:
    noted = isinstance(node.cordon, Cordon) and node.cordon.by in whose
    return node.unschedulable and noted and node.cordoner in DRAINERS


def unrecorded_cordon(node: NodeView) -> Cordon | None:
    """Return fencer's note beside a cordon of which nothing else says who set it; None: that is known. C9.

    The API server keeps no record of this Node, and this process has not watched the cordon since it set it.
    An administrator may have uncordoned and cordoned the Node since the note was written.
    """
    unknown = node.unschedulable and not node.recorded and node.cordoner not in DRAINERS
    return node.cordon if unknown and isinstance(node.cordon, Cordon) else None


@dataclass(frozen=True, slots=True)
class Watched:
    """A cordon that this process set, and has seen at every look since. C9.

    Attributes:
        note: The note that was written with it.
        before: The Node before that: a look that is no newer shows nothing of it.
        seen_s: When a look last showed the cordon with that note, or when it was set, on the agent's clock.
        tainted_utc: Since when the Node carries the taint of a cordoned one, as that was first seen; empty:
            it was not. Each cordon gets a taint with a time of its own.

    Source: kubernetes pkg/controller/nodelifecycle/node_lifecycle_controller.go, doNoScheduleTaintingPass;
    pkg/controller/util/node/controller_utils.go, SwapNodeControllerTaint.
    """

    note: Cordon
    before: NodeView
    seen_s: float
    tainted_utc: str = ""


def still_watched(own: Watched, view: NodeView, now_s: float, apart_s: float) -> Watched | None:
    """Return what is known of an own cordon after another look; None: there was a gap, and it may be another.

    Args:
        own: What was known before.
        view: The Node, as this look shows it.
        now_s: The agent's clock.
        apart_s: Looks further apart leave a gap; see `Policy.apart_s`.
    """
    if now_s - own.seen_s > apart_s:
        return None
    if not view.newer_than(own.before):
        return own
    since = (taint.time_added or "" for taint in view.taints if taint.key == CORDON_TAINT)
    tainted_utc = next(since, "")
    same = tainted_utc == own.tainted_utc or not own.tainted_utc
    stands = view.unschedulable and view.cordon == own.note and same
    return replace(own, seen_s=now_s, tainted_utc=tainted_utc) if stands else None


def by_own_watch(own: Watched, view: NodeView) -> NodeView:
    """Return a Node with fencer as its cordoner where its own watch has to stand in for the record. C9."""
    shows_it = view.newer_than(own.before) and not view.recorded
    return replace(view, cordoner=FROM_OUTSIDE) if shows_it else view


def cordon_for(
    node: NodeView, utc: str, by: str = DRAIN, run: str = "", *, shutdown: bool = False
) -> CordonNode | None:
    """Return how to cordon a node for a drain; None: it is cordoned, and stays as it is.

    A cordon that the agent would take off during the drain is taken over. A note without a cordon means
    nothing, and is overwritten even if it cannot be read.

    Args:
        node: The node.
        utc: The faster of two clocks: the cordon lasts for so long from then on (E26).
        by: `DRAIN` or `HOOK`.
        run: Which drain: it must know its own cordon when it takes it off.
        shutdown: The node's guest is shut down next.
    """
    if node.unschedulable and passing_cordon(node) is None:
        return None
    return CordonNode(Cordon(by, node.boot_id, utc, run, shutdown))


def passing_cordon(node: NodeView) -> Cordon | None:
    """Return the note of a cordon that the agent would take off by itself; None: there is no such cordon."""
    return node.cordon if _cordoned_by(node, PASSING) and isinstance(node.cordon, Cordon) else None


def cordon_stands(node: NodeView, own: Cordon) -> bool:
    """Whether the node's cordon is the one that this note was written with; nobody has cordoned since."""
    return bool(own.run) and node.cordon == own and cordoned_by_drain(node)
