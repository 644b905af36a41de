"""The named stories of `fencer demo`, and incidents by chance.

Where does a new story go? Into the module of `fencer.simulation.stories` that it is about: each `Scenario`
there is told. Then write its transcript: `FENCER_WRITE_TRANSCRIPTS=1 ./dev quick tests/scenarios`.
"""

from __future__ import annotations

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

__all__ = ["ARMED", "SCENARIOS", "Scenario", "incident"]

SCENARIOS: dict[str, Scenario] = {
    story.name: story
    for room in (stops, deaths, traps, witnesses, hosts, moves, returns, claims, agents, patience)
    for story in vars(room).values()
    if isinstance(story, Scenario)
}


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
