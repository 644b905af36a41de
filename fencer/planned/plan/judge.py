"""The plan: the findings of all rules, the worst first. Pure: the same inventory gives the same plan."""

from __future__ import annotations

from collections.abc import Sequence

from fencer.evicting.lots import FORBIDDEN, STAYING, Lot
from fencer.planned.ordering import in_order
from fencer.planned.plan import budgets, duration, endings, room, rules, volumes
from fencer.planned.plan.case import Case, Terms
from fencer.planned.plan.words import VERDICTS, NodePlan, Plan, Severity, Span
from fencer.ports.inventory import Inventory

_BADNESS = {severity: place for place, severity in enumerate(VERDICTS)}


def plan(names: Sequence[str], seen: Inventory, terms: Terms) -> Plan:
    """Say what a drain and shutdown of these nodes, one after the other, would hit.

    The unknown is never assumed to be good: a kind of object that was not looked at, or one object that could
    not be read, counts as bad as what it could hide (`What.MAY_BLOCK`, `What.MAY_DISRUPT`).

    Args:
        names: The nodes. Control-plane nodes go last, as in a drain; one named twice goes once.
        seen: What is known of the cluster.
        terms: How they would be drained.
    """
    case = Case(_order(names, seen), seen, terms)
    sorted_out = volumes.sort(case)
    staying = {tenant.pod.uid for tenant in sorted_out.staying}
    moving = {tenant.pod.uid for tenant in sorted_out.moving}
    if not (seen.claims.complete and seen.volumes.complete):
        moving |= {tenant.pod.uid for tenant in case.leaving if tenant.pod.claims}
    rooms, misfits = room.measure(case, staying)
    homeless = staying | {tenant.pod.uid for tenant in misfits}
    found = [
        *rules.nodes(case),
        *budgets.findings(case, homeless),
        *rules.filtered(case),
        *rules.unseen(case),
        *rules.replicas(case, homeless),
        *endings.findings(case),
        *volumes.findings(sorted_out),
        *room.findings(case, rooms, misfits),
    ]
    found.sort(key=lambda finding: _BADNESS[finding.severity])
    ends = all(finding.severity not in {Severity.BLOCKS, Severity.UNKNOWN} for finding in found)
    parts = [duration.of_node(case, name, moving) for name in case.names]
    spans = [
        Span(low_s, high_s if ends else None)
        for low_s, high_s in (*parts, duration.together(case, parts, moving))
    ]
    return Plan(
        nodes=tuple(_part(case, name, span) for name, span in zip(case.names, spans[:-1], strict=True)),
        findings=tuple(found),
        homes=tuple(home.name for home in case.homes),
        room=rooms,
        takes=spans[-1],
    )


def _order(names: Sequence[str], seen: Inventory) -> tuple[str, ...]:
    """Return the nodes in a drain's order; one that could not be read comes last."""
    machines = {machine.name: machine.node for machine in seen.nodes.items}
    known = in_order(machines[name] for name in names if name in machines)
    return tuple(dict.fromkeys([*(node.name for node in known), *names]))


def _part(case: Case, name: str, takes: Span) -> NodePlan:
    return NodePlan(
        name=name,
        leave=len(case.of_lot(name, Lot.EVICT, Lot.LEAVING)),
        stay=len(case.of_lot(name, *STAYING)),
        held=len(case.of_lot(name, *FORBIDDEN)),
        takes=takes,
    )
