"""What waits for a deed: an agent that stands still right before it, and what happens meanwhile."""

from dataclasses import replace

import pytest

from fencer.simulation.faults import Cue, Fault, What
from fencer.simulation.scenarios import SCENARIOS
from fencer.simulation.stage import Stage
from tests.scenarios.recipes import real_agent

NODE, STALLS_S = "k8s-2", 40.0
CRASH = Fault(30.0, What.CRASH, NODE, death=True)
STALL = Fault(0.0, What.AGENT_STALLS, NODE, cue=Cue.BEFORE_TAINT, for_s=STALLS_S)


def played(*script, **facts):
    scenario = replace(SCENARIOS["vm-stopped"], script=script, duration_s=400.0, **facts)
    stage = Stage(scenario, real_agent, seed=1, strict=True)
    return stage, list(stage.play())


def tainted_s(events):
    return [event.t_s for event in events if event.data.get("action") == "TaintNode" and event.data["ok"]]


@pytest.mark.parametrize("agents", [1, 2])
def test_no_agent_does_the_deed_before_the_stall_is_over(agents):
    watchers = SCENARIOS["vm-stopped"].watchers * agents
    (usual_s,) = tainted_s(played(CRASH, watchers=watchers)[1])
    assert min(tainted_s(played(CRASH, STALL, watchers=watchers)[1])) >= usual_s + STALLS_S


def test_what_happens_meanwhile_is_what_the_agent_finds():
    start = Fault(1.0, What.START, NODE, cue=Cue.BEFORE_TAINT)
    stage, events = played(CRASH, STALL, start)
    assert tainted_s(events) == []
    assert "agent-freezes" in {event.data["what"] for event in events}
    assert not stage.simulation.api.nodes[NODE].out_of_service


def test_a_story_goes_on_until_what_waited_for_a_cue_has_settled():
    late = replace(STALL, for_s=500.0)
    _, events = played(CRASH, late)
    assert tainted_s(events)[0] > 500.0


def test_each_cue_happens_once():
    events = played(CRASH, STALL)[1]
    assert [event.data["what"] for event in events].count("agent-freezes") == 1
