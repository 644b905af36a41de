"""All nodes as they are known: what a list and the watch after it told, and how long ago the last word was.

It never goes back: what is older than what was told before is refused. Pure, apart from the lock.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from dataclasses import replace

from fencer.cluster.lists import Listed
from fencer.cluster.parse import SealedNode
from fencer.cluster.watch_events import BOOKMARK, DELETED, WatchEvent
from fencer.core.history import LAGS_S
from fencer.core.model import NodeView
from fencer.errors import ClusterUnreachable
from fencer.ports import Nodes

Told = SealedNode | str
"""A node, or why it cannot be read."""


class KnownNodes:
    """What is known of all nodes. May be used from several threads. All times are of one monotonic clock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nodes: dict[str, _Node] = {}
        self._version = 0
        self._heard_s = -math.inf

    @property
    def version(self) -> int:
        """The resourceVersion up to which all was told; 0: nothing was ever listed."""
        return self._version

    def silent_s(self, now_s: float) -> float:
        """Return how long ago the last word was; infinite: there was none."""
        return now_s - self._heard_s

    def take_list(self, listed: Listed[tuple[str, Told]], now_s: float) -> bool:
        """Take a list for all that there is.

        Args:
            listed: Each node's name (or place) with what was read of it.
            now_s: When it came.

        Returns:
            Whether anything that matters has changed.

        Raises:
            ClusterUnreachable: it is older than what was told before. After `LAGS_S` it is believed all the
                same: an etcd that was restored from a backup starts from there.
        """
        with self._lock:
            if listed.version < self._version and now_s - self._heard_s < LAGS_S:
                raise ClusterUnreachable(
                    f"the nodes were listed as of version {listed.version}, which is older than "
                    f"{self._version}, seen before"
                )
            fresh = dict(listed.taken)
            gone = self._nodes.keys() - fresh.keys()
            changes = [self._forget(name) for name in gone] + [self._keep(*item) for item in fresh.items()]
            self._version, self._heard_s = listed.version, now_s
        return any(changes)

    def take_event(self, event: WatchEvent, now_s: float) -> bool:
        """Take an event; one that is older than what was told before says nothing.

        Returns:
            Whether anything that matters has changed.
        """
        with self._lock:
            if event.version < self._version:
                return False
            self._version, self._heard_s = event.version, now_s
            if event.kind == BOOKMARK or event.node is None:
                return False
            return self._forget(event.name) if event.kind == DELETED else self._keep(event.name, event.node)

    def read(self, key: bytes) -> Nodes:
        """Return all nodes.

        Args:
            key: The cluster's, to tell what fencer has signed.
        """
        with self._lock:
            read = [node.read(key) for node in self._nodes.values()]
        return Nodes(tuple(_sound(read)), tuple(item for item in read if isinstance(item, str)))

    def _keep(self, name: str, told: Told) -> bool:
        before, now = self._nodes.get(name), _Node(told)
        self._nodes[name] = now
        return before is None or before.matter != now.matter

    def _forget(self, name: str) -> bool:
        return self._nodes.pop(name, None) is not None


class _Node:
    """One node, and what its signed notes read with the newest key."""

    __slots__ = ("_key", "_read", "_told")

    def __init__(self, told: Told) -> None:
        self._told = told
        self._key: bytes | None = None
        self._read: NodeView | str = told if isinstance(told, str) else told.view

    @property
    def matter(self) -> object:
        """All but what changes with a kubelet's regular report."""
        told = self._told
        return (
            told if isinstance(told, str) else (replace(told.view, version="", volumes_in_use=0), told.notes)
        )

    def read(self, key: bytes) -> NodeView | str:
        if self._key != key and not isinstance(self._told, str):
            self._key, self._read = key, self._told.opened(key)
        return self._read


def _sound(read: Iterable[NodeView | str]) -> Iterable[NodeView]:
    return (item for item in read if not isinstance(item, str))
