"""What planned stops need from the cluster besides what fencing does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fencer.core.model import (
    PodView,
)
from fencer.evicting.answers import Answer
from fencer.ports.inventory import Budget, Inventory, Listing


class Evictor(Protocol):
    """What only a drain needs: apart from `Cluster`, so that the agent needs no right for it."""

    def missing_drain_rights(self) -> Sequence[str]:
        """Name the rights that a drain needs and we do not have, like ``create pods/eviction``.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def evict(self, pod: PodView, grace_s: float | None = None) -> Answer:
        """Ask for the eviction of one pod, bound to its UID. May take 10 s and more.

        Args:
            pod: As it was read.
            grace_s: How long it may take to end; None: as long as its own spec says.

        Returns:
            What the API answered, success or not: `fencer.evicting.answers` knows what it means.

        Raises:
            ClusterUnreachable: no answer; it may have been done.
            ClusterDenied, ClusterProtocol: it was not asked.
        """
        ...

    def pods_in(self, namespace: str) -> Sequence[PodView]:
        """List the pods of a namespace.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...


class Surveyor(Protocol):
    """What only people's commands read: apart from `Cluster`, so that the agent needs no right for it."""

    def survey(self) -> Inventory:
        """List nodes with their room, all pods, budgets, services, claims and volumes, paged.

        The inventory names all that could not be listed, and every object that could not be read.

        Raises:
            ClusterDenied: not even nodes and pods may be listed.
            ClusterUnreachable, ClusterProtocol.
        """
        ...

    def budgets(self) -> Listing[Budget]:
        """List the budgets alone, paged; a missing right is said in it.

        Raises:
            ClusterUnreachable, ClusterProtocol.
        """
        ...

    def labelled(self, selector: str) -> frozenset[str]:
        """Name the nodes that the API server selects by their labels, paged.

        Args:
            selector: As kubectl's ``-l`` takes it.

        Raises:
            ClusterProtocol: also if the API server does not understand the selector.
            ClusterDenied, ClusterUnreachable.
        """
        ...
