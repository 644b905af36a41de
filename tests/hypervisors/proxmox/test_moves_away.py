"""Guests that left, within the cluster or out of it: what is left behind is never proof that they are off.

Whatever somebody does by hand with what `qm remote-migrate` leaves (unlock it, start it in vain, move it,
restore over it, destroy it, give its number away), the guest runs on in the other cluster, and nothing here
can tell of that.
"""

from __future__ import annotations

import pytest

from fencer.core.model import PowerState
from fencer.errors import GuestNotFound
from tests.hypervisors.proxmox.finality import final, look
from tests.support.pve import PveCluster

HOSTS = ("pve1", "pve2", "pve3")


def left(home, *, seen=True, running=True, delete=False, node="pve2"):
    """Return a guest of pve1 that went to another cluster, to a host there that is called as one here is."""
    conf = home.guest(running=running)
    if seen:
        home.watch(4)
        home.read(conf)
    home.pve.clock.advance(5)
    assert home.pve.qm.remote_migrate(conf.vmid, node=node, delete=delete).finish() == "OK"
    home.pve.clock.advance(5)
    return conf


def everybody(home, conf):
    """Return what an agent that saw the guest run and one without any memory read."""
    ref = home.ref(conf)
    return [agent.read(ref) for agent in (home.hypervisor, home.agent())]


def never_off(home, conf):
    """Nobody may call it off, wherever it was last read running; nor does any sweep."""
    for reading in everybody(home, conf):
        for ran in HOSTS:
            assert not final(reading, ran), reading
    swept = [it for it in home.hypervisor.sweep() if it.guest.uuid == conf.uuid]
    assert not any(final(it, ran) for it in swept for ran in HOSTS)


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("running", [True, False], ids=["live", "offline"])
def test_what_is_left_is_locked_and_then_unlocked_and_proves_nothing(home, seen, running):
    conf = left(home, seen=seen, running=running)
    assert {(it.power_state, it.settled) for it in everybody(home, conf)} == {(PowerState.STOPPED, False)}
    never_off(home, conf)
    home.pve.set_lock(conf.vmid, None)
    assert {(it.power_state, it.away) for it in everybody(home, conf)} == {(PowerState.UNKNOWN, True)}
    home.pve.clock.advance(3600)
    never_off(home, conf)


def test_a_start_that_failed_at_the_lock_is_no_start(home):
    """Somebody clicked Start on what was left; only then it was unlocked."""
    conf = left(home)
    assert home.pve.qm.start(conf.vmid).finish() == "VM is locked (migrate)"
    home.pve.set_lock(conf.vmid, None)
    home.pve.clock.advance(5)
    never_off(home, conf)
    assert {it.away for it in everybody(home, conf)} == {True}


@pytest.mark.parametrize("by", ["qm migrate", "mv"])
@pytest.mark.parametrize("to", ["pve2", "pve3"])
def test_moving_what_was_left_to_another_host_does_not_explain_where_the_guest_is(home, by, to):
    conf = left(home)
    home.pve.set_lock(conf.vmid, None)
    if by == "mv":
        home.pve.move_conf(conf.vmid, to)
    else:
        assert home.pve.qm.migrate(conf.vmid, to).finish() == "OK"
    home.pve.clock.advance(5)
    for reading in everybody(home, conf):
        assert "pve1" not in reading.moved_from
        assert not final(reading, "pve1")


def reboot(home, host):
    home.pve.host_dies(host)
    home.pve.clock.advance(20)
    home.pve.host_returns(host)
    home.pve.clock.advance(40)


def test_a_boot_of_the_host_that_it_left_does_not_end_it(home):
    conf = left(home)
    home.pve.set_lock(conf.vmid, None)
    home.pve.move_conf(conf.vmid, "pve3")
    reboot(home, "pve1")
    assert [final(it) for it in everybody(home, conf)] == [False, False]


def test_nor_of_one_that_went_on_within_the_cluster_and_was_moved_by_hand_from_there(home):
    """Seen on pve1 last, it runs on pve2, and its configuration is on pve3."""
    conf = home.guest()
    home.watch(4)
    home.pve.qm.migrate(conf.vmid, "pve2").finish()
    home.pve.move_conf(conf.vmid, "pve3")
    reboot(home, "pve1")
    assert home.pve.runs(conf.vmid)
    assert [final(it) for it in everybody(home, conf)] == [False, False]


def test_what_was_left_moved_there_and_back_is_still_not_the_guest(home):
    conf = left(home)
    home.pve.set_lock(conf.vmid, None)
    for host in ("pve3", "pve1"):
        home.pve.qm.migrate(conf.vmid, host).finish()
        home.pve.clock.advance(5)
    never_off(home, conf)


def test_a_backup_restored_over_what_was_left_is_not_the_guest(home):
    conf = left(home)
    home.pve.set_lock(conf.vmid, None)
    assert home.pve.qm.restore(conf.vmid, conf.vmid, force=True).finish() == "OK"
    home.pve.clock.advance(5)
    never_off(home, conf)


def no_end(home, conf):
    for agent in (home.hypervisor, home.agent()):
        with pytest.raises(GuestNotFound):
            agent.read(home.ref(conf))


