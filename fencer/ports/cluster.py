"""The Kubernetes API, as far as fencing goes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fencer.core.model import (
    AttachmentView,
    Binding,
    Cordon,
    Doubt,
    FenceMark,
    Left,
    NodeView,
    PodView,
)
from fencer.errors import ClusterProtocol


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """Which cluster this is, and who we are there.

    Attributes:
        uid: UID of the namespace kube-system: the cluster's identity.
        server: The API server that answered.
        version: Its version, like ``v1.36.2``.
        user: Who it says we are.
        paused_why: The text of the pause annotation on kube-system, for `fencer.core.pause`; None: none.
    """

    uid: str
    server: str
    version: str
    user: str
    paused_why: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A live read together with the API server's clock.

    Attributes:
        node: The node, without lease data.
        renew_time: The lease's renewTime as text, by the node's clock; None: none that can be read.
        lease_version: The lease's resourceVersion, as a number; 0: not known.
        utc: The API server's clock when it answered, RFC 3339.
        paused_why: The text of the pause annotation on kube-system, for `fencer.core.pause`; None: none.
    """

    node: NodeView
    renew_time: str | None
    utc: str
    lease_version: int = 0
    paused_why: str | None = None


@dataclass(frozen=True, slots=True)
class Nodes:
    """All nodes of the cluster, without lease data.

    Attributes:
        views: Those that can be read.
        malformed: Names (or places) of those that cannot, each with why.
        utc: The API server's clock when it listed them, RFC 3339; empty: they are as a watch last told.
        paused_why: Where they were listed, the text of the pause annotation on kube-system; None: none.
    """

    views: tuple[NodeView, ...]
    malformed: tuple[str, ...] = ()
    utc: str = ""
    paused_why: str | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """A node's lease, as it was read live.

    Attributes:
        renew_time: Its renewTime as text, by the node's clock; None: none that can be read.
        version: Its resourceVersion, as a number; 0: not known.
    """

    renew_time: str | None
    version: int = 0


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """Leases as they were read live, and what else every pass has to know of the cluster.

    Attributes:
        leases: By the node's name: every one that was asked for and is there, and perhaps others.
        version: Every lease that was last written before the answer came, by any node, has a resourceVersion
            of at most this one; 0: not known.
        utc: The API server's clock when it answered, RFC 3339.
        malformed: Leases that cannot be read, each with why.
        paused_why: The text of the pause annotation on kube-system, for `fencer.core.pause`; None: none.
    """

    leases: Mapping[str, Lease]
    version: int
    utc: str
    malformed: tuple[str, ...] = ()
    paused_why: str | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """What is written about a pause of the whole cluster, as it was read live.

    Attributes:
        why: The text of the pause annotation on kube-system, for `fencer.core.pause`; None: none.
        utc: The API server's clock when it answered, RFC 3339.
    """

    why: str | None
    utc: str


