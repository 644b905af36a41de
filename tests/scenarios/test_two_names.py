"""Two agents whose configurations call one hypervisor by different names, and two hypervisors by one.

`fencer.simulation.truth` sees every order and every fence, and raises where an agent breaks the promise.
"""

import json

import pytest

from fencer.core.annotations import BINDING, MARK
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario, Watcher
from fencer.simulation.stage import Stage
from tests.scenarios.recipes import real_agent

OTHERWISE = {"lab": "pve"}


def told(watchers, *script, duration_s, shape=Shape()):  # noqa: B008 - a frozen value
    """Tell what happens; returns the stage and all that is told."""
    story = Scenario(
        "two-names",
        "",
        (),
        script,
        (),
        None,
        duration_s=duration_s,
        policy=ARMED,
        shape=shape,
        watchers=watchers,
    )
    stage = Stage(story, real_agent, seed=1, strict=True)
    return stage, [event for event in stage.play() if event.actor != "world"]


def written(stage, key, name="k8s-2"):
    return json.loads(stage.simulation.api.nodes[name].annotations[key])


def test_they_agree_on_bindings():
    stage, events = told((Watcher(), Watcher(calls=OTHERWISE)), duration_s=120.0)
    assert written(stage, BINDING)["guest"]["hypervisor"] == "simulation:lab"
    bound = [event.node for event in events if event.text.startswith("bound to")]
    assert sorted(bound) == sorted(stage.simulation.api.nodes), "each once, by one of them"


@pytest.mark.parametrize("names", [({}, OTHERWISE), (OTHERWISE, {})], ids=["lab, pve", "pve, lab"])
def test_one_lifts_the_others_fence(names):
    first, second = names
    watchers = (Watcher(until_s=150.0, calls=first), Watcher(from_s=151.0, calls=second))
    script = (Fault(40.0, What.POWER_OFF, "k8s-2", death=True), Fault(200.0, What.START, "k8s-2"))
    stage, events = told(watchers, *script, duration_s=400.0)
    assert any("tainted" in event.text for event in events)
    assert not stage.simulation.api.nodes["k8s-2"].out_of_service
    assert MARK not in stage.simulation.api.nodes["k8s-2"].annotations


def test_one_fences_by_the_others_binding():
    """The second one was never there while the guest ran."""
    watchers = (Watcher(until_s=60.0), Watcher(from_s=61.0, calls=OTHERWISE))
    stage, _ = told(watchers, Fault(50.0, What.POWER_OFF, "k8s-2", death=True), duration_s=250.0)
    assert stage.simulation.api.nodes["k8s-2"].out_of_service
    fenced = written(stage, MARK)["guest"]
    assert (fenced["hypervisor"], fenced["endpoint"]) == ("simulation:lab", "pve")
