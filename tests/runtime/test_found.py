"""What is on a node is looked at when it counts, and not again and again for who waits for nothing."""

from dataclasses import replace
from itertools import pairwise

import pytest

from fencer.core.model import Binding, Reason
from fencer.runtime.found import LOOK_AGAIN_S
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.simulation.hypervisor import SimulatedHypervisor
from fencer.simulation.objects import ApiNode, ApiPod
from tests.runtime.stagehand import ARMED, Stagehand

IDLE = tuple(f"idle-{number}" for number in range(6))


@pytest.fixture
def idle():
    """Six idle nodes beside three that work; the agent has looked at all of them, and they are off."""
    stage = Stagehand(shape=Shape(nodes=(*IDLE, "k8s-1", "k8s-2", "k8s-3"), spare=IDLE))
    stage.run(30)
    for name in IDLE:
        stage.happen(What.POWER_OFF, name)
    stage.run(70)
    return stage


def test_nodes_with_nothing_on_them_are_not_looked_at_in_every_pass(idle):
    assert {idle.reason(name) for name in IDLE} == {Reason.NOTHING_TO_CLEAR}
    idle.calls.clear()
    idle.run(3 * LOOK_AGAIN_S)
    assert idle.calls.count("sweep") > 40
    assert 6 <= idle.calls.count("pods") <= 18  # each of the six once in 30 s, and none left out


def test_only_one_of_them_is_looked_at_again_in_a_pass(idle):
    idle.simulation.clock.advance(LOOK_AGAIN_S)
    idle.agent.tick()  # the first pass after so long counts as slow, and lets them wait
    for _ in range(8):
        idle.calls.clear()
        idle.simulation.clock.wait(2.0)
        idle.agent.tick()
        assert idle.calls.count("pods") <= 1


def test_one_that_is_looked_at_in_every_pass_takes_nobodys_turn(idle):
    """A guest that is waited for until it is to be stopped, or a node that is back and holds its fence."""
    observer, clock = idle.agent.observer, idle.simulation.clock
    idle.happen(What.NIC_OFF, "k8s-1")
    idle.run(60)
    for _ in range(40):
        clock.wait(2.0)
        scene = observer.look()
        idle.agent.shared.finder.look(scene, scene.nodes["k8s-1"])
    assert not scene.looked_again
    assert idle.agent.shared.finder.known(scene, scene.nodes[IDLE[0]]) is None


def test_what_comes_to_one_of_them_is_found(idle):
    """Somebody binds a pod there by hand: now there is something to fence for."""
    api = idle.simulation.api
    pod = ApiPod("demo", "mine", api.new_uid(), "Job/mine", api.clock.now_s())
    api.create_pod(pod)
    api.bind_pod(pod, IDLE[3])
    idle.run(2 * LOOK_AGAIN_S)
    assert idle.node(IDLE[3]).fenced


def test_what_was_found_does_not_outlive_a_node_that_is_back(idle):
    """It works again, pods come, and it dies once more: nothing of before counts."""
    name = IDLE[0]
    idle.happen(What.START, name)
    idle.simulation.api.nodes[name].unschedulable = False
    idle.run(40)
    for other in ("k8s-1", "k8s-3"):
        idle.simulation.api.nodes[other].unschedulable = True
    idle.happen(What.CRASH, "k8s-2")
    idle.run(200)
    assert [pod for pod in idle.pods(name) if pod.controller.startswith("StatefulSet")]
    idle.happen(What.CRASH, name)
    idle.run(60)
    assert idle.node(name).fenced


@pytest.mark.slow
def test_attachments_are_listed_once_for_all_nodes_of_a_pass():
    stage = Stagehand()
    stage.run(30)
    for name in ("k8s-2", "k8s-3"):
        stage.happen(What.CRASH, name)
    stage.calls.clear()
    while not {"k8s-2", "k8s-3"} <= {name for name in stage.simulation.api.nodes if stage.node(name).fenced}:
        stage.simulation.clock.wait(2.0)
        at = len(stage.calls)
        stage.agent.tick()
        assert stage.calls[at:].count("attachments") <= 1


class TestProgress:
    """Every answer takes a second, and half of twenty nodes die at once."""

    NODES = tuple(f"n-{number:02}" for number in range(20))

    def test_a_pass_shows_that_it_goes_on(self):
        stage = Stagehand(replace(ARMED, max_fenced=20), shape=Shape(nodes=self.NODES, answer_s=1.0))
        stage.run(60)
        for name in self.NODES[:10]:
            stage.happen(What.CRASH, name)
        clock, passes_s, steps_s = stage.simulation.clock, [], []
        for _ in range(30):
            clock.wait(2.0)
            began_s, at_s = clock.now_s(), [clock.now_s()]
            stage.agent.tick(lambda at_s=at_s: at_s.append(clock.now_s()))
            at_s.append(clock.now_s())
            passes_s.append(clock.now_s() - began_s)
            steps_s += [later - earlier for earlier, later in pairwise(at_s)]
        assert max(passes_s) <= ARMED.poll_s + 5.0  # nor does it wait for any of them longer than that
        assert max(steps_s) <= 6.0


class TestTheBindingFollowsItsGuest:
    def test_to_an_endpoint_that_was_renamed(self):
        """The configuration calls it by another name since fencer was restarted."""
        stage = Stagehand()
        stage.run(30)
        assert isinstance(stage.node().binding, Binding)
        del stage.simulation.hypervisors["lab"]
        for guest in stage.simulation.world.guests.values():
            guest.endpoint = "home"
        stage.simulation.hypervisors["home"] = SimulatedHypervisor("home", stage.simulation.world)
        stage.new_agent()
        stage.run(30)
        assert stage.node().binding.guest.endpoint == "home"
        stage.happen("crash")
        stage.run(60)
        assert stage.node().fenced

    def test_not_to_a_copy_while_nobody_has_looked_for_the_bound_one(self):
        """That a list leaves it out is not enough: it is asked for first, and it runs."""
        stage = Stagehand()
        stage.run(30)
        stage.happen("clone")
        stage.happen("start", "k8s-2-copy")
        stage.simulation.hypervisor.trouble.unlisted.add("k8s-2")
        stage.run(60)
        assert stage.node().binding.guest.name == "k8s-2"
        assert stage.reason() is Reason.GUEST_AMBIGUOUS


class TestALeftoverNode:
    """A machine was given another name: its old Node object stays, with the same UUID, and is silent."""

    def leave_one_behind(self, stage):
        api = stage.simulation.api
        uuid = api.nodes["k8s-2"].system_uuid
        api.add_node(ApiNode("k8s-old", api.new_uid(), uuid, "an old boot", ready=None, lease="long ago"))

    def test_it_is_no_rival_of_the_node_that_is_heard(self):
        stage = Stagehand()
        self.leave_one_behind(stage)
        stage.run(80)
        assert isinstance(stage.node().binding, Binding)
        stage.happen("crash")
        stage.run(60)
        assert stage.node().fenced
        assert not stage.node("k8s-old").fenced

    def test_nor_is_it_fenced_itself_when_that_one_ends_before_it_was_seen_alive(self):
        stage = Stagehand()
        self.leave_one_behind(stage)
        stage.happen("crash")
        stage.run(200)
        assert not stage.node("k8s-old").fenced
        assert not stage.node().fenced
