"""What a server says that has lost the others, and does not know, or where half of the hosts are enough."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fencer.core.model import Evidence, PowerState, Proof
from fencer.errors import HypervisorError, HypervisorUnreachable
from tests.hypervisors.proxmox.conftest import Home, serve
from tests.support.pve import PveCluster
from tests.support.pve.model import Conf, Daemon

CUT = [Daemon.DEAD, Daemon.FROZEN]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Home]:
    """Two hosts, each of which has a quorum by itself (`two_node: 1`)."""
    pve = PveCluster(hosts=("pve1", "pve2"))
    pve.corosync.enough = 1
    yield from serve(pve, tmp_path)


def proven(home: Home, conf: Conf, agent=None) -> Evidence | None:
    """Return what is said of a guest, if it proves it off; None otherwise."""
    try:
        found = (agent or home.hypervisor).read(home.ref(conf))
    except HypervisorError:
        return None
    return found if found.power_state is PowerState.STOPPED and found.settled else None


def stopped(home: Home, host: str = "pve1", **options) -> Conf:
    """Return a guest that was stopped in good order."""
    conf = home.guest(host=host, **options)
    home.read(conf)
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.clock.advance(40)
    return conf


# -- corosync that ended, or hangs -------------------------------------------------------------------------


@pytest.mark.parametrize("how", CUT)
@pytest.mark.parametrize("after_s", [31, 45, 61, 120, 600])
def test_one_server_alone_is_not_believed_once_its_corosync_is_gone(home, how, after_s):
    """It goes on saying `quorate: 1`, in some of its workers or in all."""
    conf = stopped(home)
    alone = home.agent(servers=home.api.urls[:1])
    assert proven(home, conf, alone)
    home.pve.set_corosync("pve1", how)
    home.pve.clock.advance(after_s)
    assert proven(home, conf, alone) is None
    with pytest.raises(HypervisorUnreachable, match=r"no quorum|heard of no other host"):
        alone.read(home.ref(conf))


@pytest.mark.parametrize("how", CUT)
def test_a_guest_that_ha_runs_elsewhere_is_not_proven_off_by_the_host_it_was_on(home, how):
    """The other two have fenced pve1, whose watchdog did not fire, and its server still lists the guest."""
    home.pve.ha.lrm.watchdogs = False
    conf = home.guest(host="pve1", ha="started")
    alone = home.agent(servers=home.api.urls[:1])
    home.watch(30)
    alone.read(home.ref(conf))
    home.pve.set_corosync("pve1", how)
    home.pve.clock.advance(20)
    for kvm in home.pve.kvms(conf.vmid):
        home.pve.qm.end(kvm)
    for _ in range(30):
        home.pve.clock.advance(10)
        assert proven(home, conf, alone) is None
    assert home.pve.confs[conf.vmid].host != "pve1"
    assert home.pve.runs(conf.vmid)


def test_another_server_is_asked_instead(home):
    conf = stopped(home, "pve2")
    home.pve.set_corosync("pve1", Daemon.FROZEN)
    home.pve.clock.advance(60)
    home.asked()
    assert proven(home, conf)
    assert home.api.requests[-1].host != "pve1"


def test_a_server_is_contradicted_by_one_that_lost_it_a_moment_ago(home):
    """Before the statistics are old: pve2 does not count pve1 in any more."""
    conf = stopped(home, "pve1")
    home.pve.set_corosync("pve1", Daemon.FROZEN)
    home.pve.clock.advance(9)
    assert proven(home, conf, home.agent(servers=home.api.urls[:1]))  # nobody there could tell
    seen = home.agent(servers=home.api.urls[:2]).read(home.ref(conf))
    assert (seen.power_state, seen.host_silent) == (PowerState.UNKNOWN, True)
    assert "pve1 is offline" in seen.raw  # by pve2


def test_a_minority_that_is_reached_as_well_contradicts_nobody(home):
    """It says of itself that it has no quorum, and the others do not count it in."""
    conf = stopped(home, "pve2")
    home.pve.partition({"pve1"})
    home.pve.clock.advance(60)
    assert proven(home, conf)


def test_a_server_that_does_not_answer_is_not_asked_each_time(home):
    conf = stopped(home)
    home.pve.set_daemon("pve3", "pveproxy", Daemon.DEAD)
    assert proven(home, conf)
    home.pve.clock.advance(10)
    assert proven(home, conf)


def test_statistics_that_hang_everywhere_are_made_up_for_by_ha(home):
    """Storage that does not answer stops every pvestatd; the agents of HA go on writing."""
    home.guest("managed", ha="started")
    conf = stopped(home)
    for host in home.pve.hosts:
        home.pve.set_daemon(host, "pvestatd", Daemon.FROZEN)
    home.watch(60)
    assert proven(home, conf)


def test_without_ha_they_are_missed_and_named(home):
    conf = stopped(home)
    for host in home.pve.hosts:
        home.pve.set_daemon(host, "pvestatd", Daemon.FROZEN)
    home.pve.clock.advance(60)
    with pytest.raises(HypervisorUnreachable, match="pvestatd on all the others"):
        home.read(conf)


def test_one_host_that_reports_is_enough(home):
    conf = stopped(home)
    home.pve.set_daemon("pve2", "pvestatd", Daemon.FROZEN)
    home.pve.clock.advance(60)
    assert proven(home, conf)


def test_the_destruction_of_a_guest_is_not_believed_either(home):
    conf = stopped(home)
    home.pve.qm.destroy(conf.vmid).finish()
    alone = home.agent(servers=home.api.urls[:1])
    assert alone.read(home.ref(conf)).end_recorded
    home.pve.set_corosync("pve1", Daemon.FROZEN)
    home.pve.clock.advance(60)
    with pytest.raises(HypervisorUnreachable, match="heard of no other host"):
        alone.read(home.ref(conf))


# -- half of the hosts -------------------------------------------------------------------------------------


def test_half_of_two_hosts_proves_nothing_about_the_other_half(pair):
    """pve2 is silent, and HA here calls it fenced. Were it cut off, its watchdog would never have fired.

    The two look the same from here; the stand-in, whose hosts share one file system, can only show a death.
    """
    pair.pve.ha.crm.linger_in_recovery = True
    managed = pair.guest(host="pve2", ha="started")
    pair.watch(30)
    pair.pve.host_dies("pve2")
    for _ in range(100):
        pair.watch(2)
        assert proven(pair, managed) is None


def test_what_runs_on_this_half_is_still_proven(pair):
    """Or the survivor of two hosts could fence nothing any more."""
    conf = stopped(pair, "pve1")
    pair.pve.host_dies("pve2")
    pair.pve.clock.advance(60)
    assert proven(pair, conf)


def test_not_while_the_other_half_says_that_it_has_the_quorum(pair):
    """Both are heard, and neither counts the other in: one of them is wrong."""
    conf = stopped(pair, "pve1")
    pair.pve.partition({"pve2"})
    pair.pve.clock.advance(60)
    with pytest.raises(HypervisorUnreachable, match="pve2, which is quorate, does not count in pve1"):
        pair.read(conf)


def test_but_not_of_a_guest_that_ha_may_have_started_on_the_other_half(pair):
    conf = stopped(pair, "pve1", ha="stopped")
    pair.pve.partition({"pve2"})
    pair.pve.clock.advance(60)
    seen = pair.agent(servers=pair.api.urls[:1]).read(pair.ref(conf))
    assert seen.power_state is PowerState.UNKNOWN
    assert "1 of 2 hosts are no majority" in seen.raw


@pytest.mark.parametrize("told", [True, False], ids=["the API tells", "the configuration tells"])
def test_with_a_quorum_device_half_is_a_majority(tmp_path, told):
    pve = PveCluster(hosts=("pve1", "pve2"))
    pve.corosync.device, pve.corosync.device_told = True, told
    for home in serve(pve, tmp_path):
        agent = home.agent(servers=home.api.urls[:1], quorum_device=not told)
        conf = home.guest(host="pve2", ha="started")
        agent.read(home.ref(conf))
        for _ in range(15):
            pve.clock.advance(2)
            agent.sweep()
        pve.ha.crm.linger_in_recovery = True
        pve.host_dies("pve2")
        seen = set()
        for _ in range(100):
            pve.clock.advance(2)
            agent.sweep()
            found = proven(home, conf, agent)
            seen.add(found.proof if found else None)
        assert Proof.HA_RECOVERY in seen


def test_a_witness_tells_of_the_only_host_that_is_missing_and_of_none_of_two(tmp_path):
    """Of four hosts, the two that are missing may go on, and have recovered each other's guests."""
    pve = PveCluster(hosts=("pve1", "pve2", "pve3", "pve4"))
    pve.corosync.enough = 2
    for home in serve(pve, tmp_path):
        conf = home.guest(host="pve4")
        home.watch(10)
        pve.partition({"pve4"})
        pve.clock.advance(10)
        assert home.read(conf).host_silent
        pve.heal()
        pve.clock.advance(10)
        pve.partition({"pve3", "pve4"})
        pve.clock.advance(10)
        agent = home.agent(servers=home.api.urls[:2])
        unheard = agent.read(home.ref(conf))
        assert (unheard.power_state, unheard.host_silent) == (PowerState.UNKNOWN, False)
        assert not any(it.host_silent for it in agent.sweep())
        assert "pve3, pve4 may go on" in unheard.raw


