"""The rules of a drain: which pods are evicted, whose cordon it is, what comes next. Pure.

The part inside the guest has its own small version; one table of cases runs against both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from fencer.core.evictions import Evictions
from fencer.core.model import AttachmentView, Cordon, CordonNode, NodeView, PodView
from fencer.core.pods import bound_to_node

DRAIN = "drain"
"""Who cordoned: a drain, of the agent or of the part inside the guest."""
HOOK = "hook"
"""A drain that a hookscript asked for, because its guest is about to be stopped: the agent takes its cordon
off when the node is back."""
AFTER_FENCE = "unfence"
"""A fence was lifted a moment ago, and caches have to settle."""
PASSING = frozenset({AFTER_FENCE, HOOK})
"""Cordons that the agent takes off by itself."""
DRAINERS = frozenset({"fencer", "fencer-guest"})
"""Under which names the two write. Source: Kubernetes, "Field management": the user agent up to its slash."""


class Lot(StrEnum):
    """What a drain does with a pod."""

    EVICT = "evict"
    LEAVING = "leaving"
    """Deleted already: waited for."""
    MIRROR = "mirror"
    """A static pod: the kubelet runs it from a file, whatever the API says."""
    DAEMON = "daemonset"
    """Its controller would make it anew on this very node."""
    FINISHED = "finished"
    UNMANAGED = "unmanaged"
    """No controller would make it anew: only with `force`."""
    LOCAL_DATA = "emptydir"
    """It would lose its emptyDir: only with `delete_emptydir_data`."""


STAYING = frozenset({Lot.MIRROR, Lot.DAEMON, Lot.FINISHED})
FORBIDDEN = frozenset({Lot.UNMANAGED, Lot.LOCAL_DATA})
"""A drain that would meet one of these does not begin. Source: kubectl pkg/drain, filters."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Options of a drain, with kubectl's names and defaults.

    Attributes:
        force: Evict pods that no controller makes anew.
        delete_emptydir_data: Evict pods that lose an emptyDir.
        spare: Leave the pods that need an option that was not given where they are, instead of not beginning:
            of a guest that goes down anyway.
    """

    force: bool = False
    delete_emptydir_data: bool = False
    spare: bool = False

    @property
    def forbidden(self) -> frozenset[Lot]:
        """What a drain must not meet."""
        return frozenset() if self.spare else FORBIDDEN

    @property
    def staying(self) -> frozenset[Lot]:
        """What a drain leaves where it is."""
        return STAYING | FORBIDDEN if self.spare else STAYING


def lot(pod: PodView, filters: Filters) -> Lot:
    """Return what becomes of a pod."""
    lots = (
        (pod.mirror, Lot.MIRROR),
        (pod.finished, Lot.FINISHED),
        (bound_to_node(pod), Lot.DAEMON),
        (pod.terminating, Lot.LEAVING),
        (not pod.controller and not filters.force, Lot.UNMANAGED),
        (pod.local_data and not filters.delete_emptydir_data, Lot.LOCAL_DATA),
    )
    return next((found for applies, found in lots if applies), Lot.EVICT)


def of_lot(pods: Iterable[PodView], filters: Filters, lots: Collection[Lot]) -> tuple[PodView, ...]:
    """Return the pods of these lots."""
    return tuple(pod for pod in pods if lot(pod, filters) in lots)


# -- the cordon ---------------------------------------------------------------------------------------------


def cordoned_by_drain(node: NodeView) -> bool:
    """Whether the node's cordon is one that a drain of fencer's set, and nobody has cordoned it since.

    The note alone does not tell: `kubectl uncordon` and `kubectl cordon` leave it standing.
    """
    return _cordoned_by(node, {DRAIN, HOOK})


def cordoned_after_fence(node: NodeView) -> bool:
    """Whether it is the one that was set as a fence was lifted. As `cordoned_by_drain`."""
    return _cordoned_by(node, {AFTER_FENCE})


def _cordoned_by(node: NodeView, whose: Collection[str]) -> bool:
    noted = isinstance(node.cordon, Cordon) and node.cordon.by in whose
    return node.unschedulable and noted and node.cordoner in DRAINERS


def cordon_for(node: NodeView, utc: str, by: str = DRAIN, run: str = "") -> CordonNode | None:
    """Return how to cordon a node that is to be drained; None: it is cordoned, and stays as it is.

    A cordon that the agent would take off in the midst of it is taken over. A note beside no cordon is about
    nothing, and overwritten, whoever can read it.

    Args:
        node: The node.
        utc: The API server's clock.
        by: `DRAIN` or `HOOK`.
        run: Which drain: whoever gives the cordon back has to know its own.
    """
    if node.unschedulable and passing_cordon(node) is None:
        return None
    return CordonNode(Cordon(by, node.boot_id, utc, run))


def passing_cordon(node: NodeView) -> Cordon | None:
    """Return the note of a cordon that the agent would take off by itself; None: there is no such cordon."""
    return node.cordon if _cordoned_by(node, PASSING) and isinstance(node.cordon, Cordon) else None


def cordon_stands(node: NodeView, own: Cordon) -> bool:
    """Whether the node's cordon is the very one beside which this was noted; nobody has cordoned since."""
    return bool(own.run) and node.cordon == own and cordoned_by_drain(node)


# -- what comes next --------------------------------------------------------------------------------------


class Next(StrEnum):
    """What a drain does next."""

    EVICT = "evict"
    WAIT_FOR_PODS = "wait for pods"
    WAIT_FOR_VOLUMES = "wait for volumes"
    DONE = "done"
    HOPELESS = "hopeless"
    """Only pods are left that are refused for good."""


def next_step(
    state: Evictions, staying: Iterable[PodView], attachments: Collection[AttachmentView], now_s: float
) -> Next:
    """Return what a drain does next on one node.

    Args:
        state: What was asked and answered.
        staying: Pods on the node that the drain leaves there; their volumes stay attached.
        attachments: Of the node now.
        now_s: The monotonic clock.
    """
    if state.due(now_s):
        return Next.EVICT
    if state.hopeless:
        return Next.HOPELESS
    if not state.done:
        return Next.WAIT_FOR_PODS
    kept = sum(len(pod.claims) for pod in staying if not pod.finished)
    return Next.WAIT_FOR_VOLUMES if len(attachments) > kept else Next.DONE
