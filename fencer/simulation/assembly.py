"""A whole simulated world, put together: guests, kubelets, control plane, and the ports over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fencer.core.annotations import APPROVED, Seal, read_approval, write_approval
from fencer.core.election import CLUSTER_LEASE, lease_name
from fencer.core.identity import Admission, Rules
from fencer.core.model import PowerState
from fencer.simulation.asker import InlineAsker
from fencer.simulation.clock import VirtualClock
from fencer.simulation.cluster import KEY, SimulatedCluster
from fencer.simulation.controllers import Timing
from fencer.simulation.controlplane import ControlPlane
from fencer.simulation.datacenter import Datacenter
from fencer.simulation.guests import NO_ENDPOINT, Guest
from fencer.simulation.hosts import SimulatedPower
from fencer.simulation.hypervisor import SimulatedHypervisor
from fencer.simulation.kubelet import Kubelet, KubeletMemory, KubeletTiming
from fencer.simulation.leases import SimulatedLeases
from fencer.simulation.nodes import SimulatedNode
from fencer.simulation.objects import Api, ApiNode, ApiObject
from fencer.simulation.passages import revert, take_snapshot
from fencer.simulation.pauser import SimulatedPauser
from fencer.simulation.requests import SimulatedRequests
from fencer.simulation.surveyor import SimulatedSurveyor
from fencer.simulation.timeline import Timeline
from fencer.simulation.workloads import Workload

DISK = "state file"
"""What an agent calls its own disk, when it asks that. A test compares with the agent."""
DISK_S = 0.001
API_DELAY_S = 0.005
"""What a request to the API server takes here, where it goes through the `Asker`."""

LATER_S = 2.0
"""A kubelet that renewed its lease one period and so long ago lives."""

TAG = "tag:fencer"
"""All VMs have it; a configuration may admit power over those that have it and were approved."""
CONTROL_PLANE = ("control-plane",)
"""Roles of a control-plane node."""
FIRST_NUMBER = 101
"""Of the VMs of nodes that have one."""
STRANGERS_NUMBER = 901
"""Of the other VMs."""
WARM_UP_S = 120.0
"""All pods of a sound world are Ready long before."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How big a world is.

    Attributes:
        nodes: Names of nodes and their guests.
        endpoint: Name of the hypervisor's endpoint.
        hosts: Names of hosts; the guests are dealt out to them in turn.
        watched: A power witness watches each host.
        further: Other endpoints, of one host each; where no node's guest is at first, unless `spread`.
        foreign: The same, and fencer does not know of them.
        abroad: Nodes whose guests are at the first foreign endpoint.
        spread: The nodes' guests are dealt out to all endpoints that fencer knows.
        spare: Nodes that are cordoned, so that they carry no pods but those of DaemonSets.
        answer_s: How long every answer takes, of each endpoint and of the API. None: hardly any time.
        api_s: How long each call of the API takes at least: of a port, which is up to three requests.
        tells_cold: Endpoints tell whether a guest was booted or restored.
        admitted: Nodes on whose VMs the configuration admits power actions; None: on all VMs.
        grouped: It admits them by a tag of all VMs, and a person has approved these; not by their UUIDs.
        mapped: Nodes whose VMs the configuration names.
        numbered: VMs of nodes have numbers, and the configuration names them by these, as on Proxmox.
        members: Control-plane nodes.
        bystanders: VMs that are no nodes', at the first endpoint.
        unrecorded: The API server has no record of who wrote what on the first Nodes (managedFields).
    """

    nodes: tuple[str, ...] = ("k8s-1", "k8s-2", "k8s-3")
    endpoint: str = "lab"
    hosts: tuple[str, ...] = ("lab1",)
    watched: bool = False
    further: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    abroad: tuple[str, ...] = ()
    spread: bool = False
    spare: tuple[str, ...] = ()
    answer_s: float | None = None
    api_s: float = 0.0
    tells_cold: bool = True
    unrecorded: bool = False
    admitted: tuple[str, ...] | None = None
    grouped: bool = False
    mapped: tuple[str, ...] = ()
    numbered: bool = False
    members: tuple[str, ...] = ()
    bystanders: tuple[str, ...] = ()

    def endpoint_of(self, node: str) -> str:
        """Return the endpoint where a node's guest is at first."""
        if node in self.abroad:
            return self.foreign[0]
        known = (self.endpoint, *self.further)
        return known[self.nodes.index(node) % len(known)] if self.spread else self.endpoint

    def host_of(self, node: str) -> str:
        """Return the host where a node's guest is at first."""
        endpoint = self.endpoint_of(node)
        if endpoint in self.further:
            return f"{endpoint}1"
        return self.hosts[self.nodes.index(node) % len(self.hosts)]

    def number_of(self, node: str) -> str:
        """Return the number of a node's VM; empty: VMs have none."""
        return str(FIRST_NUMBER + self.nodes.index(node)) if self.numbered else ""

    @property
    def call_s(self) -> float:
        """How long the slowest usual call takes, in seconds."""
        return max(self.answer_s or 0.0, self.api_s)

    def watches(self, host: str) -> bool:
        """Whether a power witness watches a host."""
        return self.watched and host in self.hosts


