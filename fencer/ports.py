"""The seams between the rules and the world: what fencer needs of hypervisors, a cluster, time and people.

Adapters implement these against real things, `fencer.simulation` implements them against a world in memory,
and one suite in ``tests/contract`` runs against both. Every method is synchronous; whoever calls one does so
through an `Asker`, which holds it to a deadline. A method raises only what it names.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from fencer.core.done import Done
from fencer.core.evictions import Answer
from fencer.core.inventory import Budget, Inventory, Look
from fencer.core.model import (
    Action,
    AttachmentView,
    Binding,
    Cordon,
    Decision,
    Doubt,
    Evidence,
    FenceMark,
    GuestRef,
    NodeView,
    PodView,
)
from fencer.errors import ClusterProtocol, FencerError, HypervisorUnreachable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EndpointInfo:
    """How an endpoint describes itself.

    Attributes:
        kind: ``libvirt``, ``proxmox``, ``virtualbox`` or ``simulation``.
        version: The hypervisor's version, for people.
        detail: One line for people: URI, hosts, quorum.
        can_power: Our rights suffice for power actions. None: cannot be told beforehand.
        problems: What keeps it from being relied on, one sentence each. Empty: nothing.
        remarks: What should be mended all the same, one sentence each.
        power_only: The ids of the guests that `can_power` is about; None: all.
    """

    kind: str
    version: str
    detail: str
    can_power: bool | None
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    power_only: frozenset[str] | None = None

    def may_power(self, guest: str) -> bool:
        """Whether our rights suffice to power the guest with this id, as far as can be told."""
        return self.can_power is not False and (self.power_only is None or guest in self.power_only)


@dataclass(frozen=True, slots=True)
class StopSettings:
    """What a hypervisor keeps with a guest about its stops.

    Attributes:
        shutdown_s: How long its own shutdown may take when its host goes down, before it is stopped hard.
        set_by: What says so, for people.
        settable: It can be set for this guest.
        hook: The script that is run when it stops; empty: none.
    """

    shutdown_s: float
    set_by: str
    settable: bool = True
    hook: str = ""


class Deadline:
    """Until when something that cannot be undone may begin.

    A call that is late is given up, not interrupted: its thread may go on much later, as may the whole agent
    after its machine was suspended. So whoever is about to do what cannot be undone asks here once more.

    Args:
        at_s: On the agent's monotonic clock, which has to count suspension.
        now_s: That clock.
    """

    def __init__(self, at_s: float, now_s: Callable[[], float]) -> None:
        self._at_s = at_s
        self._now_s = now_s
        self._given_up = threading.Event()

    def give_up(self) -> None:
        """Let nothing begin any more: nobody waits for it. From any thread."""
        self._given_up.set()

    @property
    def over(self) -> bool:
        """Whether it is too late, or was given up."""
        return self._given_up.is_set() or self._now_s() > self._at_s

    def refuse_if_over(self, what: str) -> None:
        """Refuse to begin what is too late.

        Args:
            what: What is not done, for people.

        Raises:
            HypervisorUnreachable: it is over.
        """
        if self.over:
            raise HypervisorUnreachable(f"{what}: too late, it was given up before it could be done")


class Hypervisor(Protocol):
    """One endpoint: a libvirt URI, a Proxmox cluster or host, a VirtualBox user on a host.

    Readings are statements of the hypervisor and nothing more: every word that is not in the adapter's table
    reads UNKNOWN. Power methods return once the request was *sent*; whatever they return or raise, the state
    has to be read again (libvirt's destroy may raise and yet have killed; ACPI's 0 is no consent).

    A power method looks once more, over the connection that it then uses, right before it sends: whether the
    guest is still in the incarnation that is meant, and whether it is not too late. What can happen in the
    window that is left, and how long that is, each adapter states.
    """

    @property
    def endpoint(self) -> str:
        """The endpoint's name in the configuration."""
        ...

    def describe(self) -> EndpointInfo:
        """Ask the endpoint who it is and what we may do there.

        Raises:
            HypervisorUnreachable: no answer.
            HypervisorDenied: credentials or rights refused.
        """
        ...

    def sweep(self) -> Sequence[Evidence]:
        """Read all guests of the endpoint in one cheap call.

        Returns:
            One Evidence a guest, in any order. A guest whose reply cannot be read is UNKNOWN, not missing.

        Raises:
            HypervisorUnreachable, HypervisorDenied, HypervisorProtocol: nothing is known of any guest.
        """
        ...

    def read(self, guest: GuestRef) -> Evidence:
        """Read one guest, by UUID, well enough to act upon.

        Returns:
            Its Evidence, conclusive. ``ABSENT`` only when this adapter holds a record of its end.

        Raises:
            GuestNotFound: the endpoint knows no such guest, and that is all that is known.
            HypervisorUnreachable, HypervisorDenied, HypervisorProtocol: nothing is known.
        """
        ...

    def stop_settings(self, guest: GuestRef) -> StopSettings | None:
        """Read what is set for stops of a guest. None: nothing of that kind is kept here.

        Raises:
            As `read`.
        """
        ...

    def shutdown(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Ask the guest to shut down (ACPI or agent). Says nothing about whether it will.

        Args:
            guest: Whom.
            incarnation: In which run, see `Evidence.incarnation`; None: the hypervisor does not name runs.
            not_after: Until when.

        Raises:
            GuestChanged: it is in another run by now; nothing was sent.
            GuestNotFound, HypervisorUnreachable, HypervisorDenied, HypervisorProtocol.
        """
        ...

    def stop(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Cut the guest's power. May take 12 s and more.

        Args and raises:
            As `shutdown`.
        """
        ...

    def discard(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Throw the guest's saved memory away, so that it can only start cold.

        Args and raises:
            As `shutdown`.
        """
        ...

    def start(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Power the guest on.

        Args and raises:
            As `shutdown`.
        """
        ...

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, whenever something happened there: a hint, never a proof."""
        ...

    def nudge(self, guest: str) -> None:
        """Take a hook's hint that something happened to a guest: the next sweep has to read that one live.

        Args:
            guest: Its id, as the hook knows it. Whatever else it is does no harm.
        """
        ...

    def close(self) -> None:
        """Give connections and threads back. Never raises, never blocks."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """Which cluster this is, and who we are there.

    Attributes:
        uid: UID of the namespace kube-system: the cluster's identity.
        server: The API server that answered.
        version: Its version, like ``v1.36.2``.
        user: Who it says we are.
        paused_why: The text of the pause annotation on kube-system; None: not paused.
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
    """

    node: NodeView
    renew_time: str | None
    utc: str
    lease_version: int = 0


@dataclass(frozen=True, slots=True)
class Roster:
    """All nodes and leases, from two lists.

    Attributes:
        facts: One per readable node.
        utc: The API server's clock when it answered, RFC 3339.
        malformed: Names (or places) of nodes that could not be read, each with why.
        paused_why: The text of the pause annotation on kube-system; None: not paused.
    """

    facts: tuple[Fact, ...]
    utc: str
    malformed: tuple[str, ...] = ()
    paused_why: str | None = None


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
    """What became of one pod that was to be cleared.

    Attributes:
        pod: The pod.
        gone: The object is gone, or was never there under this UID.
        note: What is in the way otherwise (finalizers, an error), for people. Empty when gone.
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

    def missing_volume_rights(self) -> Sequence[str]:
        """Name the rights that `volumes` needs and we do not have. Without them everything else goes on.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def roster(self) -> Roster:
        """List all nodes and node leases, paged, and read the pause. A malformed node never hides the others.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def fact(self, node: str) -> Fact:
        """Read one node and its lease live (not from the API server's watch cache).

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
            ClusterUnreachable, ClusterDenied, ClusterProtocol. One that cannot be read is told by
                `Attachments.of`, to whom it may concern.
        """
        ...

    def volumes(self, pod: PodView) -> frozenset[str]:
        """Name the PersistentVolumes that the pod's claims are bound to, one request a claim.

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
        """Write whose off readings are not believed, or take that off where there are none, guarded.

        Raises:
            As `bind`.
        """
        ...

    def claim(self, node: NodeView, incident: str, by: str) -> None:
        """Write the incident annotation, if the node is still at ``node.version``: one agent wins.

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
        """Take taint and mark off in one guarded write, and cordon the node where `cordon` is given.

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
            ClusterConflict: another object bears that name now.
            ClusterUnreachable, ClusterDenied, ClusterProtocol. That it is gone already is no error.
        """
        ...

    def record_event(self, node: NodeView, reason: str, text: str, *, warning: bool) -> None:
        """Leave an Event that ``kubectl describe node`` shows.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...


class Evictor(Protocol):
    """What only a drain asks of the cluster: beside `Cluster`, so that the agent needs no right for it."""

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
            What the API answered, success or not: `fencer.core.evictions` knows what it means.

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


@dataclass(frozen=True, slots=True)
class Credential:
    """What lets us into the cluster, until it ends.

    Attributes:
        what: ``token`` or ``certificate``.
        ends: When it is good no longer. None: it does not say.
        renewal: The command that makes a kubeconfig with another token. Empty: there is no kubeconfig.
    """

    what: str
    ends: datetime | None
    renewal: str


class Account(Protocol):
    """Who fencer is in the cluster: what people are to be told of it, and no decision needs."""

    def missing_attachment_rights(self) -> Sequence[str]:
        """Name the rights that `Cluster.delete_attachment` needs and we do not have.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def confined(self, node: str) -> bool:
        """Tell whether the admission policy holds for us: try a label, as a dry run that writes nothing.

        Args:
            node: Any that is there.

        Returns:
            False: we may set it.

        Raises:
            ClusterNotFound, ClusterUnreachable, ClusterDenied, ClusterProtocol: that is not known; also
                where somebody else than the policy refused.
        """
        ...

    def credentials(self) -> Sequence[Credential]:
        """Tell what lets us in, and until when, as far as it says so itself. Asks nobody.

        Raises:
            ConfigError: the kubeconfig cannot be used any more.
        """
        ...


class Surveyor(Protocol):
    """What only a plan reads of the cluster: beside `Cluster`, so that the agent needs no right for it."""

    def survey(self) -> Inventory:
        """List nodes with their room, all pods, budgets, services, claims and volumes, paged.

        What could not be looked at, and every object that could not be read, is said in the inventory.

        Raises:
            ClusterDenied: not even nodes and pods may be listed.
            ClusterUnreachable, ClusterProtocol.
        """
        ...

    def budgets(self) -> Look[Budget]:
        """List the budgets alone, paged; a missing right is said in it.

        Raises:
            ClusterUnreachable, ClusterProtocol.
        """
        ...


class HostPower(Protocol):
    """A witness of a host's power: status only, raw reading, never an action."""

    @property
    def host(self) -> str:
        """The host it watches, as the hypervisor's endpoint names it."""
        ...

    def is_off(self) -> bool | None:
        """Read the power of the host: True only for raw Off/S5 on every outlet. None: could not be told.

        Raises:
            HypervisorUnreachable, HypervisorDenied, HypervisorProtocol.
        """
        ...


class Reporter(Protocol):
    """Tells people. Never asked by a decision; never raises."""

    def decided(self, node: NodeView, decision: Decision) -> None:
        """A node's decision changed (verdict, reason or guest)."""
        ...

    def acted(self, node: NodeView, action: Action, done: Done) -> None:
        """An action was carried out, or failed."""
        ...

    def said(self, text: str, *, warning: bool) -> None:
        """Something that concerns no single node: an endpoint lost, the API found again."""
        ...


class Asker(Protocol):
    """Runs calls that may hang, each under a deadline. Threads live; inline in the simulation."""

    def ask(self, endpoint: str, call: Callable[[], T], deadline_s: float) -> T:
        """Run one call on the endpoint's worker.

        Args:
            endpoint: Whose worker; a hung endpoint never delays another.
            call: What to run. Abandoned, not interrupted, when late.
            deadline_s: Seconds from now.

        Raises:
            HypervisorUnreachable: late, or no worker left there.
            FencerError: what the call raised.
        """
        ...

    def ask_all(
        self, calls: Mapping[str, Callable[[], T]], deadline_s: float, *, patient: bool = False
    ) -> dict[str, T | FencerError]:
        """Run one call per endpoint, all at once.

        Args:
            calls: What to run, by endpoint.
            deadline_s: Seconds from now.
            patient: Wait for every answer until the deadline. Otherwise slow endpoints may read unreachable
                sooner, and answer the next time they are asked: for looks that are repeated anyway.

        Returns:
            For each endpoint the answer, or the error that `ask` would have raised; by key, in no order.
        """
        ...


class Clock(Protocol):
    """Time, and waiting for something to happen."""

    def now_s(self) -> float:
        """Monotonic seconds; only differences mean anything."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait for a wake-up, `timeout_s` at most. True: woken."""
        ...

    def wake(self) -> None:
        """End the present or the next `wait`, from any thread."""
        ...
