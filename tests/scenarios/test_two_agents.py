"""Two agents that see the same at the same time: what they do together stays within what one may do."""

import pytest

from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario, Watcher
from fencer.simulation.stage import Stage
from tests.scenarios.recipes import real_agent

NODES = tuple(f"k8s-{number}" for number in range(1, 7))


def told(seed, watchers):
    """Five of six nodes die at once; the brake is at three."""
    deaths = tuple(Fault(40.0, What.CRASH, name, death=True) for name in NODES[:5])
    story = Scenario(
        "two-agents-at-once",
        "",
        (),
        deaths,
        (),
        None,
        duration_s=160.0,
        shape=Shape(nodes=NODES, answer_s=0.2),
        policy=ARMED,
        watchers=watchers,
        interleaved=True,
    )
    stage = Stage(story, real_agent, seed=seed, strict=True)
    list(stage.play())
    return sum(node.out_of_service for node in stage.simulation.api.nodes.values())


@pytest.mark.parametrize("seed", range(6))
def test_the_brake_holds_over_both_but_for_the_one_that_is_on_its_way(seed):
    fenced = told(seed, (Watcher(), Watcher(from_s=7.3)))
    assert 3 <= fenced <= 4


def test_one_agent_alone_stops_where_the_brake_is():
    assert told(0, (Watcher(),)) == 3
