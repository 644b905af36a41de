"""Two agents that see the same at the same time: what they do together stays within what one may do.

`fencer.simulation.truth` sees every order and every fence, and raises where an agent that does not hold the
Lease gives an order, two guests are stopped within the window, or the brake is overrun.
"""

import pytest

from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario, ServerClock, Watcher
from fencer.simulation.stage import Stage
from tests.scenarios.recipes import real_agent

NODES = tuple(f"k8s-{number}" for number in range(1, 7))
TWO = (Watcher(), Watcher(from_s=7.3))


def told(seed, watchers, *script, duration_s=160.0, clocks=()):
    """Tell what happens to six nodes; returns the stage."""
    story = Scenario(
        "two-agents-at-once",
        "",
        (),
        script,
        (),
        None,
        duration_s=duration_s,
        shape=Shape(nodes=NODES, answer_s=0.2),
        policy=ARMED,
        watchers=watchers,
        interleaved=True,
        clocks=clocks,
    )
    stage = Stage(story, real_agent, seed=seed, strict=True)
    list(stage.play())
    return stage


def deaths(what, *nodes):
    return tuple(Fault(40.0, what, name, death=True) for name in nodes)


def fenced(stage):
    return sum(node.out_of_service for node in stage.simulation.api.nodes.values())


@pytest.mark.parametrize("seed", range(6))
def test_the_brake_holds_over_both(seed):
    """Five of six nodes die at once; the brake is at three."""
    assert fenced(told(seed, TWO, *deaths(What.CRASH, *NODES[:5]))) == 3


APART = (ServerClock(120.0), ServerClock(-30.0), ServerClock(590.0), ServerClock(-590.0))
"""Of four API servers, each of which may answer."""


@pytest.mark.parametrize("seed", range(8))
def test_the_brake_holds_over_three_agents_whose_api_servers_clocks_differ(seed):
    """A slot that was written by a clock 120 s ahead once did not count for the others."""
    three = (Watcher(), Watcher(), Watcher())
    assert fenced(told(seed, three, *deaths(What.CRASH, *NODES[:5]), clocks=APART)) == 3


@pytest.mark.parametrize("seed", range(4))
def test_three_stop_one_guest_at_a_time_by_whatever_clock(seed):
    """And no window is longer than one more: what an agent has known for a minute is a minute old."""
    stage = told(seed, (Watcher(),) * 3, *deaths(What.PAUSE, *NODES[:3]), clocks=APART, duration_s=460.0)
    assert fenced(stage) == 3


def test_one_agent_alone_stops_where_the_brake_is():
    assert fenced(told(0, (Watcher(),), *deaths(What.CRASH, *NODES[:5]))) == 3


@pytest.mark.parametrize("seed", range(4))
def test_they_stop_one_guest_at_a_time(seed):
    stage = told(seed, TWO, *deaths(What.PAUSE, *NODES[:3]), duration_s=330.0)
    assert fenced(stage) == 3


@pytest.mark.parametrize("steps", range(0, 60, 7))
@pytest.mark.parametrize("what", [What.AGENT_FROZEN, What.AGENT_KILLED])
def test_whoever_falls_away_in_the_midst_of_a_stop_gives_no_order_later_and_the_other_goes_on(what, steps):
    """It is away for twice the Lease, and then goes on where it stood, or begins anew."""
    falls = Fault(99.5, what, "fencer-1", for_s=30.0, steps=steps)
    stage = told(steps, TWO, *deaths(What.PAUSE, "k8s-2"), falls, duration_s=200.0)
    assert fenced(stage) == 1


@pytest.mark.parametrize("seed", range(4))
def test_both_that_begin_at_once_never_both_give_orders(seed):
    stage = told(seed, (Watcher(), Watcher(), Watcher()), *deaths(What.PAUSE, "k8s-2"), duration_s=150.0)
    assert fenced(stage) == 1
