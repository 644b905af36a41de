"""Migrations, snapshots with memory, reboots, panics, copies: what is true, and what is said of it."""

import pytest

from fencer.core.model import PowerState
from fencer.errors import GuestNotFound
from fencer.simulation.assembly import Shape, Simulation
from fencer.simulation.datacenter import REBOOT_S, SHUTDOWN_S, DoubleWriter
from fencer.simulation.passages import (
    ARRIVAL_S,
    BACKUP_GOES_ON_S,
    BACKUP_LASTS_S,
    COPY_S,
    ROLLBACK_S,
    SWITCH_S,
    migrate,
)
from fencer.simulation.workloads import StatefulSet
from tests.simulation.worlds import What, happen, warm

TWO_HOSTS = Shape(hosts=("lab1", "lab2"))
NEW_BOOT_S = 30.0
"""A boot, and the first report after it."""


@pytest.fixture
def simulation():
    world = Simulation(TWO_HOSTS, [StatefulSet("db", 8)], seed=1)
    world.warm_up()
    return world


def said(simulation, name="k8s-2"):
    evidence = simulation.hypervisor.read(simulation.guest(name).ref)
    return evidence.power_state, evidence.settled


def test_a_migration_is_told_in_four_words_and_trusted_in_the_last(simulation):
    guest = simulation.guest("k8s-2")
    before = (guest.boot_id, guest.starts, set(guest.mounts))
    happen(simulation, What.MIGRATE, "k8s-2")
    assert said(simulation) == (PowerState.RUNNING, False)
    simulation.clock.advance(COPY_S)
    assert said(simulation) == (PowerState.STOPPING, False)
    assert not guest.running()
    simulation.clock.advance(SWITCH_S)
    assert said(simulation) == (PowerState.UNKNOWN, False)
    assert guest.running()
    simulation.clock.advance(ARRIVAL_S)
    assert said(simulation) == (PowerState.RUNNING, True)
    evidence = simulation.hypervisor.read(guest.ref)
    assert (evidence.guest.host, evidence.moved_from, evidence.cold_start) == ("lab1", ("lab2",), None)
    assert (guest.boot_id, guest.starts, set(guest.mounts)) == (before[0], before[1] + 1, before[2])


def test_a_guest_that_is_switched_off_on_the_way_stays_where_it_was(simulation):
    guest = simulation.guest("k8s-2")
    happen(simulation, What.MIGRATE, "k8s-2")
    simulation.clock.advance(COPY_S / 2)
    happen(simulation, What.POWER_OFF, "k8s-2")
    simulation.clock.advance(COPY_S + SWITCH_S + ARRIVAL_S)
    assert (guest.power, guest.host) == (PowerState.STOPPED, "lab2")
    assert said(simulation) == (PowerState.STOPPED, True)


def test_a_migration_to_a_host_that_dies_meanwhile_fails_and_the_guest_runs_on(simulation):
    guest = simulation.guest("k8s-2")
    happen(simulation, What.MIGRATE, "k8s-2")
    simulation.world.kill_host("lab1")
    simulation.clock.advance(COPY_S + SWITCH_S)
    assert (guest.running(), guest.host, guest.passage) == (True, "lab2", None)


def test_who_does_not_run_or_is_on_its_way_is_not_migrated(simulation):
    guest = simulation.guest("k8s-2")
    assert migrate(simulation.world, guest, "lab2") is False
    assert migrate(simulation.world, guest, "lab1") is True
    assert migrate(simulation.world, guest, "lab1") is False
    simulation.world.power_off(guest)
    assert migrate(simulation.world, guest, "lab1") is False


def test_a_backup_of_a_guest_that_is_off_starts_a_process_that_never_runs(simulation):
    guest = simulation.guest("k8s-2")
    happen(simulation, What.CRASH, "k8s-2")
    happen(simulation, What.BACK_UP, "k8s-2")
    assert said(simulation) == (PowerState.STOPPING, False)
    assert (guest.power, guest.running()) == (PowerState.STOPPED, False)
    simulation.clock.advance(BACKUP_LASTS_S)
    assert said(simulation) == (PowerState.STOPPED, True)


