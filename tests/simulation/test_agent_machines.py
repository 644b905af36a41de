"""The machine of one agent: its clocks, its ways to API server and endpoints, and what a pause excuses."""

import math

import pytest

from fencer.contract.deadlines import IN_TIME
from fencer.core.model import FenceMark
from fencer.errors import ClusterDenied, ClusterUnreachable, HypervisorDenied, HypervisorUnreachable
from fencer.simulation.asker import InlineAsker
from fencer.simulation.assembly import DISK, Shape, Simulation
from fencer.simulation.clock import VirtualClock
from fencer.simulation.faults import LATE_S, Fault, What
from fencer.simulation.links import Links, cut_for_ever
from fencer.simulation.own_clock import OwnClock
from fencer.simulation.scenario import ARMED, mixed
from fencer.simulation.truth import Breach, Truth
from tests.simulation.test_truth import AT_ONCE

SILENT = (What.LINK_CUT, What.LINK_HANGS, What.LINK_DEAF)


@pytest.fixture
def simulation():
    made = Simulation(Shape(further=("lab-b",)), mixed())
    made.warm_up()
    return made


@pytest.fixture
def own(simulation):
    return OwnClock(simulation.clock)


@pytest.fixture
def links(simulation, own):
    return Links(simulation, {}, own)


def link(what, endpoint=""):
    return Fault(0.0, what, "fencer-1", endpoint=endpoint)


# --- its clocks


def test_for_a_clock_that_stood_still_no_time_has_passed():
    world = VirtualClock()
    own = OwnClock(world)
    world.advance(10.0)
    own.stop()
    world.advance(60.0)
    assert own.now_s() == 10.0
    own.go_on()
    world.advance(5.0)
    assert own.now_s() == 15.0
    assert (own.stopped_s, own.went_on_s) == (10.0, 70.0)
    assert own.wall_utc() == "2026-01-01T00:00:15Z"
    own.correct()
    assert own.wall_utc() == "2026-01-01T00:01:15Z"
    assert own.wall_micros() == "2026-01-01T00:01:15.000000Z"
    assert own.now_s() == 15.0, "NTP corrects the wall clock only"


def test_a_clock_that_is_set_back_goes_on_from_there():
    world = VirtualClock()
    own = OwnClock(world)
    world.advance(100.0)
    own.set_back(30.0)
    world.advance(1.0)
    assert own.now_s() == 31.0
    assert own.wall_utc() == "2026-01-01T00:00:31Z"


def test_what_is_read_of_a_hypervisor_is_dated_by_the_agents_clock(simulation, own, links):
    port = links.to_endpoint(simulation.hypervisor, "lab")
    simulation.clock.advance(50.0)
    own.set_back(7.0)
    guest = simulation.guest("k8s-2").ref
    assert port.read(guest).observed_at_s == own.now_s() == 7.0
    assert {one.observed_at_s for one in port.sweep()} == {7.0}
    assert port.endpoint == "lab"


# --- its ways


@pytest.mark.parametrize("what", SILENT)
def test_a_way_to_the_api_that_is_cut_is_so_for_one_agent_only(simulation, links, what):
    cluster, requests = links.to_api(simulation.cluster), links.to_api(simulation.requests)
    leases, other = links.to_leases(simulation.leases), Links(simulation, {}, OwnClock(simulation.clock))
    lease = simulation.lease_of("lab")
    links.befall(link(what))
    for call in (cluster.nodes, requests.asked, lambda: leases.read_lease(lease)):
        with pytest.raises(ClusterUnreachable):
            call()
    assert other.to_api(simulation.cluster).nodes()
    links.befall(link(What.LINK_BACK))
    assert leases.read_lease(lease).name == lease
    assert cluster.nodes()


def test_a_lease_that_hangs_is_waited_for(simulation, links):
    links.befall(link(What.LINK_HANGS))
    began_s = simulation.clock.now_s()
    with pytest.raises(ClusterUnreachable):
        links.to_leases(simulation.leases).read_lease("any")
    assert simulation.clock.now_s() == began_s + 10.0


def test_an_account_that_is_refused(simulation, links):
    links.befall(link(What.LINK_DENIED))
    with pytest.raises(ClusterDenied):
        links.to_api(simulation.cluster).pause()


def test_what_is_sent_arrives_where_only_answers_are_lost(simulation, links):
    cluster, hypervisor = links.to_api(simulation.cluster), links.to_endpoint(simulation.hypervisor, "lab")
    node, guest = cluster.fact("k8s-2").node, simulation.guest("k8s-1")
    links.befall(link(What.LINK_DEAF))
    links.befall(link(What.LINK_DEAF, "lab"))
    mark = FenceMark("x", "2026-01-01T00:00:00Z", "boot", guest.ref, "any")
    with pytest.raises(ClusterUnreachable):
        cluster.taint(node, mark)
    assert simulation.api.nodes["k8s-2"].out_of_service
    with pytest.raises(HypervisorUnreachable):
        hypervisor.stop(guest.ref, None, IN_TIME)
    assert not guest.running()


