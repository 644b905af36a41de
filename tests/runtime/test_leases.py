"""Of which nodes leases are read, and that nobody falls silent any later, or sooner, for it."""

from dataclasses import replace

import pytest

from fencer.core.model import Reason, Verdict
from fencer.runtime.calls import WORKER
from fencer.runtime.leases import LIKELY, LOOKS
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import API
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from tests.runtime.stagehand import ARMED, AT_ONCE, Stagehand

SIX = Shape(nodes=tuple(f"k8s-{number}" for number in range(1, 7)))


class Listening:
    """A cluster, with a note of whose leases are asked for; it may tell no versions, as odd servers do."""

    def __init__(self, cluster, versions=True):
        self._cluster = cluster
        self._versions = versions
        self.asked = []

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    def heartbeats(self, nodes):
        self.asked.append(None if nodes is None else set(nodes))
        beats = self._cluster.heartbeats(nodes)
        return beats if self._versions else replace(beats, version=0)


def staged(policy=ARMED, versions=True, control_plane=()):
    """Return a stage whose agent has watched long enough to know each node, and what it asks for."""
    stage = Stagehand(policy, shape=SIX)
    for name in control_plane:
        stage.simulation.api.nodes[name].roles = ("control-plane",)
    cluster = Listening(stage.world.cluster, versions)
    stage.agent = Agent(replace(stage.world, cluster=cluster), policy, stage.simulation.rules())
    stage.run(60)
    cluster.asked.clear()
    return stage, cluster


def test_no_lease_of_a_healthy_node_is_asked_for():
    stage, cluster = staged()
    stage.run(30)
    assert set(map(frozenset, cluster.asked)) == {frozenset()}


def test_a_healthy_node_reads_healthy_all_the_same():
    stage, _ = staged()
    judged = stage.agent.tick().judged
    assert {item.decision.verdict for item in judged.values()} == {Verdict.HEALTHY}
    assert sum(item.observation.node.asked for item in judged.values()) == 1  # whom the API told of besides


@pytest.mark.parametrize("what", [What.CRASH, What.PAUSE, What.SAVE, What.DELETE, What.IO_ERROR, What.HANG])
def test_of_a_node_whose_guest_is_not_seen_running_it_is(what):
    stage, cluster = staged()
    stage.happen(what, "k8s-5" if what is not What.HANG else "lab")
    stage.agent.tick()
    assert "k8s-5" in cluster.asked[0]


def test_of_a_node_that_is_not_ready_it_is():
    stage, cluster = staged()
    stage.happen(What.NIC_OFF, "k8s-5")
    stage.run(60)
    assert cluster.asked[-1] == {"k8s-5"}


def test_of_a_node_that_booted_it_is_until_the_new_boot_is_heard():
    stage, cluster = staged()
    stage.happen(What.REBOOT, "k8s-5")
    stage.run(40)
    assert {"k8s-5"} in cluster.asked
    stage.run(60)
    assert cluster.asked[-1] == set()


def test_of_a_node_whose_binding_could_not_be_written_it_is():
    """It was seen alive with its guest as the API went away, and has to be once more."""
    stage = Stagehand(ARMED, shape=SIX)
    cluster = Listening(stage.world.cluster)
    stage.agent = Agent(replace(stage.world, cluster=cluster), ARMED, stage.simulation.rules())
    stage.before["bind"] = lambda: stage.happen(What.API_DOWN, "")
    while "bind" in stage.before:
        stage.run(1)
    stage.simulation.clock.wait(30)
    stage.happen(What.API_UP, "")
    stage.run(40)
    assert all(node.binding is not None for node in stage.agent.observer.look().nodes.values())


def test_of_the_control_plane_all_are_read_or_none():
    """Whether etcd keeps its quorum is a question about each of them."""
    members = {"k8s-1", "k8s-2", "k8s-3"}
    stage, cluster = staged(control_plane=members)
    stage.happen(What.PAUSE, "k8s-2")
    stage.agent.tick()
    assert cluster.asked[0] == members


def test_a_look_of_a_command_reads_all():
    stage, cluster = staged()
    stage.agent.survey()
    assert cluster.asked == [None]


