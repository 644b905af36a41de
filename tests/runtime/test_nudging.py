"""A hook's nudge reaches the agent that gives the guest's hypervisor its orders, over its Lease."""

from functools import partial
from types import SimpleNamespace

import pytest

from fencer.core.election import DURATION_S, RETRY_S, LeaseRecord
from fencer.core.nudges import MOST, NUDGE
from fencer.errors import ClusterDenied
from fencer.ports import Sight
from fencer.runtime.election import Campaigns
from fencer.runtime.nudging import LOOK_S, Forwarding
from fencer.simulation.assembly import Shape, Simulation

LAB = "lab"
SOON_S = DURATION_S + 2 * RETRY_S


class Heard:
    """A hypervisor that notes who was nudged, and is otherwise the simulated one."""

    def __init__(self, port):
        self._port, self.nudged = port, []

    def __getattr__(self, name):
        return getattr(self._port, name)

    def nudge(self, guest):
        self.nudged.append(guest)


class Two:
    """Agent ``a`` holds the Leases of both hypervisors, ``b`` is on the host where the hook runs."""

    def __init__(self):
        self.simulation = Simulation(Shape(further=("other",)), ())
        self.clock, self.leases = self.simulation.clock, self.simulation.leases
        self.lease = self.simulation.lease_of(LAB)
        self.woken = []
        self.ports = {name: Heard(port) for name, port in self.simulation.hypervisors.items()}
        self.a = self.agent("a", self.ports)
        self.clock.advance(SOON_S)
        self.b = self.agent("b", self.simulation.hypervisors)
        self.clock.advance(SOON_S)
        self.forwarding = Forwarding(self.leases, self.b, tuple(self.ports), "fencer@b")

    def agent(self, name, ports):
        utc = partial(self.clock.utc, "microseconds")
        asker = self.simulation.asker
        clock = SimpleNamespace(now_s=self.clock.now_s, wake=partial(self.woken.append, name))
        campaigns = Campaigns(self.leases, ports, asker, clock, f"fencer@{name}/boot/1", utc)
        for step in campaigns.steps():
            self.clock.spawn(partial(self._live, campaigns, step))
        return campaigns

    def _live(self, campaigns, step):
        while True:
            campaigns.passed(Sight({}, (LAB,)))
            self.clock.advance(step())

    def waiting(self):
        return [key for key in self.leases.read_lease(self.lease).notes if key.startswith(NUDGE)]


@pytest.fixture
def two():
    two = Two()
    yield two
    two.clock.close()


def test_a_nudge_reaches_the_holder_with_its_next_renewal_and_is_taken_off_by_that(two):
    two.forwarding.hear("101")
    assert two.forwarding.step() == LOOK_S
    assert two.waiting() == [f"{NUDGE}101"]
    two.clock.advance(RETRY_S + 0.1)
    assert two.ports[LAB].nudged == ["101"]
    assert two.waiting() == []
    assert two.a.tenure(LAB).holds(two.clock.now_s())
    two.clock.advance(60.0)
    assert two.ports[LAB].nudged == ["101"], "once"


def test_it_ends_the_wait_of_the_holder(two):
    before = list(two.woken)
    two.forwarding.hear("101")
    two.forwarding.step()
    two.clock.advance(RETRY_S + 0.1)
    assert set(two.woken[len(before) :]) == {"a"}


def test_each_hypervisor_hears_it_as_a_hook_does_not_say_whose_guest_it_is(two):
    two.forwarding.hear("101")
    two.forwarding.step()
    two.clock.advance(RETRY_S + 0.1)
    assert two.ports["other"].nudged == ["101"]


def test_however_many_nudges_there_are_the_holder_stays_the_holder(two):
    for round_ in range(60):
        for number in range(100):
            two.forwarding.hear(f"g{round_}-{number}")
        two.forwarding.step()
        assert len(two.waiting()) <= MOST
        two.clock.advance(LOOK_S)
        assert two.a.tenure(LAB).holds(two.clock.now_s())


def test_the_holder_writes_nothing_for_itself(two):
    own = Forwarding(two.leases, two.a, (LAB,), "fencer@a")
    own.hear("101")
    own.step()
    assert two.waiting() == []


def test_what_cannot_be_an_id_is_not_written(two):
    for guest in ("", "a b", "x" * 64, "\x1b[2J", "../../x"):
        two.forwarding.hear(guest)
    two.forwarding.step()
    assert two.waiting() == []


def test_where_it_may_not_be_written_it_is_only_logged_for_who_looks_closely(two, caplog):
    class Closed:
        def read_lease(self, name):
            return two.leases.read_lease(name)

        def write_lease(self, record):
            raise ClusterDenied(f"may not patch leases {record.name}")

    caplog.set_level("DEBUG", "fencer")
    forwarding = Forwarding(Closed(), two.b, (LAB,), "fencer@b")
    forwarding.hear("101")
    assert forwarding.step() == LOOK_S
    (line,) = [one for one in caplog.records if "nudges of 101" in one.getMessage()]
    assert line.levelname == "DEBUG"


def test_a_renewal_in_between_costs_nothing(two):
    class Renewed:
        """Its holder renews it once after it was read."""

        once = True

        def read_lease(self, name):
            record: LeaseRecord = two.leases.read_lease(name)
            if self.once:
                self.once = False
                two.clock.advance(RETRY_S + 0.1)
            return record

        def write_lease(self, record):
            return two.leases.write_lease(record)

    forwarding = Forwarding(Renewed(), two.b, (LAB,), "fencer@b")
    forwarding.hear("101")
    forwarding.step()
    assert two.waiting() == [f"{NUDGE}101"]
