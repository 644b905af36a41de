"""An endpoint that was wrong about several VMs, and one that only seems so: what that does to all its others.

`fencer.simulation.truth` and two writers on one volume end a story where an agent breaks the promise.
"""

import json
from functools import partial

import pytest

from fencer.core.annotations import BINDING, DOUBTS
from fencer.core.identity import Rules
from fencer.core.model import Reason
from fencer.errors import HypervisorProtocol
from fencer.runtime.reconcile import Agent
from fencer.runtime.trust import Trust
from fencer.runtime.world import World
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario, Watcher
from fencer.simulation.stage import Stage
from tests.scenarios.recipes import real_agent

FIVE = Shape(
    nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4", "k8s-5"), hosts=("lab1", "lab2"), foreign=("elsewhere",)
)
TWO = ("k8s-2", "k8s-3")
ALONE = (Watcher(),)
PROVEN_S = 250.0
"""By then a kubelet that lives since the first minute is proven to."""


def died(at_s=400.0):
    return Fault(at_s, What.POWER_OFF, "k8s-1", death=True)


def story(*script, duration_s=900.0, watchers=ALONE, at=(), shape=FIVE, policy=ARMED):
    """Play a story; returns its stage and what the agents said."""
    scenario = Scenario(
        "distrust", "", (), script, (), None, duration_s, policy=policy, shape=shape, watchers=watchers
    )
    stage = Stage(scenario, real_agent, seed=1, strict=True)
    for at_s, what in at:
        stage.simulation.clock.at(stage.simulation.timeline.began_s + at_s, partial(what, stage))
    return stage, [event for event in stage.play() if event.actor == "fencer"]


def is_fenced(stage, name="k8s-1"):
    return stage.simulation.api.nodes[name].out_of_service


def refused(events):
    reasons = [event.data.get("reason") for event in events if event.node == "k8s-1"]
    return Reason.WITNESS_CONTRADICTED in reasons


def noted(stage, name):
    text = stage.simulation.api.nodes[name].annotations.get(DOUBTS)
    return [] if text is None else json.loads(text)["doubts"]


def moved_cold(at_s=30.0):
    return tuple(Fault(at_s, What.MOVE_COLD, name) for name in TWO)


def lies(name, at_s=30.0, reboots_s=None):
    """The hypervisor calls a VM off that runs, and goes on to when it reboots."""
    lie = (Fault(at_s, What.LIE_STOPPED, name),)
    return lie if reboots_s is None else (*lie, Fault(reboots_s, What.REBOOT, name))


def steal(stage, names=TWO, until_s=float("inf")):
    """`poweroff` inside nodes, by root; their credentials renew leases and status from elsewhere."""
    simulation = stage.simulation
    for name in names:
        guest = simulation.guest(name)
        simulation.world.power_off(guest, "shutdown")
        simulation.stir(guest)

    def renew():
        for node in (simulation.api.nodes[name] for name in names if name in simulation.api.nodes):
            node.ready = True
            simulation.api.renew(node)
        if simulation.timeline.now_s() < until_s:
            simulation.clock.after(10.0, renew)

    renew()


def type_trust(stage):
    """What `fencer trust lab --why …` writes, by a person at another machine."""
    simulation = stage.simulation
    world = World(
        simulation.cluster, simulation.hypervisors, simulation.asker, simulation.clock, stage.reporter
    )
    agent = Agent(world, ARMED, Rules(), "anna")
    trust = Trust(world, agent, agent.observer.look(), "lab")
    assert trust.is_needed
    assert set(trust.doubts) == set(TWO)
    for name in trust.doubts:
        trust.restore(name, "anna: both were stolen")


@pytest.mark.parametrize(
    "script",
    [
        moved_cold()[:1],
        moved_cold(),
        (*moved_cold(), Fault(600.0, What.AGENT_KILLED, "fencer-1", for_s=5.0)),
    ],
    ids=["one", "two", "two, and the agent starts again"],
)
def test_two_vms_moved_cold_to_an_unknown_hypervisor_keep_no_other_node_from_being_fenced(script):
    """Their old place is right to call them off: they run a boot there of which it knows nothing."""
    stage, events = story(died(), *script)
    assert is_fenced(stage)
    assert not refused(events)
    assert noted(stage, "k8s-2")[0]["kind"] == "contradicted"
    assert "bootID" not in noted(stage, "k8s-2")[0]


def test_even_if_it_dies_right_after():
    stage, _ = story(died(55.0), *moved_cold())
    assert is_fenced(stage)


def test_an_endpoint_that_is_wrong_about_two_vms_is_distrusted_at_once_and_proven_wrong_later():
    stage, events = story(died(100.0), *lies("k8s-2"), *lies("k8s-3"))
    assert refused(events)
    assert not is_fenced(stage)
    assert [noted(stage, name)[0].get("paired") for name in TWO] == [True, True]
    texts = " ".join(event.text for event in events if event.node == "k8s-2")
    for said in ("is not believed when it says off", "the kubelet is alive in boot", "distrusted for all"):
        assert said in texts
    assert not any(noted(stage, name) for name in ("k8s-4", "k8s-5"))


