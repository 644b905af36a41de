"""Several API servers whose clocks differ: what each answer shows, and what a story draws."""

from random import Random

import pytest

from fencer.core.policy import Policy
from fencer.simulation.assembly import Shape, Simulation
from fencer.simulation.layers import SKEWED_S
from fencer.simulation.scenario import ServerClock, mixed
from fencer.simulation.skew import Balancer, skewed
from fencer.simulation.worlds import world_by_seed


@pytest.fixture
def simulation():
    made = Simulation(Shape(), mixed())
    made.warm_up()
    made.clock.advance(3600.0)
    return made


def balancer(simulation, *clocks):
    return Balancer(clocks, simulation.timeline, Random(0))  # noqa: S311 - repeatable


def test_a_clock_that_is_set_shows_another_time_from_then_on():
    server = ServerClock(120.0, set_at_s=30.0, then_ahead_s=-5.0)
    assert [server.ahead_at(at_s) for at_s in (0.0, 29.9, 30.0, 99.0)] == [120.0, 120.0, -5.0, -5.0]
    assert ServerClock(7.0).ahead_at(1e9) == 7.0


def test_each_answer_that_has_a_time_has_that_of_one_server(simulation):
    servers = balancer(simulation, ServerClock(), ServerClock(120.0), ServerClock(-590.0))
    cluster, clock = skewed(simulation.cluster, servers), simulation.clock
    shown = {cluster.pause().utc for _ in range(40)} | {cluster.fact("k8s-2").utc for _ in range(40)}
    assert shown == {clock.utc(), clock.utc_in(120.0), clock.utc_in(-590.0)}
    assert cluster.heartbeats(None).leases == simulation.cluster.heartbeats(None).leases
    assert cluster.nodes().utc == ""  # as a watch told
    assert cluster.pods("k8s-2") == simulation.cluster.pods("k8s-2")
    assert cluster.missing == simulation.cluster.missing


def test_so_have_leases(simulation):
    leases = skewed(simulation.leases, balancer(simulation, ServerClock(60.0)))
    simulation.leases.make("one")
    record = leases.read_lease("one")
    assert record.utc == simulation.clock.utc_in(60.0)
    assert leases.write_lease(record).utc == simulation.clock.utc_in(60.0)


def test_worlds_draw_them_and_are_otherwise_as_they_were():
    worlds = [world_by_seed(seed, Policy()) for seed in range(400)]
    apart = [world for world in worlds if world.clocks]
    clocks = [server for world in apart for server in world.clocks]
    assert {abs(server.ahead_s) for server in clocks} == set(SKEWED_S)
    assert any(server.ahead_at(1e9) != server.ahead_s for server in clocks)
    assert any(len(world.watchers) > 1 for world in apart)
