"""One of several agents is cut off, restarted, paused or reverted: the others go on, and it does no harm.

`fencer.simulation.truth` sees every order and every fence, and raises where an agent breaks the promise.
"""

import gc
from dataclasses import fields, replace
from types import ModuleType

import pytest

from fencer.core.model import PowerState
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario, Watcher
from fencer.simulation.stage import Stage
from tests.scenarios.recipes import real_agent

TWO = (Watcher(), Watcher(from_s=7.3))
PAUSED = Fault(40.0, What.PAUSE, "k8s-2", death=True)
"""To be stopped, which needs the Lease; the first agent has it."""
DEAD = Fault(40.0, What.CRASH, "k8s-2", death=True)
CUTS = (What.LINK_CUT, What.LINK_HANGS, What.LINK_DENIED, What.LINK_DEAF)
"""By each of which an agent can't do anything."""


def story(*script, watchers=TWO, duration_s=240.0):
    """Return a story of three nodes."""
    return Scenario(
        *("agents-apart", "", (), tuple(script), (), None),
        duration_s=duration_s,
        shape=Shape(answer_s=0.1),
        policy=ARMED,
        watchers=watchers,
        interleaved=True,
    )


def told(*script, seed=0, **how):
    """Tell what happens; returns the stage and all events."""
    stage = Stage(story(*script, **how), real_agent, seed=seed, strict=True)
    return stage, list(stage.play())


def at_s(events, text, node="k8s-2"):
    """Return when this was first reported about a node."""
    return next(event.t_s for event in events if event.node == node and text in event.text)


def fences(events):
    return [event.node for event in events if "tainted node.kubernetes.io" in event.text]


def alarms(events):
    return [event.text for event in events if event.data.get("action") == "Alarm"]


@pytest.mark.parametrize("what", CUTS)
def test_while_the_holder_does_not_reach_the_api_another_one_stops_the_guest_and_fences(what):
    _, events = told(PAUSED, Fault(60.0, what, "fencer-1"))
    assert fences(events) == ["k8s-2"]
    assert at_s(events, "tainted") < 40.0 + 100.0


@pytest.mark.parametrize("what", [*CUTS, What.LINK_STALE])
def test_while_the_holder_does_not_reach_the_hypervisor_another_one_does(what):
    _, events = told(PAUSED, Fault(60.0, what, "fencer-1", endpoint="lab"))
    assert fences(events) == ["k8s-2"]


@pytest.mark.parametrize("what", CUTS)
def test_while_the_holders_way_to_the_api_flaps_another_one_stops_the_guest_as_soon(what):
    """It renews its Lease whenever the API server answers it, and gives no order right after an outage."""
    flaps = [
        Fault(at_s, one, "fencer-1")
        for began_s in range(45, 400, 10)
        for at_s, one in ((began_s, what), (began_s + 8, What.LINK_BACK))
    ]
    _, events = told(PAUSED, *flaps, duration_s=160.0)
    assert fences(events) == ["k8s-2"]
    assert at_s(events, "tainted") < 115.0


@pytest.mark.parametrize("watchers", [(Watcher(),), TWO], ids=["alone", "two"])
@pytest.mark.parametrize("kept_s", [30.0, 101.0, 150.0], ids=["before", "as it stops", "after the fence"])
@pytest.mark.parametrize("what", [What.AGENT_REVERTED, What.AGENT_RESTORED])
def test_an_agent_that_is_reverted_fences_once_raises_no_alarm_and_lifts_its_fence(what, kept_s, watchers):
    """Its memory is of before the fence, as it stops the guest, or after; and then the guest starts."""
    script = [PAUSED, Fault(kept_s, What.AGENT_SNAPSHOT, "fencer-1"), Fault(220.0, What.START, "k8s-2")]
    back = Fault(170.0, what, "fencer-1", for_s=3.0)
    stage, events = told(*script, back, watchers=watchers, duration_s=360.0)
    assert "agent-snapshot" in {event.data["what"] for event in events}
    assert [event.text for event in events if event.data["what"] == "agent-ends"]
    assert (fences(events), alarms(events)) == (["k8s-2"], [])
    node = stage.simulation.api.nodes["k8s-2"]
    assert not node.out_of_service
    assert not node.unschedulable


def test_an_agent_that_is_reverted_is_the_one_that_it_was():
    """It goes on as the holder that it was in that life of its process; a disk put back begins a new one."""
    for what, lives in ((What.AGENT_REVERTED, 1), (What.AGENT_RESTORED, 2)):
        holders = []

        def build(ports, holders=holders):
            holders.append(ports.holder)
            return real_agent(ports)

        script = (Fault(30.0, What.AGENT_SNAPSHOT, "fencer-1"), Fault(60.0, what, "fencer-1", for_s=1.0))
        stage = Stage(story(*script, watchers=(Watcher(),), duration_s=90.0), build, seed=0, strict=True)
        list(stage.play())
        assert len(holders) == lives
        assert stage.simulation.leases.holder_of(stage.simulation.lease_of("lab")) == holders[-1]


