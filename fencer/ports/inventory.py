"""What a plan, or a topology, looks at: nodes, all pods, budgets, services, volumes. Frozen values.

A kind of object that could not be read completely says so: nothing is concluded from its absence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from fencer.core.model import NodeView, PodView
from fencer.ports.selectors import NodeSelector, Selector

T_co = TypeVar("T_co", covariant=True)


class Kind(StrEnum):
    """The kinds of objects, with names for people."""

    NODES = "nodes"
    PODS = "pods"
    BUDGETS = "budgets"
    SERVICES = "services"
    CLAIMS = "volume claims"
    VOLUMES = "volumes"


@dataclass(frozen=True, slots=True)
class Listing(Generic[T_co]):
    """One kind of object, as far as it could be listed.

    Attributes:
        items: What was read.
        unread: Objects that are there and could not be read, each with why.
        why_not: Why none could be listed at all; empty: they could.
        denied: It was a missing right.
    """

    items: tuple[T_co, ...] = ()
    unread: tuple[str, ...] = ()
    why_not: str = ""
    denied: bool = False

    @property
    def complete(self) -> bool:
        """Whether the items are complete."""
        return not (self.unread or self.why_not)


@dataclass(frozen=True, slots=True)
class Machine:
    """A node with what a scheduler needs to know about it.

    Attributes:
        node: The node.
        labels: Its labels.
        cpu_m: CPU for pods, in thousandths of a core.
        memory_b: Memory for pods, in bytes.
        pod_slots: How many pods its kubelet takes.
        addresses: Its addresses and host names.
    """

    node: NodeView
    labels: tuple[tuple[str, str], ...] = ()
    cpu_m: int = 0
    memory_b: int = 0
    pod_slots: int = 0
    addresses: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def open(self) -> bool:
        """Whether any pod may come: Ready, not cordoned, and no taint keeps pods off."""
        kept_off = any(taint.effect in {"NoSchedule", "NoExecute"} for taint in self.node.taints)
        return self.node.ready is True and not self.node.unschedulable and not kept_off


@dataclass(frozen=True, slots=True)
class Hook:
    """A preStop hook.

    Attributes:
        shown: What it does, for people.
        delay_s: How long it waits before it does anything that may end its container, in seconds. None: that
            cannot be told.
    """

    shown: str
    delay_s: float | None

    def __str__(self) -> str:
        """What it does."""
        return self.shown


@dataclass(frozen=True, slots=True)
class Container:
    """A container that runs as long as its pod does.

    Attributes:
        name: Its name.
        ports: Names and numbers of the ports that it declares.
        hook: Its preStop hook. None: it has none.
        sidecar: It ends after all other containers have ended.
    """

    name: str
    ports: tuple[str, ...] = ()
    hook: Hook | None = None
    sidecar: bool = False


@dataclass(frozen=True, slots=True)
class Tenant:
    """A pod, where it is, and its condition there.

    Attributes:
        pod: The pod.
        node: Where it is bound; empty: nowhere yet.
        host_paths: Directories of its node that it may write.
        containers: Its containers.
        waiting: Why one of them does not run, like ``CrashLoopBackOff``; empty: none is said to wait.
        restarts: How often that one was restarted; if none waits, the most restarts of any.
        cpu_m: CPU that it requests, in thousandths of a core.
        memory_b: Memory that it requests, in bytes.
    """

    pod: PodView
    node: str
    host_paths: tuple[str, ...] = ()
    containers: tuple[Container, ...] = ()
    waiting: str = ""
    restarts: int = 0
    cpu_m: int = 0
    memory_b: int = 0


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget.

    Attributes:
        selector: Which pods it is about; None: none.
        allowed: How many of them may be disrupted now.
        desired: How many must stay healthy.
        healthy: How many are.
        expected: How many there should be.
        always_allow: Pods that are not Ready may always go (``unhealthyPodEvictionPolicy: AlwaysAllow``).
        counted: The controller has counted since it was changed; until then nothing is allowed.
        problem: Why its controller cannot count its pods; empty: it can.
    """

    namespace: str
    name: str
    selector: Selector | None
    allowed: int
    desired: int
    healthy: int
    expected: int
    always_allow: bool = False
    counted: bool = True
    problem: str = ""

    def covers(self, pod: PodView) -> bool:
        """Whether it is about this pod."""
        if self.selector is None or pod.namespace != self.namespace:
            return False
        return self.selector.matches(dict(pod.labels))

    def __str__(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Service:
    """A Service that selects pods.

    Attributes:
        selector: Which.
        targets: Names and numbers of the containers' ports that it leads to; empty: not said.
        unready_too: It leads to pods that are not Ready as well (``publishNotReadyAddresses``).
    """

    namespace: str
    name: str
    selector: Selector
    unready_too: bool = False
    targets: frozenset[str] = frozenset()

    def leads_to(self, pod: PodView) -> bool:
        """Whether traffic may reach this pod through it now."""
        if pod.namespace != self.namespace or not (pod.ready or self.unready_too):
            return False
        return self.selector.matches(dict(pod.labels))


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim.

    Attributes:
        volume: Name of the volume it is bound to; empty: none yet.
        one_node: The volume is on one node at a time (ReadWriteOnce, ReadWriteOncePod).
    """

    namespace: str
    name: str
    volume: str
    one_node: bool


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume.

    Attributes:
        host_path: It is a directory of whatever node the pod runs on.
        nodes: Which nodes it can be used on; None: all.
    """

    name: str
    host_path: bool = False
    nodes: NodeSelector | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """All that a plan, or a topology, knows of the cluster."""

    nodes: Listing[Machine] = field(default_factory=Listing)
    pods: Listing[Tenant] = field(default_factory=Listing)
    budgets: Listing[Budget] = field(default_factory=Listing)
    services: Listing[Service] = field(default_factory=Listing)
    claims: Listing[Claim] = field(default_factory=Listing)
    volumes: Listing[Volume] = field(default_factory=Listing)

    def looks(self) -> tuple[tuple[Kind, Listing[object]], ...]:
        """Return every kind with what could be seen of it."""
        return (
            (Kind.NODES, self.nodes),
            (Kind.PODS, self.pods),
            (Kind.BUDGETS, self.budgets),
            (Kind.SERVICES, self.services),
            (Kind.CLAIMS, self.claims),
            (Kind.VOLUMES, self.volumes),
        )
