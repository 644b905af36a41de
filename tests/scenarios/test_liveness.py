"""Never starved, never stuck, where much is wrong at once: of many deaths none is left out.

That each dead node is fenced, and each other one free, in worlds by chance too, is asked of every world of
`test_incidents_by_seed`.
"""

from dataclasses import astuple

import pytest

from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario
from fencer.simulation.stage import Stage
from fencer.simulation.workloads import StatefulSet
from tests.benchmarks import slow_api
from tests.benchmarks.slow_api import STOPS_UP_TO_S
from tests.scenarios.aftermath import CALLS, bound_s
from tests.scenarios.recipes import real_agent


def many(nodes, dead, answer_s, what=What.CRASH):
    """Half of many nodes die at once, each with a pod and its volume."""
    shape = Shape(nodes=tuple(f"k8s-{number:02}" for number in range(nodes)), answer_s=answer_s)
    script = tuple(Fault(60.0, what, name, death=True) for name in shape.nodes[:dead])
    end_s = 60.0 + bound_s(ARMED, dead if what is What.PAUSE else 0, 0.0) + dead * CALLS * answer_s
    return Scenario(
        "many", "", (), script, (), None, end_s, shape=shape, workloads=lambda: (StatefulSet("db", nodes),)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "dead", "answer_s", "what"),
    [
        (60, 28, 0.4, What.CRASH),
        (100, 45, 1.0, What.CRASH),
        (20, 8, 0.4, What.PAUSE),
    ],
)
def test_of_many_deaths_at_once_none_is_left_out(nodes, dead, answer_s, what):
    stage = Stage(many(nodes, dead, answer_s, what), real_agent, strict=True)
    list(stage.play())
    summary = stage.summary()
    assert summary.breaches == 0
    assert sum(one.seconds_to_fence is not None for one in summary.incidents) == dead


@pytest.mark.parametrize("call_s", [3.0, STOPS_UP_TO_S])
def test_however_slow_the_api_is_within_what_the_docs_say_each_is_fenced_and_freed(call_s):
    assert None not in astuple(slow_api.play(call_s))


def test_and_slower_all_but_those_whose_power_has_to_be_cut():
    played = slow_api.play(9.0)
    assert None not in {played.fenced_s, played.lifted_s, played.last_s}
