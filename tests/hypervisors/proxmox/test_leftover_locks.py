"""A lock that nobody is left to take off: whoever waits for it waits for ever, so people have to hear."""

import re

import pytest

from fencer.contract.deadlines import order
from fencer.core.model import PowerState
from fencer.errors import HypervisorProtocol
from tests.hypervisors.proxmox.nodes import Watch

TEN_MINUTES = 600


def begin(home, lock):
    """Begin what sets a lock; return the guest that has it."""
    conf, qm = home.guest(), home.pve.qm
    home.read(conf)
    if lock == "rollback":
        qm.snapshot(conf.vmid).finish()
        qm.rollback(conf.vmid, by_hand=True)
    elif lock == "create":
        qm.restore(conf.vmid, 300, by_hand=True)
        conf = home.pve.confs[300]
    else:
        qm.snapshot(conf.vmid, by_hand=True)
    home.pve.clock.advance(2)
    assert conf.lock == lock
    return conf


def broken_off(home, lock="snapshot"):
    """Return a guest whose host lost its power amid that, and is back."""
    conf = begin(home, lock)
    home.pve.host_dies("pve1")
    home.pve.clock.advance(60)
    home.pve.host_returns("pve1")
    home.pve.clock.advance(20)
    return conf


def way_out(conf):
    return f"`qm unlock {conf.vmid}` on pve1"


def watch(home, conf, seconds, every_s=60):
    """Read a guest now and then; return the last reading."""
    for _ in range(int(seconds / every_s)):
        home.pve.clock.advance(every_s)
        home.read(conf)
    return home.read(conf)


# -- a guest that is off ----------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", ["snapshot", "rollback", "create"])
def test_a_lock_whose_task_is_long_over_names_the_way_out(home, lock):
    conf = broken_off(home, lock)
    off = watch(home, conf, TEN_MINUTES)
    assert (off.power_state, off.settled) == (PowerState.STOPPED, False)
    for text in (off.raw, off.told):
        assert f"its lock ({lock}) is left over" in text
        assert "no task has been at work on it for" in text
        assert way_out(conf) in text


def test_it_says_nothing_of_the_kind_before(home):
    conf = broken_off(home)
    off = watch(home, conf, 240)
    assert (off.settled, off.told) == (False, "")
    assert "qm unlock" not in off.raw


def test_an_agent_without_memory_knows_it_by_the_tasks(home):
    """As does `fencer status`, which looks once."""
    conf = broken_off(home)
    home.pve.clock.advance(3 * 3600)
    agent = home.agent()
    [swept] = [it for it in agent.sweep() if it.guest.id == str(conf.vmid)]
    for off in (swept, home.agent().read(home.ref(conf))):
        assert way_out(conf) in off.raw
        assert "at work on it for 3h01m" in off.raw


def test_a_lock_that_is_taken_off_is_out_of_the_way(home):
    conf = broken_off(home)
    watch(home, conf, TEN_MINUTES)
    home.pve.set_lock(conf.vmid, None)
    off = home.read(conf)
    assert (off.power_state, off.settled, off.told) == (PowerState.STOPPED, True, "")


@pytest.mark.parametrize("lock", ["migrate", "suspended", "suspending"])
def test_a_lock_of_memory_that_may_live_on_is_never_called_left_over(home, lock):
    """Of these, the guest may run elsewhere, or has its memory on disk."""
    conf = home.guest(running=False)
    home.pve.set_lock(conf.vmid, lock)
    off = watch(home, conf, 2 * TEN_MINUTES)
    assert "unlock" not in off.raw + off.told


def test_a_remote_migration_that_is_over_is_none_either(home):
    conf = home.guest()
    home.read(conf)
    home.pve.qm.remote_migrate(conf.vmid).finish()
    off = watch(home, conf, 2 * TEN_MINUTES)
    assert "unlock" not in off.raw + off.told


def test_a_guest_that_may_run_where_it_was_moved_from_is_not_to_be_unlocked(home):
    """Its configuration was moved by hand amid a snapshot, and it runs on there."""
    conf = begin(home, "snapshot")
    home.pve.move_conf(conf.vmid, "pve2")
    off = watch(home, conf, 2 * TEN_MINUTES)
    assert home.pve.kvms(conf.vmid)
    assert (off.power_state, off.guest.host, off.settled) == (PowerState.STOPPED, "pve2", False)
    assert "unlock" not in off.raw + off.told


def test_a_task_that_takes_long_is_at_work(home):
    """A snapshot of a guest that is off, on slow storage."""
    conf = home.guest(running=False)
    task = home.pve.qm.snapshot(conf.vmid, by_hand=True)
    off = watch(home, conf, 2 * TEN_MINUTES)
    assert (off.settled, off.told) == (False, "")
    assert "qmsnapshot is at work" in off.raw
    task.step()
    assert home.read(conf).settled


