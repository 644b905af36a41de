"""Every known way in which Proxmox calls a guest off that is not, or calls it nothing at all.

Ten of them are known to corrupt data; each with the test that guards it:

 1. post-stop on the target of a migration that aborts: `test_an_aborted_migration_leaves_a_guest_that_runs`
 2. hibernated: `test_a_hibernated_guest_is_saved_and_its_next_run_has_old_memory`
 3. lock migrate, or destroyed after a remote migration: `test_a_live_migration_is_off_in_none_of_its_phases`,
    `test_a_finished_remote_migration_…`, `test_a_remote_migration_that_deletes_its_source_leaves_no_proof`
 4. paused: `test_a_guest_without_vcpus_is_paused`, `test_a_backup_is_final_in_none_of_its_phases`
 5. a configuration moved by hand: `test_a_configuration_moved_by_hand_is_not_explained`, and those after it
 6. cluster/resources, old or silent: `test_a_guest_that_the_cluster_calls_stopped_after_its_start_…`,
    `test_a_guest_that_may_not_be_seen_is_not_absent`, `test_rights_that_vanish_for_one_guest_…`
 7. a broken cluster file system: `test_a_broken_cluster_file_system_looks_like_nothing`
 8. HA's acknowledged fence: `test_a_recovery_without_a_watchdog_proves_nothing`, and in `test_ha_traces.py`
    `test_an_acknowledged_fence_of_an_idle_host_proves_nothing`
 9. a stop under HA that is only queued: `test_under_ha_an_order_is_queued_and_kept` in `test_power.py`;
    success is the state that is read back (`fencer.runtime.execute`)
10. a process that outlives SIGKILL, and reads stopped: not to be seen in the API. A guest that fencer stopped
    so slowly is held for `killed_hold_s`: `tests/core/test_recover.py`
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencer.contract.deadlines import order
from fencer.core.model import PowerState, Proof
from fencer.errors import (
    GuestNotFound,
    HypervisorDenied,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from tests.hypervisors.proxmox.finality import final, look, must_not_be_final
from tests.support.pve import Pmxcfs

# -- memory that comes back -------------------------------------------------------------------------------


def test_a_hibernated_guest_is_saved_and_its_next_run_has_old_memory(home):
    conf = home.guest()
    home.pve.qm.hibernate(conf.vmid).finish()
    saved = home.read(conf)
    assert (saved.power_state, saved.settled) == (PowerState.SAVED, True)
    home.pve.qm.start(conf.vmid).finish()
    assert home.agent().read(home.ref(conf)).cold_start is False  # also for one that did not see it saved


def test_a_rollback_to_a_snapshot_with_memory_is_no_cold_start(home):
    conf = home.guest()
    home.pve.qm.snapshot(conf.vmid).finish()
    home.pve.qm.rollback(conf.vmid).finish()
    assert home.read(conf).cold_start is False


def test_a_cold_start_is_never_called_restored(home):
    conf = home.guest()
    home.pve.qm.snapshot(conf.vmid).finish()
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.qm.start(conf.vmid).finish()
    assert home.read(conf).cold_start is None


def test_no_token_can_discard_saved_memory(home):
    conf = home.guest()
    with pytest.raises(HypervisorDenied, match=f"qm unlock {conf.vmid}"):
        order(home.hypervisor.discard, home.ref(conf))


@pytest.mark.parametrize("word", ["paused", "io-error", "internal-error", "guest-panicked", "watchdog"])
def test_a_guest_without_vcpus_is_paused(home, word):
    conf = home.guest()
    home.pve.set_qmp(conf.vmid, word)
    paused = home.read(conf)
    assert (paused.power_state, paused.settled) == (PowerState.PAUSED, True)
    assert paused.io_error == (word == "io-error")


# -- moves ------------------------------------------------------------------------------------------------


def test_a_live_migration_is_off_in_none_of_its_phases(home):
    conf = home.guest()
    home.watch(4)
    task = home.pve.qm.migrate(conf.vmid, "pve2", by_hand=True)
    phases = [task.phase]
    must_not_be_final(home, conf)
    while (phase := task.step()) is not None:
        phases.append(phase)
        must_not_be_final(home, conf)
    assert phases[-1] == "resumed"
    moved = home.read(conf)
    assert (moved.power_state, moved.guest.host) == (PowerState.RUNNING, "pve2")


def test_an_aborted_migration_leaves_a_guest_that_runs(home):
    conf = home.guest()
    task = home.pve.qm.migrate(conf.vmid, "pve2", by_hand=True)
    task.step()
    task.abort()
    assert home.read(conf).power_state is PowerState.RUNNING


def test_a_finished_remote_migration_is_never_final(home):
    """It runs on in another cluster; what is left here reads stopped, with a lock that stays."""
    conf = home.guest()
    home.pve.qm.remote_migrate(conf.vmid).finish()
    assert home.read(conf).power_state is PowerState.STOPPED
    home.pve.clock.advance(1000)
    must_not_be_final(home, conf)


def gone_to_another_cluster(home):
    """Return a guest that runs elsewhere now, and whose place here was tidied up with `qm unlock`."""
    conf = home.guest()
    look(home, conf)
    home.pve.qm.remote_migrate(conf.vmid).finish()
    home.pve.set_lock(conf.vmid, None)
    home.pve.clock.advance(30)
    return conf


def test_a_remote_migration_whose_source_was_unlocked_is_never_final(home):
    conf = gone_to_another_cluster(home)
    left = look(home, conf)
    assert (left.power_state, left.away) == (PowerState.UNKNOWN, True)
    assert "qmigrate" in left.raw
    home.pve.clock.advance(3600)
    assert not final(look(home, conf))


def test_destroying_what_a_remote_migration_left_behind_is_no_end_of_the_guest(home):
    conf = gone_to_another_cluster(home)
    home.pve.qm.destroy(conf.vmid).finish()
    with pytest.raises(GuestNotFound, match="after it had left"):
        look(home, conf)


def test_one_that_is_started_here_again_counts_as_any_other(home):
    conf = gone_to_another_cluster(home)
    home.pve.qm.start(conf.vmid).finish()
    home.pve.clock.advance(5)
    assert look(home, conf).power_state is PowerState.RUNNING
    home.pve.qm.stop(conf.vmid).finish()
    assert (look(home, conf).power_state, look(home, conf).away) == (PowerState.STOPPED, False)


def test_one_that_left_within_the_cluster_and_came_back_is_not_away(home):
    conf = home.guest()
    look(home, conf)
    for target in ("pve2", "pve1"):
        home.pve.qm.migrate(conf.vmid, target).finish()
        home.pve.clock.advance(5)
        look(home, conf)
    home.pve.qm.stop(conf.vmid).finish()
    stopped = look(home, conf)
    assert (stopped.power_state, stopped.away) == (PowerState.STOPPED, False)


def test_a_remote_migration_that_deletes_its_source_leaves_no_proof(home):
    conf = home.guest()
    home.pve.qm.remote_migrate(conf.vmid, delete=True).finish()
    with pytest.raises(GuestNotFound, match="another cluster"):
        home.read(conf)


def test_an_offline_migration_explains_where_a_guest_is(home):
    conf = home.guest(host="pve3")
    home.read(conf)
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.qm.migrate(conf.vmid, "pve2").finish()
    off = home.read(conf)
    assert final(off, "pve3")
    assert (off.guest.host, off.moved_from) == ("pve2", ("pve3",))
    assert home.agent().read(home.ref(conf)).moved_from == ("pve3",)  # told by the tasks alone


def test_two_migrations_in_a_row_are_followed_back(home):
    conf = home.guest(host="pve3")
    home.pve.qm.stop(conf.vmid).finish()
    for target in ("pve2", "pve1"):
        home.pve.qm.migrate(conf.vmid, target).finish()
    assert set(home.read(conf).moved_from) == {"pve2", "pve3"}


def test_a_configuration_moved_by_hand_is_not_explained(home):
    """The guest runs on where it was; the new host says stopped, unlocked, and is quorate."""
    conf = home.guest(host="pve3")
    home.read(conf)
    home.pve.move_conf(conf.vmid, "pve2")
    moved = home.read(conf)
    assert home.pve.runs(conf.vmid)
    assert (moved.power_state, moved.guest.host, moved.moved_from) == (PowerState.STOPPED, "pve2", ())


def test_an_old_migration_does_not_explain_a_later_move_by_hand(home):
    """There, and back again, and then moved by hand to where it had been before."""
    conf = home.guest(host="pve3")
    home.pve.qm.migrate(conf.vmid, "pve2").finish()
    home.pve.qm.migrate(conf.vmid, "pve3").finish()
    home.pve.clock.advance(60)
    home.read(conf)
    home.pve.move_conf(conf.vmid, "pve2")
    assert home.pve.runs(conf.vmid)
    assert home.read(conf).moved_from == ()
    assert home.agent().read(home.ref(conf)).moved_from == ()


def test_a_guest_that_was_brought_back_and_started_is_not_where_it_was_migrated_to(home):
    """Migrated offline, moved back by hand, started, and moved by hand again while it ran."""
    conf = home.guest(host="pve3", running=False)
    home.pve.qm.migrate(conf.vmid, "pve2").finish()
    home.pve.clock.advance(5)
    home.pve.move_conf(conf.vmid, "pve3")
    home.pve.qm.start(conf.vmid).finish()
    home.read(conf)
    home.pve.move_conf(conf.vmid, "pve2")
    assert home.pve.runs(conf.vmid)
    assert home.read(conf).moved_from == ()
    assert home.agent().read(home.ref(conf)).moved_from == ()  # by the tasks alone


def test_a_migration_does_not_explain_what_came_before_it(home):
    """Moved by hand while it ran, then migrated: only the second move is explained."""
    conf = home.guest(host="pve3")
    home.pve.move_conf(conf.vmid, "pve2")
    home.pve.qm.migrate(conf.vmid, "pve1").finish()
    assert home.pve.runs(conf.vmid)
    assert home.read(conf).moved_from == ("pve2",)


def test_a_boot_of_the_old_host_explains_a_move(home):
    conf = home.guest(host="pve3")
    home.read(conf)
    home.pve.move_conf(conf.vmid, "pve2")
    assert home.read(conf).moved_from == ()
    home.pve.host_dies("pve3")
    home.pve.clock.advance(20)
    assert home.read(conf).moved_from == ()
    home.pve.host_returns("pve3")
    home.pve.clock.advance(30)
    assert home.read(conf).moved_from == ("pve3",)


# -- locks, tasks, restarts -------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", ["migrate", "rollback", "snapshot", "create"])
def test_a_lock_that_may_bring_it_back_is_not_settled(home, lock):
    conf = home.guest(running=False)
    home.pve.set_lock(conf.vmid, lock)
    off = home.read(conf)
    assert (off.power_state, off.settled) == (PowerState.STOPPED, False)


@pytest.mark.parametrize("lock", ["backup", "clone", "snapshot-delete"])
def test_a_lock_left_behind_does_not_matter(home, lock):
    conf = home.guest(running=False)
    home.pve.set_lock(conf.vmid, lock)
    assert final(home.read(conf))


def test_an_unheard_of_lock_reads_unknown(home):
    conf = home.guest(running=False)
    home.pve.set_lock(conf.vmid, "teleport")
    assert home.read(conf).power_state is PowerState.UNKNOWN


@pytest.mark.parametrize("mode", ["stop", "snapshot", "suspend"])
def test_a_backup_is_final_in_none_of_its_phases(home, mode):
    conf = home.guest()
    home.read(conf)
    task = home.pve.qm.backup(conf.vmid, mode, by_hand=True)
    must_not_be_final(home, conf)
    while task.step() is not None:
        must_not_be_final(home, conf)
    assert home.read(conf).power_state is PowerState.RUNNING


def test_a_backup_of_a_guest_that_was_not_read_off_before_is_final_only_without_its_process(home):
    conf = home.guest(running=False)
    task = home.pve.qm.backup(conf.vmid, "stop", by_hand=True)
    must_not_be_final(home, conf)
    while task.step() is not None:
        must_not_be_final(home, conf)
    assert final(home.read(conf))


@pytest.mark.parametrize("ram", [True, False], ids=["with its memory", "without"])
def test_a_snapshot_is_final_in_none_of_its_phases(home, ram):
    conf = home.guest()
    home.read(conf)
    task = home.pve.qm.snapshot(conf.vmid, ram=ram, by_hand=True)
    must_not_be_final(home, conf)
    while task.step() is not None:
        must_not_be_final(home, conf)
    assert home.read(conf).power_state is PowerState.RUNNING


def test_a_guest_that_the_cluster_calls_stopped_after_its_start_is_never_off(home):
    """cluster/resources repeats the last word for ten seconds: a sweep may only wake by it."""
    conf = home.guest()
    home.watch(20)
    home.pve.qm.stop(conf.vmid).finish()
    home.watch(20)
    home.pve.qm.start(conf.vmid).finish()
    for _ in range(30):
        must_not_be_final(home, conf)
        home.pve.clock.advance(0.5)


def test_a_rollback_is_final_in_none_of_its_phases(home):
    conf = home.guest()
    home.pve.qm.snapshot(conf.vmid).finish()
    task = home.pve.qm.rollback(conf.vmid, by_hand=True)
    must_not_be_final(home, conf)
    while task.step() is not None:
        must_not_be_final(home, conf)


def test_a_reboot_through_the_api_is_never_final(home):
    """It reads stopped, unlocked, for 1.6 s."""
    conf = home.guest()
    first = home.read(conf)
    home.pve.qm.reboot(conf.vmid)
    seen = set()
    for _ in range(40):
        home.pve.clock.advance(0.1)
        evidence = home.read(conf)
        seen.add(evidence.power_state)
        assert not final(evidence), evidence
    assert PowerState.STOPPED in seen
    again = home.read(conf)
    assert again.power_state is PowerState.RUNNING
    assert again.incarnation != first.incarnation


def test_a_console_does_not_keep_a_guest_from_being_settled(home):
    """Its task lasts as long as somebody looks at the screen, also at that of a guest that is off."""
    conf = home.guest(running=False)
    host = home.pve.hosts["pve1"]
    started = home.pve.tasks.start(host, "vncproxy", str(conf.vmid), "root@pam", iter(()), by_hand=True)
    started.exitstatus = None
    assert started in home.pve.tasks.active(host)
    assert final(home.read(conf))


def test_a_guest_that_ha_starts_again_is_not_settled_at_first(home):
    conf = home.guest(ha="started")
    home.watch(30)
    home.pve.crash(conf.vmid)
    crashed = home.read(conf)
    assert (crashed.power_state, crashed.settled) == (PowerState.STOPPED, False)
    assert "HA is about to start it" in crashed.raw


# -- who answers ------------------------------------------------------------------------------------------


def test_a_server_without_quorum_is_not_asked(home):
    conf = home.guest(host="pve2")
    home.pve.partition({"pve1"})
    home.pve.clock.advance(9)
    home.asked()
    assert home.read(conf).power_state is PowerState.RUNNING
    assert home.api.requests[-1].host == "pve2"
    assert [it.path for it in home.api.requests if it.host == "pve1"] == ["/cluster/status"]
    home.asked()
    home.read(conf)
    assert {it.host for it in home.api.requests} == {"pve2"}


def test_without_quorum_anywhere_nothing_is_known(home):
    conf = home.guest()
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.lose_quorum()
    home.pve.clock.advance(9)
    with pytest.raises(HypervisorUnreachable, match="no quorum"):
        home.read(conf)
    with pytest.raises(HypervisorUnreachable, match="1 of 3 hosts"):
        home.hypervisor.sweep()


@pytest.mark.parametrize("state", [Pmxcfs.STOPPED, Pmxcfs.ALONE])
def test_a_broken_cluster_file_system_looks_like_nothing(home, state):
    """As a single host without guests, or as an error: the next server is asked, and no guest is absent."""
    conf = home.guest(host="pve2")
    home.pve.set_pmxcfs("pve1", state)
    assert home.read(conf).power_state is PowerState.RUNNING
    for host in ("pve2", "pve3"):
        home.pve.set_pmxcfs(host, state)
    with pytest.raises(HypervisorUnreachable):
        home.read(conf)
    with pytest.raises(HypervisorUnreachable):
        home.hypervisor.sweep()


def test_another_cluster_is_not_believed(home):
    conf = home.guest()
    with pytest.raises(HypervisorProtocol, match="belongs to the cluster lab, not to work"):
        home.agent(cluster="work").read(home.ref(conf))
    with pytest.raises(HypervisorProtocol, match="Write cluster: lab"):
        home.agent(cluster=None).read(home.ref(conf))


def test_a_standalone_host_is_no_cluster(alone):
    conf = alone.guest()
    assert alone.read(conf).power_state is PowerState.RUNNING
    with pytest.raises(HypervisorUnreachable, match="cluster: standalone"):
        alone.agent(cluster="lab").read(alone.ref(conf))


# -- hosts that die ---------------------------------------------------------------------------------------


def test_a_dead_host_proves_nothing_of_a_guest_without_ha(home):
    """Nor does the fence of a host prove anything of such a guest beside one that HA manages."""
    conf, managed = home.guest(host="pve3"), home.guest("k8s-2", host="pve3", ha="started")
    home.watch(30)
    home.pve.host_dies("pve3")
    for _ in range(20):
        home.watch(20)
        must_not_be_final(home, conf, "pve3")
    assert home.read(managed).guest.host != "pve3"  # HA has recovered that one
    evidence = home.read(conf)
    assert evidence.power_state is PowerState.UNKNOWN
    assert evidence.host_silent  # of which core names the ways out


def test_a_host_that_is_back_says_so_itself(home):
    conf = home.guest(host="pve3")
    home.read(conf)
    home.pve.host_dies("pve3")
    home.pve.clock.advance(10)
    assert home.read(conf).power_state is PowerState.UNKNOWN
    home.pve.host_returns("pve3")
    home.pve.clock.advance(20)
    off = home.read(conf)
    assert final(off, "pve3")
    assert (off.guest.host, off.proof) == ("pve3", Proof.POWER)


def test_a_recovery_by_ha_is_proof_while_it_lasts(home):
    """No host can take the guest: its service stays in recovery, its configuration on the dead host."""
    conf = home.guest(host="pve3", ha="started")
    home.pve.ha.crm.linger_in_recovery = True
    home.watch(30)
    home.pve.host_dies("pve3")
    proven = []
    for _ in range(120):
        home.watch(2)
        evidence = look(home, conf)
        if evidence is not None and final(evidence, "pve3"):
            proven.append(evidence)
            assert home.pve.kvms(conf.vmid) == []
    assert proven
    assert {it.proof for it in proven} == {Proof.HA_RECOVERY}
    assert {it.guest.host for it in proven} == {"pve3"}


def test_a_sweep_tells_of_such_a_recovery_so_that_the_guest_is_looked_at(home):
    conf = home.guest(host="pve3", ha="started")
    home.pve.ha.crm.linger_in_recovery = True
    home.watch(30)
    home.pve.host_dies("pve3")
    swept = []
    for _ in range(120):
        home.pve.clock.advance(2)
        swept += [it for it in home.hypervisor.sweep() if it.guest.host == "pve3"]
    told = {(it.power_state, it.conclusive) for it in swept if it.guest.id == str(conf.vmid)}
    assert (PowerState.STOPPED, False) in told
    assert (PowerState.STOPPED, True) not in told


def test_what_ha_recovered_may_run_and_be_moved_on(home):
    """HA starts it on another host; it crashes there, and is moved on: the way from the first still holds."""
    conf = home.guest(host="pve3", ha="started")
    home.watch(30)
    home.pve.host_dies("pve3")
    for _ in range(100):
        home.watch(2)
        evidence = look(home, conf)
        if evidence is not None and evidence.power_state is PowerState.RUNNING and not evidence.host_silent:
            break
    taken_to = home.read(conf).guest.host
    assert taken_to != "pve3"
    home.pve.ha.remove(conf.vmid)
    home.pve.crash(conf.vmid)
    home.pve.clock.advance(1)
    crashed = home.read(conf)
    assert (crashed.power_state, crashed.guest.host, crashed.moved_from) == (
        PowerState.STOPPED,
        taken_to,
        ("pve3",),
    )
    [further] = {"pve1", "pve2"} - {taken_to}
    home.pve.qm.migrate(conf.vmid, further).finish()
    assert set(home.read(conf).moved_from) == {"pve3", taken_to}


def test_a_guest_seen_on_two_hosts_is_explained_by_its_migration(home):
    """Its node was not heard after it arrived, so that the binding still names the first host."""
    conf = home.guest(host="pve3")
    home.read(conf)
    home.pve.qm.migrate(conf.vmid, "pve2").finish()
    assert home.read(conf).power_state is PowerState.RUNNING
    home.pve.crash(conf.vmid)
    home.pve.clock.advance(1)
    assert home.read(conf).moved_from == ("pve3",)


@pytest.mark.slow
def test_a_recovery_by_ha_explains_the_move(home):
    conf = home.guest(host="pve3", ha="started")
    home.watch(30)
    home.pve.host_dies("pve3")
    moved = []
    for _ in range(180):
        home.watch(1, every_s=1)
        evidence = look(home, conf)
        must_not_be_final(home, conf, "pve3")  # HA starts it at once
        if evidence is not None and evidence.power_state is PowerState.STOPPED:
            moved.append(evidence)
    assert moved
    assert {(it.moved_from, it.proof) for it in moved} == {(("pve3",), Proof.HA_RECOVERY)}
    assert home.read(conf).power_state is PowerState.RUNNING


@pytest.mark.slow
@pytest.mark.parametrize("how", ["disarmed", "never guarded", "forgotten"])
def test_a_recovery_without_a_watchdog_proves_nothing(home, how):
    """HA was disarmed; or the agent of the host never had started it; or nobody says which guest it is."""
    conf = home.guest(host="pve3", ha="stopped" if how == "never guarded" else "started")
    home.pve.ha.crm.linger_in_recovery = True
    if how != "forgotten":
        home.watch(30)
    if how == "disarmed":
        home.pve.ha.disarm()
    home.pve.host_dies("pve3")
    if how == "never guarded":
        home.pve.ha.set_service(conf.vmid, state="recovery")
    for _ in range(90):
        home.watch(2)
        must_not_be_final(home, conf, "pve3")


# -- guests that are not there ----------------------------------------------------------------------------


def test_a_destroyed_guest_is_absent_on_record(home):
    conf = home.guest(host="pve3")
    home.read(conf)
    home.pve.qm.stop(conf.vmid).finish()
    ref, stopped = home.ref(conf), home.read(conf)
    home.pve.qm.destroy(conf.vmid).finish()
    for agent in (home.hypervisor, home.agent()):
        absent = agent.read(ref)
        assert (absent.power_state, absent.end_recorded) == (PowerState.ABSENT, True)
        assert (absent.guest.host, absent.moved_from) == ("pve3", ())
        assert absent.incarnation == stopped.incarnation


def test_a_guest_destroyed_elsewhere_than_it_ran_is_not_explained(home):
    """Its configuration was moved by hand, and destroyed there, while it ran on."""
    conf = home.guest(host="pve3")
    home.read(conf)
    ref = home.ref(conf)
    home.pve.move_conf(conf.vmid, "pve2")
    home.pve.qm.destroy(conf.vmid).finish()
    absent = home.hypervisor.read(ref)
    assert home.pve.runs(conf.vmid)
    assert (absent.guest.host, absent.moved_from) == ("pve2", ())


def test_a_configuration_removed_by_hand_leaves_no_proof(home):
    conf = home.guest()
    ref = home.ref(conf)
    del home.pve.confs[conf.vmid]
    with pytest.raises(GuestNotFound, match="no task that destroyed it"):
        home.hypervisor.read(ref)


def test_a_number_given_anew_is_another_guest(home):
    conf = home.guest()
    home.read(conf)
    old = home.ref(conf)
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.qm.destroy(conf.vmid).finish()
    new = home.guest("other", vmid=conf.vmid)
    assert home.read(new).power_state is PowerState.RUNNING
    absent = home.hypervisor.read(old)
    assert (absent.power_state, absent.end_recorded, absent.guest.uuid) == (PowerState.ABSENT, True, old.uuid)
    with pytest.raises(
        GuestNotFound
    ):  # whoever did not see the old one run cannot tell whose tasks these are
        home.agent().read(old)
    for method in (home.hypervisor.stop, home.hypervisor.start, home.hypervisor.shutdown):
        with pytest.raises(GuestNotFound, match="another one now"):
            order(method, old)
    assert home.pve.runs(new.vmid)


def test_a_guest_restored_under_another_number_is_named(home):
    conf = home.guest()
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.qm.restore(conf.vmid, 300).finish()
    ref = home.ref(conf)
    home.watch(4)
    del home.pve.confs[conf.vmid]
    with pytest.raises(GuestNotFound, match="guest 300 has that UUID"):
        home.hypervisor.read(ref)


def test_a_guest_that_may_not_be_seen_is_not_absent(home):
    """Proxmox leaves it out of every list without a word."""
    seen, hidden = home.guest(), home.guest("k8s-2")
    rights = {"/": {"Sys.Audit"}, f"/vms/{seen.vmid}": {"VM.Audit"}}
    home.pve.access.add_token("one@pve!tk", home.pve.secret, rights)
    agent = home.agent(token_id="one@pve!tk")  # noqa: S106 - a name
    assert agent.read(home.ref(seen)).power_state is PowerState.RUNNING
    assert [it.guest.id for it in agent.sweep()] == [str(seen.vmid)]
    with pytest.raises(HypervisorDenied, match=r"VM\.Audit"):
        agent.read(home.ref(hidden))


def test_rights_that_vanish_for_one_guest_do_not_make_it_absent(home):
    """All guests may be seen but this one: the number is not free, so it exists."""
    conf = home.guest()
    home.read(conf)
    home.pve.access.grant(home.pve.token, f"/vms/{conf.vmid}", {"Sys.Audit"})
    with pytest.raises(HypervisorDenied, match="may not see it"):
        home.read(conf)


def test_templates_and_containers_are_refused_by_name(home):
    template = home.guest("golden", running=False, template=True)
    container = home.guest("box", running=False, kind="lxc")
    assert home.hypervisor.sweep() == []
    with pytest.raises(HypervisorProtocol, match=r"golden.*template"):
        home.read(template)
    with pytest.raises(HypervisorProtocol, match=r"box.*container"):
        home.read(container)


def test_a_clone_is_another_guest(home):
    conf = home.guest()
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.qm.clone(conf.vmid, 300, "copy").finish()
    home.watch(4)
    assert len({it.guest.key for it in home.hypervisor.sweep()}) == 2
    with pytest.raises(GuestNotFound):
        home.hypervisor.read(replace(home.ref(conf), id="300"))


def test_the_hook_that_a_clone_inherits_only_wakes(home):
    """The clone ends: the guest whose hookscript it has runs on, and reads so."""
    conf = home.guest()
    home.pve.confs[conf.vmid].hookscript = "local:snippets/fencer-hook"
    home.pve.qm.clone(conf.vmid, 300, "copy").finish()
    assert home.pve.confs[300].hookscript == "local:snippets/fencer-hook"
    home.watch(20)
    woken = []
    home.hypervisor.subscribe(lambda: woken.append(1))
    for vmid in ("300", "999", "../../x"):
        home.hypervisor.nudge(vmid)
        must_not_be_final(home, conf)
    assert len(woken) == 3
    assert home.read(conf).power_state is PowerState.RUNNING
