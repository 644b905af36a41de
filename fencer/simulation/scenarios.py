"""The named stories of `fencer demo`, and incidents by chance.

Where does a new story go? Into the module of `fencer.simulation.stories` that it is about: each `Scenario`
there is told. Then write its transcript: `FENCER_WRITE_TRANSCRIPTS=1 ./dev quick tests/scenarios`.
"""

from __future__ import annotations

from types import ModuleType

from fencer.core.policy import Policy
from fencer.simulation.assembly import Shape
from fencer.simulation.incidents import incident_by_seed
from fencer.simulation.scenario import ARMED, CLUSTER, Scenario
from fencer.simulation.stories import (
    agents,
    claims,
    deaths,
    hosts,
    moves,
    patience,
    returns,
    stops,
    traps,
    witnesses,
)

__all__ = ["ARMED", "GROUPS", "SCENARIOS", "TOUR", "Scenario", "incident"]

TOUR: tuple[Scenario, ...] = (
    *(deaths.VM_PAUSED, traps.NIC_OFF),
    *(stops.DRAIN, stops.SHUTDOWN, stops.PLAN),
    *(agents.FAILOVER, hosts.HA),
)
"""For people who have a quarter of an hour: each story leads on to the next."""

FIRST = (deaths.VM_PAUSED, traps.NIC_OFF)
"""A fence, and a refusal."""

ROOMS: dict[str, ModuleType] = {
    "Planned stops: fencer plan, drain, shutdown, start": stops,
    "Several agents, and fencer's own troubles": agents,
    "Hosts of Proxmox, and HA": hosts,
    "VMs that really end: fenced": deaths,
    "Traps: silent, but not dead": traps,
    "Witnesses that are away, or wrong": witnesses,
    "VMs that move, or are forgotten": moves,
    "Fenced VMs that come back": returns,
    "What people and kubelets claim": claims,
    "Brakes, leftovers, and patience": patience,
}
"""Rooms of `fencer.simulation.stories`, in the order in which `fencer demo --list` shows them."""

GROUPS: dict[str, tuple[Scenario, ...]] = {
    "Start here": FIRST,
    **{
        heading: tuple(
            story for story in vars(room).values() if isinstance(story, Scenario) and story not in FIRST
        )
        for heading, room in ROOMS.items()
    },
}
"""All stories by what they are about, each once."""

SCENARIOS: dict[str, Scenario] = {story.name: story for group in GROUPS.values() for story in group}


def incident(seed: int, *, policy: Policy = ARMED) -> Scenario:
    """Return an incident that a seed determines, told until a hundred seconds after its last line.

    Nothing is expected of it but that no volume gets two writers.
    """
    shape = Shape(hosts=("lab1", "lab2", "lab3"), watched=seed % 2 == 0)
    script = incident_by_seed(seed, shape)
    return Scenario(
        name=f"seed-{seed}",
        title="An incident by chance",
        story=(CLUSTER,),
        script=script,
        fenced=(),
        refused=None,
        duration_s=script[-1].at_s + 100.0,
        shape=shape,
        policy=policy,
    )
