"""A guest that both halves of a cluster have started: where its configuration is, it is off; it is not over.

Recorded with two hosts, `two_node: 1` and HA: cut off from each other for four minutes, both started the
guest, and once they were one again, the second process ran on, with one task to show for it.
"""

from __future__ import annotations

import pytest

from fencer.core.model import PowerState
from fencer.errors import HypervisorUnreachable
from tests.support.pve.model import Daemon


def doubly_started(home, *, seen):
    """Return a guest of pve1, off there, that pve2 has started, too, before its configuration was back."""
    conf = home.guest()
    if seen:
        home.watch(4)
        home.read(conf)
    home.pve.clock.advance(60)
    home.pve.move_conf(conf.vmid, "pve2")
    assert home.pve.qm.start(conf.vmid).finish() == "OK"
    if seen:
        home.read(conf)
    home.pve.clock.advance(5)
    return conf


def back_and_stopped(home, conf):
    home.pve.move_conf(conf.vmid, "pve1")
    home.pve.clock.advance(5)
    home.read(conf)
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.clock.advance(15)
    return [agent.read(home.ref(conf)) for agent in (home.hypervisor, home.agent())]


@pytest.mark.parametrize("seen", [True, False])
def test_what_one_half_started_runs_on_when_the_other_halfs_is_stopped(home, seen):
    conf = doubly_started(home, seen=seen)
    readings = back_and_stopped(home, conf)
    assert home.pve.runs(conf.vmid)
    assert {it.power_state for it in readings} == {PowerState.UNKNOWN}
    assert all("last started on pve2 (UPID:pve2:" in it.raw for it in readings)


def test_one_that_was_stopped_there_is_off(home):
    conf = doubly_started(home, seen=False)
    assert home.pve.qm.stop(conf.vmid).finish() == "OK"
    assert {it.power_state for it in back_and_stopped(home, conf)} == {PowerState.STOPPED}


def test_a_boot_of_that_host_has_ended_it(home):
    conf = doubly_started(home, seen=False)
    home.pve.move_conf(conf.vmid, "pve1")
    home.pve.host_dies("pve2")
    home.pve.clock.advance(20)
    home.pve.host_returns("pve2")
    home.pve.clock.advance(60)
    assert {it.power_state for it in back_and_stopped(home, conf)} == {PowerState.STOPPED}


def test_the_start_that_a_failed_migration_made_on_its_target_is_over(home):
    conf = home.guest()
    task = home.pve.qm.migrate(conf.vmid, "pve2")
    home.pve.clock.advance(3)
    task.abort()
    home.pve.clock.advance(20)
    assert {it.power_state for it in back_and_stopped(home, conf)} == {PowerState.STOPPED}


def test_a_live_migration_there_and_back_is_over(home):
    conf = home.guest()
    for target in ("pve2", "pve1"):
        assert home.pve.qm.migrate(conf.vmid, target).finish() == "OK"
        home.pve.clock.advance(10)
    assert {it.power_state for it in back_and_stopped(home, conf)} == {PowerState.STOPPED}


def test_of_a_guest_under_ha_every_hosts_record_is_needed(home):
    """pve2, which has the second process, is counted in and does not answer: that is no record of nothing."""
    conf = home.guest(ha="stopped")
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.clock.advance(15)
    assert home.read(conf).power_state is PowerState.STOPPED
    home.pve.set_daemon("pve2", "pveproxy", Daemon.DEAD)
    with pytest.raises(HypervisorUnreachable, match="pve2 did not answer"):
        home.read(conf)
