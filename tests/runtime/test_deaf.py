"""A time in which nobody could be heard says nothing of anybody: no node counts as silent because of it."""

from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from fencer.core.model import PowerState
from fencer.core.policy import UnresponsiveGuest
from fencer.errors import ClusterError
from fencer.runtime.reconcile import Agent
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from tests.runtime.stagehand import ARMED, Stagehand

NAMES = ("k8s-1", "k8s-2", "k8s-3", "k8s-4", "k8s-5")
STOPPING = replace(ARMED, unresponsive_guest=UnresponsiveGuest.STOP)


def run(stage, seconds):
    """Pass after pass, whether the API answers or not."""
    until_s = stage.simulation.clock.now_s() + seconds
    while stage.simulation.clock.now_s() < until_s:
        with suppress(ClusterError):
            stage.agent.tick()
        stage.simulation.clock.wait(ARMED.poll_s)


@pytest.mark.parametrize("seed", range(6))
def test_an_api_that_was_gone_for_long_costs_no_healthy_guest_its_power(seed):
    """It is back: the kubelets are heard one after the other, and the last one is as sound as the first."""
    stage = Stagehand(STOPPING, seed=seed)
    stage.run(60)
    stage.happen(What.API_DOWN, "")
    run(stage, STOPPING.unresponsive_after_s + 100)
    stage.happen(What.API_UP, "")
    run(stage, 60)
    assert "stop" not in stage.calls


@pytest.mark.parametrize("seed", range(6))
def test_nor_do_networks_that_come_back_one_after_the_other(seed):
    """The API answers fencer all the time; no kubelet reached it."""
    stage = Stagehand(STOPPING, seed=seed)
    stage.run(60)
    nodes = sorted(stage.simulation.nodes)
    for name in nodes:
        stage.happen(What.NIC_OFF, name)
    run(stage, STOPPING.unresponsive_after_s + 100)
    for name in nodes:
        stage.happen(What.NIC_ON, name)
        run(stage, 20)
    assert "stop" not in stage.calls


def test_lists_that_fail_now_and_then_keep_no_dead_node_from_its_fence():
    """As behind a balancer one of whose API servers is gone: every second answer is none."""
    stage = Stagehand()
    stage.run(60)
    stage.happen(What.CRASH)
    for number in range(60):
        stage.happen(What.API_UP if number % 2 else What.API_DOWN, "")
        with suppress(ClusterError):
            stage.agent.tick()
        stage.simulation.clock.wait(ARMED.poll_s)
    assert stage.node().fenced


def test_what_is_new_after_an_outage_of_the_api_is_no_sign_that_anybody_is_heard_now():
    """One renewed a moment before it; all are cut off since, and nobody has said yet that it is not Ready."""
    stage = Stagehand(replace(ARMED, require_not_ready=False, lease_silent_s=20.0))
    nodes = stage.simulation.api.nodes
    stage.run(60)
    stage.happen(What.POWER_OFF)
    stage.run(10)
    lease = nodes["k8s-1"].lease
    while nodes["k8s-1"].lease == lease:
        stage.simulation.clock.wait(0.1)
    stage.happen(What.API_DOWN, "")
    run(stage, 80)
    for name in nodes:
        stage.happen(What.NIC_OFF, name)
    stage.happen(What.API_UP, "")
    run(stage, 60)
    assert not stage.node().fenced
    stage.happen(What.NIC_ON, "k8s-1")
    run(stage, 60)
    assert stage.node().fenced


def test_who_stays_silent_then_is_stopped_all_the_same():
    stage = Stagehand(STOPPING)
    stage.run(60)
    stage.happen(What.PANIC)
    stage.happen(What.API_DOWN, "")
    run(stage, 100)
    stage.happen(What.API_UP, "")
    run(stage, STOPPING.unresponsive_after_s + 30)
    assert stage.calls.count("stop") == 1
    assert stage.node().fenced