def test_a_vm_that_powers_itself_off_leaves_its_process_where_qmeventd_is_dead(simulation):
    guest = simulation.guest("k8s-2")
    happen(simulation, What.QMEVENTD_DEAD, "lab2")
    happen(simulation, What.SHUTDOWN, "k8s-2")
    simulation.clock.advance(SHUTDOWN_S)
    seen = simulation.hypervisor.read(guest.ref)
    assert (seen.power_state, seen.settled, seen.powered_off) == (PowerState.STOPPING, True, True)
    assert (guest.power, guest.process_left) == (PowerState.STOPPED, True)
    assert seen.stuck == "`qm stop k8s-2` on lab2"
    happen(simulation, What.QMEVENTD_BACK, "lab2")
    assert not simulation.world.start(guest)
    assert simulation.hypervisor.read(guest.ref).powered_off
    simulation.world.power_off(guest)
    assert said(simulation) == (PowerState.STOPPED, True)


def test_with_its_host_its_process_ends(simulation):
    happen(simulation, What.QMEVENTD_DEAD, "lab2")
    simulation.world.power_itself_off(simulation.guest("k8s-2"))
    simulation.world.kill_host("lab2")
    assert not simulation.guest("k8s-2").process_left


@pytest.mark.parametrize("dead", [False, True])
def test_a_backup_keeps_the_process_of_a_vm_that_ends_amid_it(simulation, dead):
    guest = simulation.guest("k8s-2")
    if dead:
        happen(simulation, What.QMEVENTD_DEAD, "lab2")
    happen(simulation, What.END_AMID_BACKUP, "k8s-2")
    assert said(simulation) == (PowerState.STOPPING, False)
    assert not simulation.hypervisor.read(guest.ref).powered_off
    simulation.clock.advance(BACKUP_GOES_ON_S)
    assert guest.process_left is dead


def test_whoever_has_read_it_off_before_goes_on_to_until_it_is_started(simulation):
    guest = simulation.guest("k8s-2")
    happen(simulation, What.CRASH, "k8s-2")
    before = simulation.hypervisor.read(guest.ref)
    happen(simulation, What.BACK_UP, "k8s-2")
    amid = simulation.hypervisor.read(guest.ref)
    assert (amid.power_state, amid.settled) == (PowerState.STOPPED, True)
    assert amid.incarnation == before.incarnation
    happen(simulation, What.START, "k8s-2")
    assert said(simulation) == (PowerState.RUNNING, True)
    assert simulation.hypervisor.read(guest.ref).incarnation != before.incarnation
    simulation.clock.advance(BACKUP_LASTS_S)
    assert said(simulation) == (PowerState.RUNNING, True)


def test_an_off_reading_of_an_earlier_run_is_none_before_a_backup(simulation):
    guest = simulation.guest("k8s-2")
    happen(simulation, What.CRASH, "k8s-2")
    simulation.hypervisor.read(guest.ref)
    happen(simulation, What.START, "k8s-2")
    happen(simulation, What.CRASH, "k8s-2")
    happen(simulation, What.BACK_UP, "k8s-2")
    assert said(simulation) == (PowerState.STOPPING, False)


def test_a_snapshot_brings_boot_mounts_and_containers_back(simulation):
    guest = simulation.guest("k8s-2")
    boot_id, mounts = guest.boot_id, set(guest.mounts)
    happen(simulation, What.SNAPSHOT, "k8s-2")
    happen(simulation, What.POWER_OFF, "k8s-2")
    happen(simulation, What.START, "k8s-2")
    simulation.clock.advance(NEW_BOOT_S)
    assert guest.boot_id != boot_id
    happen(simulation, What.REVERT, "k8s-2")
    assert said(simulation) == (PowerState.STOPPED, False)  # with a lock: not to be believed
    assert not guest.running()
    simulation.clock.advance(ROLLBACK_S)
    assert said(simulation) == (PowerState.RUNNING, True)
    assert (guest.boot_id, guest.mounts, guest.cold) == (boot_id, mounts, False)


