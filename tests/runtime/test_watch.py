"""The loop: what it says, and that nothing stops it."""

from fencer.runtime.watch import watch
from tests.runtime.stagehand import Stagehand


def run_passes(stage, count, between=None):
    left = iter(range(count))

    def stopped():
        n = next(left, None)
        if between and n in between:
            between[n]()
        return n is None

    watch(stage.agent, stage.world, stage.policy.poll_s, stopped)


def test_an_endpoint_that_is_lost_is_said_once_and_once_more_when_it_answers_again():
    stage = Stagehand()
    run_passes(stage, 12, {2: lambda: stage.happen("denied", ""), 7: lambda: stage.happen("truthful", "")})
    assert [warning for _, warning in stage.notes.said_] == [True, False]
    assert stage.notes.said_[1][0] == "lab: answers again"


def test_a_cluster_that_is_lost_is_said_once_and_watched_for():
    stage = Stagehand()
    run_passes(stage, 12, {2: lambda: stage.happen("api_down", ""), 7: lambda: stage.happen("api_up", "")})
    assert [warning for _, warning in stage.notes.said_] == [True, False]
    assert stage.notes.said_[1][0] == "kubernetes: answers again"


def test_an_event_of_a_hypervisor_wakes_the_loop():
    stage = Stagehand()
    run_passes(stage, 2)
    began_s = stage.simulation.clock.now_s()
    stage.simulation.clock.after(0.1, lambda: stage.happen("crash"))
    run_passes(stage, 2)
    assert stage.simulation.clock.now_s() - began_s < stage.policy.poll_s + 0.5