def test_an_agent_that_is_reverted_has_its_old_configuration_until_it_is_reloaded():
    """It only observed at the snapshot, and was armed since: reverted to that it fences nothing."""
    script = (
        Fault(30.0, What.AGENT_SNAPSHOT, "fencer-1"),
        Fault(50.0, What.AGENT_ARMED, "fencer-1", for_s=0.5),
        Fault(75.0, What.AGENT_REVERTED, "fencer-1", for_s=1.0),
        DEAD,
    )
    _, events = told(*script, watchers=(Watcher(),), duration_s=200.0)
    again_s = next(event.t_s for event in events if "with its newest configuration" in event.text)
    assert fences(events) == ["k8s-2"]
    assert at_s(events, "tainted") > again_s


def test_an_agent_that_is_upgraded_gives_its_lease_back_at_once():
    """The other one has it within two looks, not only after the time that a Lease lasts."""
    restarted = Fault(60.0, What.AGENT_RESTARTED, "fencer-1", for_s=30.0)
    stage, _ = told(restarted, duration_s=68.0)
    assert stage.simulation.leases.holder_of(stage.simulation.lease_of("lab")).startswith("fencer-2")


def test_all_agents_are_down_while_a_node_dies_and_it_is_fenced_once_they_are_back():
    down = [Fault(35.0, What.AGENT_KILLED, f"fencer-{number}", for_s=150.0) for number in (1, 2)]
    _, events = told(DEAD, *down, duration_s=300.0)
    assert 185.0 < at_s(events, "tainted") < 185.0 + 60.0


def test_one_that_only_observes_leaves_it_to_the_other():
    _, events = told(PAUSED, watchers=(Watcher(observes=True), Watcher()))
    assert fences(events) == ["k8s-2"]


@pytest.mark.parametrize("steps", range(105, 131, 5))
def test_a_guest_that_starts_while_the_agents_vm_is_paused_right_before_its_taint_loses_nothing(steps):
    """For its clocks no time has passed, and it goes on with its write: the Node has changed since."""
    paused = Fault(91.0, What.AGENT_PAUSED, "fencer-1", for_s=60.0, steps=steps)
    stage, events = told(DEAD, paused, Fault(118.0, What.START, "k8s-2"), watchers=(Watcher(),))
    assert "agent-freezes" in {event.data["what"] for event in events}
    assert not stage.truth.breaches
    assert not stage.simulation.api.nodes["k8s-2"].out_of_service


def swapped_story(seed, *script):
    """Two hypervisors, and two agents: what one calls lab the other calls lab-b, and the other way round."""
    other = Watcher(calls={"lab": "lab-b", "lab-b": "lab"})
    shape = Shape(answer_s=0.1, further=("lab-b",), spread=True)
    made = replace(story(*script, watchers=(Watcher(until_s=100.0), other), duration_s=300.0), shape=shape)
    stage = Stage(made, real_agent, seed=seed, strict=True)
    return stage, list(stage.play())


@pytest.mark.parametrize("node", ["k8s-1", "k8s-2"])
def test_one_fences_by_its_own_names_what_the_other_has_bound_by_names_that_are_swapped(node):
    stage, events = swapped_story(0, Fault(110.0, What.PAUSE, node, death=True))
    assert fences(events) == [node]
    assert stage.simulation.guest(node).power is PowerState.STOPPED


RUNTIME = "fencer.runtime"


def reachable(agent, ports):
    """Return all that an agent consists of, without what it works through; also what closures refer to."""
    outside = {id(ports), *(id(getattr(ports, one.name)) for one in fields(ports))}
    outside |= {id(port) for port in (*ports.hypervisors.values(), ports.beside.asker)}
    found, todo = {}, [agent]
    while todo:
        thing = todo.pop()
        if id(thing) in found or id(thing) in outside or isinstance(thing, (type, ModuleType)):
            continue
        if isinstance(thing, dict) and "__builtins__" in thing:
            continue  # the globals of a module
        found[id(thing)] = thing
        todo.extend(gc.get_referents(thing))
    return {id(thing) for thing in found.values() if type(thing).__module__.startswith(RUNTIME)}


def test_a_copy_of_an_agent_shares_no_part_with_it():
    made = []

    def build(ports):
        made.append((real_agent(ports), ports))
        return made[-1][0]

    stage = Stage(story(DEAD, watchers=(Watcher(),), duration_s=70.0), build, seed=0, strict=True)
    list(stage.play())
    agent, ports = made[0]
    copy = agent.copied(ports)
    mine, its = reachable(agent, ports), reachable(copy, ports)
    assert len(mine) == len(its) > 10
    assert not mine & its