@pytest.mark.parametrize("moved", [False, True], ids=["where it was", "moved before"])
def test_destroying_what_was_left_is_no_end(home, moved):
    conf = left(home)
    home.pve.set_lock(conf.vmid, None)
    if moved:
        home.pve.qm.migrate(conf.vmid, "pve3").finish()
    home.pve.clock.advance(5)
    assert home.pve.qm.destroy(conf.vmid).finish() == "OK"
    home.pve.clock.advance(5)
    no_end(home, conf)


@pytest.mark.parametrize("delete", [True, False], ids=["with --delete", "destroyed by hand"])
@pytest.mark.parametrize("then", ["runs", "destroyed", "destroyed, and a third one runs"])
def test_the_next_guests_under_its_number_do_not_end_it(home, delete, then):
    conf = left(home, delete=delete)
    if not delete:
        home.pve.set_lock(conf.vmid, None)
        home.pve.qm.destroy(conf.vmid).finish()
    home.pve.clock.advance(5)
    for turn in range({"runs": 1, "destroyed": 1}.get(then, 2)):
        home.guest(f"web-{turn}", vmid=conf.vmid, running=False)
        home.pve.qm.start(conf.vmid).finish()
        home.watch(20)
        if then != "runs" and turn == 0:
            home.pve.qm.stop(conf.vmid).finish()
            home.pve.qm.destroy(conf.vmid).finish()
            home.pve.clock.advance(5)
    no_end(home, conf)


def test_one_that_came_back_from_the_other_cluster_is_off_when_it_ends_here(home):
    """It came back running: there is no start on record, but the other end of that migration."""
    other = PveCluster("barn", clock=home.pve.clock)
    conf = home.guest()
    home.watch(4)
    home.pve.qm.remote_migrate(conf.vmid, to=other, delete=True).finish()
    home.pve.clock.advance(60)
    other.qm.remote_migrate(conf.vmid, to=home.pve, delete=True).finish()
    home.pve.clock.advance(5)
    assert {it.power_state for it in everybody(home, conf)} == {PowerState.RUNNING}
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.clock.advance(5)
    assert [final(it) for it in everybody(home, conf)] == [True, True]


def test_one_that_is_brought_back_and_stopped_here_is_off(home):
    """By a start on this cluster's record: whoever starts it here has seen to the other copy."""
    conf = left(home)
    home.pve.set_lock(conf.vmid, None)
    home.pve.qm.start(conf.vmid).finish()
    home.watch(4)
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.clock.advance(5)
    assert [final(it) for it in everybody(home, conf)] == [True, True]


# -- within the cluster: the target's own start -----------------------------------------------------------


PATHS = [("2",), ("2", "1"), ("2", "3"), ("2", "3", "2"), ("2", "1", "3")]


@pytest.mark.parametrize("path", PATHS, ids="-".join)
@pytest.mark.parametrize("seen", [True, False])
def test_live_migrations_are_followed_back_past_the_start_that_each_makes_on_its_target(home, path, seen):
    conf = home.guest()
    if seen:
        home.watch(4)
    for number in path:
        assert home.pve.qm.migrate(conf.vmid, f"pve{number}").finish() == "OK"
        home.pve.clock.advance(5)
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.clock.advance(5)
    for reading in everybody(home, conf):
        assert (reading.power_state, reading.away) == (PowerState.STOPPED, False)
        assert reading.guest.host == "pve1" or "pve1" in reading.moved_from


def test_a_migration_that_failed_leaves_a_start_and_a_stop_on_its_target_and_nothing_follows(home):
    conf = home.guest()
    home.watch(4)
    task = home.pve.qm.migrate(conf.vmid, "pve2", by_hand=True)
    task.step()
    task.abort()
    home.pve.clock.advance(5)
    assert [it.kind for it in home.pve.tasks.all if it.host.name == "pve2"] == ["qmstart", "qmstop"]
    assert {it.power_state for it in everybody(home, conf)} == {PowerState.RUNNING}
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.clock.advance(5)
    assert [final(it) for it in everybody(home, conf)] == [True, True]


def test_a_cold_start_is_told_from_the_start_that_a_live_migration_makes(home):
    """What the target's start began is the run that was there before, under another process."""
    conf = home.guest()
    home.watch(4)
    home.pve.qm.migrate(conf.vmid, "pve2").finish()
    home.pve.clock.advance(5)
    assert {it.cold_start for it in everybody(home, conf)} == {None}


def test_other_clusters_with_the_same_host_names_are_not_this_one(home):
    """A guest moved by hand to the host that is called as the one it went to."""
    other = PveCluster("barn", clock=home.pve.clock)
    conf = home.guest()
    home.watch(4)
    home.pve.qm.remote_migrate(conf.vmid, to=other, node="pve2").finish()
    assert other.runs(conf.vmid)
    home.pve.set_lock(conf.vmid, None)
    home.pve.move_conf(conf.vmid, "pve2")
    home.pve.clock.advance(5)
    assert [it.moved_from for it in everybody(home, conf)] == [(), ()]
    assert not final(look(home, conf))
