"""A backup of a guest that is off: a process that never runs, under a lock, for hours."""

from __future__ import annotations

import pytest

from fencer.contract.deadlines import order
from fencer.core.model import PodView, PowerState
from fencer.errors import HypervisorProtocol
from tests.hypervisors.proxmox.nodes import Watch

HOURS = 3 * 3600


def off(home, **options):
    """Return a guest that has crashed, and that this agent has read off."""
    conf = home.guest(**options)
    home.read(conf)
    home.pve.crash(conf.vmid)
    home.pve.clock.advance(2)
    assert final(home.read(conf))
    return conf


def final(evidence):
    return (evidence.power_state, evidence.settled, evidence.conclusive) == (PowerState.STOPPED, True, True)


def prelaunch(home, conf):
    """Whether its process stands still under the backup's lock, so that the test tests anything."""
    kvms = home.pve.kvms(conf.vmid)
    return [kvm.qmp for kvm in kvms] == ["prelaunch"] and conf.lock == "backup"


# -- read off before the backup began ---------------------------------------------------------------------


def test_a_guest_that_was_read_off_before_stays_off_all_through_its_backup(home):
    conf = off(home)
    before = home.read(conf)
    task = home.pve.qm.backup(conf.vmid, by_hand=True)
    assert prelaunch(home, conf)
    for _ in range(3):
        home.pve.clock.advance(HOURS)
        reading = home.read(conf)
        assert final(reading)
        assert reading.incarnation == before.incarnation
    task.step()
    after = home.read(conf)
    assert (final(after), after.incarnation) == (True, before.incarnation)


def test_so_it_does_for_a_sweep(home):
    conf = off(home)
    home.watch(20)
    home.pve.qm.backup(conf.vmid, by_hand=True)
    for _ in range(30):
        home.pve.clock.advance(2)
        assert home.told(conf).power_state is PowerState.STOPPED
    assert prelaunch(home, conf)


def test_it_says_what_that_process_is(home):
    conf = off(home)
    home.pve.qm.backup(conf.vmid, by_hand=True)
    raw = home.read(conf).raw
    assert "running (prelaunch), lock backup, a process that a backup reads its disks through" in raw


def test_a_job_of_many_guests_may_have_begun_long_before_the_end(home):
    """What counts is when it comes to this guest, and its lock tells."""
    conf = home.guest()
    home.read(conf)
    task = home.pve.qm.backup_of_many(conf.vmid)
    home.pve.clock.advance(HOURS)
    home.pve.crash(conf.vmid)
    home.pve.clock.advance(2)
    assert final(home.read(conf))
    task.step()
    assert prelaunch(home, conf)
    assert final(home.read(conf))


def test_a_backup_that_waits_for_its_turn_is_not_in_the_way(home):
    """It holds no lock yet: whatever it will find, it finds the guest off, even for an agent that is new."""
    conf = home.guest(running=False)
    host = home.pve.hosts["pve1"]
    task = home.pve.tasks.start(host, "vzdump", conf.vmid, "root@pam", iter(()), by_hand=True)
    task.exitstatus = None
    assert final(home.read(conf))


def test_a_lock_and_a_process_that_a_backup_leaves_behind_do_not_bring_it_back_either(home):
    conf = off(home)
    task = home.pve.qm.backup(conf.vmid, by_hand=True)
    task.cut_off()
    assert prelaunch(home, conf)
    assert final(home.read(conf))


def test_a_qemu_that_does_not_say_that_it_stands_still_is_asked_again(home):
    """As it begins, and whenever its storage hangs: then Proxmox calls it just running."""
    conf = off(home)
    home.pve.qm.backup(conf.vmid, by_hand=True)
    home.pve.freeze(conf.vmid)
    assert home.read(conf).power_state is PowerState.RUNNING
    home.pve.thaw(conf.vmid)
    assert prelaunch(home, conf)
    assert final(home.read(conf))


@pytest.mark.slow
@pytest.mark.parametrize("begins_s", [12, 20, 30])
def test_a_dead_node_is_fenced_long_before_its_backup_ends(home, begins_s):
    """By the careful recipe, and without a hook: the cluster tells of the end up to ten seconds late."""
    confs = [home.guest(name) for name in ("k8s-1", "k8s-2", "k8s-3")]
    watch = Watch(home.pve, home.hypervisor, confs)
    watch.nodes.placed["k8s-1"] = (PodView("shop", "web", "uid-web", "1", "Running"),)
    watch.passes(60)
    home.pve.crash(confs[0].vmid)
    died_s = home.pve.clock.now_s()
    watch.passes(begins_s)
    home.pve.qm.backup(confs[0].vmid, by_hand=True)
    while not watch.nodes.tainted_s and home.pve.clock.now_s() - died_s < 90:
        watch.passes(2)
    assert prelaunch(home, confs[0])
    assert list(watch.nodes.tainted_s) == ["k8s-1"]


# -- not read off before ----------------------------------------------------------------------------------


def test_an_agent_that_has_not_read_it_off_before_waits(home):
    conf = off(home)
    task = home.pve.qm.backup(conf.vmid, by_hand=True)
    agent = home.agent()
    for _ in range(3):
        home.pve.clock.advance(5)
        reading = agent.read(home.ref(conf))
        assert (reading.power_state, reading.settled) == (PowerState.STOPPING, False)
    task.abort()
    home.pve.clock.advance(5)
    assert final(agent.read(home.ref(conf)))