@pytest.mark.parametrize("versions", [True, False])
def test_a_lease_that_nobody_has_read_for_long_is_not_silent_any_sooner(versions):
    """The guest ends with its kubelet heard just before."""
    stage, _ = staged(AT_ONCE, versions=versions)
    stage.run(300)
    stage.happen(What.CRASH, "k8s-5")
    age_s = stage.agent.tick().judged["k8s-5"].observation.node.lease_age_s
    assert 0.0 <= age_s <= stage.simulation.clock.now_s() - stage.simulation.api.nodes["k8s-5"].renewed_s


def test_a_lease_that_nobody_has_read_for_long_is_silent_within_a_poll_of_its_last_renewal():
    """As if it had been read at every look: a recipe that counts the seconds is no slower."""
    stage, _ = staged(ARMED)
    stage.run(300)
    stage.happen(What.CRASH, "k8s-5")
    stage.run(9)
    silent_s = stage.agent.tick().judged["k8s-5"].observation.node.lease_age_s
    true_s = stage.simulation.clock.now_s() - stage.simulation.api.nodes["k8s-5"].renewed_s
    assert true_s - ARMED.poll_s - 0.5 <= silent_s <= true_s


def test_where_only_the_asked_are_silent_all_are_asked():
    """The one lease that the API tells of besides is of a node that died with the others."""
    stage, cluster = staged()
    for name in ("k8s-1", "k8s-5"):
        stage.happen(What.NIC_OFF, name)
    stage.run(120)
    assert None in cluster.asked
    cluster.asked.clear()
    judged = stage.agent.tick().judged
    assert judged["k8s-1"].observation.fleet.silent == 2
    others = {"k8s-2", "k8s-3", "k8s-4", "k8s-6"}
    assert len(cluster.asked[0] & others) == LIKELY  # from then on some who were heard are asked as well
    assert len(cluster.asked) == 1


def test_that_a_node_is_ready_alone_is_no_voice():
    """The path from all kubelets to the API is cut, and nobody has taken note of it yet."""
    stage, _ = staged(AT_ONCE)
    for name in SIX.nodes:
        stage.happen(What.NIC_OFF, name)
    stage.run(45)
    assert all(node.ready for node in stage.simulation.api.nodes.values())
    stage.happen(What.CRASH, "k8s-5")
    stage.run(4)
    decision = stage.agent.tick().judged["k8s-5"].decision
    assert decision.reason is Reason.ALL_NODES_SILENT
    assert "taint" not in stage.calls


class Noting:
    """An asker, with a note of whose workers are asked."""

    def __init__(self, asker):
        self._asker, self.workers, self.together = asker, [], []

    def __getattr__(self, name):
        return getattr(self._asker, name)

    def ask(self, endpoint, call, deadline_s):
        self.workers.append(endpoint)
        return self._asker.ask(endpoint, call, deadline_s)

    def ask_all(self, calls, deadline_s, *, patient=False):
        self.together.append(set(calls))
        return self._asker.ask_all(calls, deadline_s, patient=patient)


def test_what_every_look_needs_has_a_worker_that_hung_nodes_cannot_keep_busy():
    stage = Stagehand(ARMED, shape=SIX)
    asker = Noting(stage.world.asker)
    stage.agent = Agent(replace(stage.world, asker=asker), ARMED, stage.simulation.rules())
    stage.run(60)
    asker.workers.clear()
    stage.run(10)
    assert set(asker.workers) == {LOOKS}
    stage.happen(What.CRASH, "k8s-5")
    stage.run(60)
    assert {LOOKS, API, "lab"} <= set(asker.workers)


def test_what_others_ask_is_read_at_the_same_time_as_hypervisors_and_no_pass_waits_longer_for_it():
    stage = Stagehand(ARMED, shape=SIX)
    asker = Noting(stage.world.asker)
    world = replace(stage.world, asker=asker, requests=stage.simulation.requests)
    Agent(world, ARMED, stage.simulation.rules()).tick()
    assert asker.together == [{"lab", WORKER}]
    assert WORKER not in asker.workers
