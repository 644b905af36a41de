"""What other tools do in random worlds: that it is drawn, that it happens, and how it is judged."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest

from fencer.contract.deadlines import IN_TIME
from fencer.core.identity import swapped
from fencer.core.policy import Policy, SavedGuest
from fencer.errors import HypervisorProtocol
from fencer.simulation.assembly import Shape, Simulation
from fencer.simulation.commands import Typed
from fencer.simulation.faults import NO_UUIDS, Fault, What, apply
from fencer.simulation.meddling import JOINS, ways_elsewhere
from fencer.simulation.restarts import CRASHED, ENDED, SHUT_DOWN, WITH_ITS_HOST, Restarter, Restarts
from fencer.simulation.scenario import ARMED, mixed
from fencer.simulation.truth import Breach
from fencer.simulation.workloads import StatefulSet
from fencer.simulation.worlds import CALM, world_by_seed
from tests.scenarios.lines import world_lines
from tests.simulation.test_truth import Witnessed


@cache
def worlds():
    """Return many random worlds, which take seconds to draw: not for each worker that only collects."""
    return [world_by_seed(seed, Policy()) for seed in range(1500)]


def test_each_of_its_faults_is_drawn():
    drawn = Counter(fault.what for world in worlds() for fault in world.script)
    asked = (What.STARTED_ELSEWHERE, What.STARTED_ABROAD, What.STARTED_ON_OTHER_HOST, What.COPY_DEFINITION)
    asked += (*JOINS, What.JOIN_UNDER_NAME, What.POD_BY_HAND, What.FORCE_DELETE_BLINDLY)
    asked += (What.ATTACH_BY_HAND, What.DETACH_BY_HAND, What.TAINT_IF_OFF, What.UNTAINT_BY_HAND)
    asked += (What.OTHER_TAINT, What.OTHER_TAINT_OFF)
    asked += (What.QMEVENTD_DEAD, What.QMEVENTD_BACK, What.END_AMID_BACKUP)
    assert min(drawn[what] for what in asked) > 3
    after = {restarts.after for world in worlds() for restarts in world.restarts}
    assert after == {WITH_ITS_HOST, CRASHED, ENDED, SHUT_DOWN}


@pytest.mark.parametrize("endpoint", ["lab", "lab-b"])
def test_a_copy_is_called_what_the_script_calls_it(endpoint):
    """Otherwise what is to happen to the copy would happen to no VM."""
    shape = Shape(further=("lab-b",), foreign=("elsewhere",), hosts=("lab1", "lab2"), spread=True)
    victim = next(name for name in shape.nodes if shape.endpoint_of(name) == endpoint)
    for what, copy in ways_elsewhere(replace(CALM, shape=shape), victim):
        simulation = Simulation(shape, mixed())
        apply(Fault(0.0, What.POWER_OFF, victim), simulation)
        apply(Fault(0.0, what, victim), simulation)
        assert simulation.guest(copy).running(), what


@pytest.mark.parametrize(
    ("after", "what", "starts"),
    [
        (CRASHED, What.CRASH, True),
        (CRASHED, What.POWER_OFF, False),
        (ENDED, What.POWER_OFF, True),
        (ENDED, What.DELETE, False),
        (WITH_ITS_HOST, What.CRASH, False),
    ],
)
def test_a_vm_starts_again_by_itself_after_the_ends_that_are_meant(after, what, starts):
    simulation = Simulation(Shape(), mixed())
    Restarter(simulation.world, Restarts(("k8s-2",), after, 10.0))
    apply(Fault(0.0, what, "k8s-2"), simulation)
    simulation.clock.advance(9.0)
    assert not simulation.guest("k8s-2").running()
    simulation.clock.advance(2.0)
    assert simulation.guest("k8s-2").running() is starts


def test_autostart_waits_for_its_host_and_starts_nothing_that_was_started_meanwhile():
    simulation = Simulation(Shape(), mixed())
    Restarter(simulation.world, Restarts(simulation.shape.nodes, WITH_ITS_HOST, 5.0))
    apply(Fault(0.0, What.HOST_OFF, "lab1"), simulation)
    simulation.clock.advance(60.0)
    assert not simulation.guest("k8s-2").running()
    apply(Fault(0.0, What.HOST_ON, "lab1"), simulation)
    apply(Fault(0.0, What.START, "k8s-1"), simulation)
    simulation.clock.advance(5.0)
    assert simulation.guest("k8s-2").running()
    assert simulation.guest("k8s-1").starts == 2


def test_a_report_shows_what_starts_by_itself():
    world = next(world for world in worlds() if world.restarts)
    assert any(line.startswith("starts again by itself") for line in world_lines(world))


@pytest.mark.parametrize(("heard_s", "wrong"), [(2.0, False), (70.0, True)])
def test_a_copy_that_no_hypervisor_shows_counts_once_its_kubelet_was_alive_for_long(heard_s, wrong):
    world = Witnessed(Shape(foreign=("elsewhere",)))
    world.happen(What.CRASH)
    world.happen(What.STARTED_ABROAD)
    world.looks_on(heard_s)
    if wrong:
        with pytest.raises(Breach, match="tainted, and its guest k8s-2@elsewhere is running on elsewhere"):
            world.taint()
    else:
        world.taint()
        assert world.truth.unseen_copies == 1


def test_a_copy_at_an_endpoint_that_the_agent_knows_always_counts():
    world = Witnessed(Shape(further=("lab-b",)))
    world.happen(What.CRASH)
    world.happen(What.STARTED_ELSEWHERE, pass_s=40.0)
    with pytest.raises(Breach, match="its guest k8s-2@lab-b is running on lab-b"):
        world.taint()


@pytest.mark.parametrize("what", [What.SAVE_TO_FILE, What.HIBERNATE])
def test_memory_in_a_file_is_outdated_once_its_disk_was_booted_elsewhere(what):
    world = Witnessed(Shape(further=("lab-b",)))
    world.happen(what)
    assert not world.truth.gone("k8s-2")
    world.happen(What.STARTED_ELSEWHERE, pass_s=40.0)
    world.happen(What.CRASH, "k8s-2@lab-b")
    assert world.truth.gone("k8s-2")


def test_memory_in_an_image_that_a_hypervisor_shows_is_not():
    world = Witnessed(Shape(further=("lab-b",)))
    world.happen(What.SAVE)
    world.happen(What.STARTED_ELSEWHERE, pass_s=40.0)
    world.happen(What.CRASH, "k8s-2@lab-b")
    assert not world.truth.gone("k8s-2")


@pytest.mark.parametrize("what", [What.JOIN_WITH_UUID, What.JOIN_WITH_SWAPPED_UUID, What.JOIN_WITHOUT_UUID])
def test_a_machine_joins_that_no_hypervisor_lists(what):
    simulation = Witnessed().simulation
    apply(Fault(0.0, what, "k8s-2"), simulation)
    simulation.clock.advance(30.0)
    uuid = simulation.guest("k8s-2").uuid
    reported = simulation.api.nodes["joiner-k8s-2"].system_uuid
    asked = {What.JOIN_WITH_UUID: {uuid}, What.JOIN_WITH_SWAPPED_UUID: {swapped(uuid)}}
    assert reported in asked.get(what, NO_UUIDS)
    assert len(simulation.hypervisor.sweep()) == 3
    assert simulation.heard(simulation.guest("joiner-k8s-2"))


def test_a_machine_takes_the_name_of_a_deleted_node_and_the_uuid_of_another():
    simulation = Witnessed().simulation
    apply(Fault(0.0, What.DELETE_NODE, "k8s-2"), simulation)
    apply(Fault(0.0, What.JOIN_UNDER_NAME, "k8s-2"), simulation)
    simulation.clock.advance(5.0)
    assert simulation.api.nodes["k8s-2"].system_uuid == simulation.guest("k8s-1").uuid


def test_a_node_that_joined_counts_for_the_brake():
    world = Witnessed()
    world.happen(What.JOIN_WITHOUT_UUID, pass_s=30.0)
    for name in ("k8s-1", "k8s-2"):
        world.happen(What.CRASH, name)
        world.taint(name)
    world.happen(What.CRASH, "k8s-3")
    with pytest.raises(Breach, match="the brake is at 2, and this is fence 3"):
        world.taint("k8s-3")


def test_an_agent_is_back_before_a_hypervisor_forgets_what_it_did_not_see():
    """Otherwise nobody could know."""
    forgets = {What.SAVE_TO_FILE, What.HIBERNATE, What.MOVE_OUT, What.MOVE_OUT_LOCKED}
    covered = 0
    for world in worlds():
        left = next((one.at_s for one in world.script if one.what in forgets), None)
        down = [one for one in world.script if one.what is What.AGENT_KILLED and one.at_s < (left or 0.0)]
        if left is None or not down:
            continue
        ends = (What.DAEMON_RESTART, What.UNLOCK)
        forgotten_s = min(one.at_s for one in world.script if one.what in ends and one.at_s > left)
        assert max(one.at_s + one.for_s for one in down) < forgotten_s
        covered += 1
    assert covered


@pytest.mark.parametrize(("release_s", "left"), [(None, 1), (20.0, 0)])
def test_a_finalizer_holds_a_pod_that_is_over_until_it_is_released(release_s, left):
    held = StatefulSet("held", 1, finalizer="example.com/held", release_s=release_s)
    simulation = Simulation(Shape(), (held,))
    simulation.warm_up()
    pod = simulation.api.pods_of(held.owner)[0]
    simulation.api.delete_pod(pod)
    simulation.clock.advance(15.0)
    assert pod.over
    assert pod.uid in simulation.api.pods
    simulation.clock.advance(30.0)
    assert sum(one is pod for one in simulation.api.pods.values()) == left


def test_an_attachment_by_hand_is_left_alone_until_its_person_deletes_it():
    world = Witnessed()
    world.happen(What.ATTACH_BY_HAND, pass_s=30.0)
    attachments = world.simulation.api.attachments
    assert attachments["by-hand-k8s-2", "k8s-2"].attached
    world.happen(What.DETACH_BY_HAND)
    assert ("by-hand-k8s-2", "k8s-2") not in attachments


def test_a_pod_made_by_hand_comes_onto_a_fenced_node():
    world = Witnessed()
    world.happen(What.CRASH)
    world.taint()
    world.happen(What.POD_BY_HAND, pass_s=2.0)
    assert any(pod.name.startswith("by-hand") for pod in world.port.pods("k8s-2"))


def test_pods_of_a_living_node_can_be_force_deleted_too():
    world = Witnessed()
    before = {pod.uid for pod in world.port.pods("k8s-2")}
    world.happen(What.FORCE_DELETE_PODS)
    assert {pod.uid for pod in world.port.pods("k8s-2")} >= before
    world.happen(What.FORCE_DELETE_BLINDLY)
    assert not before & {pod.uid for pod in world.port.pods("k8s-2")}


@pytest.mark.parametrize("order", ["stop", "start", "discard"])
@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("k8s-1", None),
        ("k8s-2", "power actions on it are not admitted"),
        ("bystander", "is no node's VM"),
        ("k8s-1-copy", "is no node's VM"),
    ],
)
def test_orders_are_for_admitted_vms_of_nodes_only(order, target, why):
    policy = replace(ARMED, saved_guest=SavedGuest.DISCARD)
    world = Witnessed(Shape(admitted=("k8s-1",), bystanders=("bystander",)), policy)
    world.happen(What.CLONE, "k8s-1")
    world.happen(What.PAUSE, target, pass_s=61.0)
    _, hypervisors = world.truth.ports("", typed=Typed("start k8s-2", 0.0))
    give = getattr(hypervisors["lab"], order)
    objects = pytest.raises(Breach, match=why) if why else suppress(HypervisorProtocol)
    with objects:
        give(world.simulation.guest(target).ref, None, IN_TIME)
    assert world.truth.breaches == bool(why)


def test_the_rules_admit_no_other_vm():
    simulation = Simulation(Shape(admitted=("k8s-1",), bystanders=("bystander",)), mixed())
    assert simulation.rules().admitted["lab"].uuids == {simulation.guest("k8s-1").uuid}


def test_a_report_shows_which_vms_are_admitted():
    world = next(world for world in worlds() if world.shape.admitted == ())
    lines = list(world_lines(world))
    assert "power actions are admitted on the VMs of: no node" in lines
    assert "VMs that are no node's: bystander" in lines


@pytest.mark.parametrize(("ends", "tainted"), [(What.PAUSE, False), (What.CRASH, True)])
def test_another_controller_taints_a_node_once_its_vm_is_off(ends, tainted):
    world = Witnessed()
    world.happen(ends)
    world.happen(What.TAINT_IF_OFF)
    assert world.simulation.api.nodes["k8s-2"].out_of_service is tainted


def test_another_controller_takes_off_what_it_is_about_and_no_other_taint():
    world = Witnessed()
    world.happen(What.CRASH)
    world.happen(What.TAINT_IF_OFF)
    world.happen(What.OTHER_TAINT)
    node = world.simulation.api.nodes["k8s-2"]
    world.happen(What.UNTAINT_BY_HAND)
    assert not node.out_of_service
    assert node.tainted("ToBeDeletedByClusterAutoscaler")
    world.happen(What.OTHER_TAINT_OFF)
    assert not node.taints
