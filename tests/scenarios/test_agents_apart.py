"""One of several agents is cut off, restarted, paused or reverted: the others go on, and it does no harm.

`fencer.simulation.truth` sees every order and every fence, and raises where an agent breaks the promise.
"""

import gc
from dataclasses import fields
from types import ModuleType

import pytest

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
