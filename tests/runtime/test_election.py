"""An agent's campaigns over Leases in memory, in virtual time: what it is to each hypervisor, and when."""

import logging
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from fencer.core.election import CLUSTER_LEASE, DURATION_S, RETRY_S, VALID_S, Seat
from fencer.core.fitness import FUTILE, REST_S, UNABLE_S
from fencer.core.model import Decision, GuestRef, Reason, Verdict
from fencer.core.nudges import NUDGE
from fencer.ports import EndpointInfo, Sight
from fencer.runtime.election import LEARN_S, LOOK_S, Campaigns, name_of
from fencer.simulation.assembly import Shape, Simulation
from fencer.simulation.faults import Fault, What, apply

LAB = "lab"
SEEN, BLIND = Sight({}, (LAB,)), Sight({}, (LAB,), {LAB: "no answer"})


class Cluster:
    """Leases, two agents that campaign for them, and time."""

    def __init__(self, shape=None):
        self.simulation = Simulation(shape or Shape(), ())
        self.clock, self.leases = self.simulation.clock, self.simulation.leases
        self.lease = self.simulation.lease_of(LAB)
        self.agents = {}
        self.still = set()
        self.looking = {}
        """Agents that pass in peace, by name."""

    def agent(self, name, *, looks=True):
        """Start an agent; it lives until the test ends, but where it stands still.

        Args:
            name: Its host's.
            looks: It makes passes, and every hypervisor answers it.
        """
        campaigns = Campaigns(
            self.leases,
            self.simulation.hypervisors,
            self.simulation.asker,
            self.clock,
            f"fencer@{name}/boot/1",
            partial(self.clock.utc, "microseconds"),
        )
        self.agents[name] = campaigns
        if looks:
            self.looking[name] = campaigns
        for step in campaigns.steps():
            self.clock.spawn(partial(self._live, name, step))
        return campaigns

    def _live(self, name, step):
        while True:
            if name in self.looking and name not in self.still:
                self.looking[name].passed(SEEN)
            self.clock.advance(RETRY_S if name in self.still else step())

    def run(self, seconds):
        self.clock.advance(seconds)

    def orderly(self):
        """Who may give orders at this moment."""
        now_s = self.clock.now_s()
        return [name for name, agent in self.agents.items() if agent.tenure(LAB).holds(now_s)]

    def happen(self, what, target=""):
        apply(Fault(0.0, what, target), self.simulation)

    def holder(self):
        return self.leases.read_lease(self.lease).holder


@pytest.fixture
def cluster():
    cluster = Cluster()
    yield cluster
    cluster.clock.close()


SOON_S = DURATION_S + 2 * RETRY_S


def test_one_agent_alone_holds_a_new_lease_after_its_time_and_keeps_it(cluster):
    agent = cluster.agent("a")
    cluster.run(DURATION_S - RETRY_S)
    assert agent.tenure(LAB).seat is Seat.UNSETTLED
    assert "nobody holds lease" in agent.tenure(LAB).why
    cluster.run(3 * RETRY_S)
    for _ in range(30):
        cluster.run(5.0)
        assert cluster.orderly() == ["a"]
    assert cluster.leases.read_lease(cluster.lease).transitions == 1


def test_before_a_hypervisor_has_said_who_it_is_nothing_is_clear(cluster):
    cluster.happen(What.UNREACHABLE, LAB)
    agent = cluster.agent("a")
    cluster.run(SOON_S)
    tenure = agent.tenure(LAB)
    assert (tenure.seat, tenure.lease) == (Seat.UNSETTLED, "")
    assert tenure.why == "lab has not said yet who it is: lab: connection refused"
    cluster.happen(What.TRUTHFUL, LAB)
    cluster.run(LEARN_S + SOON_S)
    assert cluster.orderly() == ["a"]


def test_of_two_one_is_a_standby_and_says_whose(cluster):
    cluster.agent("a")
    cluster.run(SOON_S)
    second = cluster.agent("b")
    cluster.run(60.0)
    assert cluster.orderly() == ["a"]
    assert (second.tenure(LAB).seat, second.tenure(LAB).holder) == (Seat.STANDBY, "fencer@a")