def test_a_lock_without_any_task_on_record_is_left_over_after_ten_minutes_of_watching(home):
    conf = home.guest(running=False)
    home.pve.set_lock(conf.vmid, "snapshot")
    home.read(conf)
    assert watch(home, conf, TEN_MINUTES - 60).told == ""
    assert way_out(conf) in watch(home, conf, 60).told


def test_another_lock_is_watched_again(home):
    conf = home.guest(running=False)
    home.pve.set_lock(conf.vmid, "snapshot")
    watch(home, conf, TEN_MINUTES)
    home.pve.set_lock(conf.vmid, "rollback")
    assert watch(home, conf, TEN_MINUTES - 60).told == ""
    assert "(rollback)" in watch(home, conf, 120).told


def test_what_the_lock_itself_refuses_does_not_count_as_work(home):
    """Somebody tries to start the guest, again and again."""
    conf = broken_off(home)
    for _ in range(3):
        watch(home, conf, 240)
        assert home.pve.qm.start(conf.vmid).finish() == "VM is locked (snapshot)"
    assert way_out(conf) in home.read(conf).raw


def test_nor_does_whoever_looks_at_its_screen(home):
    conf = broken_off(home)
    home.pve.clock.advance(TEN_MINUTES)
    host = home.pve.hosts["pve1"]
    home.pve.tasks.start(host, "vncproxy", str(conf.vmid), "root@pam", iter(())).end("OK")
    assert way_out(conf) in home.read(conf).raw


def test_a_lock_that_does_no_harm_is_not_complained_about(home):
    conf = home.guest(running=False)
    home.pve.set_lock(conf.vmid, "backup")
    off = watch(home, conf, 2 * TEN_MINUTES)
    assert (off.settled, off.told) == (True, "")
    assert "unlock" not in off.raw


# -- a guest that has a process: a token may not stop it either -------------------------------------------


@pytest.mark.parametrize("lock", ["backup", "snapshot", "snapshot-delete", "rollback", "create"])
def test_a_paused_guest_whose_lock_is_left_over_names_the_way_out(home, lock):
    conf = home.guest()
    home.pve.qm.suspend(conf.vmid).finish()
    home.pve.set_lock(conf.vmid, lock)
    paused = watch(home, conf, TEN_MINUTES + 60)
    assert (paused.power_state, paused.settled) == (PowerState.PAUSED, False)
    assert way_out(conf) in paused.raw


def test_a_backup_of_many_guests_is_at_work_on_each(home):
    """Its task carries no guest's number."""
    conf = home.guest()
    home.pve.set_lock(conf.vmid, "backup")
    host = home.pve.hosts["pve1"]
    task = home.pve.tasks.start(host, "vzdump", "", "root@pam", iter(()), by_hand=True)
    task.exitstatus = None
    assert watch(home, conf, 2 * TEN_MINUTES).told == ""
    task.end("job errors")
    for agent in (home.hypervisor, home.agent()):
        assert agent.read(home.ref(conf)).told == ""
    home.pve.clock.advance(TEN_MINUTES)
    for agent in (home.hypervisor, home.agent()):
        assert way_out(conf) in agent.read(home.ref(conf)).told


def test_a_guest_that_runs_unlocked_again_is_watched_again(home):
    conf = home.guest(running=False)
    home.pve.set_lock(conf.vmid, "snapshot")
    watch(home, conf, TEN_MINUTES)
    home.pve.set_lock(conf.vmid, None)
    home.read(conf)
    home.pve.set_lock(conf.vmid, "snapshot")
    assert watch(home, conf, TEN_MINUTES - 60).told == ""


# -- who hears of it --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_node_that_waits_for_such_a_lock_is_told_of_once(home):
    conf = home.guest()
    agent = Watch(home.pve, home.hypervisor, [conf])
    agent.passes(60)
    home.pve.qm.snapshot(conf.vmid, by_hand=True)
    home.pve.host_dies("pve1")
    agent.passes(60)
    home.pve.host_returns("pve1")
    agent.passes(TEN_MINUTES - 120)
    assert agent.notes.alarms == []
    agent.passes(TEN_MINUTES)
    [told] = agent.notes.alarms
    assert told.startswith(f"home/{conf.vmid}")
    assert way_out(conf) in told


def test_an_order_that_a_lock_refuses_names_the_way_out(home):
    conf = home.guest()
    home.pve.set_lock(conf.vmid, "backup")
    with pytest.raises(HypervisorProtocol, match=rf"VM is locked \(backup\).*{re.escape(way_out(conf))}"):
        order(home.hypervisor.stop, home.ref(conf))


def test_one_that_a_migration_refuses_does_not(home):
    conf = home.guest()
    home.pve.set_lock(conf.vmid, "migrate")
    with pytest.raises(HypervisorProtocol, match=r"VM is locked \(migrate\).*is being moved") as caught:
        order(home.hypervisor.stop, home.ref(conf))
    assert "qm unlock" not in str(caught.value)
