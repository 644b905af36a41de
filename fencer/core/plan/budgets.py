"""What budgets have against a drain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from fencer.core.inventory import Budget, Tenant
from fencer.core.plan.case import Case, by_family, called, names_of
from fencer.core.plan.words import Finding, What

_NEVER_WAY = "a lower minAvailable, a higher maxUnavailable, or more replicas"


def findings(case: Case, homeless: Collection[str]) -> Iterator[Finding]:
    """Name the budgets that stand in the way.

    Args:
        case: The question.
        homeless: UIDs of pods that cannot start elsewhere.
    """
    doubled = [one for one in case.leaving if len(case.budgets_of.get(one.pod.uid, ())) > 1]
    for group in by_family(doubled):
        budgets = sorted(budget.name for budget in case.budgets_of[group[0].pod.uid])
        yield Finding(
            What.TWO_BUDGETS,
            called(group),
            f"in {len(budgets)} budgets ({', '.join(budgets)}), and then the API never evicts",
            "selectors of which only one means it",
            names_of(group),
        )
    for budget, covered in case.counted_against(case.leaving).items():
        yield from _budget(budget, covered, homeless)


def _budget(budget: Budget, covered: Sequence[Tenant], homeless: Collection[str]) -> Iterator[Finding]:
    about, pods = str(budget), names_of(covered)
    needs = f"needs {budget.desired} of {budget.expected} pods healthy, and has {budget.healthy}"
    if budget.problem:
        yield Finding(What.BUDGET_BROKEN, about, f"its pods cannot be counted: {budget.problem}", pods=pods)
    elif not budget.counted:
        text = "was changed a moment ago and not counted since"
        yield Finding(What.BUDGET_NOT_NOW, about, text, "look again in a few seconds", pods)
    elif budget.allowed <= 0 and budget.desired >= budget.expected:
        yield Finding(What.BUDGET_NEVER, about, f"{needs}: it never allows an eviction", _NEVER_WAY, pods)
    elif budget.allowed <= 0:
        text = f"{needs}: it allows no eviction now"
        yield Finding(What.BUDGET_NOT_NOW, about, text, "wait until more of its pods are Ready", pods)
    elif len(covered) > budget.allowed:
        yield _waves(budget, covered, homeless)


def _waves(budget: Budget, covered: Sequence[Tenant], homeless: Collection[str]) -> Finding:
    about, pods = str(budget), names_of(covered)
    stuck = [tenant for tenant in covered if tenant.pod.uid in homeless]
    if len(stuck) >= budget.allowed:
        text = (
            f"allows {budget.allowed} at a time of {len(covered)} that would leave, and "
            f"{', '.join(names_of(stuck))} cannot start elsewhere: the rest never may go"
        )
        way = "fewer nodes at a time, so that each comes back before the next goes"
        return Finding(What.BUDGET_STALLS, about, text, way, pods)
    text = f"allows {budget.allowed} at a time of {len(covered)} that would leave"
    return Finding(What.BUDGET_WAVES, about, text, pods=pods)