@pytest.mark.parametrize("what", SILENT)
def test_a_way_to_an_endpoint_that_is_cut_leaves_the_others(simulation, links, what):
    there, here = links.to_endpoint(simulation.hypervisors["lab-b"], "lab-b"), simulation.hypervisor
    links.befall(link(what, "lab-b"))
    with pytest.raises(HypervisorUnreachable):
        there.sweep()
    assert links.to_endpoint(here, "lab").sweep()
    assert simulation.hypervisors["lab-b"].describe()


def test_a_token_that_is_refused_and_a_sweep_that_is_old(simulation, links):
    port = links.to_endpoint(simulation.hypervisor, "lab")
    links.befall(link(What.LINK_STALE, "lab"))
    simulation.world.power_off(simulation.guest("k8s-2"))
    swept = {one.guest.name: one for one in port.sweep()}
    assert swept["k8s-2"].power_state == "running"
    assert not swept["k8s-2"].conclusive
    assert port.read(simulation.guest("k8s-2").ref).power_state == "stopped"
    links.befall(link(What.LINK_DENIED, "lab"))
    with pytest.raises(HypervisorDenied):
        port.sweep()


def test_how_long_an_answer_takes_goes_by_what_the_agent_calls_an_endpoint(simulation, own):
    links = Links(simulation, {"lab": "lab-b", "lab-b": "lab"}, own)
    simulation.hypervisors["lab"].trouble.delay_s = 3.0
    assert [links.delay_s(name) for name in ("lab-b", "lab")] == [3.0, 0.01]
    links.befall(link(What.LINK_HANGS, "lab-b"))
    links.befall(link(What.LINK_SLOW))
    assert [links.delay_s(name) for name in ("lab-b", "lab")] == [3.0, math.inf]
    assert links.delay_s("kubernetes") == LATE_S
    assert links.delay_s(DISK) < 0.1


def test_which_agents_are_cut_off_for_ever():
    script = [
        Fault(5.0, What.LINK_BACK, "fencer-1", endpoint="lab"),
        Fault(1.0, What.LINK_CUT, "fencer-1", endpoint="lab"),
        Fault(2.0, What.LINK_HANGS, "fencer-2"),
        Fault(3.0, What.LINK_BACK, "fencer-2", endpoint="lab"),
    ]
    assert cut_for_ever(script) == {"fencer-2"}
    assert not cut_for_ever(script[:2])


# --- what its pause excuses


def paused_over(simulation, own, *, looks_again=False, after_s=1.0):
    """Let an agent look at a VM that is off, be paused while it boots, and taint its Node."""
    truth = Truth(simulation, AT_ONCE, strict=True)
    cluster, hypervisors = truth.ports("", own)
    guest = simulation.guest("k8s-2")
    simulation.world.power_off(guest)
    hypervisors["lab"].read(guest.ref)
    own.stop()
    simulation.world.start(guest)
    simulation.stir(guest)
    simulation.clock.advance(60.0)
    own.go_on()
    simulation.clock.advance(after_s)
    if looks_again:
        hypervisors["lab"].read(guest.ref)
    mark = FenceMark("x", "2026-01-01T00:00:00Z", "boot", guest.ref, "any")
    cluster.taint(cluster.fact("k8s-2").node, mark)
    return truth


def test_what_was_on_its_way_when_an_agents_vm_was_paused_is_excused(simulation, own):
    assert paused_over(simulation, own).overtaken == 1


@pytest.mark.parametrize("how", [{"looks_again": True}, {"after_s": 11.0}])
def test_but_not_what_it_does_after_a_look_or_too_late_by_its_own_clock(simulation, own, how):
    with pytest.raises(Breach):
        paused_over(simulation, own, **how)


@pytest.mark.parametrize(("after_s", "objection"), [(9.0, "was paused for"), (11.0, "holds the Lease")])
def test_an_order_without_the_lease_is_excused_while_it_holds_by_its_own_clock(
    simulation, own, after_s, objection
):
    truth = Truth(simulation, ARMED, strict=True)
    _, hypervisors = truth.ports("fencer-1/boot/1", own)
    simulation.leases.hold(simulation.lease_of("lab"), "fencer-2/boot/1")
    own.set_back(own.now_s() - 30.0)
    simulation.clock.advance(after_s)
    guest = simulation.guest("k8s-2")
    simulation.world.pause(guest)
    with pytest.raises(Breach, match=objection):
        hypervisors["lab"].stop(guest.ref, None, IN_TIME)


def test_an_asker_asks_by_these_delays(simulation, links):
    asker = InlineAsker(simulation.clock, links.delay_s)
    links.befall(link(What.LINK_HANGS, "lab"))
    with pytest.raises(HypervisorUnreachable, match="no answer within 5 s"):
        asker.ask("lab", lambda: "never", 5.0)
    assert asker.ask("lab-b", lambda: "here", 5.0) == "here"
