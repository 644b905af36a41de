"""Agents as processes: suspended or killed in the midst of a call, and their calls on the way meanwhile."""

from random import Random

import pytest

from fencer.cli.watch import SLOW_S
from fencer.runtime.workers import WORKERS_LOST
from fencer.simulation.asker import CALLS_LOST, InlineAsker, Killed, Process
from fencer.simulation.assembly import Shape
from fencer.simulation.clock import VirtualClock
from fencer.simulation.crew import PATIENCE_S
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario, Watcher
from fencer.simulation.stage import Stage
from tests.scenarios.recipes import real_agent

ONE = (Watcher(),)


@pytest.fixture
def clock():
    return VirtualClock()


def test_a_process_meets_its_fate_after_so_many_steps(clock):
    process = Process(clock)
    process.meets(lambda: clock.advance(30), steps=2)
    process.step()
    process.step()
    assert clock.now_s() == 0
    process.step()
    assert clock.now_s() == 30
    process.step()
    assert clock.now_s() == 30


@pytest.mark.parametrize(("steps", "done"), [(0, []), (1, ["done"])])
def test_a_killed_process_has_brought_about_what_it_had_sent_and_nothing_else(clock, steps, done):
    def kill():
        raise Killed

    process, did = Process(clock), []
    process.meets(kill, steps)
    with pytest.raises(Killed):
        InlineAsker(clock, lambda _: 1.0, process).ask("lab", lambda: did.append("done"), 10)
    assert did == done


def test_a_call_takes_effect_anywhere_on_its_way():
    effects = set()
    chance = Random(1)  # noqa: S311 - chance that can be repeated is the point
    for _ in range(50):
        clock = VirtualClock()
        at_s = InlineAsker(clock, lambda _: 4.0, chance=chance).ask("lab", clock.now_s, 10)
        assert clock.now_s() == 4
        effects.add(round(at_s))
    assert effects == {0, 1, 2, 3, 4}


def test_who_is_slow_is_not_waited_for_and_taken_up_by_the_next_look(clock):
    asker = InlineAsker(clock, {"quick": 0.1, "slow": 5.0}.__getitem__)
    asker.patience_s = 2.0
    calls = {"quick": clock.now_s, "slow": clock.now_s}
    first = asker.ask_all(calls, 10)
    assert (first["quick"], clock.now_s()) == (0, 2)
    assert "slow: no answer within 2 s" in str(first["slow"])
    clock.advance(4)
    assert asker.ask_all(calls, 10)["slow"] == 0.0  # asked when the first look began
    assert clock.now_s() == pytest.approx(6.1)


def test_where_too_many_calls_hang_nothing_is_asked_until_one_returns(clock):
    asker = InlineAsker(clock, lambda _: 50.0)
    for _ in range(3):
        with pytest.raises(Exception, match="no answer within 10 s"):
            asker.ask("lab", lambda: None, 10)
    with pytest.raises(Exception, match="3 calls hang there"):
        asker.ask("lab", lambda: None, 10)
    assert clock.now_s() == 30
    clock.advance(21)
    with pytest.raises(Exception, match="no answer within 10 s"):
        asker.ask("lab", lambda: None, 10)


def test_the_stage_is_as_patient_as_fencer_watch_and_gives_as_many_calls_up():
    assert (PATIENCE_S, CALLS_LOST) == (SLOW_S, WORKERS_LOST)


def told(*script, watchers=ONE, duration_s=200.0):
    story = Scenario(
        "agents", "", (), script, (), None, duration_s, shape=Shape(), policy=ARMED, watchers=watchers
    )
    stage = Stage(story, real_agent, strict=True)
    return list(stage.play()), stage


DEATH = Fault(20.0, What.CRASH, "k8s-2", death=True)


@pytest.mark.parametrize("steps", range(0, 40, 3))
def test_a_killed_agent_begins_again_and_the_dead_are_fenced_all_the_same(steps):
    killed = Fault(70.0, What.AGENT_KILLED, "fencer-1", for_s=5.0, steps=steps)
    events, stage = told(DEATH, killed)
    whats = [event.data["what"] for event in events]
    assert whats.index("agent-ends") < whats.index("agent-begins")
    assert stage.summary().incidents[0].seconds_to_recover is not None


def test_a_suspended_agent_does_nothing_and_goes_on_where_it_stood():
    events, stage = told(DEATH, Fault(75.0, What.AGENT_FROZEN, "fencer-1", for_s=60.0, steps=1))
    frozen, thawed = (
        next(event.t_s for event in events if event.data["what"] == what)
        for what in ("agent-freezes", "agent-goes-on")
    )
    assert thawed - frozen == pytest.approx(60)
    assert not [event for event in events if event.actor == "fencer" and frozen < event.t_s < thawed]
    assert stage.summary().fenced


def test_what_befalls_one_agent_leaves_the_other_alone():
    _, stage = told(
        DEATH,
        Fault(30.0, What.AGENT_FROZEN, "fencer-1", for_s=1000.0),
        watchers=(Watcher(), Watcher()),
    )
    assert stage.summary().fenced


def test_nothing_befalls_an_agent_that_is_not_there():
    _, stage = told(DEATH, Fault(30.0, What.AGENT_KILLED, "fencer-7", for_s=1.0))
    assert stage.summary().fenced
