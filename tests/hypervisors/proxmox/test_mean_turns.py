"""Turns of events that each look harmless, and together called a running guest off, or a dead one nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencer.core.model import PowerState
from fencer.errors import HypervisorDenied, HypervisorError, HypervisorUnreachable
from fencer.hypervisors.proxmox.parse import Config, read_status
from fencer.hypervisors.proxmox.states import POWERED_OFF, read_power
from tests.hypervisors.proxmox.conftest import Home, serve
from tests.hypervisors.proxmox.finality import final
from tests.hypervisors.proxmox.test_quorum import proven, stopped
from tests.support.pve import PveCluster
from tests.support.pve.model import Conf, Daemon


def test_a_recovery_by_ha_is_no_excuse_for_what_left_long_after(home: Home) -> None:
    """HA took it off pve3 once, as this agent saw. Later it left for another cluster, and was unlocked."""
    other = PveCluster("barn", clock=home.pve.clock)
    conf = home.guest(host="pve3", ha="started")
    home.watch(30)
    home.pve.host_dies("pve3")
    home.watch(300)
    at = home.pve.confs[conf.vmid].host
    assert at != "pve3"
    assert home.read(conf).power_state is PowerState.RUNNING
    home.pve.host_returns("pve3")
    home.watch(600, 10)
    home.pve.ha.remove(conf.vmid)
    home.watch(60)
    home.pve.qm.remote_migrate(conf.vmid, to=other).finish()
    home.pve.set_lock(conf.vmid, None)
    home.pve.clock.advance(30)
    assert other.runs(conf.vmid)
    for agent in (home.hypervisor, home.agent()):
        assert not final(agent.read(home.ref(conf)), at)


def test_a_host_is_not_missed_by_a_server_that_hangs_itself(home: Home) -> None:
    """pve3 hangs while pve1 is away for a moment; then the guest moves, and pve1 is off for repair."""
    conf = home.guest(host="pve1")
    alone = home.agent(servers=home.api.urls[2:])
    for _ in range(10):
        home.pve.clock.advance(2)
        alone.sweep()
    home.pve.partition({"pve1"})
    home.pve.clock.advance(9)
    home.pve.set_corosync("pve3", Daemon.FROZEN)
    home.pve.heal()
    home.pve.clock.advance(20)
    assert home.pve.qm.migrate(conf.vmid, "pve2").finish() == "OK"
    home.pve.host_dies("pve1")
    home.pve.clock.advance(60)
    with pytest.raises(HypervisorError, match="heard of no other host"):
        alone.read(replace(home.ref(conf), host="pve1"))
    assert home.pve.runs(conf.vmid)


def believed_at(home: Home, conf: Conf, agent, seconds: int) -> list[int]:
    """Return when a guest was called off, looking every 5 s."""
    found = []
    for at_s in range(5, seconds, 5):
        home.pve.clock.advance(5)
        if proven(home, conf, agent):
            found.append(at_s)
    return found


@pytest.mark.slow
def test_the_reboot_of_another_host_makes_old_statistics_no_newer(home: Home) -> None:
    """Its uptime comes to where it was when corosync began to hang."""
    conf = stopped(home)
    for name in ("pve2", "pve3"):
        home.pve.hosts[name].up_since_s = home.pve.clock.now_s() - 50
    home.pve.clock.advance(12)
    alone = home.agent(servers=home.api.urls[:1])
    assert proven(home, conf, alone)
    home.pve.set_corosync("pve1", Daemon.FROZEN)
    assert max(believed_at(home, conf, alone, 60)) <= 30
    home.pve.host_dies("pve2")
    home.pve.clock.advance(5)
    home.pve.host_returns("pve2")
    assert believed_at(home, conf, alone, 500) == []


@pytest.mark.parametrize("ahead_s", [90, *(pytest.param(s, marks=pytest.mark.slow) for s in (600, 3600))])
def test_a_clock_that_is_ahead_makes_old_words_no_newer(home: Home, ahead_s: int) -> None:
    home.guest("managed", host="pve2", ha="started")
    conf = stopped(home)
    alone = home.agent(servers=home.api.urls[:1])
    home.pve.clock.advance(30)
    assert proven(home, conf, alone)
    home.pve.set_corosync("pve1", Daemon.FROZEN)
    home.pve.hosts["pve1"].stale.lrm["pve2"]["timestamp"] += ahead_s
    assert max(believed_at(home, conf, alone, ahead_s + 300)) <= 45


def test_a_boot_explains_nothing_of_a_guest_that_was_started_after_it(home: Home) -> None:
    """It starts with its host, unseen, and its configuration is moved by hand while it runs."""
    conf = home.guest(host="pve1", onboot=True)
    home.watch(10)
    home.pve.host_dies("pve1")
    home.pve.clock.advance(20)
    home.pve.host_returns("pve1")
    home.pve.clock.advance(30)
    home.pve.move_conf(conf.vmid, "pve3")
    home.pve.clock.advance(30)
    assert home.pve.runs(conf.vmid)
    assert not final(home.read(conf), "pve1")


def test_nor_where_a_host_is_missing_that_may_have_started_it(home: Home) -> None:
    """pve1 died; by hand it went to pve2 and was started, and from there to pve3, once pve2 was gone."""
    alone = home.agent(servers=home.api.urls[:1])
    conf = home.guest(host="pve1")
    for _ in range(10):
        home.pve.clock.advance(2)
        alone.sweep()
    home.pve.host_dies("pve1")
    home.pve.clock.advance(60)
    home.pve.move_conf(conf.vmid, "pve2")
    home.pve.qm.start(conf.vmid).finish()
    home.pve.clock.advance(60)
    home.pve.host_returns("pve1")
    home.pve.partition({"pve2"})
    home.pve.clock.advance(20)
    home.pve.move_conf(conf.vmid, "pve3")
    home.pve.clock.advance(60)
    assert home.pve.runs(conf.vmid)
    assert not final(alone.read(home.ref(conf)), "pve1")


def test_half_a_guest_of_another_cluster_is_not_to_be_unlocked(home: Home) -> None:
    """`qm remote-migrate` broke off amid the copy: what it left at its target is locked for ever."""
    conf = home.guest(running=False)
    home.pve.set_lock(conf.vmid, "create")
    home.pve.tasks.start(home.pve.hosts["pve1"], "qmtunnel", conf.vmid, "root@pam!move", iter(()))
    home.read(conf)
    home.pve.clock.advance(1000)
    assert "qm unlock" not in home.read(conf).raw


def test_a_guest_that_nobody_ends_is_told_with_what_does(home: Home) -> None:
    """It has shut itself down, and qmeventd is dead, which would end its process."""
    conf = home.guest()
    home.watch(10)
    home.pve.set_qmp(conf.vmid, "shutdown")
    first = home.read(conf)
    assert (first.power_state, first.powered_off, first.settled) == (PowerState.STOPPING, True, True)
    assert (first.stuck, first.told) == (f"`qm stop {conf.vmid}` on pve1", "")
    assert first.raw.endswith("running (shutdown), no lock"), "each power-off passes through that"
    home.pve.clock.advance(6)
    raw = f"running (shutdown), no lock: it has powered itself off; {first.stuck} ends its process"
    assert home.read(conf).raw.endswith(raw)
    home.pve.clock.advance(694)
    seen = home.read(conf)
    assert seen.incarnation == first.incarnation
    assert seen.stuck == f"`qm stop {conf.vmid}` on pve1"
    assert "qmeventd" in seen.told
    home.pve.qm.stop(conf.vmid).finish()
    over = home.read(conf)
    assert (over.power_state, over.powered_off, over.stuck) == (PowerState.STOPPED, False, "")


RECORDED = {
    "status": "running",
    "qmpstatus": "shutdown",
    "pid": 5395,
    "uptime": 513,
    "vmid": 104,
    "name": "k8s-104",
    "running-qemu": "10.0.13",
    "ha": {"managed": 0},
}
"""What `status/current` answered of a VM that had powered itself off, with qmeventd dead: in part.