def test_it_says_for_which_backup_and_what_ends_it(home):
    conf = off(home)
    task = home.pve.qm.backup(conf.vmid, by_hand=True)
    agent = home.agent()
    home.pve.clock.advance(HOURS)
    first = agent.read(home.ref(conf))
    assert f"the backup {task.upid}, begun 3h00m ago, is at work" in first.raw
    home.pve.clock.advance(130)
    later = agent.read(home.ref(conf))
    assert f"`pvesh delete /nodes/pve1/tasks/{task.upid}`" in later.stuck
    assert f"`qm stop {conf.vmid}` is refused" in later.stuck
    with pytest.raises(HypervisorProtocol, match="VM is locked"):
        order(agent.stop, home.ref(conf))


def test_a_guest_that_shuts_itself_down_amid_its_backup_names_that_too(home):
    """Its process stays for the backup's sake."""
    conf = home.guest()
    home.read(conf)
    task = home.pve.qm.backup(conf.vmid, by_hand=True)
    home.pve.set_qmp(conf.vmid, "shutdown")
    home.read(conf)
    home.pve.clock.advance(130)
    reading = home.read(conf)
    assert (reading.power_state, reading.settled) == (PowerState.STOPPING, False)
    assert not reading.powered_off
    assert task.upid in reading.stuck


def test_of_several_backups_it_names_the_one_that_works(home):
    """The later one waits for the first one's end, though it carries the guest's number."""
    conf = off(home)
    task = home.pve.qm.backup_of_many(conf.vmid)
    task.step()
    home.pve.clock.advance(2)
    host = home.pve.hosts["pve1"]
    waits = home.pve.tasks.start(host, "vzdump", conf.vmid, "root@pam", iter(()), by_hand=True)
    waits.exitstatus = None
    assert task.upid in home.agent().read(home.ref(conf)).raw


def test_of_a_backup_in_stop_mode_it_names_no_way_out(home):
    """It lets its guest boot within seconds: nobody is to stop that backup."""
    conf = home.guest()
    home.read(conf)
    task = home.pve.qm.backup(conf.vmid, "stop", by_hand=True)
    seen = []
    while task.step() is not None:
        seen.append(home.read(conf))
        home.pve.clock.advance(20)
    assert [it.power_state for it in seen] == [PowerState.STOPPED, PowerState.STOPPING, PowerState.RUNNING]
    assert not any(it.settled or it.stuck for it in seen)


def test_off_on_another_host_is_not_off_here(home):
    conf = off(home)
    home.pve.qm.migrate(conf.vmid, "pve2").finish()
    home.pve.qm.backup(conf.vmid, by_hand=True)
    assert prelaunch(home, conf)
    assert not final(home.read(conf))


def test_ha_starts_its_guest_amid_the_backup(home):
    """To HA it does not run, and the start lets the backup's process run."""
    conf = home.guest()
    home.pve.ha.add(conf.vmid)
    home.watch(30)
    before = home.read(conf)
    home.pve.crash(conf.vmid)
    home.pve.qm.backup(conf.vmid, by_hand=True)
    assert prelaunch(home, conf)
    assert not final(home.read(conf))
    home.watch(60)
    reading = home.read(conf)
    assert reading.power_state is PowerState.RUNNING
    assert reading.incarnation != before.incarnation


# -- it was begun in between ------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["start", "resume"])
def test_a_guest_that_is_let_run_on_in_that_process_has_begun_a_run(home, verb):
    conf = off(home)
    before = home.read(conf)
    home.pve.qm.backup(conf.vmid, by_hand=True)
    assert final(home.read(conf))
    assert getattr(home.pve.qm, verb)(conf.vmid).finish() == "OK"
    reading = home.read(conf)
    assert reading.power_state is PowerState.RUNNING
    assert reading.incarnation != before.incarnation


@pytest.mark.parametrize("verb", ["start", "resume"])
def test_and_that_counts_though_nobody_saw_it_run(home, verb):
    """Paused, it was reset, and stands still before its boot, as the backup's process did."""
    conf = off(home)
    home.pve.qm.backup(conf.vmid, by_hand=True)
    getattr(home.pve.qm, verb)(conf.vmid).finish()
    home.pve.set_qmp(conf.vmid, "prelaunch")
    assert prelaunch(home, conf)
    assert not final(home.read(conf))


def test_a_guest_that_ran_meanwhile_is_not_off_in_the_backup_of_its_run(home):
    """It runs under no lock, by no task on record; then it is backed up, paused and reset."""
    conf = off(home)
    home.pve.qm.launch(home.pve.hosts["pve1"], conf.vmid)
    assert home.read(conf).power_state is PowerState.RUNNING
    home.pve.qm.backup(conf.vmid, by_hand=True)
    home.pve.set_qmp(conf.vmid, "prelaunch")
    assert prelaunch(home, conf)
    assert not final(home.read(conf))


def test_memory_on_disk_comes_back_with_a_backup_once_somebody_has_unlocked_it(home):
    """The backup starts its process with it; then neither lock nor saved memory is to be seen any more."""
    conf = home.guest()
    memory = home.pve.memory_of(conf.vmid)
    home.read(conf)
    home.pve.qm.hibernate(conf.vmid).finish()
    home.pve.set_lock(conf.vmid, None)
    assert home.read(conf).power_state is PowerState.SAVED
    home.pve.qm.backup(conf.vmid, by_hand=True)
    for agent in (home.hypervisor, home.agent()):
        assert agent.read(home.ref(conf)).power_state is PowerState.STOPPING
    assert [kvm.memory for kvm in home.pve.kvms(conf.vmid)] == [memory]


@pytest.mark.parametrize("change", ["unlocked", "with saved memory"])
def test_a_process_that_may_be_another_is_not_the_backups(home, change):
    conf = off(home)
    home.pve.qm.backup(conf.vmid, by_hand=True)
    assert final(home.read(conf))
    if change == "unlocked":
        home.pve.set_lock(conf.vmid, None)
    else:
        conf.vmstate = "local:101/vm-101-state-suspend.raw"
    assert not final(home.read(conf))
