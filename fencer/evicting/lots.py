"""Which pods a drain moves, and which it leaves, by kubectl's options."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar


class Pod(Protocol):
    """What a drain has to know of a pod."""

    @property
    def uid(self) -> str:
        """Its UID."""
        ...

    @property
    def namespace(self) -> str:
        """Its namespace."""
        ...

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def controller(self) -> str:
        """Kind and name of the owner that recreates it, like ``ReplicaSet/web-6f``; empty: none."""
        ...

    @property
    def created_utc(self) -> str:
        """When it was created, by the API server's clock, as RFC 3339; empty: not known."""
        ...

    @property
    def mirror(self) -> bool:
        """It is a static pod: its kubelet runs it from a file."""
        ...

    @property
    def finished(self) -> bool:
        """Its containers are over."""
        ...

    @property
    def terminating(self) -> bool:
        """It is deleted already, and ends."""
        ...

    @property
    def local_data(self) -> bool:
        """It uses an emptyDir, which is lost with it."""
        ...

    @property
    def tolerates_cordon(self) -> bool:
        """It may be scheduled to a cordoned node."""
        ...

    @property
    def grace_s(self) -> float:
        """How long it may take to end."""
        ...


P = TypeVar("P", bound=Pod)


class Lot(str, Enum):
    """What a drain does with a pod."""

    EVICT = "evict"
    LEAVING = "leaving"
    """Deleted already: waited for."""
    MIRROR = "mirror"
    """A static pod: the kubelet runs it from a file, no matter what the API says."""
    DAEMON = "daemonset"
    """Its controller would recreate it on this very node."""
    FINISHED = "finished"
    UNMANAGED = "unmanaged"
    """No controller would recreate it: only with `force`."""
    LOCAL_DATA = "emptydir"
    """It would lose its emptyDir: only with `delete_emptydir_data`."""


STAYING = frozenset({Lot.MIRROR, Lot.DAEMON, Lot.FINISHED})
FORBIDDEN = frozenset({Lot.UNMANAGED, Lot.LOCAL_DATA})
"""A drain that would meet one of these does not begin. Source: kubectl pkg/drain, filters."""
NOTHING: frozenset[Lot] = frozenset()


@dataclass(frozen=True)
class Filters:
    """Options of a drain, with kubectl's names and defaults.

    Attributes:
        force: Evict pods that no controller recreates.
        delete_emptydir_data: Evict pods that lose an emptyDir.
        spare: Leave pods that need an option that was not given, instead of not beginning: for a guest that
            goes down anyway.
    """

    force: bool = False
    delete_emptydir_data: bool = False
    spare: bool = False

    @property
    def forbidden(self) -> frozenset[Lot]:
        """What a drain must not meet."""
        return NOTHING if self.spare else FORBIDDEN

    @property
    def staying(self) -> frozenset[Lot]:
        """What a drain leaves where it is."""
        return STAYING | FORBIDDEN if self.spare else STAYING


def lot(pod: Pod, filters: Filters) -> Lot:
    """Return what becomes of a pod."""
    lots = (
        (pod.mirror, Lot.MIRROR),
        (pod.finished, Lot.FINISHED),
        (pod.controller.startswith("DaemonSet/"), Lot.DAEMON),
        (pod.terminating, Lot.LEAVING),
        (not pod.controller and not filters.force, Lot.UNMANAGED),
        (pod.local_data and not filters.delete_emptydir_data, Lot.LOCAL_DATA),
    )
    return next((found for applies, found in lots if applies), Lot.EVICT)


def of_lot(pods: Iterable[P], filters: Filters, lots: Collection[Lot]) -> tuple[P, ...]:
    """Return the pods of these lots."""
    return tuple(pod for pod in pods if lot(pod, filters) in lots)
