"""What a sweep costs, and what it is worth."""

from __future__ import annotations

import pytest

from fencer.core.model import PowerState
from tests.hypervisors.proxmox.conftest import Home
from tests.support.pve import Daemon, PveCluster, PveServers

READ = ["GET /cluster/status", "GET /cluster/ha/status/manager_status", "GET /cluster/resources"]


def test_a_sweep_of_healthy_guests_is_three_calls(home):
    for number in range(30):
        home.guest(f"k8s-{number}", host=f"pve{number % 3 + 1}")
    home.watch(30)
    home.asked()
    for _ in range(50):
        home.pve.clock.advance(2)
        swept = home.hypervisor.sweep()
        assert all(it.conclusive and it.power_state is PowerState.RUNNING for it in swept)
        assert home.asked() == READ


def test_with_guests_under_ha_it_is_no_more(home):
    home.guest(ha="started")
    home.watch(30)
    home.asked()
    home.watch(2)
    assert home.asked() == READ


def test_guests_at_rest_cost_nothing_either(home):
    home.guest(running=False)
    home.watch(30)
    home.asked()
    home.watch(4)
    assert home.asked() == [*READ, *READ]


def test_configurations_are_read_again_now_and_then(home):
    conf = home.guest(running=False)
    home.watch(4)
    conf.uuid = "99999999-0000-4000-8000-000000000000"
    home.watch(320)
    assert home.told(conf).guest.uuid == conf.uuid


def test_a_row_of_the_cache_never_proves_a_guest_off(home):
    """It says stopped for ten seconds after every start."""
    conf = home.guest(running=False)
    home.watch(4)
    home.pve.qm.start(conf.vmid).finish()
    for _ in range(20):
        home.pve.clock.advance(1)
        told = home.told(conf)
        assert not (told.conclusive and told.power_state is not PowerState.RUNNING)


def test_a_row_of_a_dead_host_does_not_prove_a_guest_running_for_long(home):
    """The cache says so for five minutes; that it ran 25 s ago is all that is believed of it."""
    conf = home.guest(host="pve3")
    home.watch(30)
    assert home.told(conf).conclusive
    home.pve.host_dies("pve3")
    home.watch(30)
    told = home.told(conf)
    assert (told.power_state, told.conclusive) == (PowerState.UNKNOWN, False)


def test_a_fall_is_read_live_as_soon_as_the_cache_shows_it(home):
    conf = home.guest()
    home.watch(30)
    home.pve.crash(conf.vmid)
    for _ in range(12):
        home.pve.clock.advance(2)
        told = home.told(conf)
        if told.power_state is PowerState.STOPPED:
            break
    assert told.conclusive


def test_a_nudged_guest_is_read_live_at_once(home):
    conf = home.guest()
    home.watch(30)
    home.pve.crash(conf.vmid)
    assert home.told(conf).power_state is PowerState.RUNNING  # the cache does not know yet
    home.hypervisor.nudge(str(conf.vmid))
    told = home.told(conf)
    assert (told.power_state, told.conclusive) == (PowerState.STOPPED, True)


def test_a_guest_that_a_task_still_holds_is_read_again_by_the_next_sweep(home):
    """Post-stop runs inside the task that ended the guest: what its nudge finds is not settled yet."""
    conf = home.guest()
    home.watch(30)
    task = home.pve.qm.stop(conf.vmid)
    home.pve.clock.advance(0.5)
    home.hypervisor.nudge(str(conf.vmid))
    told = home.told(conf)
    assert (task.exitstatus, told.power_state, told.settled) == (None, PowerState.STOPPED, False)
    task.finish()
    told = home.told(conf)
    assert (told.power_state, told.settled, told.conclusive) == (PowerState.STOPPED, True, True)


@pytest.mark.parametrize("vmid", ["", "999", "-1", "101; reboot", "\u0661\u0660\u0661"])
def test_a_nudge_about_nobody_only_wakes(home, vmid):
    woken = []
    home.hypervisor.subscribe(lambda: woken.append(vmid))
    home.hypervisor.nudge(vmid)
    home.hypervisor.sweep()
    assert woken == [vmid]


def test_an_old_row_does_not_contradict_a_newer_reading(home):
    """Else a guest that was paused would read running every other second, and never be paused for long."""
    conf = home.guest()
    home.watch(30)
    home.pve.qm.suspend(conf.vmid).finish()
    assert home.read(conf).power_state is PowerState.PAUSED
    for _ in range(10):
        home.pve.clock.advance(2)
        told = home.told(conf)
        assert not (told.conclusive and told.power_state is PowerState.RUNNING)
        assert home.read(conf).power_state is PowerState.PAUSED


@pytest.mark.slow
def test_a_host_that_hangs_does_not_hold_a_sweep_up(tmp_path):
    """Its guests are left alone for a while; the others are read."""
    with PveServers(PveCluster(), tmp_path) as api:
        api.delay_scale = 1.0  # 596 takes 30 s
        pve = api.pve
        hung = [pve.add_guest(f"k8s-{number}", "pve3") for number in range(3)]
        well = pve.add_guest("k8s-9", "pve2")
        pve.set_daemon("pve3", "pvedaemon", Daemon.FROZEN)
        home = Home(pve, api, tmp_path)
        told = {it.guest.id: it for it in home.hypervisor.sweep()}
        assert not told.keys() & {str(conf.vmid) for conf in hung}
        pve.clock.advance(2)
        home.asked()
        told = {it.guest.id: it for it in home.hypervisor.sweep()}
        assert told[str(well.vmid)].conclusive
        assert not [it for it in home.asked() if "/nodes/pve3/" in it]
        home.close()