def test_who_stands_still_loses_it_before_another_one_has_it_and_does_not_get_it_back(cluster):
    first = cluster.agent("a")
    cluster.run(SOON_S)
    cluster.agent("b")
    cluster.run(10.0)
    cluster.still.add("a")
    for _ in range(400):
        cluster.run(0.1)
        assert len(cluster.orderly()) <= 1
    assert cluster.orderly() == ["b"]
    cluster.still.clear()
    cluster.run(0.0)
    assert not first.tenure(LAB).holds(cluster.clock.now_s())
    cluster.run(10.0)
    assert first.tenure(LAB).seat is Seat.STANDBY


def test_who_ends_gives_it_back_and_the_next_need_not_wait(cluster):
    cluster.agent("a")
    cluster.run(SOON_S)
    cluster.agent("b")
    cluster.run(10.0)
    cluster.still.add("a")
    cluster.agents.pop("a").release()
    cluster.run(2 * RETRY_S)
    assert cluster.orderly() == ["b"]


def test_it_gives_it_back_although_a_hook_has_just_written_a_nudge_there(cluster):
    cluster.agent("a")
    cluster.run(SOON_S)
    cluster.leases.annotate(cluster.lease, NUDGE, "{}")
    cluster.still.add("a")
    cluster.agents.pop("a").release()
    assert cluster.holder() == ""
    assert NUDGE in cluster.leases.read_lease(cluster.lease).notes


def test_one_that_a_person_has_emptied_is_left_alone_until_its_holder_knows(cluster):
    cluster.agent("a")
    cluster.run(SOON_S)
    cluster.agent("b")
    cluster.run(5.0)
    cluster.still.add("a")
    cluster.leases.hold(cluster.lease, "")
    for _ in range(300):
        cluster.run(0.1)
        assert len(cluster.orderly()) <= 1
    assert cluster.orderly() == ["b"]


def test_after_an_outage_a_hypervisor_is_asked_again_who_it_is(cluster):
    """What has its address now may be another one."""
    agent = cluster.agent("a", looks=False)
    port = cluster.simulation.hypervisors[LAB]
    agent.passed(SEEN)
    cluster.run(SOON_S)
    before, identity = agent.tenure(LAB).lease, port.describe().identity
    cluster.simulation.hypervisors[LAB] = Moved(port, f"{identity}-2")
    agent.passed(SEEN)
    cluster.run(LEARN_S)
    assert agent.tenure(LAB).lease == before
    agent.passed(Sight({}, (LAB,), {**BLIND.errors, "pve1's power": "no answer"}))
    agent.passed(SEEN)
    cluster.run(LEARN_S + RETRY_S)
    assert agent.tenure(LAB).lease not in {"", before}


class Moved:
    """A hypervisor at the address of another one."""

    def __init__(self, port, identity):
        self._port, self._identity = port, identity

    def __getattr__(self, name):
        return getattr(self._port, name)

    def describe(self):
        return replace(self._port.describe(), identity=self._identity)


def test_while_the_api_is_silent_it_ends_in_time(cluster):
    agent = cluster.agent("a")
    cluster.run(SOON_S + 1)
    cluster.simulation.api.down_why = "no API server answers"
    cluster.run(VALID_S + RETRY_S)
    assert cluster.orderly() == []
    assert agent.tenure(LAB).seat is Seat.HOLDER  # nobody else has been seen to be
    cluster.simulation.api.down_why = None
    cluster.run(2 * RETRY_S)
    assert cluster.orderly() == ["a"]


