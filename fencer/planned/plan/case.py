"""The question of a drain, looked up once: which pods would leave, their budgets, where they could go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fencer.core.model import PodView
from fencer.evicting.answers import LEAST_GRACE_S
from fencer.evicting.lots import Filters, Lot, lot
from fencer.ports.inventory import Budget, Inventory, Machine, Tenant


@dataclass(frozen=True, slots=True)
class Terms:
    """How the nodes would be drained and shut down.

    Attributes:
        filters: Which pods the drain may take.
        timeout_s: How long the drain of a node may take.
        shutdown_s: How long its guest may take to shut down.
    """

    filters: Filters = field(default_factory=Filters)
    timeout_s: float = 600.0
    shutdown_s: float = 60.0


@dataclass(frozen=True)
class Case:
    """The question of a plan.

    Attributes:
        names: The nodes to drain, in that order.
        seen: All that is known.
        terms: How.
    """

    names: tuple[str, ...]
    seen: Inventory
    terms: Terms

    @cached_property
    def lots(self) -> dict[str, list[tuple[Tenant, Lot]]]:
        """Node to drain → its pods, and what the drain does with each."""
        found: dict[str, list[tuple[Tenant, Lot]]] = {name: [] for name in self.names}
        for tenant in self.seen.pods.items:
            if tenant.node in found:
                found[tenant.node].append((tenant, lot(tenant.pod, self.terms.filters)))
        return found

    @cached_property
    def leaving(self) -> tuple[Tenant, ...]:
        """Every pod that would be evicted."""
        return tuple(tenant for name in self.names for tenant in self.leaving_from(name))

    def leaving_from(self, name: str) -> tuple[Tenant, ...]:
        """Return the pods that would be evicted from one node."""
        return self.of_lot(name, Lot.EVICT)

    def of_lot(self, name: str, *lots: Lot) -> tuple[Tenant, ...]:
        """Return the pods of one node with which a drain does one of these things."""
        return tuple(tenant for tenant, its_lot in self.lots[name] if its_lot in lots)

    @cached_property
    def budgets_of(self) -> dict[str, tuple[Budget, ...]]:
        """UID of a pod that would be evicted → the budgets that count its eviction.

        Source: kubernetes pkg/registry/core/pod/storage/eviction.go, canIgnorePDB: pending, finished and
        deleted pods go without.
        """
        by_space: dict[str, list[Budget]] = defaultdict(list)
        for budget in self.seen.budgets.items:
            by_space[budget.namespace].append(budget)
        return {
            tenant.pod.uid: tuple(
                budget for budget in by_space[tenant.pod.namespace] if budget.covers(tenant.pod)
            )
            for tenant in self.leaving
            if tenant.pod.phase != "Pending"
        }

    def counted_against(self, tenants: Iterable[Tenant]) -> dict[Budget, list[Tenant]]:
        """Return the budgets that these pods need a disruption from, each with those pods.

        Pods in several budgets are left out: they never go. So are pods that are not Ready if the budget has
        enough healthy ones, or ignores them: they cost nothing.
        """
        groups: dict[Budget, list[Tenant]] = defaultdict(list)
        for tenant in tenants:
            budgets = self.budgets_of.get(tenant.pod.uid, ())
            if len(budgets) == 1 and not _goes_free(tenant.pod, budgets[0]):
                groups[budgets[0]].append(tenant)
        return groups

    @cached_property
    def siblings(self) -> dict[tuple[str, str], list[Tenant]]:
        """Namespace and controller → its pods in the whole cluster that are neither finished nor deleted."""
        found: dict[tuple[str, str], list[Tenant]] = defaultdict(list)
        for tenant in self.seen.pods.items:
            pod = tenant.pod
            if pod.controller and not (pod.finished or pod.terminating):
                found[family(pod)].append(tenant)
        return found

    @cached_property
    def loads(self) -> dict[str, list[Tenant]]:
        """Node → the pods that need its room: all but the finished ones."""
        found: dict[str, list[Tenant]] = defaultdict(list)
        for tenant in self.seen.pods.items:
            if not tenant.pod.finished:
                found[tenant.node].append(tenant)
        return found

    @cached_property
    def homes(self) -> tuple[Machine, ...]:
        """The other nodes that take any pod."""
        return tuple(one for one in self.seen.nodes.items if one.open and one.name not in self.names)

    @cached_property
    def home_labels(self) -> tuple[tuple[str, dict[str, str]], ...]:
        """Names and labels of `homes`, to compare every volume with."""
        return tuple((home.name, dict(home.labels)) for home in self.homes)


def family(pod: PodView) -> tuple[str, str]:
    """Return what a pod has in common with the others of its controller."""
    return pod.namespace, pod.controller


def grace_s(pod: PodView) -> float:
    """Return how long a pod may take to end, in seconds: a drain gives it at least some time."""
    return max(pod.grace_s, LEAST_GRACE_S)


def called(tenants: Sequence[Tenant]) -> str:
    """Return a name for some pods of one controller: the controller, or the pod if it has none."""
    pod = tenants[0].pod
    return f"{pod.namespace}/{pod.controller}" if pod.controller else str(pod)


def names_of(tenants: Iterable[Tenant]) -> tuple[str, ...]:
    """Return the pods' names."""
    return tuple(sorted(str(tenant.pod) for tenant in tenants))


def by_family(tenants: Iterable[Tenant]) -> list[list[Tenant]]:
    """Return pods by controller, pods without one alone, in the order of their names."""
    groups: dict[tuple[str, str], list[Tenant]] = defaultdict(list)
    for tenant in sorted(tenants, key=lambda one: str(one.pod)):
        pod = tenant.pod
        groups[family(pod) if pod.controller else (pod.namespace, pod.uid)].append(tenant)
    return list(groups.values())


def _goes_free(pod: PodView, budget: Budget) -> bool:
    """Whether an eviction of this pod costs the budget nothing.

    Source: kubernetes eviction.go: a pod that is not Ready does not count towards the healthy ones.
    """
    return not pod.ready and (budget.always_allow or budget.healthy >= budget.desired > 0)