@pytest.mark.parametrize("broken", ["", "k8s-4"], ids=["all cut off", "one renews and is not Ready"])
@pytest.mark.parametrize("seed", range(3))
def test_each_has_its_chance_once_anybody_is_heard_again(seed, broken):
    """Nobody was heard since the last voice of all, and not only since that one was old."""
    stage = Stagehand(seed=seed, shape=Shape(nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4")))
    cluster = Unready(stage.world.cluster)
    stage.agent = Agent(replace(stage.world, cluster=cluster), ARMED, stage.simulation.rules())
    stage.run(60)
    cluster.unready = {broken}
    nodes = sorted(set(stage.simulation.nodes) - {broken})
    for name in nodes:
        stage.happen(What.NIC_OFF, name)
    stage.run(97)
    stage.happen(What.LIE_STOPPED)
    stage.run(3)
    for name in nodes:
        wait_s = 6.0 if name == "k8s-2" else 0.0
        stage.simulation.clock.after(wait_s, partial(stage.happen, What.NIC_ON, name))
    for _ in range(40):
        stage.agent.tick()
        stage.simulation.clock.wait(0.5)
    assert stage.simulation.guest("k8s-2").power is PowerState.RUNNING
    assert "taint" not in stage.calls


class TestTheLastToComeBack:
    """All kubelets are cut off, and back one after the other, beside a hypervisor that is wrong for 3 s."""

    def cut_off(self, seed):
        """A stage at the moment of the cut; when the others are back, and k8s-2 at last, is settled."""
        stage = Stagehand(seed=seed, shape=Shape(nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4")))
        stage.run(60)
        clock = stage.simulation.clock
        clock.after(97.0, partial(stage.happen, What.LIE_STOPPED))
        for name in sorted(stage.simulation.nodes):
            stage.happen(What.NIC_OFF, name)
            clock.after(106.0 if name == "k8s-2" else 100.0, partial(stage.happen, What.NIC_ON, name))
        return stage

    def back(self, stage, until_s):
        """Let them come back; whether the running guest's node was fenced."""
        while stage.simulation.clock.now_s() < until_s:
            stage.agent.tick()
            stage.simulation.clock.wait(0.5)
        return "taint" in stage.calls

    @pytest.mark.parametrize("seed", range(16))
    def test_has_its_chance_though_the_agent_was_suspended_meanwhile(self, seed):
        """No list has shown that nobody is heard."""
        stage = self.cut_off(seed)
        until_s = stage.simulation.clock.now_s() + 125.0
        stage.run(30)
        stage.simulation.clock.wait(until_s - 22.5 - stage.simulation.clock.now_s())
        assert not self.back(stage, until_s)

    @pytest.mark.parametrize("seed", range(4))
    def test_has_all_of_it_though_a_list_had_failed_before_the_others_were_silent(self, seed):
        stage = self.cut_off(seed)
        until_s = stage.simulation.clock.now_s() + 125.0
        stage.run(30)
        stage.happen(What.API_DOWN, "")
        run(stage, 1)
        stage.happen(What.API_UP, "")
        stage.run(until_s - 25.5 - stage.simulation.clock.now_s())
        assert not self.back(stage, until_s)


@pytest.mark.parametrize("seed", range(20))
def test_all_cut_off_and_back_by_chance_beside_a_hypervisor_that_is_wrong_for_seconds(seed):
    """All come back within 6 s; the API goes away now and then, and the agent stands still."""
    chance = Random(seed)  # noqa: S311 - chance that can be repeated is the point
    stage = Stagehand(seed=seed, shape=Shape(nodes=NAMES[: chance.choice((3, 4, 5))]))
    stage.run(60 + chance.uniform(0, 20))
    clock = stage.simulation.clock
    back_s = chance.uniform(45, 200)
    for name in stage.simulation.nodes:
        clock.after(chance.uniform(0, 5), partial(stage.happen, What.NIC_OFF, name))
        clock.after(back_s + chance.uniform(0, 6), partial(stage.happen, What.NIC_ON, name))
    lie_s = back_s + chance.uniform(-5, 6)
    clock.after(lie_s, partial(stage.happen, What.LIE_STOPPED))
    clock.after(lie_s + chance.uniform(1, 15), partial(stage.happen, What.TRUTHFUL, Shape().endpoint))
    for at_s in (chance.uniform(0, back_s + 20) for _ in range(chance.choice((0, 0, 1, 2)))):
        clock.after(at_s, partial(stage.happen, What.API_DOWN, ""))
        clock.after(at_s + chance.uniform(1, 60), partial(stage.happen, What.API_UP, ""))
    still_s = {clock.now_s() + chance.uniform(0, back_s): chance.uniform(4, 75) for _ in range(seed % 3)}
    until_s = clock.now_s() + back_s + 60
    while clock.now_s() < until_s:
        with suppress(ClusterError):
            stage.agent.tick()
        due = [at_s for at_s in still_s if at_s <= clock.now_s()]
        clock.wait(0.5 + sum(still_s.pop(at_s) for at_s in due))
    assert "taint" not in stage.calls


@pytest.mark.parametrize("still_s", [30.0, 60.0, 90.0])
def test_an_agent_that_was_suspended_amid_a_lie_heeds_what_was_heard_meanwhile(still_s):
    """It waits for no silence; but of this guest it was first read off before its kubelet renewed."""
    stage = Stagehand(replace(ARMED, require_not_ready=False, lease_silent_s=0.0))
    stage.run(60)
    stage.happen(What.LIE_STOPPED)
    stage.run(2)
    assert "taint" not in stage.calls
    stage.simulation.clock.advance(still_s)
    stage.run(60)
    assert "taint" not in stage.calls


def test_one_that_stands_still_again_and_again_lets_the_dead_be_silent(stage):
    """What is taken off their silence is so every second time only."""
    stage.run(60)
    stage.happen(What.PANIC)
    ages = []
    for _ in range(10):
        stage.simulation.clock.wait(ARMED.apart_s + 10)
        ages.append(stage.agent.tick().judged["k8s-2"].observation.node.lease_age_s)
    assert max(ages[2:]) > ARMED.lease_silent_s


def renamed(policy, offset_s=0):
    """A machine that has another name now: its old Node is silent, and its guest runs."""
    stage = Stagehand(policy)
    stage.run(60 + offset_s)
    stage.simulation.guest("k8s-2").node = "new-2"
    stage.happen(What.REBOOT)
    stage.run(STOPPING.unresponsive_after_s + 150)
    return stage


def test_nor_one_whose_living_node_is_cut_off_for_less_than_power_offs_take():
    stage = renamed(STOPPING)
    stage.happen(What.NIC_OFF)
    stage.run(STOPPING.unresponsive_after_s - 20)
    assert "stop" not in stage.calls


@pytest.mark.parametrize("call", ["pods", "attachments"])
def test_nor_one_whose_living_node_joins_amid_the_pass(call):
    stage = Stagehand(STOPPING)
    stage.run(60)
    stage.happen(What.NIC_OFF)
    nodes, clock = stage.simulation.api.nodes, stage.simulation.clock

    def join():
        new = copy(nodes["k8s-2"])
        new.name, new.uid, new.ready, new.annotations = "new-2", "uid-of-new-2", True, {}
        new.lease = clock.utc("microseconds")
        nodes["new-2"] = new

    silent_s = 0.0
    while silent_s < STOPPING.unresponsive_after_s + 20:
        if silent_s > STOPPING.unresponsive_after_s - 2.5 and "new-2" not in nodes:
            stage.before[call] = join
        silent_s = stage.agent.tick().judged["k8s-2"].observation.node.lease_age_s or 0.0
        clock.wait(2.0)
    assert "new-2" in nodes
    assert "stop" not in stage.calls


def test_nor_one_whose_living_node_is_heard_right_before_the_order():
    """After the look, when the nodes are counted once more."""
    stage = renamed(STOPPING)
    stage.happen(What.NIC_OFF)
    node, clock = stage.simulation.api.nodes["new-2"], stage.simulation.clock

    def renew():
        node.lease = clock.utc("microseconds")

    for _ in range(200):
        stage.before["pods"] = renew
        stage.agent.tick()
        clock.wait(2.0)
    assert "stop" not in stage.calls


@pytest.mark.parametrize("offset_s", range(0, 10, 2))
def test_after_an_outage_too_a_guest_that_a_living_node_claims_is_not_stopped(offset_s):
    """Nobody counts as heard until the next renewal."""
    stage = renamed(replace(STOPPING, lease_silent_s=20.0), offset_s)
    stage.happen(What.API_DOWN, "")
    run(stage, 18)
    stage.happen(What.API_UP, "")
    run(stage, 30)
    assert stage.node("new-2").ready
    assert "stop" not in stage.calls


@pytest.mark.parametrize("dies", [True, False], ids=["after the taint", "never"])
def test_an_agent_that_was_suspended_takes_no_old_renewal_for_a_voice_of_now(dies):
    """While it stood still another one saw the node fall, and fenced it; and may have died then."""
    stage = Stagehand()
    stage.run(60)
    suspended, lease = stage.agent, stage.simulation.api.nodes["k8s-2"].lease
    while stage.simulation.api.nodes["k8s-2"].lease == lease:
        stage.simulation.clock.wait(0.5)
    stage.new_agent().tick()
    stage.happen(What.CRASH)
    while "taint" not in stage.calls:
        stage.agent.tick()
        stage.simulation.clock.wait(1)
    stage.simulation.clock.wait(12)
    if not dies:
        stage.run(20)
    stage.agent = suspended
    stage.run(60)
    assert "untaint" not in stage.calls
    assert [text for _, action, _, text in stage.notes.acted_ if action == "Alarm"] == []


class Unready:
    """A cluster whose kubelets renew, some of them without being Ready, or without a lease."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.unready, self.leaseless = set(), set()

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    def nodes(self):
        nodes = self._cluster.nodes()
        return replace(nodes, views=tuple(self._told(node) for node in nodes.views))

    def heartbeats(self, nodes):
        beats = self._cluster.heartbeats(nodes)
        leases = {name: lease for name, lease in beats.leases.items() if name not in self.leaseless}
        return replace(beats, leases=leases)

    def _told(self, node):
        return replace(node, ready=False) if node.name in self.unready else node


class TestWhoFellSilent:
    """What is taken off the silence of a node whose kernel panicked."""

    @pytest.fixture
    def cluster(self, stage):
        """A stage, and what its API tells of the kubelets."""
        cluster = Unready(stage.world.cluster)
        stage.agent = Agent(replace(stage.world, cluster=cluster), ARMED, stage.simulation.rules())
        stage.run(60)
        stage.happen(What.PANIC)
        return cluster

    def silent_s(self, stage):
        return stage.agent.observer.look().nodes["k8s-2"].lease_age_s

    def test_none_of_what_came_before_the_others_fell_silent_too(self, stage, cluster):
        stage.run(200)
        for name in ("k8s-1", "k8s-3"):
            stage.happen(What.NIC_OFF, name)
        stage.run(60)
        cluster.leaseless = {"k8s-3"}
        stage.run(10)
        for name in ("k8s-1", "k8s-3"):
            stage.happen(What.NIC_ON, name)
        stage.run(30)
        assert 190.0 < self.silent_s(stage) < 240.0

    def test_none_of_what_came_before_the_last_voice(self, stage, cluster):
        stage.run(200)
        stage.happen(What.NIC_OFF, "k8s-3")
        stage.run(30)
        cluster.unready = {"k8s-1", "k8s-2", "k8s-3"}
        stage.run(60)
        cluster.unready = set()
        assert self.silent_s(stage) > 220.0

    def test_all_but_a_chance_while_nobody_is_heard_though_they_renew(self, stage, cluster):
        """What counts as heard is Ready, too: from then on each has its time."""
        cluster.unready = {"k8s-1", "k8s-2", "k8s-3"}
        stage.run(100)
        cluster.unready = set()
        assert self.silent_s(stage) < 26.0

    @pytest.mark.usefixtures("cluster")
    def test_all_but_a_chance_of_an_outage_that_is_too_short_for_anybody_to_fall_silent(self, stage):
        """No list was answered; what was read before it counts as heard all the time."""
        stage.run(20)
        stage.happen(What.API_DOWN, "")
        run(stage, 25)
        stage.happen(What.API_UP, "")
        assert 25.0 <= self.silent_s(stage) < 35.0

    def test_no_time_in_which_nobody_was_heard_is_taken_off_twice(self, stage, cluster):
        """The only voice's Ready comes and goes."""
        stage.happen(What.CRASH, "k8s-3")
        for _ in range(300):
            cluster.unready = set() if cluster.unready else {"k8s-1"}
            stage.run(2)
        assert self.silent_s(stage) > 75.0

    def test_nodes_without_any_lease_are_no_trouble(self, stage, cluster):
        cluster.leaseless = {"k8s-1", "k8s-2", "k8s-3"}
        stage.run(100)
        assert self.silent_s(stage) is None
