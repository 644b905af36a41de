"""Kubernetes nodes that live and die with their guests in the stand-in, and an agent that watches them.

A kubelet renews its lease every 10 s from `BOOTED_S` after its guest's process began, whoever began it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from fencer.core.model import Action, Binding, Decision, Doubt, FenceMark, NodeView, PodView
from fencer.core.policy import Mode, Policy
from fencer.errors import FencerError
from fencer.hypervisors.proxmox.client import ProxmoxHypervisor
from fencer.ports import Attachments, Fact, Heartbeats, Lease, Nodes, Pause
from fencer.runtime.reconcile import Agent, Pass
from fencer.runtime.world import World
from tests.support.in_turn import InTurn
from tests.support.pve import PveCluster
from tests.support.pve.clock import EPOCH_S
from tests.support.pve.model import Conf

T = TypeVar("T")
BOOTED_S = 3.0
RENEWED_EVERY_S = 10.0
READY_FOR_S = 40.0
ARMED = Policy(mode=Mode.ARMED)


@dataclass(slots=True)
class Kubelet:
    """One node, and what is written on it."""

    conf: Conf
    boot_id: str = ""
    renewed_s: float = 0.0
    binding: Binding | None = None
    doubts: tuple[Doubt, ...] = ()


class NodeCluster:
    """The `fencer.ports.Cluster` of these nodes, as far as an agent that has nothing to clear needs it.

    Args:
        pve: Where the guests are.
        confs: Of the guests; each is one node of its name.
    """

    def __init__(self, pve: PveCluster, confs: Sequence[Conf]) -> None:
        self._pve = pve
        self.tainted_s: dict[str, float] = {}
        self.placed: dict[str, tuple[PodView, ...]] = {}
        self.kubelets = {conf.name: Kubelet(conf) for conf in confs}

    def nodes(self) -> Nodes:
        return Nodes(tuple(self.fact(name).node for name in self.kubelets))

    def list_nodes(self) -> Nodes:
        return Nodes(self.nodes().views, utc=self._utc(self._pve.clock.now_s()))

    def pause(self) -> Pause:
        return Pause(None, self._utc(self._pve.clock.now_s()))

    def heartbeats(self, _names: Collection[str] | None) -> Heartbeats:
        facts, now_s = [self.fact(name) for name in self.kubelets], self._pve.clock.now_s()
        leases = {fact.node.name: Lease(fact.renew_time, fact.lease_version) for fact in facts}
        return Heartbeats(leases, int(now_s * 10), self._utc(now_s))

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Do nothing: passes come in time."""

    def fact(self, name: str) -> Fact:
        kubelet, now_s = self.kubelets[name], self._pve.clock.now_s()
        self._live(kubelet, now_s)
        node = NodeView(
            name=name,
            uid=f"uid-{name}",
            system_uuid=kubelet.conf.uuid,
            boot_id=kubelet.boot_id,
            ready=True if now_s - kubelet.renewed_s < READY_FOR_S else None,
            version="1",
            binding=kubelet.binding,
            doubts=kubelet.doubts,
        )
        return Fact(node, self._utc(kubelet.renewed_s), self._utc(now_s), int(kubelet.renewed_s * 10))

    def pods(self, name: str) -> Sequence[PodView]:
        return self.placed.get(name, ())

    def attachments(self) -> Attachments:
        return Attachments()

    def bind(self, node: NodeView, binding: Binding) -> None:
        self.kubelets[node.name].binding = binding

    def taint(self, node: NodeView, _mark: FenceMark) -> None:
        """Note when; that is all that becomes of it."""
        self.tainted_s.setdefault(node.name, self._pve.clock.now_s())

    def record_doubts(self, node: NodeView, doubts: tuple[Doubt, ...]) -> None:
        self.kubelets[node.name].doubts = doubts

    def _live(self, kubelet: Kubelet, now_s: float) -> None:
        for kvm in self._pve.kvms(kubelet.conf.vmid):
            up_s = now_s - kvm.started_s - BOOTED_S
            if kvm.runs and up_s >= 0:
                kubelet.boot_id = kvm.memory
                kubelet.renewed_s = now_s - up_s % RENEWED_EVERY_S

    def _utc(self, now_s: float) -> str:
        return datetime.fromtimestamp(EPOCH_S + now_s, UTC).isoformat().replace("+00:00", "Z")


class AtOnce(InTurn):
    """An Asker whose every call is answered at once."""

    def ask(self, _endpoint: str, call: Callable[[], T], _deadline_s: float) -> T:
        return call()

    def ask_all(
        self,
        calls: Mapping[str, Callable[[], T]],
        _deadline_s: float,
        *,
        patient: bool = False,  # noqa: ARG002 - as an Asker is called
    ) -> dict[str, T | FencerError]:
        answers: dict[str, T | FencerError] = {}
        for name, call in calls.items():
            try:
                answers[name] = call()
            except FencerError as error:
                answers[name] = error
        return answers


@dataclass
class Notes:
    """A Reporter that keeps what it is told."""

    alarms: list[str] = field(default_factory=list)
    decided_: list[tuple[str, Decision]] = field(default_factory=list)

    def decided(self, node: NodeView, decision: Decision) -> None:
        self.decided_.append((node.name, decision))

    def acted(self, _node: NodeView, action: Action, done: object) -> None:
        if type(action).__name__ == "Alarm":
            self.alarms.append(str(done))

    def said(self, _text: str, *, warning: bool) -> None:
        pass


class Watch:
    """An agent that watches nodes, pass after pass.

    Args:
        pve: Where their guests are.
        hypervisor: How it asks for them.
        confs: Of the guests.
        policy: By which it acts.
    """

    def __init__(
        self,
        pve: PveCluster,
        hypervisor: ProxmoxHypervisor,
        confs: Sequence[Conf],
        policy: Policy = ARMED,
    ) -> None:
        self.pve, self.notes = pve, Notes()
        self.nodes = NodeCluster(pve, confs)
        self.world = World(
            cluster=self.nodes,  # type: ignore[arg-type]  # as far as it is needed
            hypervisors={"home": hypervisor},
            asker=AtOnce(),
            clock=pve.clock,
            reporter=self.notes,
        )
        self.policy = policy
        self.agent = Agent(self.world, self.policy)

    def passes(self, seconds: float) -> list[Pass]:
        """Let the agent watch for so long; return its passes."""
        until_s, done = self.pve.clock.now_s() + seconds, []
        while self.pve.clock.now_s() < until_s:
            done.append(self.agent.tick())
            self.pve.clock.advance(max(0.05, done[-1].recheck_s))
        return done
