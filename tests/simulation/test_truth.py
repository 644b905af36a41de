"""The independent witness objects to each thing it is there for, whoever does it; and to nothing else."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from fencer.contract.deadlines import IN_TIME
from fencer.core.model import Cordon, FenceMark
from fencer.core.policy import (
    AfterStop,
    Mode,
    PausedGuest,
    Remediation,
    ResumedGuest,
    SavedGuest,
    UnresponsiveGuest,
)
from fencer.core.requests import Progress, Strategy
from fencer.errors import HypervisorProtocol
from fencer.simulation.assembly import Shape, Simulation
from fencer.simulation.commands import Typed
from fencer.simulation.faults import Fault, What, apply
from fencer.simulation.scenario import ARMED, mixed
from fencer.simulation.truth import Breach, Truth

NODES = ("k8s-1", "k8s-2", "k8s-3")


AT_ONCE = replace(ARMED, require_not_ready=False, lease_silent_s=0.0, confirm_s=0.0)
"""Nobody has to wait for silence."""


class Witnessed:
    """A warm world, and a rogue who does what he likes to it through the watched port."""

    def __init__(self, shape=None, policy=AT_ONCE):
        self.simulation = Simulation(shape or Shape(), mixed())
        self.simulation.warm_up()
        self.truth = Truth(self.simulation, policy, strict=True)
        self.port, self.hypervisors = self.truth.ports("")

    def happen(self, what, target="k8s-2", pass_s=0.0):
        apply(Fault(0.0, what, target), self.simulation)
        self.simulation.clock.advance(pass_s)

    def looks_on(self, for_s):
        """The rogue looks at all nodes, again and again."""
        for _ in range(10):
            self.port.nodes()
            self.simulation.clock.advance(for_s / 10)

    def node(self, name="k8s-2"):
        return self.port.fact(name).node

    def taint(self, name="k8s-2"):
        guest = self.simulation.guest(name).ref
        self.port.taint(self.node(name), FenceMark("x", "2026-01-01T00:00:00Z", "boot", guest, "rogue"))

    def clear(self, name="k8s-2"):
        for pod in self.port.pods(name):
            self.port.clear(pod, "rogue")

    def fence(self):
        """Fence a dead node, and wait until nothing is left on it."""
        self.happen(What.CRASH, pass_s=1.0)
        self.taint()
        self.clear()
        self.simulation.clock.advance(10.0)


@pytest.mark.parametrize(("silent_s", "wrong"), [(5.0, True), (45.0, False)])
def test_no_agent_fences_a_kubelet_that_was_alive_lately(silent_s, wrong):
    world = Witnessed(policy=ARMED)
    world.happen(What.CRASH, pass_s=silent_s)
    with pytest.raises(Breach, match="its kubelet was alive") if wrong else nullcontext():
        world.taint()


@pytest.mark.parametrize(
    ("what", "gone"),
    [
        (What.CRASH, True),
        (What.DELETE, True),
        (What.PAUSE, False),
        (What.SAVE, False),
        (What.SAVE_TO_FILE, False),
        (What.HIBERNATE, False),
        (What.NIC_OFF, False),
        (What.KUBELET_STOP, False),
        (What.PANIC, False),
        (What.LIE_STOPPED, False),
        (What.ALL_STOPPED, False),
        (What.CLONE, False),
    ],
)
def test_gone_is_who_can_run_on_nowhere_whatever_anybody_says(what, gone):
    world = Witnessed()
    world.happen(what, "lab" if what is What.ALL_STOPPED else "k8s-2", pass_s=2.0)
    assert world.truth.gone("k8s-2") is gone
    if gone:
        world.taint()
        world.clear()
    else:
        with pytest.raises(Breach, match="tainted, and its guest k8s-2 is"):
            world.taint()


def test_a_guest_that_was_moved_to_where_nobody_looks_lives():
    world = Witnessed(Shape(foreign=("elsewhere",)))
    world.happen(What.MOVE_OUT, pass_s=60.0)
    assert world.simulation.guest("k8s-2").endpoint == "elsewhere"
    assert not world.truth.gone("k8s-2")


def test_a_paused_guest_counts_as_gone_only_where_the_operator_has_said_so():
    world = Witnessed(policy=replace(AT_ONCE, paused_guest=PausedGuest.TRUST))
    world.happen(What.PAUSE)
    assert world.truth.gone("k8s-2")


def test_a_guest_that_boots_again_is_not_cut_off_from_anything_until_it_holds_pods_again():
    world = Witnessed()
    world.happen(What.CRASH, pass_s=5.0)
    world.happen(What.START, pass_s=5.0)
    assert world.truth.gone("k8s-2")
    world.simulation.clock.advance(40.0)
    assert not world.truth.gone("k8s-2")


def test_nor_is_one_that_is_paused_while_it_boots():
    world = Witnessed()
    world.happen(What.CRASH, pass_s=5.0)
    world.happen(What.START, pass_s=5.0)
    world.happen(What.PAUSE)
    assert world.truth.gone("k8s-2")


@pytest.mark.parametrize(("ago_s", "wrong"), [(5.0, False), (15.0, True)])
def test_no_pods_are_cleared_any_more_once_somebody_else_took_the_taint_off(ago_s, wrong):
    world = Witnessed()
    world.happen(What.CRASH, pass_s=60.0)
    world.taint()
    world.happen(What.UNTAINT_BY_HAND, pass_s=ago_s)
    with pytest.raises(Breach, match="its node was not fenced") if wrong else nullcontext():
        world.clear()


def test_pods_are_cleared_of_fenced_nodes_only_and_of_those_that_stay_none():
    world = Witnessed()
    world.happen(What.CRASH)
    with pytest.raises(Breach, match="its node was not fenced"):
        world.clear()
    world.taint()
    pod = world.simulation.api.pods[world.port.pods("k8s-2")[0].uid]
    pod.tolerates_out_of_service = True
    with pytest.raises(Breach, match="is cleared, which stays"):
        world.clear()


def test_the_taint_and_the_cordon_of_an_admin_are_his():
    world = Witnessed()
    world.simulation.cluster.taint_by_hand("k8s-2")
    with pytest.raises(Breach, match="a taint is lifted that fencer did not set"):
        world.port.untaint(world.node(), None)
    world = Witnessed()
    world.simulation.cluster.cordon_by_hand("k8s-2")
    with pytest.raises(Breach, match="a cordon is lifted that kubectl set"):
        world.port.uncordon(world.node())


def test_our_own_come_off():
    world = Witnessed()
    world.fence()
    world.happen(What.START, pass_s=60.0)
    world.port.untaint(world.node(), None)
    world.port.cordon(world.node(), Cordon("drain", "", ""))
    world.port.uncordon(world.node())
    assert world.truth.breaches == 0


def test_a_fence_stays_whose_guest_has_not_run_since():
    world = Witnessed()
    world.happen(What.CRASH, pass_s=1.0)
    world.taint()
    with pytest.raises(Breach, match="its fence is lifted, and its guest has not run since"):
        world.port.untaint(world.node(), None)


def test_a_fence_stays_while_pods_or_volumes_of_before_it_are_left():
    world = Witnessed()
    world.happen(What.CRASH, pass_s=1.0)
    world.taint()
    world.happen(What.START, pass_s=1.0)
    with pytest.raises(Breach, match="its fence is lifted, and of before it are left: demo/"):
        world.port.untaint(world.node(), None)


def test_a_fence_stays_while_only_a_volume_of_before_it_is_left():
    world = Witnessed()
    world.happen(What.ATTACH_BY_HAND, pass_s=60.0)
    world.fence()
    world.happen(What.START, pass_s=60.0)
    with pytest.raises(Breach, match=r"of before it are left: by-hand-k8s-2$"):
        world.port.untaint(world.node(), None)


def test_what_came_after_a_fence_keeps_it_from_nothing():
    world = Witnessed()
    world.fence()
    world.happen(What.ATTACH_BY_HAND)
    world.happen(What.POD_BY_HAND)
    world.happen(What.START, pass_s=60.0)
    world.port.untaint(world.node(), None)


def test_a_fence_that_was_wrong_comes_off_with_all_that_is_left():
    world = Witnessed(policy=replace(AT_ONCE, paused_guest=PausedGuest.TRUST))
    world.happen(What.PAUSE, pass_s=61.0)
    world.taint()
    world.happen(What.RESUME, pass_s=1.0)
    world.port.untaint(world.node(), None)
    assert world.truth.breaches == 0


@pytest.mark.parametrize(("heard_s", "is_wrong"), [(30.0, True), (40.0, False)])
def test_a_fence_stays_until_the_kubelet_has_renewed_its_lease(heard_s, is_wrong):
    """Twice: its first renewal comes 25 s after the start."""
    world = Witnessed()
    world.fence()
    world.happen(What.START, pass_s=heard_s)
    objects = pytest.raises(Breach, match="after 1 of 2 renewals since its VM runs again")
    with objects if is_wrong else nullcontext():
        world.port.untaint(world.node(), None)


@pytest.mark.parametrize(("off_s", "is_wrong"), [(3.0, True), (5.0, False)])
def test_no_node_is_fenced_whose_vm_has_just_ended(off_s, is_wrong):
    world = Witnessed(policy=replace(AT_ONCE, confirm_s=5.0))
    world.happen(What.CRASH, pass_s=off_s)
    objects = pytest.raises(Breach, match=r"tainted, and k8s-2 is off for 3\.0 s only")
    with objects if is_wrong else nullcontext():
        world.taint()


def test_a_vm_that_was_called_off_before_it_ended_was_read_off_for_longer():
    world = Witnessed(policy=replace(AT_ONCE, confirm_s=5.0))
    world.happen(What.LIE_STOPPED, pass_s=2.0)
    world.happen(What.CRASH, pass_s=1.0)
    world.happen(What.TRUTHFUL, "lab", pass_s=2.0)
    world.taint()


def test_a_paused_vm_that_counts_as_gone_is_paused_for_as_long_as_the_policy_says():
    policy = replace(AT_ONCE, confirm_s=30.0, paused_for_s=5.0, paused_guest=PausedGuest.TRUST)
    world = Witnessed(policy=policy)
    world.happen(What.PAUSE, pass_s=4.0)
    with pytest.raises(Breach, match=r"tainted, and k8s-2 is off for 4\.0 s only"):
        world.taint()
    world = Witnessed(policy=policy)
    world.happen(What.PAUSE, pass_s=6.0)
    world.taint()


@pytest.mark.parametrize("by_another", [True, False])
def test_a_vm_that_another_agent_has_stopped_may_have_been_killed(by_another):
    """An agent knows of its own orders how long they took."""
    world = Witnessed(policy=replace(AT_ONCE, killed_hold_s=30.0))
    _, hypervisors = world.truth.ports("") if by_another else (world.port, world.hypervisors)
    world.happen(What.PAUSE, pass_s=70.0)
    hypervisors["lab"].stop(world.simulation.guest("k8s-2").ref, None, IN_TIME)
    world.simulation.clock.advance(20.0)
    objects = pytest.raises(Breach, match=r"tainted, and k8s-2 is off for 20\.0 s only")
    with objects if by_another else nullcontext():
        world.taint()


@pytest.mark.parametrize(("settled_s", "is_wrong"), [(17.0, True), (19.0, False)])
def test_a_cordon_stays_after_a_fence_until_it_has_settled(settled_s, is_wrong):
    world = Witnessed()
    world.fence()
    world.happen(What.START, pass_s=60.0)
    world.port.untaint(world.node(), Cordon("unfence", "", ""))
    world.simulation.clock.advance(settled_s)
    objects = pytest.raises(Breach, match=r"its cordon is lifted 17\.0 s after its fence")
    with objects if is_wrong else nullcontext():
        world.port.uncordon(world.node())


def test_an_attachment_is_deleted_only_once_its_node_is():
    world = Witnessed()
    attachment = next(one for one in world.port.attachments().views if one.node == "k8s-2")
    world.happen(What.CRASH)
    with pytest.raises(Breach, match="is deleted, and its node is there"):
        world.port.delete_attachment(attachment)


def test_the_brake_is_held_over_all_agents():
    world = Witnessed()
    world.happen(What.CRASH, NODES[0])
    world.taint(NODES[0])
    world.happen(What.CRASH, NODES[1])
    with pytest.raises(Breach, match="the brake is at 1, and this is fence 2"):
        world.taint(NODES[1])


@pytest.mark.parametrize(("ago_s", "wrong"), [(None, False), (5.0, False), (15.0, True)])
def test_all_that_died_with_one_host_count_once_for_the_brake_also_if_it_was_just_powered_on(ago_s, wrong):
    world = Witnessed(Shape(nodes=(*NODES, "k8s-4"), hosts=("lab1", "lab2")))
    world.happen(What.HOST_OFF, "lab1", pass_s=30.0)
    if ago_s is not None:
        world.happen(What.HOST_ON, "lab1", pass_s=ago_s)
    world.taint("k8s-1")
    world.taint("k8s-3")
    world.happen(What.CRASH)
    with pytest.raises(Breach, match="the brake is at 2, and this is fence 3") if wrong else nullcontext():
        world.taint()


def test_an_order_by_an_agent_that_does_not_hold_the_lease_is_a_breach():
    world = Witnessed()
    world.happen(What.PAUSE)
    guest, simulation = world.simulation.guest("k8s-2").ref, world.simulation
    _, hypervisors = world.truth.ports("agent/boot/1")
    with pytest.raises(Breach, match="agent/boot/1 gives an order, and nobody holds the Lease"):
        hypervisors["lab"].stop(guest, None, IN_TIME)
    lease = simulation.leases.read_lease(simulation.lease_of("lab"))
    simulation.leases.write_lease(replace(lease, holder="another/boot/2"))
    with pytest.raises(Breach, match="and another/boot/2 holds the Lease"):
        hypervisors["lab"].start(guest, None, IN_TIME)


def test_two_guests_that_are_stopped_within_the_window_are_a_breach():
    world = Witnessed(Shape(nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4")))
    for name in ("k8s-2", "k8s-3"):
        world.happen(What.PAUSE, name)
    world.simulation.clock.advance(61.0)
    world.hypervisors["lab"].stop(world.simulation.guest("k8s-2").ref, None, IN_TIME)
    world.simulation.clock.advance(30.0)
    with pytest.raises(Breach, match=r"its guest is stopped 30\.0 s after another one"):
        world.hypervisors["lab"].stop(world.simulation.guest("k8s-3").ref, None, IN_TIME)


def test_power_is_cut_of_nobody_who_is_heard_unless_he_has_only_just_been_resumed():
    world = Witnessed()
    guest = world.simulation.guest("k8s-2")
    with pytest.raises(Breach, match="its guest is stopped, which runs and is heard"):
        world.truth.cut_off(guest)
    world.happen(What.PAUSE, pass_s=30.0)
    world.happen(What.RESUME, pass_s=2.0)
    world.truth.cut_off(guest)


def test_a_pause_is_stopped_once_it_has_lasted_and_not_before():
    world = Witnessed()
    guest = world.simulation.guest("k8s-2")
    world.happen(What.PAUSE, pass_s=59.0)
    with pytest.raises(Breach, match="its guest is stopped, which was paused for 59 s only"):
        world.truth.cut_off(guest)
    world.simulation.clock.advance(2.0)
    world.truth.cut_off(guest)


def left_process(policy=AT_ONCE, what=What.SHUTDOWN):
    """Return a world in which a VM has powered itself off, and its host leaves its process."""
    world = Witnessed(policy=policy)
    world.happen(What.QMEVENTD_DEAD, "lab1")
    world.happen(what, pass_s=8.5)
    return world


def test_a_process_that_is_left_is_stopped_once_that_has_lasted_and_is_no_end():
    world = left_process()
    guest = world.simulation.guest("k8s-2")
    with pytest.raises(Breach, match="which was off with its process left for 0 s only"):
        world.truth.cut_off(guest)
    world.simulation.clock.advance(60.0)
    with pytest.raises(Breach, match="tainted, and the process of k8s-2 is left"):
        world.taint()
    world.hypervisors["lab"].stop(guest.ref, None, IN_TIME)
    assert guest.passage is None


def test_nor_is_it_stopped_where_the_operator_does_not_want_that_or_a_backup_keeps_it():
    refusing = left_process(replace(AT_ONCE, paused_guest=PausedGuest.REFUSE))
    with pytest.raises(Breach, match="off with its process left, and nobody asked for that"):
        refusing.truth.cut_off(refusing.simulation.guest("k8s-2"))
    kept = left_process(what=What.END_AMID_BACKUP)
    kept.simulation.clock.advance(90.0)
    with pytest.raises(Breach, match="its process is stopped, which a backup keeps"):
        kept.truth.cut_off(kept.simulation.guest("k8s-2"))


def test_a_command_ends_one_boot_of_a_vm_unless_no_one_can_see_the_next():
    world, typed = Witnessed(), Typed("shutdown k8s-2 --stop-after 5", 0.0)
    guest, node = world.simulation.guest("k8s-2"), world.simulation.api.nodes["k8s-2"]
    with world.truth.commanded.doing(typed):
        world.truth.commanded.asks_off(guest)
        guest.boot_id = "the next boot"
        world.truth.commanded.asks_off(guest)
        node.boot_id = guest.boot_id
        with pytest.raises(Breach, match="a second boot of its VM is asked to shut down by one command"):
            world.truth.commanded.asks_off(guest)
        world.simulation.clock.advance(10.0)
        with pytest.raises(Breach, match="a second boot of its VM is cut off by one command"):
            world.truth.commanded.cuts(guest)


STOPS = replace(AT_ONCE, unresponsive_guest=UnresponsiveGuest.STOP)


def test_who_runs_and_is_silent_is_stopped_once_that_has_lasted_and_not_before():
    world = Witnessed(policy=STOPS)
    guest = world.simulation.guest("k8s-2")
    world.happen(What.NIC_OFF, pass_s=200.0)
    with pytest.raises(Breach, match="which runs and was heard lately"):
        world.truth.cut_off(guest)
    world.simulation.clock.advance(110.0)
    world.truth.cut_off(guest)


@pytest.mark.parametrize(
    ("strategy", "breaks"), [(None, True), (Strategy.PROVE, True), (Strategy.STOP, False)], ids=str
)
def test_where_the_operator_wants_no_such_stop_somebody_has_to_ask_for_it(strategy, breaks):
    world = Witnessed()
    world.happen(What.NIC_OFF, pass_s=310.0)
    if strategy is not None:
        world.simulation.requests.make("k8s-2", strategy, "a test")
    nobody = pytest.raises(Breach, match="and nobody asked for that") if breaks else nullcontext()
    with nobody:
        world.truth.cut_off(world.simulation.guest("k8s-2"))


def test_what_others_ask_for_stops_no_guest_where_the_operator_lets_them_only_prove():
    world = Witnessed(policy=replace(AT_ONCE, remediation=Remediation.PROVE))
    world.happen(What.NIC_OFF, pass_s=310.0)
    world.simulation.requests.make("k8s-2", Strategy.STOP, "a test")
    with pytest.raises(Breach, match="and nobody asked for that"):
        world.truth.cut_off(world.simulation.guest("k8s-2"))


@pytest.mark.parametrize("paused_guest", [PausedGuest.REFUSE, PausedGuest.TRUST])
def test_a_paused_guest_is_stopped_only_where_the_operator_wants_that(paused_guest):
    world = Witnessed(policy=replace(AT_ONCE, paused_guest=paused_guest))
    world.happen(What.PAUSE, pass_s=200.0)
    with pytest.raises(Breach, match="its guest is stopped, which is paused, and nobody asked for that"):
        world.hypervisors["lab"].stop(world.simulation.guest("k8s-2").ref, None, IN_TIME)


@pytest.mark.parametrize("saved_guest", SavedGuest)
def test_a_saved_memory_is_thrown_away_only_where_the_operator_wants_that(saved_guest):
    world = Witnessed(policy=replace(AT_ONCE, saved_guest=saved_guest))
    world.happen(What.SAVE, pass_s=60.0)
    wanted = saved_guest is SavedGuest.DISCARD
    with nullcontext() if wanted else pytest.raises(Breach, match="its saved memory is thrown away"):
        world.hypervisors["lab"].discard(world.simulation.guest("k8s-2").ref, None, IN_TIME)


def test_a_saved_memory_takes_the_window_of_a_power_off():
    world = Witnessed(policy=replace(AT_ONCE, saved_guest=SavedGuest.DISCARD, paused_for_s=1.0))
    world.happen(What.SAVE)
    world.happen(What.PAUSE, "k8s-1", pass_s=2.0)
    port = world.hypervisors["lab"]
    port.stop(world.simulation.guest("k8s-1").ref, None, IN_TIME)
    with pytest.raises(Breach, match=r"its guest is stopped 0\.0 s after another one"):
        port.discard(world.simulation.guest("k8s-2").ref, None, IN_TIME)


def test_an_agent_starts_what_it_has_stopped_only_where_the_operator_wants_that():
    world = Witnessed(policy=replace(AT_ONCE, paused_for_s=1.0))
    port, guest = world.hypervisors["lab"], world.simulation.guest("k8s-2").ref
    world.happen(What.PAUSE, pass_s=2.0)
    port.stop(guest, None, IN_TIME)
    with pytest.raises(Breach, match="its guest is started, and nobody asked for that"):
        port.start(guest, None, IN_TIME)


def test_each_agent_is_judged_by_its_own_policy():
    world = Witnessed()
    trusting = replace(AT_ONCE, paused_guest=PausedGuest.TRUST)
    world.port, _ = world.truth.ports("", policy=trusting)
    world.happen(What.PAUSE)
    world.happen(What.PAUSE, "k8s-1", pass_s=60.0)
    world.taint()
    assert world.truth.taken_for_gone == {"k8s-2"}
    world.port, _ = world.truth.ports("")
    with pytest.raises(Breach, match="tainted, and its guest k8s-1 is paused"):
        world.taint("k8s-1")


def test_an_agent_that_only_observes_changes_nothing():
    world = Witnessed()
    observing = replace(AT_ONCE, mode=Mode.OBSERVE)
    world.port, hypervisors = world.truth.ports("", policy=observing)
    world.happen(What.CRASH, pass_s=60.0)
    with pytest.raises(Breach, match="changed by an agent that only observes"):
        world.taint()
    with pytest.raises(Breach, match="an agent that only observes gives an order"):
        hypervisors["lab"].start(world.simulation.guest("k8s-2").ref, None, IN_TIME)


def test_what_a_person_types_may_change_things_where_its_agent_only_observes():
    world = Witnessed()
    world.port, _ = world.truth.ports(
        "", policy=replace(AT_ONCE, mode=Mode.OBSERVE), typed=Typed("start k8s-2", 0.0)
    )
    world.happen(What.CRASH, pass_s=60.0)
    world.taint()


@pytest.mark.parametrize(
    ("given_up", "why"), [(True, "has given that up"), (False, "somebody else works on it")], ids=str
)
def test_nothing_is_begun_where_others_work(given_up, why):
    world = Witnessed()
    requests = world.simulation.requests
    requests.reserve("k8s-2", "a test")
    if given_up:
        requests.give_up(requests.make("k8s-2", Strategy.PROVE, "a test"))
    world.happen(What.CRASH, pass_s=60.0)
    with pytest.raises(Breach, match=why):
        world.truth.cut_off(world.simulation.guest("k8s-2"))


def test_done_is_only_told_of_what_was_fenced():
    world = Witnessed()
    requests = world.simulation.requests
    request = requests.make("k8s-2", Strategy.PROVE, "a test")
    with pytest.raises(Breach, match="it never was fenced"):
        requests.answer(request, Progress(succeeded=True, reason="PodsCleared"), "")


def test_only_who_was_stopped_by_an_agent_is_started_by_one_and_once():
    world = Witnessed(policy=replace(AT_ONCE, paused_for_s=1.0, after_stop=AfterStop.START))
    port, guest = world.hypervisors["lab"], world.simulation.guest("k8s-2").ref
    stolen = pytest.raises(Breach, match="its guest is started, and it was no agent that had stopped it")
    world.happen(What.POWER_OFF)
    with stolen:
        port.start(guest, None, IN_TIME)
    world.happen(What.PAUSE, pass_s=2.0)
    port.stop(guest, None, IN_TIME)
    port.start(guest, None, IN_TIME)
    world.happen(What.POWER_OFF)
    with stolen:
        port.start(guest, None, IN_TIME)


def test_a_person_may_start_what_no_agent_had_stopped():
    world = Witnessed()
    world.happen(What.POWER_OFF)
    _, by_hand = world.truth.ports("", typed=Typed("start k8s-2", 0.0))
    by_hand["lab"].start(world.simulation.guest("k8s-2").ref, None, IN_TIME)
    world.simulation.clock.advance(60.0)
    assert world.simulation.guest("k8s-2").running()


@pytest.mark.parametrize("resumed", list(ResumedGuest))
def test_old_memory_under_a_fence_is_stopped_only_where_the_operator_wants_that(resumed):
    world = Witnessed(policy=replace(AT_ONCE, resumed_guest=resumed))
    world.happen(What.SNAPSHOT)
    world.happen(What.CRASH, pass_s=60.0)
    world.taint()
    world.happen(What.REVERT, pass_s=30.0)
    with nullcontext() if resumed is ResumedGuest.STOP else pytest.raises(Breach, match="nobody asked for"):
        world.truth.cut_off(world.simulation.guest("k8s-2"))


def test_an_order_to_stop_who_is_off_already_is_no_stop():
    world = Witnessed()
    port, guest = world.hypervisors["lab"], world.simulation.guest("k8s-2").ref
    world.happen(What.POWER_OFF)
    with pytest.raises(HypervisorProtocol):
        port.stop(guest, None, IN_TIME)
    with pytest.raises(Breach, match="it was no agent that had stopped it"):
        port.start(guest, None, IN_TIME)


def test_a_machine_that_has_booted_again_is_not_cut_off_because_its_node_is_still_fenced():
    world = Witnessed()
    world.happen(What.CRASH, pass_s=60.0)
    world.taint()
    world.happen(What.START, pass_s=90.0)
    with pytest.raises(Breach, match="its guest is stopped, which runs and is heard"):
        world.truth.cut_off(world.simulation.guest("k8s-2"))


def test_nobody_is_fenced_while_nobody_is_heard():
    world = Witnessed()
    for name in NODES:
        world.happen(What.NIC_OFF, name)
    world.happen(What.CRASH, pass_s=60.0)
    world.taint()
    world = Witnessed()
    for name in NODES:
        world.happen(What.NIC_OFF, name)
    world.happen(What.CRASH, pass_s=115.0)
    with pytest.raises(Breach, match="tainted, and no node at all was heard for"):
        world.taint()


def test_nor_could_anybody_know_of_a_kubelet_that_is_heard_again_since_a_moment():
    world = Witnessed()
    world.happen(What.NIC_OFF, pass_s=60.0)
    guest = world.simulation.guest("k8s-2")
    world.happen(What.NIC_ON)
    while not world.simulation.heard(guest):
        world.simulation.clock.advance(0.5)
    world.truth.cut_off(guest)
    world.simulation.clock.advance(10.0)
    with pytest.raises(Breach, match="its guest is stopped, which runs and is heard"):
        world.truth.cut_off(guest)


def test_memory_that_is_brought_back_while_the_taint_is_on_its_way_is_counted_apart():
    world = Witnessed()
    world.happen(What.SNAPSHOT)
    world.happen(What.CRASH, pass_s=5.0)
    world.hypervisors["lab"].read(world.simulation.guest("k8s-2").ref)
    world.happen(What.REVERT, pass_s=1.0)
    world.taint()
    assert (world.truth.overtaken, world.truth.breaches) == (1, 0)


def test_who_did_not_look_since_it_was_brought_back_could_have_known():
    world = Witnessed()
    world.happen(What.SNAPSHOT)
    world.happen(What.CRASH, pass_s=5.0)
    world.happen(What.REVERT, pass_s=1.0)
    with pytest.raises(Breach, match="tainted, and its guest k8s-2 is saved"):
        world.taint()
    world = Witnessed()
    world.happen(What.SNAPSHOT)
    world.happen(What.CRASH, pass_s=5.0)
    world.happen(What.REVERT, pass_s=1.0)
    world.hypervisors["lab"].read(world.simulation.guest("k8s-2").ref)
    with pytest.raises(Breach, match="tainted, and its guest k8s-2 is saved"):
        world.taint()


def test_a_look_of_long_ago_is_none():
    world = Witnessed()
    world.happen(What.SNAPSHOT)
    world.happen(What.CRASH, pass_s=5.0)
    world.hypervisors["lab"].read(world.simulation.guest("k8s-2").ref)
    world.simulation.clock.advance(10.0)
    world.happen(What.REVERT, pass_s=1.0)
    with pytest.raises(Breach, match="tainted, and its guest k8s-2 is saved"):
        world.taint()
    late = Witnessed()
    late.happen(What.SNAPSHOT)
    late.happen(What.CRASH, pass_s=5.0)
    late.happen(What.REVERT, pass_s=11.0)
    with pytest.raises(Breach, match="tainted"):
        late.taint()


def test_two_vms_that_run_from_one_disk_are_counted_whoever_starts_them():
    world = Witnessed(Shape(further=("lab-b",)))
    world.happen(What.NIC_OFF)
    world.happen(What.STARTED_ELSEWHERE)
    assert world.simulation.guest("k8s-2@lab-b").running()
    assert world.simulation.world.running_copies == 1
    assert world.truth.breaches == 0


def test_a_clone_has_a_disk_of_its_own_and_a_copy_of_the_definition_has_not():
    copies = {}
    for what in (What.CLONE, What.COPY_DEFINITION):
        world = Witnessed()
        world.happen(what)
        world.happen(What.START, "k8s-2-copy")
        copies[what] = world.simulation.world.running_copies
    assert copies == {What.CLONE: 0, What.COPY_DEFINITION: 1}


@pytest.mark.parametrize("state", [None, What.PAUSE, What.SAVE], ids=str)
def test_fencer_starts_no_vm_beside_another_one_of_its_disk(state):
    world = Witnessed(Shape(further=("lab-b",)))
    world.happen(What.CRASH)
    world.happen(What.STARTED_ELSEWHERE, pass_s=30.0)
    if state is not None:
        world.happen(state, "k8s-2@lab-b")
    _, by_hand = world.truth.ports("", typed=Typed("start k8s-2", 0.0))
    with pytest.raises(Breach, match="k8s-2 is started, and k8s-2@lab-b, of the same disk, is"):
        by_hand["lab"].start(world.simulation.guest("k8s-2").ref, None, IN_TIME)


@pytest.mark.parametrize(
    ("what", "pass_s", "knows"),
    [
        (What.STARTED_ABROAD, 30.0, None),
        (What.STARTED_ELSEWHERE, 30.0, ("lab",)),
        (What.STARTED_ELSEWHERE, 1.0, None),
    ],
)
def test_a_copy_that_fencer_could_not_see_is_counted_and_is_no_breach(what, pass_s, knows):
    world = Witnessed(Shape(further=("lab-b",), foreign=("elsewhere",)))
    world.happen(What.CRASH)
    world.happen(what, pass_s=pass_s)
    _, by_hand = world.truth.ports("", typed=Typed("start k8s-2", 0.0), knows=knows)
    by_hand["lab"].start(world.simulation.guest("k8s-2").ref, None, IN_TIME)
    assert world.truth.unseen_copies == 1


@pytest.mark.parametrize(
    ("alive_s", "looked", "shown_s", "plain"),
    [
        pytest.param(20.0, True, 1.0, False, id="too brief to show that it runs elsewhere"),
        pytest.param(200.0, True, 1.0, True, id="a start at home that never shows its boot changes nothing"),
        pytest.param(200.0, True, 100.0, False, id="after one that did, it counts again"),
        pytest.param(200.0, False, 1.0, False, id="no agent looked meanwhile"),
    ],
)
def test_a_copy_that_was_alive_for_long_is_to_be_known_also_after_a_start_at_home(
    alive_s, looked, shown_s, plain
):
    world = Witnessed(Shape(foreign=("elsewhere",)))
    world.happen(What.CRASH)
    world.happen(What.STARTED_ABROAD)
    passes = world.looks_on if looked else world.simulation.clock.advance
    passes(alive_s)
    world.happen(What.NIC_OFF, "k8s-2@elsewhere")
    world.happen(What.START, pass_s=shown_s)
    world.happen(What.CRASH, pass_s=60.0)
    with pytest.raises(Breach, match="its guest k8s-2@elsewhere is running") if plain else nullcontext():
        world.taint()


def test_a_configuration_that_was_moved_leaves_its_process_where_no_hypervisor_lists_it():
    world = Witnessed(Shape(hosts=("lab1", "lab2")))
    world.happen(What.HOST_CUT, "lab2")
    world.happen(What.STARTED_ON_OTHER_HOST, pass_s=30.0)
    listed = [one.guest.host for one in world.simulation.hypervisor.sweep() if one.guest.name == "k8s-2"]
    assert listed == ["lab1"]
    assert world.simulation.guest("k8s-2").writes
    assert world.simulation.heard(world.simulation.guest("k8s-2@lab1"))