Source: pve-manager 9.2.11, QEMU 10.0.13.
"""


def test_what_the_real_api_answers_of_it_is_read_so() -> None:
    status = read_status(RECORDED)
    reading = read_power(status, Config(uuid="", name=""))
    assert (reading.power_state, reading.raw) == (PowerState.STOPPING, "running (shutdown), no lock")
    assert status.qmpstatus == POWERED_OFF


def test_while_a_task_waits_for_its_end_a_process_is_not_left(home: Home) -> None:
    """`qm shutdown` waits for a minute, and holds the lock of the configuration meanwhile."""
    conf = home.guest()
    home.watch(10)
    home.pve.set_qmp(conf.vmid, "shutdown")
    host = home.pve.hosts["pve1"]
    task = home.pve.tasks.start(host, "qmshutdown", conf.vmid, "root@pam", iter(()), by_hand=True)
    task.exitstatus = None
    seen = home.read(conf)
    assert (seen.power_state, seen.powered_off, seen.settled) == (PowerState.STOPPING, False, False)
    assert seen.stuck == ""


@pytest.mark.parametrize("word", ["prelaunch", "inmigrate", "postmigrate", "save-vm", "restore-vm"])
def test_no_other_change_leaves_a_process(home: Home, word: str) -> None:
    conf = home.guest()
    home.pve.set_qmp(conf.vmid, word)
    assert not home.read(conf).powered_off


def test_alone_with_a_quorum_device_the_other_server_is_asked(tmp_path) -> None:
    """pve1 hangs when pve2 is away; pve2 is back, goes on with the device's vote, and starts the guest."""
    pve = PveCluster(hosts=("pve1", "pve2"))
    pve.corosync.device, pve.corosync.device_told = True, True
    for home in serve(pve, tmp_path):
        conf = stopped(home, "pve1")
        pve.host_dies("pve2")
        pve.clock.advance(20)
        agent = home.agent(servers=home.api.urls[:2])
        assert proven(home, conf, agent)
        pve.set_corosync("pve1", Daemon.FROZEN)
        pve.clock.advance(5)
        pve.host_returns("pve2")
        pve.clock.advance(30)
        pve.move_conf(conf.vmid, "pve2")
        pve.qm.start(conf.vmid).finish()
        pve.clock.advance(600)
        assert pve.runs(conf.vmid)
        assert proven(home, conf, agent) is None


