"""What else a drain would hit: silent nodes, quorum, pods it may not take, replicas, unknowns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from fencer.evicting.lots import Lot
from fencer.planned.plan.case import Case, by_family, called, family, names_of
from fencer.planned.plan.endings import delayed
from fencer.planned.plan.words import Remark, What
from fencer.ports.inventory import Kind, Tenant

_JOB = "Job/"
_GRANT = "the ClusterRole fencer-plan of `fencer setup kubernetes` grants it, once it is bound"


def nodes(case: Case) -> Iterator[Remark]:
    """Name nodes whose kubelet would not end any pod, and what etcd would lose."""
    machines = {machine.name: machine for machine in case.seen.nodes.items}
    chosen = [machines[name] for name in case.names if name in machines]
    for machine in chosen:
        if machine.node.ready is None and case.of_lot(machine.name, Lot.EVICT, Lot.LEAVING):
            text = "its kubelet is not heard (Ready=Unknown): evicted pods would stay Terminating"
            way = f"`fencer explain {machine.name}`: a dead node is fenced, not drained"
            yield Remark(What.NODE_SILENT, machine.name, text, way)
    members = [machine for machine in machines.values() if machine.node.control_plane]
    healthy = [one for one in members if one.node.ready is True and one.name not in case.names]
    majority = len(members) // 2 + 1
    lost = [machine.name for machine in chosen if machine.node.control_plane]
    if lost and len(healthy) < majority:
        text = (
            f"with {', '.join(lost)} off, {len(healthy)} of {len(members)} control-plane nodes are left, and "
            f"etcd needs {majority}: the API itself would stop"
        )
        yield Remark(
            What.QUORUM, "control plane", text, "one control-plane node at a time, of at least three"
        )


def filtered(case: Case) -> Iterator[Remark]:
    """Name the pods that a drain leaves alone by default, and what is lost if it may take them."""
    held = {lot: _all(case, lot) for lot in (Lot.UNMANAGED, Lot.LOCAL_DATA)}
    lost = {
        What.UNMANAGED_LOST: [one for one in case.leaving if not one.pod.controller],
        What.EMPTYDIR_LOST: [one for one in case.leaving if one.pod.local_data],
    }
    yield from _each(
        What.UNMANAGED,
        held[Lot.UNMANAGED],
        "no controller recreates it: a drain would not begin",
        "--force: it is gone for good",
    )
    yield from _each(
        What.EMPTYDIR,
        held[Lot.LOCAL_DATA],
        "uses an emptyDir: a drain would not begin",
        "--delete-emptydir-data: what is in there is lost",
    )
    yield from _each(What.UNMANAGED_LOST, lost[What.UNMANAGED_LOST], "no controller recreates it", "")
    yield from _each(What.EMPTYDIR_LOST, lost[What.EMPTYDIR_LOST], "what is in its emptyDir is lost", "")


def replicas(case: Case, homeless: Collection[str]) -> Iterator[Remark]:
    """Name controllers that would be without pods for a while.

    Nodes go one after the other, and the next one only when what left the last one is Ready again. So it
    counts what else is Ready while *one* node is drained; only pods that cannot start elsewhere stay away.

    Args:
        case: The question.
        homeless: UIDs of pods that cannot start elsewhere.
    """
    away: set[str] = set()
    for name in case.names:
        for group in by_family(one for one in case.leaving_from(name) if one.pod.controller):
            yield from _replicas(case, group, away)
        away |= {one.pod.uid for one in case.leaving_from(name) if one.pod.uid in homeless}


def _replicas(case: Case, group: Sequence[Tenant], away: Collection[str]) -> Iterator[Remark]:
    about, pods = called(group), names_of(group)
    if group[0].pod.controller.startswith(_JOB):
        yield Remark(
            What.JOB_RESTARTS, about, "its work begins again elsewhere", "wait until it is done", pods
        )
        return
    siblings = case.siblings.get(family(group[0].pod), [])
    here = {tenant.pod.uid for tenant in group}
    others = [one for one in siblings if one.pod.uid not in here]
    if not others:
        if len(group) == 1:
            text = "the only pod of its controller: away until it is Ready elsewhere"
            yield Remark(What.SINGLE_REPLICA, about, text, "two replicas and a budget", pods)
            return
        text = f"all {len(group)} pods are on this node, and go at once"
    elif any(one.pod.ready and one.pod.uid not in away for one in others):
        return
    else:
        text = "no other pod of its controller would be Ready"
    if not _kept_up(case, group):
        yield Remark(What.ALL_REPLICAS, about, text, "a budget that keeps some, or replicas apart", pods)


def _kept_up(case: Case, group: Sequence[Tenant]) -> bool:
    """Whether a budget makes sure that they are never all away."""
    budgets = {case.budgets_of.get(one.pod.uid, ()) for one in group}
    return all(len(few) == 1 and few[0].desired >= 1 for few in budgets)


def unseen(case: Case) -> Iterator[Remark]:
    """Name what was not looked at, unless the answer does not depend on it."""
    for kind, look in case.seen.looks():
        if look.complete or not _matters(case, kind):
            continue
        what = What.MAY_BLOCK if _could_block(case, kind) else What.MAY_DISRUPT
        if look.why_not:
            way = _GRANT if look.denied else ""
            yield Remark(what, kind.value, f"not looked at: {look.why_not}", way)
        for text in look.unread:
            yield Remark(what, kind.value, f"cannot be read: {text}")


def _matters(case: Case, kind: Kind) -> bool:
    depends = {
        Kind.BUDGETS: bool(case.leaving),
        Kind.SERVICES: not all(delayed(tenant) for tenant in case.leaving),
        Kind.CLAIMS: any(tenant.pod.claims for tenant in case.leaving),
        Kind.VOLUMES: any(tenant.pod.claims for tenant in case.leaving),
    }
    return depends.get(kind, True)


def _could_block(case: Case, kind: Kind) -> bool:
    """Whether it could hide something that blocks: a volume does so only where a budget counts its pod."""
    if kind in {Kind.CLAIMS, Kind.VOLUMES}:
        covered = any(case.budgets_of.get(one.pod.uid) for one in case.leaving if one.pod.claims)
        return covered or not case.seen.budgets.complete
    return kind is not Kind.SERVICES


def _all(case: Case, lot: Lot) -> list[Tenant]:
    return [tenant for name in case.names for tenant in case.of_lot(name, lot)]


def _each(what: What, tenants: Sequence[Tenant], text: str, way: str) -> Iterator[Remark]:
    for group in by_family(tenants):
        yield Remark(what, called(group), text, way, names_of(group))
