"""What a drain never gets past, no matter how long it waits: refused before its first change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencer.core.model import Observation, PowerState
from fencer.core.policy import Policy
from fencer.core.times import seconds_between
from fencer.evicting.lots import Lot
from fencer.planned.plan import budgets, rules
from fencer.planned.plan.case import Case, Terms
from fencer.planned.plan.words import Remark, What
from fencer.ports.inventory import Inventory

ENDLESS = frozenset(
    {What.NODE_SILENT, What.BUDGET_NEVER, What.BUDGET_BROKEN, What.BUDGET_STALLS, What.TWO_BUDGETS}
)
"""Other obstacles may pass while the drain waits: a budget that allows none now, a pod that becomes Ready."""

_GOING = (Lot.EVICT, Lot.LEAVING)
_ASLEEP = frozenset({PowerState.STOPPED, PowerState.PAUSED, PowerState.SAVED, PowerState.ABSENT})
_HEARD_PERIODS = 1.5
"""This many periods after the renewal of its lease a node counts as heard."""


def endless(
    names: Sequence[str], seen: Inventory, terms: Terms, off: Mapping[str, str]
) -> tuple[Remark, ...]:
    """Name what keeps a drain of these nodes from ever finishing.

    Args:
        names: The nodes.
        seen: All nodes, the pods of these, and budgets; what was not looked at hides what it hides.
        terms: How they would be drained.
        off: Nodes whose guests are `asleep`, each with how that reads; their Nodes may be Ready for a while.
    """
    case = Case(tuple(names), seen, terms)
    silent = [one for one in rules.nodes(case) if one.what is What.NODE_SILENT and one.about not in off]
    silent += [
        Remark(What.NODE_SILENT, name, f"its guest reads {raw}: evicted pods would stay Terminating")
        for name, raw in off.items()
    ]
    waiting = (one for one in silent if case.of_lot(one.about, *_GOING))
    found = (*waiting, *budgets.findings(case, _homeless(case)))
    return tuple(finding for finding in found if finding.what in ENDLESS)


def _homeless(case: Case) -> frozenset[str]:
    """Return the UIDs of pods that cannot start elsewhere: if no other node takes any, all of them.

    Of several nodes the pods of the first may go to the next one.
    """
    alone = len(case.names) == 1 and not case.homes
    return frozenset(one.pod.uid for one in case.leaving if alone and not one.pod.tolerates_cordon)


def asleep(state: PowerState | None, seen: Observation, policy: Policy) -> PowerState | None:
    """Return the state of a guest that cannot end pods; None: it may run.

    A node that is heard is alive, no matter what its hypervisor says, and emptying it may then be the way
    out.

    Args:
        state: How its guest reads; None: it has none.
        seen: All of the node as seen once.
        policy: How often a kubelet renews.
    """
    silent_s = seconds_between(seen.node.renewed_utc, seen.earliest_utc)
    return state if state in _ASLEEP and silent_s >= _HEARD_PERIODS * policy.lease_period_s else None