# -- what `fencer check` says ------------------------------------------------------------------------------


def test_check_tells_of_two_hosts_without_a_quorum_device(pair):
    (remark,) = pair.hypervisor.describe().remarks
    assert "Two hosts and no quorum device" in remark
    assert pair.agent(quorum_device=True).describe().remarks == ()


def test_check_tells_of_a_quorum_that_is_no_majority(pair):
    pair.pve.host_dies("pve2")
    pair.pve.clock.advance(10)
    told = " ".join(pair.hypervisor.describe().remarks)
    assert "1 of 2 hosts are no majority" in told


def test_check_tells_of_a_corosync_that_ended(home):
    home.pve.set_corosync("pve1", Daemon.DEAD)
    home.pve.clock.advance(20)
    (problem,) = home.hypervisor.describe().problems
    assert "HA's manager there says so" in problem


def test_check_tells_of_a_corosync_that_hangs(home):
    home.pve.set_corosync("pve1", Daemon.FROZEN)
    home.pve.clock.advance(60)
    (problem,) = home.agent(servers=home.api.urls[:1]).describe().problems
    assert problem.endswith("Is corosync stuck there, or pvestatd on all the others?")


def test_odd_words_of_has_agents_blind_nobody(home):
    """Of another version, say: then HA proves nothing, and the statistics tell that the others are heard."""
    conf = stopped(home)
    home.pve.files.lrm["pve2"] = {"state": "active", "mode": "active", "timestamp": "soon", "results": {}}
    assert proven(home, conf)
    assert home.hypervisor.sweep()
