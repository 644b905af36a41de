"""How long a drain takes, as a range of seconds, and the assumptions.

The derivation, for one node:

1. Evictions go in parallel, so a node takes as long as its slowest group of pods.
2. A group is what one budget covers. Of its pods only as many go at once as the budget allows, so they go in
   ceil(pods / allowed) waves. Pods without a budget are one wave.
3. A wave ends when its pods have ended: `END_LOW_S` after their preStop delays if they heed SIGTERM, after
   their grace period at the latest. The next wave waits until replacements are Ready (`BACK_S`), with a
   volume until it is attached there as well (`VOLUME_S`).
4. Where a volume has to be released, the node waits for that at the end (`VOLUME_S`).
5. The guest shuts down: `SHUTDOWN_LOW_S` at least, the shutdown timeout at most.

Nodes go one after the other, and between two of them what left has to be Ready again (`BACK_S`, `VOLUME_S`).
There is no upper end if something blocks or was not looked at: nobody knows when it stops blocking.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fencer.evicting.lots import Lot
from fencer.planned.plan.case import Case, grace_s
from fencer.ports.inventory import Budget, Tenant

END_LOW_S = 1.0
"""A program that heeds SIGTERM."""
BACK_S = (5.0, 60.0)
"""A replacement until it is Ready: scheduled within milliseconds, then image, start and probes. A guess."""
VOLUME_S = (2.0, 60.0)
"""Detach or attach. Measured on a test bench: 1 s each, and up to 16 s until the kubelet reports; cloud
disks and kubelets that look once a minute take longer."""
SHUTDOWN_LOW_S = 5.0
"""A small, fast guest."""

RESTS_ON = (
    f"a pod ends {END_LOW_S:g} s after its preStop delay at best, after its grace period at worst",
    f"a replacement is Ready in {BACK_S[0]:g} to {BACK_S[1]:g} s",
    f"a volume is detached or attached in {VOLUME_S[0]:g} to {VOLUME_S[1]:g} s",
    f"the guest shuts down in {SHUTDOWN_LOW_S:g} s at best and its shutdown timeout at worst",
    "nodes go one after the other",
)


def of_node(case: Case, name: str, moving: Collection[str]) -> tuple[float, float]:
    """Return the least and the most seconds that one node takes.

    Args:
        case: The question.
        name: The node.
        moving: UIDs of pods with a volume that follows them.
    """
    leaving = case.leaving_from(name)
    going = [*leaving, *case.of_lot(name, Lot.LEAVING)]
    waves = [_waves(budget.allowed, group, moving) for budget, group in _groups(case, leaving)]
    spans = [*waves, *(_end(one) for one in going)] or [(0.0, 0.0)]
    release = VOLUME_S if any(one.pod.uid in moving for one in leaving) else (0.0, 0.0)
    low_s = max(low for low, _ in spans) + release[0] + min(SHUTDOWN_LOW_S, case.terms.shutdown_s)
    high_s = max(high for _, high in spans) + release[1] + case.terms.shutdown_s
    return low_s, high_s


def together(
    case: Case, parts: Sequence[tuple[float, float]], moving: Collection[str]
) -> tuple[float, float]:
    """Return the least and the most seconds of all nodes, one after the other."""
    low_s, high_s = (sum(part[end] for part in parts) for end in (0, 1))
    for name in case.names[:-1]:
        leaving = case.leaving_from(name)
        if leaving:
            back_low_s, back_high_s = _back(leaving, moving)
            low_s, high_s = low_s + back_low_s, high_s + back_high_s
    return low_s, high_s


def _groups(case: Case, leaving: Sequence[Tenant]) -> list[tuple[Budget, list[Tenant]]]:
    return [(budget, group) for budget, group in case.counted_against(leaving).items() if budget.allowed > 0]


def _waves(allowed: int, group: Sequence[Tenant], moving: Collection[str]) -> tuple[float, float]:
    pauses = -(-len(group) // allowed) - 1
    low_s, high_s = _back(group, moving)
    ends = [_end(one) for one in group]
    soonest_s, latest_s = max(low for low, _ in ends), max(high for _, high in ends)
    return pauses * (soonest_s + low_s) + soonest_s, pauses * (latest_s + high_s) + latest_s


def _end(tenant: Tenant) -> tuple[float, float]:
    """Return how long a pod takes to end; if it is ending already, its hook may be over."""
    hooks = [one.hook.delay_s or 0.0 for one in tenant.containers if one.hook is not None]
    delay_s = 0.0 if tenant.pod.terminating else max(hooks, default=0.0)
    latest_s = grace_s(tenant.pod)
    return min(delay_s + END_LOW_S, latest_s), latest_s


def _back(group: Sequence[Tenant], moving: Collection[str]) -> tuple[float, float]:
    """Return how long it takes until replacements are Ready; a volume is detached here and attached there."""
    steps = 2 if any(one.pod.uid in moving for one in group) else 0
    return BACK_S[0] + steps * VOLUME_S[0], BACK_S[1] + steps * VOLUME_S[1]
