"""Whether the other nodes have room: requests against what is allocatable and not yet requested.

Judged are CPU, memory and the number of pods: for all pods together, and for each one alone. Not judged are
the scheduler's other conditions: affinity, topology spread, node selectors, tolerations, other resources. A
node that is cordoned, not Ready, or tainted against pods does not count, even for pods that tolerate it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from fencer.planned.plan.case import Case, by_family, called, names_of
from fencer.planned.plan.words import Remark, Room, What
from fencer.ports.inventory import Machine, Tenant

_WAY = "smaller requests, another node, or a node of these left on"


@dataclass(frozen=True, slots=True)
class Space:
    """An amount of each resource."""

    cpu_m: int
    memory_b: int
    pods: int

    def holds(self, tenant: Tenant) -> bool:
        """Whether a pod fits in."""
        return self.pods >= 1 and self.cpu_m >= tenant.cpu_m and self.memory_b >= tenant.memory_b


def measure(case: Case, staying: Collection[str]) -> tuple[tuple[Room, ...], tuple[Tenant, ...]]:
    """Compare needed and free resources.

    Args:
        case: The question.
        staying: UIDs of pods that cannot go elsewhere anyhow.

    Returns:
        Each resource, and the pods that fit on no other node even alone.
    """
    moving = [tenant for tenant in case.leaving if tenant.pod.uid not in staying]
    free = [_free(home, case.loads[home.name]) for home in case.homes]
    rooms = (
        Room("cpu", sum(one.cpu_m for one in moving), sum(space.cpu_m for space in free)),
        Room("memory", sum(one.memory_b for one in moving), sum(space.memory_b for space in free)),
        Room("pods", len(moving), sum(space.pods for space in free)),
    )
    misfits = tuple(one for one in moving if not any(space.holds(one) for space in free))
    return rooms, misfits


def findings(case: Case, rooms: Sequence[Room], misfits: Sequence[Tenant]) -> Iterator[Remark]:
    """Say what does not fit."""
    short = [room for room in rooms if not room.fits]
    if case.leaving and not case.homes:
        text = "no other node takes pods: what leaves waits until a node is back"
        yield Remark(What.NO_ROOM, "cluster", text, "uncordon a node, or leave one of these on")
        return
    if short:
        what = ", ".join(room.resource for room in short)
        text = f"the other nodes do not have enough {what} left: some pods wait until a node is back"
        yield Remark(What.NO_ROOM, "cluster", text, _WAY)
    for group in by_family(misfits):
        text = "no other node has as much left as it requests: it waits until a node is back"
        yield Remark(What.POD_TOO_BIG, called(group), text, _WAY, names_of(group))


def _free(home: Machine, there: Sequence[Tenant]) -> Space:
    """Return what a node has left; never less than nothing."""
    return Space(
        max(0, home.cpu_m - sum(tenant.cpu_m for tenant in there)),
        max(0, home.memory_b - sum(tenant.memory_b for tenant in there)),
        max(0, home.pod_slots - len(there)),
    )