def test_one_host_that_may_not_be_asked_stops_no_proof(home: Home) -> None:
    home.pve.access.grant(home.pve.token, "/nodes/pve2", {"VM.Audit"})
    assert proven(home, stopped(home, "pve1"), home.agent())


def test_while_ha_is_at_it_nobody_is_asked_for_their_word_first(home: Home) -> None:
    conf, other = home.guest(host="pve2", ha="started"), home.guest("k8s-2", host="pve2")
    home.watch(30)
    home.pve.host_dies("pve2")
    home.pve.clock.advance(20)
    home.hypervisor.sweep()
    assert home.read(conf).stuck == "HA, which fences pve2 within two to three minutes"
    assert home.read(other).stuck == ""


def test_a_token_that_sees_no_guest_any_more_is_told_at_once(home: Home) -> None:
    """Or every node would be called healthy until one of them dies."""
    home.guest()
    home.watch(10)
    home.pve.access.grant(home.pve.token, "/", {"Sys.Audit"})
    with pytest.raises(HypervisorDenied, match="sees no guest: it lacks"):
        home.hypervisor.sweep()


def test_a_cluster_without_guests_is_no_error(home: Home) -> None:
    assert home.hypervisor.sweep() == []


def test_a_sweep_tells_of_a_corosync_that_hangs(home: Home) -> None:
    """By what it remembers: a look at healthy hosts costs no call more."""
    home.guest()
    alone = home.agent(servers=home.api.urls[:1])
    for _ in range(30):
        home.pve.clock.advance(2)
        alone.sweep()
    home.pve.set_corosync("pve1", Daemon.FROZEN)
    for _ in range(15):
        home.pve.clock.advance(2)
        alone.sweep()
    home.pve.clock.advance(2)
    with pytest.raises(HypervisorUnreachable, match="heard of no other host"):
        alone.sweep()


def test_what_left_for_another_cluster_has_not_come_back_by_another_hosts_clock(home: Home) -> None:
    """pve1, from where it had come before, has a clock that is ten minutes ahead."""
    other = PveCluster("barn", clock=home.pve.clock)
    conf = home.guest(host="pve1")
    home.watch(20)
    home.read(conf)
    home.pve.clock.advance(100)
    assert home.pve.qm.migrate(conf.vmid, "pve2").finish() == "OK"
    for task in home.pve.tasks.all:
        if task.host.name == "pve1":
            task.started_at, task.ended_at = task.started_at + 600, task.ended_at + 600
    home.watch(20)
    home.pve.qm.remote_migrate(conf.vmid, to=other).finish()
    home.pve.set_lock(conf.vmid, None)
    home.pve.clock.advance(20)
    assert other.runs(conf.vmid)
    for agent in (home.hypervisor, home.agent()):
        assert not final(agent.read(home.ref(conf)), "pve2")
