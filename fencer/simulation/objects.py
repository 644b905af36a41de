"""The API objects in memory: nodes with leases, pods, attachments; with versions and UIDs as in the real API.

Code that changes an object calls `Api.changed`, which gives it a new resourceVersion and tells the watchers.
Nothing is copied per read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias
from uuid import UUID

from fencer.core.history import LEASE_DURATION_S
from fencer.core.model import OUT_OF_SERVICE, Taint
from fencer.simulation.clock import VirtualClock

UNREACHABLE = "node.kubernetes.io/unreachable"


@dataclass(slots=True, eq=False)
class ApiNode:
    """A Node and its lease.

    Attributes:
        ready: Status of the Ready condition; None: Unknown.
        labels: Its labels, for people's commands only.
        reported: lastHeartbeatTime of the Ready condition, as text: when a kubelet last wrote the status.
        cordoner: Who set `unschedulable` last, by the name of the program: the truth.
        recorded: The API server keeps a record that says so (managedFields).
        lease: renewTime of the node's lease, as text.
        lease_version: Its resourceVersion.
        renewed_s: When it was last renewed.
        heard_since_s: When it was renewed again after it had been silent for a lease's duration.
        renewals: How often.
        out_of_service_until_s: When the out-of-service taint was last taken off.
        ready_since_s: Since when Ready is True.
    """

    name: str
    uid: str
    system_uuid: str
    boot_id: str
    roles: tuple[str, ...] = ()
    version: int = 0
    ready: bool | None = True
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    cordoner: str = ""
    recorded: bool = True
    annotations: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    volumes_in_use: frozenset[str] = frozenset()
    volumes_attached: frozenset[str] = frozenset()
    reported: str = ""
    lease: str | None = None
    lease_version: int = 0
    renewed_s: float = float("-inf")
    heard_since_s: float = float("-inf")
    renewals: int = 0
    out_of_service_until_s: float = float("-inf")
    ready_since_s: float = float("-inf")

    def tainted(self, key: str, effect: str | None = None) -> bool:
        """Whether it has a taint of this key (and effect)."""
        return any(taint.key == key and effect in {None, taint.effect} for taint in self.taints)

    @property
    def out_of_service(self) -> bool:
        """Whether it has the out-of-service taint: controllers ask for the key only."""
        return self.tainted(OUT_OF_SERVICE)


@dataclass(slots=True, eq=False)
class ApiPod:
    """A pod.

    Attributes:
        owner: Kind and name of the workload, like ``StatefulSet/db``; empty: nobody recreates it.
        node: Where it is bound; None: not scheduled yet.
        pinned: The only node it may run on (DaemonSet pods); None: any.
        volume: Name of its ReadWriteOnce volume; None: none.
        deleted_s: When it was marked for deletion; None: not.
        toleration_s: How long it stays on an unreachable node; None: for ever.
        local_data: It uses an emptyDir.
        tolerates_cordon: A cordon does not keep it off a node.
        named_node: The node that its template names, so that no scheduler is asked; None: none.
    """

    namespace: str
    name: str
    uid: str
    owner: str
    created_s: float
    node: str | None = None
    pinned: str | None = None
    volume: str | None = None
    version: int = 0
    phase: str = "Pending"
    ready: bool = False
    deleted_s: float | None = None
    grace_s: float = 30.0
    toleration_s: float | None = 300.0
    tolerates_out_of_service: bool = False
    tolerates_cordon: bool = False
    named_node: str | None = None
    mirror: bool = False
    finalizers: tuple[str, ...] = ()
    disrupted_why: str = ""
    local_data: bool = False
    cpu_m: int = 0
    memory_b: int = 0

    @property
    def over(self) -> bool:
        """Whether its phase is final."""
        return self.phase in {"Succeeded", "Failed"}

    @property
    def daemon(self) -> bool:
        """Whether it belongs to a DaemonSet."""
        return self.pinned is not None

    def __str__(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(slots=True, eq=False)
class ApiAttachment:
    """A VolumeAttachment.

    Attributes:
        unwanted_s: Since when no living pod on the node needs it; None: needed.
        terminating: Being detached.
        by_hand: A person made it: the attach/detach controller does not know it, and leaves it alone.
    """

    name: str
    uid: str
    volume: str
    node: str
    version: int = 0
    attached: bool = False
    terminating: bool = False
    by_hand: bool = False
    unwanted_s: float | None = None


@dataclass(frozen=True, slots=True)
class ApiBudget:
    """A PodDisruptionBudget: so many pods of a workload must stay Ready.

    Attributes:
        owner: Kind and name of the workload.
        min_available: How many.
        always_allow: Pods that are not Ready may always go (unhealthyPodEvictionPolicy: AlwaysAllow).
        expected: How many pods its workload is to have; None: as many as it has, which no rollout shows.
    """

    namespace: str
    name: str
    owner: str
    min_available: int
    always_allow: bool = False
    expected: int | None = None


ApiObject: TypeAlias = ApiNode | ApiPod | ApiAttachment


class Api:
    """All objects.

    Args:
        clock: The API server's clock.
        chance: Source of UIDs.
    """

    def __init__(self, clock: VirtualClock, chance: Random) -> None:
        self.clock = clock
        self.chance = chance
        self.cluster_uid = self.new_uid()
        self.down_why: str | None = None
        self.paused_why: str | None = None
        self.held_since_s: dict[tuple[str, str], float] = {}
        """Node (empty: all) and annotation → since when that keeps fencer's hands off."""
        self.nodes: dict[str, ApiNode] = {}
        self.pods: dict[str, ApiPod] = {}
        self.attachments: dict[tuple[str, str], ApiAttachment] = {}
        self.budgets: list[ApiBudget] = []
        self.watchers: list[Callable[[ApiObject], None]] = []
        self.version = 1000
        self._by_name: dict[tuple[str, str], ApiPod] = {}
        self._by_owner: dict[str, dict[str, ApiPod]] = {}
        self._by_node: dict[str | None, dict[str, ApiPod]] = {}

    def new_uid(self) -> str:
        """Return a UID that the seed determines."""
        return str(UUID(int=self.chance.getrandbits(128), version=4))

    def changed(self, obj: ApiObject) -> None:
        """Give an object that was just changed a new version, and tell the watchers."""
        self.version += 1
        obj.version = self.version
        for watcher in self.watchers:
            watcher(obj)

    # --- nodes

    def renew(self, node: ApiNode) -> None:
        """Renew a node's lease: an object of its own, of which no watcher is told."""
        self.version += 1
        node.lease, node.lease_version = self.clock.utc("microseconds"), self.version
        if self.clock.now_s() - node.renewed_s > LEASE_DURATION_S:
            node.heard_since_s = self.clock.now_s()
        node.renewed_s = self.clock.now_s()
        node.renewals += 1

    def add_node(self, node: ApiNode) -> None:
        """Register a node."""
        self.nodes[node.name] = node
        self.changed(node)

    def delete_node(self, name: str) -> None:
        """Delete a Node object; its pods stay until the garbage collector finds them orphaned."""
        node = self.nodes.pop(name, None)
        if node is not None:
            self.changed(node)

    def set_taints(self, node: ApiNode, taints: Iterable[Taint]) -> None:
        """Replace a node's taints, if that changes anything."""
        new = tuple(taints)
        if new != node.taints:
            if node.out_of_service and not any(taint.key == OUT_OF_SERVICE for taint in new):
                node.out_of_service_until_s = self.clock.now_s()
            node.taints = new
            self.changed(node)

    # --- pods

    def pods_on(self, node: str | None) -> Sequence[ApiPod]:
        """Return the pods bound to a node (None: to none)."""
        return tuple(self._by_node.get(node, {}).values())

    def pods_of(self, owner: str) -> Sequence[ApiPod]:
        """Return the pods of a workload."""
        return tuple(self._by_owner.get(owner, {}).values())

    def pod(self, namespace: str, name: str) -> ApiPod | None:
        """Return the pod of that name."""
        return self._by_name.get((namespace, name))

    def create_pod(self, pod: ApiPod) -> None:
        """Add a pod."""
        self.pods[pod.uid] = pod
        self._by_name[pod.namespace, pod.name] = pod
        self._by_owner.setdefault(pod.owner, {})[pod.uid] = pod
        self._by_node.setdefault(pod.node, {})[pod.uid] = pod
        self.changed(pod)

    def bind_pod(self, pod: ApiPod, node: str) -> None:
        """Bind a pending pod to a node."""
        del self._by_node[pod.node][pod.uid]
        pod.node = node
        self._by_node.setdefault(node, {})[pod.uid] = pod
        self.changed(pod)

    def fail_pod(self, pod: ApiPod, why: str) -> None:
        """Set phase Failed with the condition DisruptionTarget, unless the phase is final already."""
        if not pod.over:
            pod.phase, pod.ready, pod.disrupted_why = "Failed", False, why
            self.changed(pod)

    def delete_pod(self, pod: ApiPod, *, force: bool = False) -> bool:
        """Delete a pod, as the API does it.

        Args:
            pod: Which.
            force: With grace 0; otherwise a bound pod is only marked, and its kubelet has to confirm.

        Returns:
            Whether the object is gone: finalizers keep it.
        """
        if pod.deleted_s is None:
            pod.deleted_s = self.clock.now_s()
            self.changed(pod)
        if pod.finalizers or not (force or pod.node is None or pod.over):
            return False
        self._remove(pod)
        return True

    def release_pod(self, pod: ApiPod) -> None:
        """Take the finalizers off; a pod that waited only for that is gone."""
        if not pod.finalizers:
            return
        pod.finalizers = ()
        self.changed(pod)
        if pod.deleted_s is not None and pod.over:
            self._remove(pod)

    def _remove(self, pod: ApiPod) -> None:
        if self.pods.pop(pod.uid, None) is None:
            return
        del self._by_owner[pod.owner][pod.uid]
        del self._by_node[pod.node][pod.uid]
        if self._by_name.get((pod.namespace, pod.name)) is pod:
            del self._by_name[pod.namespace, pod.name]
        self.changed(pod)

    # --- attachments

    def add_attachment(self, volume: str, node: str) -> ApiAttachment:
        """Add an attachment that is not attached yet."""
        uid = self.new_uid()
        attachment = ApiAttachment(f"csi-{uid[:8]}", uid, volume, node)
        self.attachments[volume, node] = attachment
        self.changed(attachment)
        return attachment

    def set_attached(self, node: str, volume: str, *, attached: bool) -> None:
        """Write node.status.volumesAttached."""
        view = self.nodes.get(node)
        if view is not None:
            change = frozenset({volume})
            view.volumes_attached = (
                view.volumes_attached | change if attached else view.volumes_attached - change
            )
            self.changed(view)

    def remove_attachment(self, attachment: ApiAttachment) -> None:
        """Remove an attachment: the volume is detached."""
        if self.attachments.pop((attachment.volume, attachment.node), None) is not None:
            self.changed(attachment)
