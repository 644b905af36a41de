"""Find, before anything is changed, what a drain would never get past, and refuse it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from fencer.cli.options import Decorator
from fencer.cli.planned import Tools, give_up
from fencer.evicting.lots import Filters
from fencer.planned.plan.case import Terms
from fencer.planned.plan.endless import asleep, endless
from fencer.planned.plan.words import Remark, What
from fencer.ports.inventory import Budget, Inventory, Listing, Machine, Tenant

NEVER = {
    What.NODE_SILENT: "{} would not end its pods",
    What.BUDGET_NEVER: "budget {} never allows",
    What.BUDGET_BROKEN: "budget {} never allows",
    What.BUDGET_STALLS: "budget {} never allows the last ones",
    What.TWO_BUDGETS: "two budgets never allow {}",
}
"""Why a drain would never end, in a clause about whom."""
even_if_blocked_option: Decorator = click.option(
    "--even-if-blocked",
    is_flag=True,
    help="Begin even if something would never let the drain end, and evict the rest.",
)


def never_ends(tools: Tools, filters: Filters, budgets: Listing[Budget]) -> tuple[Remark, ...]:
    """Name what keeps the drain from ever ending.

    Raises:
        ClusterError: the cluster did not tell.
    """
    nodes = Listing(tuple(map(Machine, tools.scene.nodes.values())))
    seen = Inventory(nodes, Listing(_tenants(tools, budgets)), budgets)
    off = {
        name: state.value
        for name in tools.names
        if (state := asleep(tools.power(name), tools.observation(name), tools.parts.policy))
    }
    return endless(tools.names, seen, Terms(filters), off)


def refuse_endless(found: Sequence[Remark], *, even_if_blocked: bool, instead: str = "") -> None:
    """Refuse, before anything is changed, if the drain would never end.

    Args:
        found: What keeps it from ending.
        even_if_blocked: Go on all the same.
        instead: What else would help, for people.

    Raises:
        click.exceptions.Exit: refused.
    """
    if found and not even_if_blocked:
        ways = "; or ".join(filter(None, [instead, "--even-if-blocked, which begins all the same"]))
        give_up([f"{refusal(found)}. Nothing was changed.", f"try: {ways}."])


def refusal(found: Sequence[Remark]) -> str:
    """Say that a drain is refused, because it would never end."""
    why = "; ".join(dict.fromkeys(NEVER[finding.what].format(finding.about) for finding in found))
    return f"refused: {why}, so the drain would never end"


def _tenants(tools: Tools, budgets: Listing[Budget]) -> tuple[Tenant, ...]:
    """Return the pods of the nodes, and those elsewhere that the same budgets count."""
    ask, evictor = tools.looker.shared.api, tools.world.evictor
    assert evictor is not None  # noqa: S101 - whoever drains has one
    here = {
        pod.uid: Tenant(pod, name)
        for name in tools.names
        for pod in ask(partial(tools.parts.cluster.pods, name))
    }
    held = {
        budget.namespace
        for budget in budgets.items
        if budget.allowed <= 0 and any(budget.covers(one.pod) for one in here.values())
    }
    elsewhere = {
        pod.uid: Tenant(pod, "")
        for namespace in sorted(held)
        for pod in ask(partial(evictor.pods_in, namespace))
    }
    return tuple({**elsewhere, **here}.values())
