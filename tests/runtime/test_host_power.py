"""Power witnesses in the pass: asked about silent hosts alone, never in the way, believed as core says."""

from dataclasses import replace

import pytest

from fencer.core.model import Intent, Proof, Reason, Verdict, Word
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World
from fencer.simulation.assembly import Shape, Simulation
from fencer.simulation.faults import Fault, What, apply
from fencer.simulation.hypervisor import SimulatedHypervisor
from fencer.simulation.scenario import ARMED
from fencer.simulation.workloads import StatefulSet
from tests.runtime.stagehand import Notebook

SHAPE = Shape(endpoint="home", hosts=("pve1", "pve2", "pve3"), watched=True)


class Home:
    """Three nodes on a host each, a witness for each host, and an agent."""

    def __init__(self, shape=SHAPE, policy=ARMED, one_host=frozenset()):
        self.simulation = Simulation(shape, (StatefulSet("db", 4),))
        self.simulation.warm_up()
        self.simulation.asker.patience_s = 2.0  # as in `fencer watch`
        self.policy, self.one_host = policy, one_host
        self.new_agent()

    def new_agent(self):
        simulation = self.simulation
        world = World(
            simulation.cluster,
            simulation.hypervisors,
            simulation.asker,
            simulation.clock,
            Notebook(),
            witnesses=simulation.witnesses,
            one_host=self.one_host,
        )
        self.agent = Agent(world, self.policy, simulation.rules())

    def happen(self, what, target=""):
        apply(Fault(0.0, what, target), self.simulation)

    def run(self, seconds):
        clock = self.simulation.clock
        until_s = clock.now_s() + seconds
        while clock.now_s() < until_s:
            done = self.agent.tick()
            clock.wait(max(0.05, done.recheck_s))
        self.judged = done.judged
        return done.judged["k8s-2"].decision

    def fenced(self, node="k8s-2"):
        return self.simulation.api.nodes[node].out_of_service


@pytest.fixture
def home():
    home = Home()
    home.run(15)
    return home


def test_a_dead_host_is_proven_by_its_witness(home):
    home.happen(What.HOST_OFF, "pve2")
    home.run(70)
    assert home.fenced()
    mark = home.simulation.cluster.fact("k8s-2").node.mark
    assert mark.proof is Proof.HOST_POWER


def test_a_silent_host_that_has_power_is_refused_and_its_witness_named(home):
    home.happen(What.HOST_CUT, "pve2")
    decision = home.run(90)
    assert decision.reason is Reason.HOST_SILENT
    assert "the power witness of pve2 says on" in decision.objection.seen
    assert not home.fenced()


def test_a_witness_is_not_asked_while_its_host_is_heard(home):
    """One that would call the host off does not matter then, and costs nothing."""
    home.happen(What.WITNESS_SAYS_OFF, "pve2")
    home.happen(What.NIC_OFF, "k8s-2")
    decision = home.run(90)
    assert (decision.verdict, decision.reason) == (Verdict.REFUSE, Reason.GUEST_RUNNING)


def test_a_witness_that_wavers_is_not_believed(home):
    """Off, on, off: the reading between ends the run, so that the last one counts for itself alone."""
    home.happen(What.HOST_CUT, "pve2")
    home.run(70)
    for _ in range(4):
        home.happen(What.WITNESS_SAYS_OFF, "pve2")
        home.run(3)
        home.happen(What.WITNESS_SAYS_ON, "pve2")
        home.run(3)
    assert not home.fenced()


def test_a_witness_that_hangs_delays_no_other_node(home):
    """Two hosts die; the board of one never answers, while the guest of the third node is stopped, too."""
    home.simulation.witness("pve2").trouble.delay_s = float("inf")
    home.policy = replace(ARMED, max_fenced=3)
    home.new_agent()
    home.run(15)
    home.happen(What.HOST_OFF, "pve2")
    home.happen(What.CRASH, "k8s-3")
    home.run(100)
    assert home.fenced("k8s-3")
    assert not home.fenced("k8s-2")


def test_an_agent_that_was_started_after_the_host_died_goes_by_the_binding(home):
    home.happen(What.WITNESS_SILENT, "pve2")
    home.happen(What.HOST_OFF, "pve2")
    home.run(20)
    home.new_agent()
    home.happen(What.WITNESS_TRUTHFUL, "pve2")
    home.run(80)
    assert home.fenced()


def test_memory_on_the_disk_of_a_dead_host_comes_back_with_it(home):
    home.happen(What.SAVE, "k8s-2")
    home.happen(What.HOST_OFF, "pve2")
    assert home.run(100).reason is Reason.GUEST_UNSETTLED
    assert not home.fenced()


def test_a_host_that_is_back_speaks_for_itself(home):
    home.happen(What.HOST_OFF, "pve2")
    home.run(20)
    home.happen(What.HOST_ON, "pve2")
    home.happen(What.START, "k8s-2")
    home.run(90)
    assert not home.fenced()


@pytest.fixture
def alone():
    """Endpoint and host are one, and its name is the host's."""
    home = Home(Shape(endpoint="lab", hosts=("lab1",), watched=True), one_host=frozenset({"lab"}))
    home.policy = replace(ARMED, max_fenced=3)
    home.new_agent()
    home.run(15)
    return home


def test_an_endpoint_of_one_host_is_silent_when_it_does_not_answer(alone):
    """All nodes are silent then, so a person has to say so; the proof is the witness's."""
    alone.happen(What.HANG)
    alone.happen(What.HOST_OFF, "lab1")
    assert alone.run(80).reason is Reason.ALL_NODES_SILENT


def test_an_endpoint_that_refuses_us_is_not_silent(alone):
    alone.happen(What.DENIED)
    alone.happen(What.HOST_OFF, "lab1")
    assert alone.run(80).reason is Reason.EVIDENCE_MISSING


def test_an_endpoint_of_many_hosts_that_does_not_answer_tells_nothing_of_any(home):
    home.happen(What.HANG)
    home.happen(What.HOST_OFF, "pve2")
    assert home.run(80).reason is Reason.EVIDENCE_MISSING


def test_where_another_endpoint_is_silent_too_the_guest_may_have_moved_there(alone):
    other = SimulatedHypervisor("other", alone.simulation.world)
    alone.simulation.hypervisors["other"] = other
    alone.new_agent()
    alone.happen(What.HANG)
    other.trouble.denied = True
    alone.happen(What.HOST_OFF, "lab1")
    assert alone.run(80).reason is Reason.EVIDENCE_MISSING


def test_by_hand_such_a_host_is_proven_off_by_its_witness_alone(alone):
    alone.happen(What.HANG)
    alone.happen(What.HOST_OFF, "lab1")
    alone.run(20)
    judged = alone.agent.pursue("k8s-2", Intent.FENCE, Word(over_brake_why="the only host died"), 60.0)
    assert judged.decision.verdict is Verdict.FENCED
    assert judged.observation.node.mark.proof is Proof.HOST_POWER
