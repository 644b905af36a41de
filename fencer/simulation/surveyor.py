"""The `Surveyor` port over objects in memory: nodes of one size, and volumes that can be made local."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

from fencer.core.model import NodeView, PodView
from fencer.errors import ClusterProtocol
from fencer.ports.inventory import (
    Budget,
    Claim,
    Container,
    Hook,
    Inventory,
    Listing,
    Machine,
    Service,
    Tenant,
    Volume,
)
from fencer.ports.selectors import NODE_NAME_FIELD, NodeSelector, NodeTerm, Operator, Requirement, Selector
from fencer.simulation.cluster import SimulatedCluster
from fencer.simulation.objects import Api, ApiBudget

T = TypeVar("T")

_REQUIREMENT = re.compile(r"(?P<key>[\w./-]+)(?:(?P<how>!=|==?)(?P<value>[\w.-]*))?")

CPU_M, MEMORY_B, POD_SLOTS = 4000, 8 * 2**30, 110
"""What each node offers to pods."""


class SimulatedSurveyor:
    """What a plan sees of the world.

    Args:
        api: The objects.
        cluster: The same, as fencer sees them; with the rights that are missing.
    """

    def __init__(self, api: Api, cluster: SimulatedCluster) -> None:
        self.services: list[str] = []
        """Workloads to which a Service of their name leads."""
        self.local: dict[str, str] = {}
        """Claim → the only node that has its volume."""
        self.hooks: dict[str, Hook] = {}
        """Workload → the preStop hook of its pods' containers."""
        self.crashing: dict[str, int] = {}
        """Workload whose pods are in a crash loop → how often their containers were started again."""
        self.unread_budgets: list[str] = []
        """Budgets that cannot be read, each with why."""
        self.addresses: dict[str, str] = {}
        """Node → its address."""
        self._api = api
        self._cluster = cluster

    def survey(self) -> Inventory:
        """Look at everything."""
        nodes, pods = self._nodes(), self._pods()
        claimed = [(one.pod.namespace, claim) for one in pods for claim in one.pod.claims]
        services = tuple(Service("demo", name, _of(name)) for name in self.services)
        claims = tuple(Claim(space, claim, f"pv-{claim}", one_node=True) for space, claim in claimed)
        volumes = tuple(Volume(f"pv-{claim}", nodes=self._nodes_of(claim)) for _, claim in claimed)
        return Inventory(
            nodes=Listing(tuple(map(self._machine, nodes)), self._cluster.malformed),
            pods=Listing(tuple(pods)),
            budgets=self.budgets(),
            services=self._may("list services", Listing(services)),
            claims=self._may("list persistentvolumeclaims", Listing(claims)),
            volumes=self._may("list persistentvolumes", Listing(volumes)),
        )

    def budgets(self) -> Listing[Budget]:
        """Look at the budgets."""
        pods = self._pods()
        found = tuple(self._budget(budget, pods) for budget in self._api.budgets)
        return self._may("list poddisruptionbudgets", Listing(found, tuple(self.unread_budgets)))

    def labelled(self, selector: str) -> frozenset[str]:
        """Name the nodes with these labels: ``key``, ``key=value`` or ``key!=value``, nothing else."""
        wanted = Selector(tuple(map(_requirement, selector.split(","))))
        names = [node.name for node in self._nodes()]
        return frozenset(name for name in names if wanted.matches(self._api.nodes[name].labels))

    def _nodes(self) -> list[NodeView]:
        return list(self._cluster.list_nodes().views)

    def _machine(self, node: NodeView) -> Machine:
        address = self.addresses.get(node.name)
        return Machine(node, (), CPU_M, MEMORY_B, POD_SLOTS, (address,) if address else ())

    def _pods(self) -> list[Tenant]:
        return [
            self._tenant(pod, node.name) for node in self._nodes() for pod in self._cluster.pods(node.name)
        ]

    def _may(self, right: str, look: Listing[T]) -> Listing[T]:
        return Listing(why_not=f"forbidden: {right}", denied=True) if right in self._cluster.missing else look

    def _tenant(self, pod: PodView, node: str) -> Tenant:
        workload = dict(pod.labels).get("app", "")
        restarts = self.crashing.get(workload, 0)
        asked = self._api.pods[pod.uid]
        return Tenant(
            replace(pod, ready=pod.ready and not restarts),
            node,
            containers=(Container("main", hook=self.hooks.get(workload)),),
            waiting="CrashLoopBackOff" if restarts else "",
            restarts=restarts,
            cpu_m=asked.cpu_m,
            memory_b=asked.memory_b,
        )

    def _budget(self, budget: ApiBudget, pods: list[Tenant]) -> Budget:
        """Count as the disruption controller does."""
        selector = _of(budget.owner.partition("/")[2])
        blank = Budget(budget.namespace, budget.name, selector, 0, budget.min_available, 0, 0)
        covered = [one.pod for one in pods if blank.covers(one.pod) and not one.pod.finished]
        healthy = sum(pod.ready and not pod.terminating for pod in covered)
        return Budget(
            budget.namespace,
            budget.name,
            selector,
            allowed=max(0, healthy - budget.min_available),
            desired=budget.min_available,
            healthy=healthy,
            expected=len(covered) if budget.expected is None else budget.expected,
            always_allow=budget.always_allow,
        )

    def _nodes_of(self, claim: str) -> NodeSelector | None:
        if claim not in self.local:
            return None
        here = Requirement(NODE_NAME_FIELD, Operator.IN, (self.local[claim],))
        return NodeSelector((NodeTerm(fields=(here,)),))


def _of(workload: str) -> Selector:
    return Selector((Requirement("app", Operator.IN, (workload,)),))


def _requirement(text: str) -> Requirement:
    read = _REQUIREMENT.fullmatch(text)
    if read is None:
        raise ClusterProtocol(f"list nodes: 400: unable to parse requirement: {text}")
    key, how, value = read["key"], read["how"], read["value"]
    if how is None:
        return Requirement(key, Operator.EXISTS)
    return Requirement(key, Operator.NOT_IN if how == "!=" else Operator.IN, (value,))
