"""Find, before anything is changed, what a drain would never get past."""

from __future__ import annotations

from functools import partial

import click

from fencer.cli.options import Decorator
from fencer.cli.planned import Tools, give_up
from fencer.cli.render import clean, paragraph, say
from fencer.core.text import listing
from fencer.evicting.lots import Filters
from fencer.planned.plan.case import Terms
from fencer.planned.plan.endless import asleep, endless
from fencer.planned.plan.words import Remark
from fencer.ports.inventory import Budget, Inventory, Listing, Machine, Tenant

GRANT = "`fencer setup kubernetes --drain`, applied by an administrator, lets it list budgets"
even_if_blocked_option: Decorator = click.option(
    "--even-if-blocked",
    is_flag=True,
    help="Begin even if something would never let the drain end, and evict the rest.",
)


def refuse_endless(tools: Tools, filters: Filters, *, even_if_blocked: bool, instead: str = "") -> None:
    """Refuse, before anything is changed, if the drain would never end.

    Args:
        tools: What the verb works with.
        filters: Which pods go.
        even_if_blocked: Only say so.
        instead: What else would help, for people.

    Raises:
        click.exceptions.Exit: refused.
        ClusterError: the cluster did not tell.
    """
    budgets = tools.budgets()
    for why in (budgets.why_not, *budgets.unread):
        if why:
            way = f"; try: {GRANT}" if budgets.denied else ""
            say(clean(f"  not known in advance: whether budgets ever allow it ({why}){way}"))
    nodes = Listing(tuple(map(Machine, tools.scene.nodes.values())))
    seen = Inventory(nodes, Listing(_tenants(tools, budgets)), budgets)
    off = {
        name: state.value
        for name in tools.names
        if (state := asleep(tools.power(name), tools.observation(name), tools.parts.policy))
    }
    found = endless(tools.names, seen, Terms(filters), off)
    for finding in found:
        for line in paragraph(clean(_told(finding)), indent=2):
            say(line)
    if found and not even_if_blocked:
        ways = "; or ".join(filter(None, [instead, "--even-if-blocked, which begins all the same"]))
        give_up(["refused: the drain would never end. Nothing was changed.", f"try: {ways}."])


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


def _told(finding: Remark) -> str:
    pods = f" ({listing(finding.pods)})" if finding.pods and finding.pods != (finding.about,) else ""
    way = f"; try: {finding.way}" if finding.way else ""
    return f"{finding.what}: {finding.about}{pods}: {finding.text}{way}."
