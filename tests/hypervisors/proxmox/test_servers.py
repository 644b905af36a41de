"""Which server is asked, and which other one where it does not answer."""

from __future__ import annotations

import re

import pytest

from fencer.contract.deadlines import order
from fencer.core.model import PowerState
from fencer.errors import (
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.proxmox.api import HostCalls
from fencer.hypervisors.proxmox.errors import HostSilent, ServerUnfit
from tests.hypervisors.proxmox.conftest import serve
from tests.support.pve import Daemon, PveCluster
from tests.support.pve.cluster import RIGHTS


def test_the_next_server_is_asked_when_one_is_gone_and_stays_the_one(home):
    conf = home.guest(host="pve2")
    home.pve.set_daemon("pve1", "pveproxy", Daemon.DEAD)
    assert home.read(conf).power_state is PowerState.RUNNING
    home.asked()
    home.read(conf)
    assert {it.host for it in home.api.requests} == {"pve2"}


def test_a_server_that_takes_connections_and_never_answers_is_left(tmp_path):
    """A frozen pveproxy: the call's own time limit ends the wait."""
    for home in serve(PveCluster(), tmp_path):
        conf = home.guest(host="pve2")
        home.pve.set_daemon("pve1", "pveproxy", Daemon.FROZEN)
        agent = home.agent(call_timeout_s=2.0, connect_timeout_s=2.0)
        assert agent.read(home.ref(conf)).power_state is PowerState.RUNNING


def test_all_servers_gone_are_all_named(home):
    for host in home.pve.hosts:
        home.pve.set_daemon(host, "pveproxy", Daemon.DEAD)
    with pytest.raises(HypervisorUnreachable) as caught:
        home.hypervisor.sweep()
    assert all(url in str(caught.value) for url in home.api.urls)


def test_a_host_that_one_server_does_not_reach_is_asked_through_its_own(home):
    """The way between two hosts is broken, and ours to both is not."""
    conf, other = home.guest(host="pve3"), home.guest("k8s-2", running=False)
    home.read(other)  # to prove that, all servers were asked which hosts they are
    home.pve.cut_way("pve1", "pve3")
    home.asked()
    assert home.read(conf).power_state is PowerState.RUNNING
    home.pve.crash(conf.vmid)
    home.pve.clock.advance(2)
    off = home.read(conf)
    assert (off.power_state, off.settled) == (PowerState.STOPPED, True)
    order(home.hypervisor.start, home.ref(conf))
    assert home.read(conf).power_state is PowerState.RUNNING
    asked = {it.host for it in home.api.requests if it.path.endswith("/status/current")}
    assert asked == {"pve1", "pve3"}


def test_and_through_another_where_its_own_is_none_of_ours(home):
    conf = home.guest(host="pve3")
    agent = home.agent(servers=tuple(home.api.urls[:2]))
    home.pve.cut_way("pve1", "pve3")
    assert agent.read(home.ref(conf)).power_state is PowerState.RUNNING


def test_what_another_cluster_says_of_a_host_of_that_name_is_not_believed(home, tmp_path):
    """A server of another cluster was written among ours: there, too, is a pve3, with such a number."""
    conf = home.guest(host="pve3")
    strange = PveCluster(name="strange")
    strange.add_guest("k8s-1", "pve3", vmid=conf.vmid, running=False, uuid=conf.uuid)
    (tmp_path / "strange").mkdir()
    for other in serve(strange, tmp_path / "strange"):
        strange.access.add_token(home.pve.token, home.pve.secret, {"/": RIGHTS})
        ca_file = tmp_path / "both.pem"
        ca_file.write_text(home.api.ca_file.read_text() + other.api.ca_file.read_text())
        agent = home.agent(servers=(home.api.urls[0], other.api.urls[2]), ca_file=ca_file)
        home.pve.cut_way("pve1", "pve3")
        with pytest.raises(HypervisorProtocol, match="belongs to the cluster strange"):
            agent.read(home.ref(conf))


def test_a_host_that_does_not_answer_is_asked_through_two_others_at_most_and_now_and_then(home):
    """595 and 596 about the guest's host: nothing is known, and each try takes its time."""
    conf = home.guest(host="pve3")
    home.pve.set_daemon("pve3", "pvedaemon", Daemon.DEAD)
    tries = []
    for wait_s in (0, 10, 10, 15):
        home.pve.clock.advance(wait_s)
        home.asked()
        with pytest.raises(HypervisorUnreachable, match=rf"{home.api.urls[0]}\): pve3 did not answer"):
            home.read(conf)
        tries.append(sorted({it.host for it in home.api.requests}))
    assert tries == [["pve1", "pve2", "pve3"], ["pve1"], ["pve1"], ["pve1", "pve2", "pve3"]]


def test_a_connection_that_the_server_gave_up_is_replaced(home):
    conf = home.guest()
    home.read(conf)
    home.api.drop_keepalive()
    assert home.read(conf).power_state is PowerState.RUNNING
    home.api.recycle_after = 2
    for _ in range(5):
        assert home.read(conf).power_state is PowerState.RUNNING


def test_a_host_that_hangs_is_not_asked_again_meanwhile():
    now_s = [100.0]
    calls = HostCalls(timer=lambda: now_s[0])
    status = ("nodes", "pve3", "status")
    with calls.to(status, "home"):
        with calls.to(status, "home"):
            pass  # a call that has just begun is no hanging one
        now_s[0] += 6
        with (
            pytest.raises(HostSilent, match="pve3 has not answered an earlier call for 6 s"),
            calls.to(status, "home"),
        ):
            pass
        with calls.to(("nodes", "pve2", "status"), "home"), calls.to(("cluster", "status"), "home"):
            pass
    with calls.to(status, "home"):
        pass


def test_it_says_what_it_is(home):
    info = home.hypervisor.describe()
    assert info.version == "Proxmox VE 9.2.11"
    assert info.detail.startswith("cluster lab, quorate, 3 of 3 hosts")


@pytest.mark.parametrize(
    ("rights", "problem"),
    [
        ({"/vms": {"VM.Audit", "VM.PowerMgmt"}}, r"lacks Sys\.Audit on /:"),
        ({"/": {"Sys.Audit"}}, "it sees no guest"),
        ({"/": {"Sys.Audit"}, "/vms/101": {"VM.Audit", "VM.PowerMgmt"}}, "it misses guests"),
    ],
)
def test_it_says_which_rights_are_missing(home, rights, problem):
    home.guest()
    home.pve.access.add_token("some@pve!tk", home.pve.secret, rights)
    problems = home.agent(token_id="some@pve!tk").describe().problems  # noqa: S106 - a name
    assert any(re.search(problem, it) for it in problems), problems


def test_it_says_which_rights_are_too_many(home):
    rights = {"/": {"Sys.Audit", "VM.Audit", "VM.PowerMgmt", "VM.Config.Disk", "VM.GuestAgent.Audit"}}
    home.pve.access.add_token("much@pve!tk", home.pve.secret, rights)
    info = home.agent(token_id="much@pve!tk").describe()  # noqa: S106 - a name
    assert info.remarks[0] == "The token may do more than fencer needs: VM.Config.Disk."
    assert (info.can_power, info.problems) == (True, ())


def test_it_says_that_it_is_not_what_was_configured(home):
    assert "Write cluster: lab" in home.agent(cluster=None).describe().problems[0]
    home.pve.lose_quorum()
    home.pve.clock.advance(9)
    assert "no quorum" in home.agent().describe().problems[0]


def test_every_error_can_be_told_anew_with_more_words():
    """As of an order that was sent, and whose end could not be read: a host that is silent then, too."""
    kinds = {HostSilent, ServerUnfit, *HypervisorError.__subclasses__()}
    assert all(str(kind("more words")) == "more words" for kind in kinds)
