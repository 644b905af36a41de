"""How the pods that would leave end: before clients know, during their work, at once, or not at all.

These containers count for a Service: those that declare a port that it leads to; if none does, all of them,
because declared ports are only for people. Only its own preStop hook delays a container's end; but a sidecar
without a hook ends after the other containers, and so is delayed by theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fencer.evicting.answers import LEAST_GRACE_S
from fencer.evicting.evacuation import TOLERATES
from fencer.evicting.lots import Lot
from fencer.planned.plan.case import Case, by_family, called, grace_s, names_of
from fencer.planned.plan.words import Remark, What
from fencer.ports.inventory import Container, Service, Tenant

KILLED_S = 2.0
"""What a container has left if its hook took all of the grace period. Source: kubernetes
pkg/kubelet/kuberuntime/kuberuntime_container.go, killContainer (minimumGracePeriodInSeconds)."""
OF_KUBERNETES = frozenset({"batch.kubernetes.io/job-tracking", "foregroundDeletion", "orphan"})
"""Finalizers that kube-controller-manager takes off: the Job controller's, which every pod of a Job has, and
the garbage collector's."""
_UNKNOWN = (Container(""),)
"""Stands for unknown containers of a pod: nothing delays their end."""


def findings(case: Case) -> Iterator[Remark]:
    """Name what is special about how pods end."""
    for group in by_family(case.leaving):
        yield from _endpoints(case, group)
    for group in by_family(case.leaving):
        yield from _hooks(group)
    yield from _graces(case)
    yield from _returning(case)
    yield from _held(case)


def delayed(tenant: Tenant) -> bool:
    """Whether the end of every container is delayed, so that it does not matter which Services lead to it."""
    containers = tenant.containers or _UNKNOWN
    return not any(_bare(one, containers) or _unclear(one, containers) for one in containers)


# -- endpoints ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Hit:
    """A container that may end while requests still come to it by a Service."""

    service: Service
    tenant: Tenant
    container: Container


def _endpoints(case: Case, group: Sequence[Tenant]) -> Iterator[Remark]:
    """Name the pods to which Services lead and whose containers may end before all clients know.

    Source: Kubernetes, "Pod Lifecycle", termination: a pod's end and its removal from the endpoints begin
    together. Every node's kube-proxy learns of the latter a little later; only the pod itself can wait.
    """
    led = [
        (service, tenant)
        for tenant in group
        for service in case.seen.services.items
        if service.leads_to(tenant.pod)
    ]
    if hits := _hits(led, _bare):
        text = f"{_led(hits)}, and no preStop delays its end: requests may fail"
        yield _finding(What.NO_PRE_STOP, hits, text, "a preStop hook that sleeps for some seconds")
    if hits := _hits(led, _unclear):
        hooks = " or ".join(sorted({str(hit.container.hook) for hit in hits}))
        text = (
            f"{_led(hits)}, and whether its preStop hook {hooks} waits cannot be told: if it ends the server "
            "at once, requests fail"
        )
        yield _finding(
            What.PRE_STOP_UNCLEAR, hits, text, "a hook that sleeps for some seconds before all else"
        )


def _hits(
    led: Sequence[tuple[Service, Tenant]], exposed: Callable[[Container, Sequence[Container]], bool]
) -> list[_Hit]:
    return [
        _Hit(service, tenant, one)
        for service, tenant in led
        for one in _serving(service, tenant)
        if exposed(one, tenant.containers)
    ]


def _serving(service: Service, tenant: Tenant) -> Sequence[Container]:
    """Return the containers that the Service leads to, as far as known."""
    declared = [one for one in tenant.containers if not service.targets.isdisjoint(one.ports)]
    return declared or tenant.containers or _UNKNOWN


def _bare(container: Container, beside: Sequence[Container]) -> bool:
    """Whether nothing delays its end.

    Source: Kubernetes, "Sidecar Containers": they get SIGTERM when the other containers have ended.
    """
    if container.hook is not None and container.hook.delay_s != 0:
        return False
    after = [one for one in beside if not one.sidecar] if container.sidecar else []
    return not any(one.hook is not None and one.hook.delay_s for one in after)


def _unclear(container: Container, _beside: Sequence[Container]) -> bool:
    """Whether it has a hook that may or may not wait."""
    return container.hook is not None and container.hook.delay_s is None