@pytest.mark.parametrize("name", [CLUSTER_LEASE, ""], ids=["the cluster's", "the hypervisor's"])
@pytest.mark.parametrize("denied", [False, True])
def test_without_a_lease_nobody_gives_orders_and_it_is_told_why(cluster, name, denied):
    agent = cluster.agent("a")
    cluster.run(SOON_S)
    if denied:
        cluster.leases.denied = True
    else:
        cluster.leases.remove(name or cluster.lease)
    cluster.run(LOOK_S + RETRY_S)
    tenure = agent.tenure(LAB)
    assert tenure.seat is Seat.UNFILLED
    assert ("may not get" if denied else "no lease") in tenure.why
    cluster.leases.denied = False
    cluster.leases.make(CLUSTER_LEASE, cluster.lease)
    cluster.run(LOOK_S + SOON_S)
    assert cluster.orderly() == ["a"]


def test_a_lease_that_is_made_again_is_left_alone_until_its_holder_knows(cluster):
    cluster.agent("a")
    cluster.agent("b")
    cluster.run(SOON_S)
    cluster.leases.remove(cluster.lease)
    cluster.leases.make(cluster.lease)
    for _ in range(300):
        cluster.run(0.1)
        assert len(cluster.orderly()) <= 1
    assert len(cluster.orderly()) == 1


def test_a_note_on_the_lease_costs_nobody_anything(cluster):
    cluster.agent("a")
    cluster.run(SOON_S)
    for number in range(100):
        cluster.leases.annotate(cluster.lease, f"fencer.dev/nudge-{number}", "x")
        cluster.run(0.3)
        assert cluster.orderly() == ["a"]


def test_whom_the_hypervisor_does_not_answer_leaves_it_to_another_one(cluster):
    """Whether it ever answered or not."""
    first = cluster.agent("a", looks=False)
    cluster.run(SOON_S)
    second = cluster.agent("b", looks=False)
    seen = []
    for _ in range(int(UNABLE_S) + 10):
        first.passed(BLIND)
        second.passed(SEEN)
        cluster.run(1.0)
        seen += cluster.orderly()
    assert (seen[: int(UNABLE_S) - 2], seen[-1]) == (["a"] * (int(UNABLE_S) - 2), "b")


@pytest.mark.parametrize("ever", [True, False])
def test_nor_who_looks_no_more_or_never_did_keeps_it(cluster, ever):
    first = cluster.agent("a", looks=False)
    cluster.run(SOON_S)
    assert cluster.orderly() == ["a"]
    if ever:
        first.passed(SEEN)
    cluster.agent("b")
    cluster.run(UNABLE_S + 4 * RETRY_S)
    assert cluster.orderly() == ["b"]


@pytest.mark.parametrize("reason", sorted(FUTILE))
def test_who_cannot_carry_out_the_order_that_is_due_leaves_it_to_one_who_can(cluster, reason):
    """Its configuration lacks `power:`, or its account at the hypervisor the right."""
    first = cluster.agent("a", looks=False)
    cluster.run(SOON_S)
    cluster.agent("b")
    for _ in range(int(UNABLE_S + 3 * RETRY_S)):
        first.passed(Sight({"k8s-2": due(reason)}, (LAB,)))
        cluster.run(1.0)
        assert len(cluster.orderly()) <= 1
    assert cluster.orderly() == ["b"]
    assert first.tenure(LAB).seat is Seat.STANDBY


def flap(cluster, flapping, seconds):
    """Let every sixth pass of an agent fail, as its way to the API server breaks; Leases are renewed."""
    for second in range(seconds):
        if second % 6:
            flapping.passed(SEEN)
        else:
            flapping.failed("the API server: connection refused")
        cluster.run(1.0)


def test_whose_way_to_the_api_flaps_leaves_it_to_another_one(cluster):
    """After each outage it waits for what others write (C10), so that it would never give an order."""
    first = cluster.agent("a", looks=False)
    flap(cluster, first, int(SOON_S) + 1)
    assert cluster.orderly() == ["a"]
    cluster.agent("b")
    flap(cluster, first, int(UNABLE_S + 3 * RETRY_S))
    assert cluster.orderly() == ["b"]


