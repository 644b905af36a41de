"""What a drain never gets past, however long it waits: known, and refused, before its first change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencer.core.drain import Lot
from fencer.core.inventory import Inventory
from fencer.core.plan import budgets, rules
from fencer.core.plan.case import Case, Terms
from fencer.core.plan.words import Finding, What

ENDLESS = frozenset({What.NODE_SILENT, What.BUDGET_NEVER, What.BUDGET_BROKEN, What.TWO_BUDGETS})
"""What else blocks may pass while the drain waits: a budget that allows none now, a pod that gets Ready."""

_GOING = (Lot.EVICT, Lot.LEAVING)


def endless(
    names: Sequence[str], seen: Inventory, terms: Terms, asleep: Mapping[str, str]
) -> tuple[Finding, ...]:
    """Name what keeps a drain of these nodes from ever coming to its end.

    Args:
        names: The nodes.
        seen: Nodes, their pods, and budgets; what was not looked at hides what it hides.
        terms: How they would be drained.
        asleep: Nodes whose guests do not run, each with how that reads; their Nodes may be Ready for a while.
    """
    case = Case(tuple(names), seen, terms)
    silent = [one for one in rules.nodes(case) if one.what is What.NODE_SILENT and one.about not in asleep]
    silent += [
        Finding(What.NODE_SILENT, name, f"its guest reads {raw}: evicted pods would stay Terminating")
        for name, raw in asleep.items()
    ]
    waiting = (one for one in silent if case.of_lot(one.about, *_GOING))
    found = (*waiting, *budgets.findings(case, homeless=()))
    return tuple(finding for finding in found if finding.what in ENDLESS)