@dataclass(frozen=True, slots=True)
class Attachments:
    """All VolumeAttachments of the cluster, from one list; one look serves every node.

    Attributes:
        views: Those that could be read.
        unread: Of each that could not: the node it names (empty: none), and why, naming the attachment.
    """

    views: tuple[AttachmentView, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()

    def of(self, node: str) -> tuple[AttachmentView, ...]:
        """Return those of a node.

        Raises:
            ClusterProtocol: one that names this node, or none at all, could not be read: a volume that may
                be this node's must not be overlooked.
        """
        for named, why in self.unread:
            if named in {node, ""}:
                raise ClusterProtocol(why)
        return tuple(view for view in self.views if view.node == node)


@dataclass(frozen=True, slots=True)
class Cleared:
    """The result of clearing one pod.

    Attributes:
        pod: The pod.
        gone: The object is gone, or was never there under this UID.
        note: Otherwise what is in the way (finalizers, an error), for people. Empty when gone.
    """

    pod: PodView
    gone: bool
    note: str = ""


class Cluster(Protocol):
    """The Kubernetes API, reduced to what fencer reads and writes. No method retries a write."""

    def identity(self) -> ClusterInfo:
        """Ask which cluster this is, who we are, and whether fencing is paused.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def missing_rights(self) -> Sequence[str]:
        """Name the rights fencer needs and does not have, like ``patch nodes``. Empty: all there.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def missing_lesser_rights(self) -> Sequence[str]:
        """Name the rights that `subscribe` and `volumes` need and we do not have. Fences go on without them.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def nodes(self) -> Nodes:
        """Return all nodes as they were last known: once there is a watch (`subscribe`), by that.

        A malformed node never hides the others. What a watch tells may be late, and nothing may be done for
        it alone: whoever acts reads live before.

        Raises:
            ClusterUnreachable: they could not be listed, or the watch has not told anything for too long.
            ClusterDenied, ClusterProtocol.
        """
        ...

    def list_nodes(self) -> Nodes:
        """List all nodes live, paged. A malformed node never hides the others.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def heartbeats(self, nodes: Collection[str] | None) -> Heartbeats:
        """Read the leases of these nodes live, and a few more, so that it is known whether anybody is heard.

        Args:
            nodes: Names of nodes; None: all.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def pause(self) -> Pause:
        """Read whether fencing is paused: one short request.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Watch the nodes from now on, for `nodes`, and tell of what matters.

        Args:
            wake: Called, on any thread, when a node comes, goes, changes its Ready condition, its taints, its
                cordon or what fencer has written on it.
        """
        ...

    def fact(self, node: str) -> Fact:
        """Read a node, its lease, and whether fencing is paused, live: not from a watch cache.

        Raises:
            ClusterNotFound: no such node.
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def pods(self, node: str) -> Sequence[PodView]:
        """List the pods bound to a node.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol: also when one of them cannot be read,
                because a pod that cannot be judged must not be overlooked.
        """
        ...

    def attachments(self) -> Attachments:
        """List all VolumeAttachments, paged. The API has no selector for the node, so one list is for all.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol. `Attachments.of` reports one that cannot be
            read.
        """
        ...

    def volumes(self, pod: PodView) -> frozenset[str]:
        """Name the PersistentVolumes that the pod's claims are bound to, one request per claim.

        A claim that is gone, or not bound yet, has none.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def bind(self, node: NodeView, binding: Binding) -> None:
        """Write the binding annotation, if the node is still at ``node.version``.

        Raises:
            ClusterConflict: the node changed since it was read.
            ClusterNotFound, ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def record_doubts(self, node: NodeView, doubts: tuple[Doubt, ...]) -> None:
        """Write whose off readings are not believed, or remove that note if there are none, guarded.

        Raises:
            As `bind`.
        """
        ...

    def approve(self, node: NodeView, uuid: str, by: str, since_utc: str) -> None:
        """Write that a person has approved a VM as this node's, or remove that note, guarded.

        Args:
            node: As it was read.
            uuid: The VM's; empty: the note is removed.
            by: The person.
            since_utc: When, by the API server's clock.

        Raises:
            As `bind`.
        """
        ...

    def claim(self, node: NodeView, incident: str, by: str, left: Left | None = None) -> None:
        """Write the incident annotation, if the node is still at ``node.version``: one agent wins.

        Args:
            node: As it was read.
            incident: The incident's id.
            by: Who claims it.
            left: How the power action that was claimed has left the guest; None: not known yet.

        Raises:
            As `bind`.
        """
        ...

    def taint(self, node: NodeView, mark: FenceMark) -> None:
        """Write the out-of-service taint and our mark in one guarded write; other taints survive.

        Raises:
            As `bind`.
        """
        ...

    def untaint(self, node: NodeView, cordon: Cordon | None) -> None:
        """Take taint and mark off in one guarded write, and cordon the node if `cordon` is given.

        Raises:
            As `bind`.
        """
        ...

    def forget_mark(self, node: NodeView) -> None:
        """Take the mark off a node that has no taint any more, guarded.

        Raises:
            As `bind`.
        """
        ...

    def cordon(self, node: NodeView, cordon: Cordon) -> None:
        """Cordon the node and note that it was us, guarded.

        Raises:
            As `bind`.
        """
        ...

    def uncordon(self, node: NodeView) -> None:
        """Take our cordon and its annotation off, guarded.

        Raises:
            As `bind`.
        """
        ...

    def clear(self, pod: PodView, why: str) -> Cleared:
        """Do to one pod what the pod garbage collector does for an out-of-service node.

        PATCH pods/status to phase Failed with the DisruptionTarget condition, then DELETE with grace 0; both
        guarded by UID and resourceVersion. Finalizers are never touched.

        Args:
            pod: As it was read.
            why: Text of the condition.

        Raises:
            ClusterConflict: the pod changed since it was read: look again.
            ClusterUnreachable, ClusterDenied, ClusterProtocol.

        Source: kubernetes pkg/controller/podgc/gc_controller.go, markFailedAndDeletePod.
        """
        ...

    def delete_attachment(self, attachment: AttachmentView) -> None:
        """DELETE one VolumeAttachment, guarded by its UID. Its attacher then detaches; finalizers stay.

        Only for a node whose object is gone, with the taint that would release the volume at once.

        Raises:
            ClusterConflict: another object has that name now.
            ClusterUnreachable, ClusterDenied, ClusterProtocol. One that is gone already is no error.
        """
        ...

    def record_event(self, node: NodeView, reason: str, text: str, *, warning: bool) -> None:
        """Leave an Event that ``kubectl describe node`` shows.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...