class Simulation:
    """The world with all its parts.

    Args:
        shape: How big.
        workloads: What runs in the cluster; used up by it, so make new ones for each world.
        seed: Of all chance.
        strict: A double writer raises `DoubleWriter`; otherwise it is told and counted.
        timing: How slow the control plane is.
        kubelets: How quick the kubelets are.
        kubelets_of: How quick those are that differ, by node.
    """

    def __init__(
        self,
        shape: Shape,
        workloads: Sequence[Workload],
        *,
        seed: int = 0,
        strict: bool = True,
        timing: Timing | None = None,
        kubelets: KubeletTiming | None = None,
        kubelets_of: Mapping[str, KubeletTiming] | None = None,
    ) -> None:
        self.shape = shape
        self.seed = seed
        self.clock = VirtualClock()
        self.timeline = Timeline(self.clock.now_s)
        self.world = Datacenter(self.clock, self.timeline, seed=seed, strict=strict)
        self.api = Api(self.clock, self.world.random)
        self.control_plane = ControlPlane(self.api, workloads, timing or Timing(), self.timeline)
        self.cluster = SimulatedCluster(self.api)
        self.leases = SimulatedLeases(self.api)
        self.requests = SimulatedRequests(self.api)
        self.surveyor = SimulatedSurveyor(self.api, self.cluster)
        self.pauser = SimulatedPauser(self.api)
        self.hypervisors = {
            endpoint: SimulatedHypervisor(
                endpoint, self.world, tells_cold=shape.tells_cold, groups=frozenset({TAG})
            )
            for endpoint in (shape.endpoint, *shape.further)
        }
        self.witnesses = {
            (shape.endpoint, host): SimulatedPower(host, self.world) for host in shape.hosts if shape.watched
        }
        self.asker = InlineAsker(self.clock, self.delay_s)
        self.nodes: dict[str, SimulatedNode] = {}
        """Node → the machine that is that node, the newest one where it was replaced."""
        self._machines: dict[str, SimulatedNode] = {}
        self._memories: dict[str, KubeletMemory] = {}
        self._kubelets, self._kubelets_of = kubelets or KubeletTiming(), kubelets_of or {}
        self.leases.make(CLUSTER_LEASE, *(self.lease_of(endpoint) for endpoint in self.hypervisors))
        for name in shape.nodes:
            self._add_node(name, shape.host_of(name))
        for place, name in enumerate(shape.bystanders, STRANGERS_NUMBER):
            bystander = self.world.add_bystander(name, endpoint=shape.endpoint, host=shape.hosts[0])
            bystander.number = str(place) if shape.numbered else ""
        self.world.on_power.append(self.stir)
        self.api.watchers.append(self._tell_kubelets)

    @property
    def hypervisor(self) -> SimulatedHypervisor:
        """The endpoint where every node's guest is at first."""
        return self.hypervisors[self.shape.endpoint]

    def lease_of(self, endpoint: str) -> str:
        """Return the name of the Lease of an endpoint's hypervisor."""
        info = self.hypervisors[endpoint].describe()
        return lease_name(info.kind, info.identity or "")

    def witness(self, host: str) -> SimulatedPower:
        """Return the power witness of a host."""
        return self.witnesses[self.shape.endpoint, host]

    def delay_s(self, endpoint: str) -> float:
        """Return how long an answer takes now: of an endpoint, a witness, a disk, or else the API server."""
        name, _, host = endpoint.partition("/")
        if (name, host) in self.witnesses:
            return self.witnesses[name, host].trouble.delay_s
        if endpoint == DISK:
            return DISK_S
        hypervisor, usual_s = self.hypervisors.get(name), self.shape.answer_s
        if hypervisor is None:
            return max(API_DELAY_S if usual_s is None else usual_s, self.shape.api_s)
        return max(hypervisor.trouble.delay_s, usual_s or 0.0)

    def holds_pods(self, guest: Guest) -> bool:
        """Whether a guest's kubelet has started any pod since the guest booted."""
        machine = self._machines.get(guest.name)
        return machine is not None and machine.kubelet.holds_pods

    def kubelet_of(self, guest: Guest) -> Kubelet | None:
        """Return a VM's kubelet; None: it has none."""
        machine = self._machines.get(guest.name)
        return None if machine is None else machine.kubelet

    def stir(self, guest: Guest) -> None:
        """Tick the kubelet of a guest to which something has happened, if it has one."""
        if guest.name in self._machines:
            self._machines[guest.name].stir()

    def heard(self, guest: Guest) -> bool:
        """Whether a guest's kubelet works, and was heard a moment ago."""
        node = self.api.nodes.get(guest.node)
        heard_s = self.timing_of(guest.node).renew_s + LATER_S
        return node is not None and self.clock.now_s() - node.renewed_s < heard_s and self.can_be_heard(guest)

    def timing_of(self, node: str) -> KubeletTiming:
        """Return how quick the kubelet of a node is."""
        return self._kubelets_of.get(node, self._kubelets)

    def can_be_heard(self, guest: Guest) -> bool:
        """Whether a guest's kubelet works, and nothing cuts it off."""
        machine = self._machines.get(guest.name)
        return machine is not None and guest.running() and guest.nic_up and not machine.kubelet.stopped

    def guest(self, name: str) -> Guest:
        """Return a guest by name."""
        return self.world.guests[name]

    def rules(self) -> Rules:
        """Admit power actions on every VM, or on those that the shape names."""
        uuids = frozenset(guest.uuid for guest in self.world.guests.values() if self.admits(guest))
        admission = Admission(groups=frozenset({TAG})) if self.shape.grouped else Admission(uuids=uuids)
        nodes = {
            name: (self.shape.endpoint_of(name), self.shape.number_of(name) or self.world.guests[name].uuid)
            for name in self.shape.mapped
        }
        return Rules(nodes, dict.fromkeys(self.hypervisors, admission))

    def admits(self, guest: Guest) -> bool:
        """Whether power over a VM, or what it is a copy of, was admitted at first, or is by an approval."""
        names = self.shape.nodes if self.shape.admitted is None else self.shape.admitted
        return guest.uuid in {self.world.guests[name].uuid for name in names} or self.approves(guest)

    def approves(self, guest: Guest) -> bool:
        """Whether a person has approved a VM, or what it is a copy of, as its node's."""
        node = self.api.nodes.get(guest.node)
        if node is None:
            return False
        return read_approval(node.annotations.get(APPROVED), Seal(KEY, node.uid)) == guest.uuid

    def gives_power(self, guest: Guest) -> bool:
        """Whether fencer has power over a VM as things are."""
        return self.approves(guest) if self.shape.grouped else self.admits(guest)

    def warm_up(self) -> None:
        """Run until every pod is Ready; the story begins there.

        Raises:
            AssertionError: it never got there.
        """
        self.control_plane.start()
        for node in self.nodes.values():
            node.stir(self.world.random.uniform(0.0, 10.0))
        while not self.control_plane.whole():
            if self.clock.now_s() > WARM_UP_S:
                raise AssertionError(f"not every pod is Ready after {WARM_UP_S:g} s")
            self.clock.advance(1.0)
        self.timeline.take()
        self.timeline.began_s = self.clock.now_s()

    def replace(self, node: str) -> Guest:
        """Let a new guest join under a node's name, in addition to the one that is that node."""
        old = self.nodes[node].guest
        new = self.world.add_guest(f"{old.name}-new", endpoint=old.endpoint, host=old.host, node=node)
        self._add_machine(new).stir()
        return new

    def join(self, name: str, uuid: str, node: str = "") -> Guest:
        """Let a machine that no hypervisor lists join as a node.

        Args:
            name: Its own.
            uuid: What its kubelet reports as its UUID.
            node: Under whose name it joins; empty: its own.
        """
        new = self.world.add_guest(name, endpoint=NO_ENDPOINT, host=name, node=node)
        new.uuid = uuid
        self._add_machine(new).stir()
        return new

    def start_elsewhere(self, guest: Guest, endpoint: str, host: str) -> bool:
        """Let another tool boot a VM's disk at another place, whatever became of the VM itself.

        At its own endpoint its configuration is moved: what runs on the old host has none any more.
        """
        if host in self.world.silent_hosts or guest.power is PowerState.ABSENT:
            return False
        there = self.world.define_elsewhere(guest, endpoint, host)
        if endpoint == guest.endpoint:
            guest.endpoint = NO_ENDPOINT
        self._add_machine(there)
        return self.world.start(there)

    def machines_of(self, node: str) -> list[Guest]:
        """Return the VMs that have been this node, the newest one first."""
        guests = self.world.guests.values()
        newest = self.nodes[node].guest
        return [newest, *(one for one in guests if one.node == node and one is not newest)]

    def take_snapshot(self, guest: Guest) -> bool:
        """Keep a copy of a guest's memory, its kubelet's included."""
        taken = take_snapshot(guest)
        if taken and guest.name in self._machines:
            self._memories[guest.name] = self._machines[guest.name].kubelet.remember()
        return taken

    def revert(self, guest: Guest) -> bool:
        """Bring that memory back."""

        def recall() -> None:
            if guest.name in self._memories:
                self._machines[guest.name].kubelet.recall(self._memories[guest.name])

        return revert(self.world, guest, recall)

    def _add_node(self, name: str, host: str) -> None:
        guest = self.world.add_guest(name, endpoint=self.shape.endpoint_of(name), host=host)
        guest.number = self.shape.number_of(name)
        node = ApiNode(name, self.api.new_uid(), guest.uuid, guest.boot_id)
        node.unschedulable, node.recorded = name in self.shape.spare, not self.shape.unrecorded
        node.roles = CONTROL_PLANE if name in self.shape.members else ()
        if self.shape.grouped and (self.shape.admitted is None or name in self.shape.admitted):
            seal = Seal(KEY, node.uid)
            node.annotations[APPROVED] = write_approval(guest.uuid, "person@demo", self.clock.utc(), seal)
        self.api.add_node(node)
        self._add_machine(guest)

    def _add_machine(self, guest: Guest) -> SimulatedNode:
        machine = SimulatedNode(self.api, guest, self.timing_of(guest.node), self.world.random, self.timeline)
        self.nodes[guest.node] = self._machines[guest.name] = machine
        return machine

    def _tell_kubelets(self, obj: ApiObject) -> None:
        name = obj.name if isinstance(obj, ApiNode) else obj.node
        for machine in self._machines.values():
            if machine.guest.node == name:
                machine.heard(obj)
