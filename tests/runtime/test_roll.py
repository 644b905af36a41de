"""An armed agent writes itself where others look, as long as it makes passes, and takes itself off."""

from dataclasses import replace

import pytest

from fencer.core.agents import AGENT, THERE_S, WRITE_S, policy_hash, read_agents
from fencer.core.election import CLUSTER_LEASE, Seat, Tenure
from fencer.core.policy import Mode, Policy
from fencer.ports import Sight
from fencer.runtime.roll import SOON_S, Roll
from fencer.simulation.assembly import Shape, Simulation

ARMED = Policy(mode=Mode.ARMED)


@pytest.fixture
def simulation():
    return Simulation(Shape(further=("other",)), ())


def roll_of(simulation, by="fencer@pve2", instance="1f0c2d3e", leases=None):
    return Roll(leases or simulation.leases, by, instance, "0.1.0", ARMED)


def seen(simulation, at_s=0.0):
    held, lost = Tenure(Seat.HOLDER, until_s=10.0), Tenure(Seat.HOLDER, until_s=-1.0)
    names, tenures = ("lab", "other"), {"lab": held, "other": lost}
    return Sight({}, names, utc=simulation.clock.utc(), at_s=at_s, tenures=tenures)


def agents(simulation):
    record = simulation.leases.read_lease(CLUSTER_LEASE)
    return read_agents(record.notes).there(record.utc)


class Busy:
    """Leases that somebody else writes whenever they were read."""

    def __init__(self, leases, times):
        self._leases, self.times = leases, times

    def read_lease(self, name):
        record = self._leases.read_lease(name)
        if self.times:
            self.times -= 1
            self._leases.annotate(name, "fencer.dev/brake", str(self.times))
        return record

    def write_lease(self, record):
        return self._leases.write_lease(record)


def test_before_its_first_pass_it_writes_nothing(simulation):
    roll = roll_of(simulation)
    assert roll.step() == SOON_S
    assert agents(simulation) == ()


def test_after_a_pass_it_writes_what_it_holds_now_and_all_that_it_knows(simulation):
    roll = roll_of(simulation)
    roll.passed(seen(simulation))
    assert roll.step() == WRITE_S
    (agent,) = agents(simulation)
    assert (agent.by, agent.instance, agent.mode) == ("fencer@pve2", "1f0c2d3e", Mode.ARMED)
    assert (agent.holds, agent.knows) == (("lab",), ("lab", "other"))
    assert agent.policy == policy_hash(ARMED)


def test_an_agent_that_makes_no_passes_is_there_no_more_however_often_it_writes(simulation):
    roll = roll_of(simulation)
    roll.passed(seen(simulation))
    roll.step()
    simulation.clock.advance(THERE_S + 1)
    roll.failed("no answer")
    roll.step()
    assert agents(simulation) == ()


def test_what_others_wrote_meanwhile_stays_and_it_comes_again_soon(simulation):
    busy = Busy(simulation.leases, 1)
    roll = roll_of(simulation, leases=busy)
    roll.passed(seen(simulation))
    assert roll.step() == SOON_S
    assert agents(simulation) == ()
    assert roll.step() == WRITE_S
    assert len(agents(simulation)) == 1
    assert simulation.leases.read_lease(CLUSTER_LEASE).notes["fencer.dev/brake"] == "0"


@pytest.mark.parametrize("how", ["missing", "denied", "api down"])
def test_where_it_cannot_be_written_the_agent_goes_on(simulation, how):
    if how == "missing":
        simulation.leases.remove(CLUSTER_LEASE)
    simulation.leases.denied = how == "denied"
    simulation.api.down_why = "no answer" if how == "api down" else None
    roll = roll_of(simulation)
    roll.passed(seen(simulation))
    assert roll.step() == WRITE_S
    roll.leave()


def test_who_leaves_is_taken_off_and_comes_not_back_and_others_stay(simulation):
    first, second = roll_of(simulation), roll_of(simulation, "fencer@pve1", "0badcafe")
    for roll in (first, second):
        roll.passed(seen(simulation))
        roll.step()
    first.leave()
    first.step()
    assert [agent.by for agent in agents(simulation)] == ["fencer@pve1"]


def test_it_leaves_even_if_others_write_at_that_moment(simulation):
    busy = Busy(simulation.leases, 0)
    roll = roll_of(simulation, leases=busy)
    roll.passed(seen(simulation))
    roll.step()
    busy.times = 1
    roll.leave()
    assert agents(simulation) == ()


def test_a_lifetime_of_agents_leaves_no_heap_of_records(simulation):
    for number in range(30):
        roll = roll_of(simulation, instance=f"n{number}")
        roll.passed(replace(seen(simulation), utc=simulation.clock.utc()))
        roll.step()
        simulation.clock.advance(120.0)
    notes = simulation.leases.read_lease(CLUSTER_LEASE).notes
    assert sum(key.startswith(AGENT) for key in notes) == 5
