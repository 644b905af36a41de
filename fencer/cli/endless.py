"""Before anything is changed: what a drain would never get past."""

from __future__ import annotations

import click

from fencer.cli.options import Decorator
from fencer.cli.planned import Tools, give_up
from fencer.cli.render import clean, listing, paragraph, say
from fencer.core.drain import Filters
from fencer.core.inventory import Budget, Inventory, Look, Machine, Tenant
from fencer.core.model import PowerState
from fencer.core.plan.case import Terms
from fencer.core.plan.endless import endless
from fencer.core.plan.words import Finding
from fencer.core.pods import seconds_between

ASLEEP = frozenset({PowerState.STOPPED, PowerState.PAUSED, PowerState.SAVED, PowerState.ABSENT})
GRANT = "`fencer setup kubernetes --drain`, applied by an administrator, lets it list budgets"
HEARD_PERIODS = 1.5
"""So many periods of a lease after its renewal a node counts as heard."""
even_if_blocked_option: Decorator = click.option(
    "--even-if-blocked",
    is_flag=True,
    help="Begin although something would never let the drain end: the rest goes.",
)


def refuse_endless(tools: Tools, filters: Filters, *, even_if_blocked: bool, instead: str = "") -> None:
    """Refuse, before anything is changed, where the drain would never end.

    Args:
        tools: What the verb works with.
        filters: Which pods go.
        even_if_blocked: It is only said.
        instead: What else would help, for people.

    Raises:
        click.exceptions.Exit: refused.
        ClusterError: the cluster did not tell.
    """
    budgets = tools.budgets()
    for why in (budgets.why_not, *budgets.unread):
        if why:
            way = f"; try: {GRANT}" if budgets.denied else ""
            say(clean(f"  not known beforehand: whether budgets ever allow it ({why}){way}"))
    nodes = Look(tuple(Machine(tools.node(name)) for name in tools.names))
    seen = Inventory(nodes, Look(_tenants(tools, budgets)), budgets)
    asleep = {name: state for name in tools.names if (state := _asleep(tools, name))}
    found = endless(tools.names, seen, Terms(filters), asleep)
    for finding in found:
        for line in paragraph(clean(_told(finding)), indent=2):
            say(line)
    if found and not even_if_blocked:
        ways = "; or ".join(filter(None, [instead, "--even-if-blocked, which begins all the same"]))
        give_up(["refused: the drain would never end. Nothing was changed.", f"try: {ways}."])


def _asleep(tools: Tools, name: str) -> str:
    """Say how a guest reads that does not run, where its node is not heard either; empty: it may run.

    A node that is heard lives, whatever its hypervisor says; then to empty it is the way out.
    """
    state, seen = tools.power(name), tools.observation(name)
    silent_s = seconds_between(seen.node.renewed_utc, seen.utc)
    heard = silent_s < HEARD_PERIODS * tools.parts.policy.lease_period_s
    return state.value if state in ASLEEP and not heard else ""


def _tenants(tools: Tools, budgets: Look[Budget]) -> tuple[Tenant, ...]:
    """Return the pods of the nodes, and those elsewhere that a budget counts beside one of them."""
    ask, evictor = tools.looker.observer.api, tools.world.evictor
    assert evictor is not None  # noqa: S101 - whoever drains has one
    here = {
        pod.uid: Tenant(pod, name)
        for name in tools.names
        for pod in ask(lambda name=name: tools.parts.cluster.pods(name))  # type: ignore[misc]
    }
    held = {
        budget.namespace
        for budget in budgets.items
        if budget.allowed <= 0 and any(budget.covers(one.pod) for one in here.values())
    }
    elsewhere = {
        pod.uid: Tenant(pod, "")
        for namespace in sorted(held)
        for pod in ask(lambda namespace=namespace: evictor.pods_in(namespace))  # type: ignore[misc]
    }
    return tuple({**elsewhere, **here}.values())


def _told(finding: Finding) -> str:
    pods = f" ({listing(finding.pods)})" if finding.pods and finding.pods != (finding.about,) else ""
    way = f"; try: {finding.way}" if finding.way else ""
    return f"{finding.what}: {finding.about}{pods}: {finding.text}{way}."