def test_old_memory_writes_on_until_its_kubelet_hears_the_news():
    """Pods that were given away run in it for seconds; a cold start would have forgotten them."""
    simulation = warm(strict=False)
    guest = simulation.guest("k8s-2")
    happen(simulation, What.SNAPSHOT, "k8s-2")
    held = set(guest.mounts)
    happen(simulation, What.POWER_OFF, "k8s-2")
    for pod in simulation.api.pods_on("k8s-2"):
        simulation.api.delete_pod(pod, force=True)
    happen(simulation, What.REVERT, "k8s-2")
    simulation.clock.advance(ROLLBACK_S + 1)
    assert guest.mounts == held
    simulation.clock.advance(35)
    assert not guest.mounts & held


@pytest.mark.parametrize("off_first", [True, False])
def test_a_memory_that_was_gone_is_a_revenant_and_one_that_went_on_is_not(simulation, off_first):
    guest = simulation.guest("k8s-2")
    happen(simulation, What.SNAPSHOT, "k8s-2")
    if off_first:
        happen(simulation, What.POWER_OFF, "k8s-2")
    happen(simulation, What.REVERT, "k8s-2")
    simulation.clock.advance(ROLLBACK_S)
    assert guest.revenant is off_first
    happen(simulation, What.REBOOT, "k8s-2")
    simulation.clock.advance(REBOOT_S)
    assert not guest.revenant


@pytest.mark.parametrize("revenant", [True, False])
def test_a_revenants_double_writer_is_counted_and_another_is_a_breach(simulation, revenant):
    guest, other = simulation.guest("k8s-2"), simulation.guest("k8s-3")
    guest.revenant = revenant
    volume = next(iter(other.mounts))
    guest.mount(volume)
    if revenant:
        simulation.world.check()
    else:
        with pytest.raises(DoubleWriter, match=volume):
            simulation.world.check()
    assert simulation.world.double_writers == 1


def test_what_cannot_be_reverted_is_left_alone(simulation):
    guest = simulation.guest("k8s-2")
    assert simulation.revert(guest) is False  # there is no snapshot
    simulation.world.pause(guest)
    assert simulation.take_snapshot(guest) is False  # nothing runs that could be kept
    simulation.world.resume(guest)
    assert simulation.take_snapshot(guest) is True
    simulation.world.kill_host("lab2")
    assert simulation.revert(guest) is False


def test_a_host_that_dies_during_a_rollback_leaves_the_guest_off(simulation):
    guest = simulation.guest("k8s-2")
    happen(simulation, What.SNAPSHOT, "k8s-2")
    happen(simulation, What.REVERT, "k8s-2")
    simulation.world.kill_host("lab2")
    simulation.clock.advance(ROLLBACK_S)
    assert (guest.power, guest.mounts) == (PowerState.STOPPED, set())


def test_a_reboot_is_off_for_a_moment_and_a_new_boot(simulation):
    guest, boot_id = simulation.guest("k8s-2"), simulation.guest("k8s-2").boot_id
    happen(simulation, What.REBOOT, "k8s-2")
    assert guest.power is PowerState.STOPPED
    simulation.clock.advance(REBOOT_S)
    assert guest.running()
    assert guest.boot_id != boot_id
    simulation.clock.advance(NEW_BOOT_S)
    assert simulation.api.nodes["k8s-2"].boot_id == guest.boot_id