def test_one_outage_costs_it_nothing(cluster):
    first = cluster.agent("a", looks=False)
    cluster.run(SOON_S)
    cluster.agent("b")
    first.failed("the API server: connection refused")
    for _ in range(int(2 * UNABLE_S)):
        first.passed(SEEN)
        cluster.run(1.0)
        assert cluster.orderly() == ["a"]


def test_where_no_other_one_can_it_tries_again(cluster):
    """And what another agent says of itself as a standby makes it no better: it leaves the Lease alone."""
    agent = cluster.agent("a", looks=False)
    cluster.run(SOON_S)
    held, said = 0, set()
    for _ in range(200):
        reason = Reason.STOP_FAILED if cluster.orderly() else Reason.STANDBY
        agent.passed(Sight({"k8s-2": due(reason)}, (LAB,)))
        cluster.run(1.0)
        held += bool(cluster.orderly())
        said.add(agent.tenure(LAB).why)
    assert "lab is left to other agents for a moment" in said
    assert 100 < held < 200 - REST_S


def test_a_standby_that_cannot_do_what_is_due_takes_it_over_all_the_same_once_its_holder_is_dead(cluster):
    """It is the only one left. One VM on which fencer may not act must not take all others from it."""
    cluster.agent("a")
    cluster.run(SOON_S)
    left = cluster.agent("b", looks=False)
    led = []
    for second in range(int(4 * UNABLE_S)):
        if second > 2 * UNABLE_S:
            cluster.still.add("a")
        left.passed(Sight({"k8s-2": due(Reason.NO_POWER_RIGHTS)}, (LAB,)))
        cluster.run(1.0)
        led += cluster.orderly()
        assert len(cluster.orderly()) <= 1
    assert (led[0], led[-1], {*led}) == ("a", "b", {"a", "b"})


def due(reason):
    """A node, as a pass has judged it for a reason."""
    decision = Decision(Verdict.WAIT, reason, guest=GuestRef(LAB, "2", "uuid-2", "k8s-2", None))
    return SimpleNamespace(decision=decision)


def test_who_gives_the_orders_is_logged_when_it_changes_and_a_lease_that_is_gone(cluster, caplog):
    caplog.set_level(logging.INFO)
    cluster.agent("a")
    cluster.run(2 * SOON_S)
    cluster.leases.hold(cluster.lease, "fencer@b/boot/1", 7)
    cluster.run(2 * RETRY_S)
    cluster.leases.remove(cluster.lease)
    cluster.run(60.0)
    assert [record.getMessage() for record in caplog.records] == [
        "lab: this agent gives its orders",
        "lab: fencer@b gives its orders",
        f"lab: no agent gives it orders: no lease {cluster.lease} in the namespace fencer; "
        "`fencer check` says what mends that",
    ]


def test_whom_nobody_relieves_takes_it_again_once_it_is_answered(cluster):
    agent = cluster.agent("a", looks=False)
    cluster.run(SOON_S)
    agent.passed(SEEN)
    cluster.run(UNABLE_S + 2 * RETRY_S)
    assert (cluster.holder(), agent.tenure(LAB).why) == ("", "lab does not answer this agent")
    agent.passed(SEEN)
    cluster.run(2 * RETRY_S)
    assert cluster.orderly() == ["a"]


def test_each_hypervisor_has_a_lease_of_its_own():
    cluster = Cluster(Shape(further=("far",)))
    agent = cluster.agent("a")
    cluster.run(SOON_S)
    names = {agent.tenure(endpoint).lease for endpoint in (LAB, "far")}
    assert len(names) == 2
    cluster.clock.close()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("home", "libvirt:1"), ("lab", "libvirt:1"), True),
        (("home", "libvirt:1"), ("home", "libvirt:2"), False),
        (("home", ""), ("home", ""), True),
        (("home", ""), ("lab", ""), False),
    ],
)
def test_a_hypervisor_is_known_by_its_own_name_and_else_by_the_configurations(one, other, same):
    info = EndpointInfo("libvirt", "1", "", None)
    names = [name_of(endpoint, replace(info, identity=identity)) for endpoint, identity in (one, other)]
    assert (names[0] == names[1]) is same