def _led(hits: Sequence[_Hit]) -> str:
    services = ", ".join(sorted({hit.service.name for hit in hits}))
    names = ", ".join(sorted({hit.container.name for hit in hits}))
    alone = all(len(hit.tenant.containers) <= 1 for hit in hits)
    return f"Service {services} leads to {'it' if alone else f'its container {names}'}"


def _finding(what: What, hits: Sequence[_Hit], text: str, way: str) -> Remark:
    tenants = list({hit.tenant.pod.uid: hit.tenant for hit in hits}.values())
    return Remark(what, called(tenants), text, way, names_of(tenants))


# -- time to end --------------------------------------------------------------------------------------------


def _hooks(group: Sequence[Tenant]) -> Iterator[Remark]:
    """Name the pods whose hook takes all of the grace period, which begins with the hook."""
    over = [
        (delay_s, tenant, one)
        for tenant in group
        for one in tenant.containers
        if one.hook is not None and (delay_s := one.hook.delay_s or 0.0) >= grace_s(tenant.pod)
    ]
    if not over:
        return
    delay_s, tenant, one = max(over, key=lambda found: found[0])
    alone = len(tenant.containers) == 1
    whose = "its preStop hook" if alone else f"the preStop hook of its container {one.name}"
    text = (
        f"{whose} waits {delay_s:g} s of a grace period of {grace_s(tenant.pod):g} s: it is told to end only "
        f"then, and killed {KILLED_S:g} s later"
    )
    way = f"terminationGracePeriodSeconds well over {delay_s:g}, or a hook that waits less"
    tenants = list({found.pod.uid: found for _, found, _ in over}.values())
    yield Remark(What.PRE_STOP_OVER_GRACE, called(tenants), text, way, names_of(tenants))


def _graces(case: Case) -> Iterator[Remark]:
    """Name the pods that may take longer to end than somebody waits, and those without any time."""
    limits = (
        (What.GRACE_OVER_TIMEOUT, case.terms.timeout_s, "a drain waits {limit:g} s (--timeout)"),
        (
            What.GRACE_OVER_SHUTDOWN,
            case.terms.shutdown_s,
            "a shutdown of the guest alone gives it {limit:g} s: drain the node before",
        ),
    )
    for group in by_family(case.leaving):
        longest_s = max(one.pod.grace_s for one in group)
        for what, limit_s, text in limits:
            if longest_s > limit_s:
                said = f"may take {longest_s:g} s to end; {text.format(limit=limit_s)}"
                yield Remark(what, called(group), said, pods=names_of(group))
                break
    for group in by_family(one for one in case.leaving if one.pod.grace_s < LEAST_GRACE_S):
        text = (
            f"ends at once (terminationGracePeriodSeconds: 0): the drain gives it {LEAST_GRACE_S:g} s, so "
            "that its replacement starts only when it has ended"
        )
        yield Remark(What.GRACE_ZERO, called(group), text, pods=names_of(group))


# -- and after ----------------------------------------------------------------------------------------------


def _returning(case: Case) -> Iterator[Remark]:
    """Name the pods that ignore a cordon: the controller's next one may be bound to this node."""
    for group in by_family(one for one in case.leaving if one.pod.tolerates_cordon and one.pod.controller):
        text = f"{TOLERATES}: may come back to this node after its eviction, and the drain leaves it then"
        way = "a node affinity, or tolerations that are narrower"
        yield Remark(What.COMES_BACK, called(group), text, way, names_of(group))


def _held(case: Case) -> Iterator[Remark]:
    """Name the pods that stay until somebody takes a finalizer off, those that were deleted before too."""
    going = [one for name in case.names for one in case.of_lot(name, Lot.EVICT, Lot.LEAVING)]
    for group in by_family(one for one in going if _foreign(one)):
        names = sorted({name for one in group for name in _foreign(one)})
        which = f"finalizer{'s' if len(names) > 1 else ''} {', '.join(names)}"
        text = (
            f"its object stays until its controller takes the {which} off: only a StatefulSet waits for that"
        )
        way = "make sure that this controller runs, and not only on this node"
        yield Remark(What.FINALIZERS, called(group), text, way, names_of(group))


def _foreign(tenant: Tenant) -> list[str]:
    return [name for name in tenant.pod.finalizers if name not in OF_KUBERNETES]