def test_a_panicked_guest_reads_running_does_nothing_and_counts_as_a_writer(simulation):
    guest = simulation.guest("k8s-2")
    happen(simulation, What.PANIC, "k8s-2")
    lease = simulation.api.nodes["k8s-2"].lease
    simulation.clock.advance(60)
    assert said(simulation) == (PowerState.RUNNING, True)
    assert simulation.api.nodes["k8s-2"].lease == lease
    assert (guest.running(), guest.writes) == (False, True)
    happen(simulation, What.REBOOT, "k8s-2")
    simulation.clock.advance(NEW_BOOT_S)
    assert simulation.api.nodes["k8s-2"].lease != lease


def test_a_copy_has_the_same_uuid_and_is_read_apart(simulation):
    happen(simulation, What.CLONE, "k8s-2")
    copy, guest = simulation.guest("k8s-2-copy"), simulation.guest("k8s-2")
    assert copy.uuid == guest.uuid
    assert said(simulation, "k8s-2-copy") == (PowerState.STOPPED, True)
    assert said(simulation) == (PowerState.RUNNING, True)
    happen(simulation, What.START, "k8s-2-copy")
    simulation.clock.advance(NEW_BOOT_S)
    assert said(simulation, "k8s-2-copy") == (PowerState.RUNNING, True)
    assert simulation.api.nodes["k8s-2"].boot_id == guest.boot_id  # it has no network, so no kubelet is heard


def test_a_guest_that_joins_under_a_nodes_name_takes_the_node_over(simulation):
    uid = simulation.api.nodes["k8s-2"].uid
    happen(simulation, What.POWER_OFF, "k8s-2")
    happen(simulation, What.REPLACE, "k8s-2")
    simulation.clock.advance(NEW_BOOT_S)
    node, new = simulation.api.nodes["k8s-2"], simulation.guest("k8s-2-new")
    assert (node.uid, node.system_uuid, node.boot_id) == (uid, new.uuid, new.boot_id)


def test_a_deleted_node_is_made_again_by_the_next_boot_and_not_before(simulation):
    uid = simulation.api.nodes["k8s-2"].uid
    happen(simulation, What.DELETE_NODE, "k8s-2")
    simulation.clock.advance(NEW_BOOT_S)
    assert "k8s-2" not in simulation.api.nodes
    happen(simulation, What.REBOOT, "k8s-2")
    simulation.clock.advance(NEW_BOOT_S)
    node = simulation.api.nodes["k8s-2"]
    assert node.uid != uid
    assert (node.ready, node.boot_id) == (True, simulation.guest("k8s-2").boot_id)


def test_on_a_host_that_is_cut_off_all_runs_on_and_nobody_hears_of_it(simulation):
    happen(simulation, What.HOST_CUT, "lab2")
    lease = simulation.api.nodes["k8s-2"].lease
    simulation.clock.advance(30)
    assert said(simulation) == (PowerState.UNKNOWN, True)
    assert simulation.guest("k8s-2").running()
    assert simulation.api.nodes["k8s-2"].lease == lease
    happen(simulation, What.HOST_JOINED, "lab2")
    simulation.clock.advance(20)
    assert said(simulation) == (PowerState.RUNNING, True)
    assert simulation.api.nodes["k8s-2"].lease != lease


def test_a_moved_configuration_reads_stopped_elsewhere_while_the_guest_runs(simulation):
    happen(simulation, What.HOST_CUT, "lab2")
    happen(simulation, What.CONFIG_MOVED, "k8s-2")
    evidence = simulation.hypervisor.read(simulation.guest("k8s-2").ref)
    assert (evidence.power_state, evidence.guest.host) == (PowerState.STOPPED, "lab1")
    assert evidence.moved_from == ()
    assert simulation.guest("k8s-2").running()


def test_a_copy_that_is_deleted_is_not_found_and_its_original_is(simulation):
    happen(simulation, What.CLONE, "k8s-2")
    copy = simulation.guest("k8s-2-copy")
    simulation.world.start(copy)
    simulation.world.delete(copy)
    with pytest.raises(GuestNotFound):
        simulation.hypervisor.read(copy.ref)
    assert said(simulation) == (PowerState.RUNNING, True)