@pytest.mark.parametrize(("reboots_s", "stays"), [(90.0, False), (PROVEN_S, True)], ids=["open", "proven"])
def test_a_boot_that_is_not_known_ends_only_a_distrust_that_is_not_proven_yet(reboots_s, stays):
    reboots = (*lies("k8s-2", reboots_s=reboots_s), *lies("k8s-3", reboots_s=reboots_s))
    stage, _ = story(died(), *reboots)
    assert is_fenced(stage) is not stays


def test_a_restart_of_the_agent_forgets_no_proof():
    """The VMs run another boot by then, of which the hypervisor knows nothing, either."""
    script = (*lies("k8s-2", reboots_s=260.0), *lies("k8s-3", reboots_s=260.0))
    killed = Fault(350.0, What.AGENT_KILLED, "fencer-1", for_s=5.0)
    stage, events = story(died(), killed, *script)
    assert not is_fenced(stage)
    assert refused(events)


def test_two_stolen_nodes_deny_fencing_until_a_person_says_that_their_hypervisor_is_right():
    """Root in two nodes: safety.md names it, with this way out."""
    stage, events = story(died(), at=((30.0, steal),))
    assert not is_fenced(stage)
    assert refused(events)
    stage, _ = story(died(), at=((30.0, steal), (600.0, type_trust)))
    assert is_fenced(stage)
    assert not any(is_fenced(stage, name) for name in TWO), "each of them stays doubted itself"
    assert [noted(stage, name)[0]["trusted"] for name in TWO] == ["anna: both were stolen"] * 2


def test_agents_that_call_a_hypervisor_otherwise_distrust_it_and_trust_it_again_together():
    both = (Watcher(until_s=350.0), Watcher(from_s=351.0, calls={"lab": "pve"}))
    stage, events = story(died(), at=((30.0, steal),), watchers=both)
    assert refused(events)
    assert any("pve reported the VMs of k8s-2, k8s-3 as off" in event.text for event in events)
    assert not is_fenced(stage)
    stage, _ = story(died(), at=((30.0, steal), (600.0, type_trust)), watchers=both)
    assert is_fenced(stage)


def test_two_further_vms_make_it_distrusted_again():
    again = [*lies("k8s-4", 420.0), *lies("k8s-5", 420.0)]
    stage, _ = story(
        died(700.0), *lies("k8s-2"), *lies("k8s-3"), *again[:1], at=((400.0, type_trust),), duration_s=1200.0
    )
    assert is_fenced(stage), "one is not enough"
    stage, _ = story(
        died(700.0), *lies("k8s-2"), *lies("k8s-3"), *again, at=((400.0, type_trust),), duration_s=1200.0
    )
    assert not is_fenced(stage)


def ends(at_s, *names, how):
    return [(at_s, partial(how, name=name)) for name in names]


def seen_running(stage, name):
    stage.simulation.hypervisor.trouble.lies.pop(name)


def deleted(stage, name):
    stage.simulation.api.delete_node(name)


def bound_elsewhere(stage, name):
    """It is reported running on another host of its cluster, and bound there."""
    guest = stage.simulation.guest(name)
    stage.simulation.hypervisor.trouble.lies.pop(name)
    guest.host, guest.came_from = "lab2", (guest.host,)


@pytest.mark.parametrize("how", [seen_running, deleted, bound_elsewhere])
def test_it_ends_with_the_last_of_its_vms(how):
    lied = (*lies("k8s-2"), *lies("k8s-3"))
    stage, _ = story(died(), *lied, at=ends(PROVEN_S, "k8s-2", how=how))
    assert not is_fenced(stage), "the other one still stands"
    stage, _ = story(died(), *lied, at=ends(PROVEN_S, *TWO, how=how))
    assert is_fenced(stage)


CUT_OFF = (Fault(499.0, What.NIC_OFF, "k8s-1", death=True), *lies("k8s-1", 500.0))
RESTART = Fault(302.0, What.AGENT_KILLED, "fencer-1", for_s=5.0)


def scribbled(key, stage):
    """Another key signs, as after a theft: what is written under the one before reads as forged."""
    for node in (stage.simulation.api.nodes[name] for name in TWO):
        node.annotations[key] = json.dumps(json.loads(node.annotations[key]) | {"sig": "x"})
        stage.simulation.api.changed(node)


@pytest.mark.parametrize("restart", [(), (RESTART,)], ids=["", "and the agent starts again"])
@pytest.mark.parametrize("key", [DOUBTS, BINDING])
def test_notes_that_cannot_be_read_end_no_distrust(key, restart):
    script = (*lies("k8s-2"), *lies("k8s-3"), *restart, *CUT_OFF)
    stage, events = story(*script, at=[(300.0, partial(scribbled, key))])
    assert (is_fenced(stage), refused(events)) == (False, True)


def test_nor_does_an_endpoint_that_cannot_report_its_identity():
    def fails():
        raise HypervisorProtocol("cannot report its identity")

    def failing(stage):
        stage.simulation.hypervisor.describe = fails

    script = (*lies("k8s-2"), *lies("k8s-3"), RESTART, *CUT_OFF)
    stage, events = story(*script, at=[(300.0, failing)])
    assert (is_fenced(stage), refused(events)) == (False, True)
