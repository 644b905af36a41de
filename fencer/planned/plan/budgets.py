"""Which budgets block a drain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from fencer.core.text import count
from fencer.planned.plan.case import Case, by_family, called, names_of
from fencer.planned.plan.words import Remark, What
from fencer.ports.inventory import Budget, Tenant

_NEVER_WAY = "a lower minAvailable, a higher maxUnavailable, or more replicas"


def findings(case: Case, homeless: Collection[str]) -> Iterator[Remark]:
    """Name the budgets that are in the way.

    Args:
        case: The question.
        homeless: UIDs of pods that cannot start elsewhere.
    """
    doubled = [one for one in case.leaving if len(case.budgets_of.get(one.pod.uid, ())) > 1]
    for group in by_family(doubled):
        budgets = sorted(budget.name for budget in case.budgets_of[group[0].pod.uid])
        yield Remark(
            What.TWO_BUDGETS,
            called(group),
            f"in {len(budgets)} budgets ({', '.join(budgets)}), and then the API never evicts",
            "selectors of which only one matches it",
            names_of(group),
        )
    for budget, covered in case.counted_against(case.leaving).items():
        yield from _budget(case, budget, covered, homeless)


def _never(case: Case, budget: Budget) -> bool:
    """Whether a budget that allows nothing now never will, as things are.

    During a rollout there are more pods than its controllers should have, and as soon as the new ones are
    Ready it allows the old ones. One that expects no pod was made before them, and has not been counted
    since.
    """
    if budget.desired < budget.expected or not budget.expected:
        return False
    pods = (one.pod for one in case.seen.pods.items if budget.covers(one.pod))
    return sum(not (pod.finished or pod.terminating) for pod in pods) <= budget.expected


def _budget(
    case: Case, budget: Budget, covered: Sequence[Tenant], homeless: Collection[str]
) -> Iterator[Remark]:
    about, pods = str(budget), names_of(covered)
    if budget.problem:
        yield Remark(What.BUDGET_BROKEN, about, f"its pods cannot be counted: {budget.problem}", pods=pods)
    elif not budget.counted:
        text = "was changed a moment ago and not counted since"
        yield Remark(What.BUDGET_NOT_NOW, about, text, "look again in a few seconds", pods)
    elif budget.allowed <= 0:
        never = _never(case, budget)
        yield from _shut(budget, [one for one in covered if one.pod.ready], never=never)
        yield from _unhealthy(budget, [one for one in covered if not one.pod.ready], never=never)
    elif len(covered) > budget.allowed:
        yield _waves(budget, covered, homeless)


def _shut(budget: Budget, ready: Sequence[Tenant], *, never: bool) -> Iterator[Remark]:
    """Say what a budget that allows no disruption does to pods that are Ready."""
    if not ready:
        return
    about, pods, needs = str(budget), names_of(ready), _needs(budget)
    if never:
        yield Remark(What.BUDGET_NEVER, about, f"{needs}: it never allows an eviction", _NEVER_WAY, pods)
    else:
        text = f"{needs}: it allows no eviction now"
        yield Remark(What.BUDGET_NOT_NOW, about, text, "wait until more of its pods are Ready", pods)


def _unhealthy(budget: Budget, unready: Sequence[Tenant], *, never: bool) -> Iterator[Remark]:
    """Say what it does to pods that are not Ready: they could go freely, if enough others were Ready.

    If the budget needs all its pods that never happens, and a pod that becomes Ready is still held.

    Source: kubernetes pkg/registry/core/pod/storage/eviction.go, for the policy IfHealthyBudget, the default.
    """
    if not unready:
        return
    if budget.desired > 0:
        rule = f"lets such pods go only while enough others are healthy: {_needs(budget)}"
    else:
        rule = "needs none healthy; then it allows as many evictions as there are healthy ones: 0 now"
    other = "a budget that does not need all its pods" if never else "the pods repaired"
    yield Remark(
        What.BUDGET_NEVER if never else What.BUDGET_UNHEALTHY,
        str(budget),
        f"{_ailing(unready)}, and the budget {rule}",
        f"unhealthyPodEvictionPolicy: AlwaysAllow, or {other}",
        names_of(unready),
    )


def _ailing(unready: Sequence[Tenant]) -> str:
    """Say that pods are not Ready, and why the worst is not, as far as known."""
    worst = max(unready, key=lambda one: one.restarts)
    restarts = count(worst.restarts, "restart") if worst.restarts else ""
    why = ", ".join(word for word in (worst.waiting, restarts) if word)
    if len(unready) == 1:
        return f"{worst.pod} is not Ready{why and f' ({why})'}"
    return f"{len(unready)} pods are not Ready{why and f' ({worst.pod}: {why})'}"


def _needs(budget: Budget) -> str:
    return f"needs {budget.desired} of {budget.expected} pods healthy, and has {budget.healthy}"


def _waves(budget: Budget, covered: Sequence[Tenant], homeless: Collection[str]) -> Remark:
    about, pods = str(budget), names_of(covered)
    stuck = [tenant for tenant in covered if tenant.pod.uid in homeless]
    if len(stuck) >= budget.allowed:
        text = (
            f"allows {budget.allowed} at a time of {len(covered)} that would leave, and "
            f"{', '.join(names_of(stuck))} cannot start elsewhere: the rest can never go"
        )
        way = "fewer nodes at a time, so that each comes back before the next goes"
        return Remark(What.BUDGET_STALLS, about, text, way, pods)
    text = f"allows {budget.allowed} at a time of {len(covered)} that would leave"
    return Remark(What.BUDGET_WAVES, about, text, pods=pods)
