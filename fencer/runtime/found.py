"""What is on a node: its pods and volumes, as a close look finds them, and for how long that counts.

A node with nothing to do need not be looked at closely in every pass: it would keep the others waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from fencer.core.model import AttachmentView, NodeView, PodView
from fencer.core.pods import bound_to_node, keeping_volumes, to_clear_on
from fencer.core.policy import Policy
from fencer.core.text import count
from fencer.errors import ClusterError, ClusterUnreachable
from fencer.ports import Attachments, Clock, Cluster
from fencer.runtime.memory import Scene

T = TypeVar("T")

LOOK_AGAIN_S = 30.0
"""What was found counts this long. Nothing is scheduled to a node that is not Ready, and its guest is still
read in every pass: only a pod that a person binds there by hand waits for this."""


CLAIMS_A_LOOK = 4
"""The claims of at most this many pods are read in one look: each is a call, and meanwhile the guest's
reading ages."""


class NotYet(ClusterUnreachable):
    """A node is not looked at in this pass: its last look took long and failed, and was reported then."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A close look that took long, and failed.

    Attributes:
        error: Why.
        until_s: When it is worth another one.
    """

    error: ClusterError
    until_s: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a close look found on a node.

    Attributes:
        at_s: When.
        pods: Its pods.
        attachments: Its attachments.
        kept_volumes: See `Observation.kept_volumes`.
        kept_unread: See `Observation.kept_unread`.
    """

    at_s: float
    pods: tuple[PodView, ...]
    attachments: tuple[AttachmentView, ...]
    kept_volumes: frozenset[str] = frozenset()
    kept_unread: str = ""


class Ask(Protocol):
    """Calls the cluster, with the deadline of an ordinary call."""

    def __call__(self, call: Callable[[], T]) -> T:
        """Return what the call returns, or raise what it raises: a `ClusterError`."""
        ...

    def alone(self, what: str) -> AbstractContextManager[None]:
        """Be the only one at something; see `fencer.ports.Asker`."""
        ...


