"""Worlds by chance: what people are told of them fits what happens there, and no phone is worn out by it."""

from collections import Counter, defaultdict

import pytest

from fencer.simulation.faults import OF_AGENTS, What
from fencer.simulation.scenario import Scenario
from fencer.wording.occasions import Occasion
from tests.notify.told import Told
from tests.scenarios.judge import world_of
from tests.support import amounts

LIFTED_S = 25.0
"""A fence that is lifted before, or stands for less in the end, need not have been told."""


def watched_by_one(seed: int) -> bool:
    """Whether one agent is told of everything there. Of several each tells of its own.

    One whose memory is reverted has forgotten what it has told.
    """
    world = world_of(seed)
    return (
        len(world.watchers) == 1 and not world.watchers[0].from_s and not befalls(world, What.AGENT_REVERTED)
    )


def befalls(world: Scenario, *whats: What) -> bool:
    """Whether any of these happens in a world."""
    return any(fault.what in whats for fault in world.script)


DRAWN = amounts.seeds("FENCER_INCIDENT_SEEDS", "0-99")
SEEDS = [seed for seed in DRAWN if watched_by_one(seed)]


@pytest.mark.parametrize(
    "seed", [seed if seed < 20 else pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS]
)
def test_what_people_are_told_fits_what_happens(seed):
    world = world_of(seed)
    told = Told(world, seed)
    by_key = defaultdict(list)
    for message in told.messages:
        by_key[message.key].append(message)
    for messages in by_key.values():
        assert [message.number for message in messages] == list(range(1, len(messages) + 1))
        assert messages[0].loud
        assert not any(message.over for message in messages[:-1])
        assert all(message.began <= message.at for message in messages)
        assert all(message.title.isprintable() for message in messages)

    of_nodes = [message for message in told.standing if message.occasion is not Occasion.BLIND]
    assert len(of_nodes) == len({message.about for message in of_nodes}), "two incidents of one node go on"
    fenced = {message.about for message in of_nodes if message.occasion is Occasion.FENCED}
    assert not fenced & lifted_long_ago(told), "told to be fenced, and long well"

    tainted = {incident.node for incident in told.stage.tally.incidents if incident.tainted_s is not None}
    ours = {node for node in tainted if told.stage.simulation.cluster.cleared[node] > 0}
    loud = Counter(message.about for message in told.messages if message.loud)
    assert not loud or max(loud.values()) <= 4 + 2 * len(world.script), "a phone that never rests"
    if befalls(world, *OF_AGENTS):
        return  # an agent that is down while a node is fenced and comes back tells of neither
    heard_of = {m.about for m in told.messages if m.occasion in {Occasion.FENCED, Occasion.ALARM}}
    assert ours <= heard_of | lifted_at_once(told), "fenced, and nobody was told"


def test_there_are_enough_such_worlds():
    assert len(SEEDS) > len(DRAWN) / 4


def lifted_long_ago(told: Told) -> set[str]:
    """Name the nodes that are not fenced any more, and Ready: a pass over slow answers has seen that."""
    stage, nodes = told.stage, told.stage.simulation.api.nodes
    long_ago_s = stage.simulation.timeline.now_s() - 2 * LIFTED_S
    lifted = {one.node for one in stage.tally.incidents if (one.unfenced_s or long_ago_s) < long_ago_s}
    return {name for name in lifted if nodes[name].ready and not nodes[name].out_of_service}


def lifted_at_once(told: Told) -> set[str]:
    """Name the nodes whose fence stood for less than it takes to be told, or stands for less in the end."""
    now_s = told.stage.simulation.timeline.now_s()
    return {
        incident.node
        for incident in told.stage.tally.incidents
        if incident.tainted_s is not None and (incident.unfenced_s or now_s) - incident.tainted_s < LIFTED_S
    }
