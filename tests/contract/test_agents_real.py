"""Agents' records and nudges on a real API server: as keys it takes, beside a holder that renews."""

from dataclasses import replace

import pytest

from fencer.cluster.leases import KubernetesLeases
from fencer.cluster.settings import ClusterSettings
from fencer.core.agents import read_agents
from fencer.core.election import CLUSTER_LEASE, Seat, Tenure
from fencer.core.nudges import NUDGE, sent, taken
from fencer.core.policy import Mode, Policy
from fencer.errors import ClusterConflict, ClusterNotFound
from fencer.ports import Sight
from fencer.runtime.nudging import Forwarding
from fencer.runtime.roll import WRITE_S, Roll
from fencer.simulation.assembly import Shape, Simulation
from tests.support.backstage import ApiBackstage

RENEWED = "2026-11-20T10:41:12.000001Z"


@pytest.fixture
def backstage(bare_api):
    backstage = ApiBackstage(bare_api)
    backstage.make_space("fencer")
    return backstage


@pytest.fixture
def leases(bare_api):
    return KubernetesLeases(ClusterSettings(kubeconfig=bare_api.kubeconfig()))


@pytest.fixture
def shared(backstage, leases):
    try:
        leases.read_lease(CLUSTER_LEASE)
    except ClusterNotFound:
        backstage.make_lease(CLUSTER_LEASE)
    yield leases
    backstage.drop_lease(CLUSTER_LEASE)


def test_two_agents_are_there_and_one_leaves(shared):
    rolls = [
        Roll(shared, f"fencer@{name}", name, "0.1.0", Policy(mode=Mode.ARMED)) for name in ("pve1", "pve2")
    ]
    for roll in rolls:
        roll.passed(Sight({}, ("home",), utc=shared.read_lease(CLUSTER_LEASE).utc))
        assert roll.step() == WRITE_S
    record = shared.read_lease(CLUSTER_LEASE)
    assert {agent.by for agent in read_agents(record.notes).there(record.utc)} == {
        "fencer@pve1",
        "fencer@pve2",
    }
    rolls[0].leave()
    record = shared.read_lease(CLUSTER_LEASE)
    assert [agent.by for agent in read_agents(record.notes).there(record.utc)] == ["fencer@pve2"]


class Standby:
    """An agent beside the one that holds the Lease."""

    def __init__(self, lease):
        self._lease = lease

    def tenure(self, _endpoint):
        return Tenure(Seat.STANDBY, self._lease, holder="fencer@a")


def test_a_nudge_is_written_and_the_holder_that_renews_meets_it_and_takes_it_off(leases, backstage):
    name = "fencer-nudged"
    backstage.make_lease(name)
    held = leases.write_lease(
        replace(leases.read_lease(name), holder="fencer@a/1/2", acquired=RENEWED, renewed=RENEWED)
    )
    forwarding = Forwarding(leases, Standby(name), ("home",), "fencer@b")
    longest = "x" * 57
    for guest in ("101", longest):
        forwarding.hear(guest)
    forwarding.step()
    with pytest.raises(ClusterConflict):
        leases.write_lease(held)
    record = leases.read_lease(name)
    assert {NUDGE + "101", NUDGE + longest} <= record.notes.keys()
    assert record.state == held.state
    renewed, guests = taken(replace(record, renewed="2026-11-20T10:41:14.000001Z"))
    assert guests == ("101", longest)
    assert not any(key.startswith(NUDGE) for key in leases.write_lease(renewed).notes)
    backstage.drop_lease(name)


def test_the_simulation_keeps_them_likewise():
    simulation = Simulation(Shape(), ())
    name = simulation.lease_of("lab")
    wanted = sent(simulation.leases.read_lease(name), ["101"], "fencer@b")
    record, guests = taken(simulation.leases.write_lease(wanted))
    assert guests == ("101",)
    assert NUDGE + "101" not in simulation.leases.write_lease(record).notes