class Finder:
    """Looks at what is on nodes, and remembers it.

    Args:
        cluster: The port.
        api: Calls it under its deadline.
        clock: Time.
        policy: For the poll: attachments of all nodes are listed once in it.
    """

    def __init__(self, cluster: Cluster, api: Ask, clock: Clock, policy: Policy) -> None:
        self._cluster = cluster
        self._api = api
        self._clock = clock
        self._poll_s = policy.poll_s
        self._slow_s = policy.call_deadline_s / 2
        self._failed: dict[str, Failed] = {}
        self._found: dict[str, Found] = {}
        self._volumes: dict[str, frozenset[str]] = {}
        """By the UID of a pod that stays on a fenced node: a claim that is bound stays so."""
        self._attachments = Attachments()
        self._listed_s = float("-inf")

    def look(self, scene: Scene, node: NodeView) -> Found:
        """Look at a node's pods and attachments.

        Raises:
            ClusterError: one of them cannot be read; or failed lately, and is not tried again yet.
        """
        self._rest(scene, node)
        began_s = self._clock.now_s()
        try:
            found = self._find(node)
        except ClusterError as error:
            self._fail(scene, node, error, self._clock.now_s() - began_s)
            raise
        self._allow_others(node)
        before = self._found.get(node.uid)
        scene.looked_again |= before is not None and self._due(scene, before)
        self._found[node.uid] = found
        return found

    def known(self, scene: Scene, node: NodeView) -> Found | None:
        """Return what is known to be on a node, while that counts; None: look at it.

        One node per pass is looked at again, each in its turn.
        """
        found = self._found.get(node.uid)
        if found is None:
            return None
        return None if self._due(scene, found) and not scene.looked_again else found

    def notice(self, nodes: Iterable[NodeView]) -> None:
        """Take note of a pass: what was found on a node that is Ready, or gone, does not count any more."""
        silent = {node.uid for node in nodes if node.ready is not True}
        self._found = {uid: found for uid, found in self._found.items() if uid in silent}
        self._failed = {uid: failed for uid, failed in self._failed.items() if uid in silent}
        if not self._found:
            self._volumes.clear()

    def attachments_changed(self) -> None:
        """List attachments again when they are needed next."""
        self._listed_s = float("-inf")

    def rest_s(self, scene: Scene, node: NodeView) -> float:
        """Return how long a node may be left alone between two looks; 0: it is not."""
        return 2 * self._turn_s(scene) if node.uid in self._found else 0.0

    def _find(self, node: NodeView) -> Found:
        pods = tuple(self._api(partial(self._cluster.pods, node.name)))
        attachments = self._attached_to(node.name)
        kept, unread = self._kept(node, pods, attachments)
        return Found(self._clock.now_s(), pods, attachments, kept, unread)

    def _rest(self, scene: Scene, node: NodeView) -> None:
        """Leave a node whose pods take too long to list: only one per pass, or all others wait for it.

        Anyone who may make pods can make a node's list very long.
        """
        failed = self._failed.get(node.uid)
        if failed is None:
            return
        if scene.tried_again or self._clock.now_s() < failed.until_s:
            raise NotYet(f"{failed.error}; others are looked at before it is asked again")

    def _fail(self, scene: Scene, node: NodeView, error: ClusterError, took_s: float) -> None:
        """Remember a look that took long: the more there are, the longer each waits for its turn."""
        again = self._failed.pop(node.uid, None) is not None
        if took_s >= self._slow_s:
            scene.tried_again |= again
            rest_s = took_s * (len(self._failed) + 1)
            self._failed[node.uid] = Failed(error, self._clock.now_s() + rest_s)

    def _allow_others(self, node: NodeView) -> None:
        """Try each of the others at once when one works again: it may have been the API server."""
        if self._failed.pop(node.uid, None) is not None:
            self._failed = {
                uid: Failed(failed.error, self._clock.now_s()) for uid, failed in self._failed.items()
            }

    def _due(self, scene: Scene, found: Found) -> bool:
        """Whether it is a node's turn to be looked at again."""
        return scene.now_s - found.at_s >= self._turn_s(scene)

    def _turn_s(self, scene: Scene) -> float:
        """Return how long that takes: with many nodes each waits longer."""
        return max(LOOK_AGAIN_S, 2 * len(self._found) * scene.since_last_s)

    def _attached_to(self, node: str) -> tuple[AttachmentView, ...]:
        """Return a node's attachments. The API knows no selector for it, and lists those of all nodes."""
        came_s = self._clock.now_s()
        with self._api.alone("listing attachments"):
            if came_s - self._listed_s >= self._poll_s:  # however long it was waited for here
                began_s = self._clock.now_s()
                self._attachments, self._listed_s = self._api(self._cluster.attachments), began_s
        return self._attachments.of(node)

    def _kept(
        self, node: NodeView, pods: Sequence[PodView], attachments: Sequence[AttachmentView]
    ) -> tuple[frozenset[str], str]:
        """Return the volumes of pods that a fence leaves where they are, or why they are not known."""
        if not attachments or not all(map(bound_to_node, to_clear_on(node, pods))):
            return frozenset(), ""  # there is something to clear: nobody asks for volumes yet
        kept: set[str] = set()
        unknown = [pod for pod in keeping_volumes(node, pods) if pod.uid not in self._volumes]
        try:
            for pod in unknown[:CLAIMS_A_LOOK]:
                volumes = self._api(partial(self._cluster.volumes, pod))
                kept |= volumes
                if len(volumes) == len(pod.claims):
                    self._volumes[pod.uid] = volumes
        except ClusterError as error:
            return frozenset(), str(error)
        there = {pod.uid for pod in pods}
        kept.update(*(volumes for uid, volumes in self._volumes.items() if uid in there))
        later = len(unknown) - CLAIMS_A_LOOK
        return frozenset(kept), f"the claims of {count(later, 'pod')} are read next" if later > 0 else ""
