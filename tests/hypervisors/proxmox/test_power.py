"""Orders: sent once, and read back."""

from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from fencer.contract.deadlines import order
from fencer.core.identity import Admission
from fencer.core.model import GuestRef, PowerState
from fencer.errors import (
    HypervisorDenied,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from tests.controlplane.certificates import Authority
from tests.support.pve import Daemon


def test_an_order_is_sent_once(home):
    conf = home.guest()
    home.asked()
    order(home.hypervisor.stop, home.ref(conf))
    assert [it for it in home.asked() if it.startswith("POST")] == [
        f"POST /nodes/pve1/qemu/{conf.vmid}/status/stop"
    ]
    assert not home.pve.runs(conf.vmid)


class HangsUp(BaseHTTPRequestHandler):
    """Answers questions over one connection, and hangs up on an order, which may well have been taken."""

    protocol_version = "HTTP/1.1"
    answers: ClassVar[dict[str, object]] = {}
    orders: ClassVar[list[str]] = []

    def do_GET(self):
        body = json.dumps({"data": self.answers[self.path.partition("?")[0]]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.orders.append(self.path)
        self.close_connection = True

    def log_message(self, *_):
        pass


def test_an_order_is_not_sent_again_when_its_answer_is_lost(home, tmp_path):
    """Whether it was taken, nobody knows: the state tells."""
    (tmp_path / "other").mkdir()
    authority = Authority(tmp_path / "other")
    pair = authority.server("pve1", ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert_file, pair.key_file)
    guest = GuestRef("home", "201", "11111111-2222-3333-4444-000000000201", "k8s-1", "pve1")
    HangsUp.orders.clear()
    HangsUp.answers = {
        "/api2/json/cluster/status": [
            {"type": "cluster", "name": "lab", "quorate": 1},
            {"type": "node", "name": "pve1", "online": 1},
        ],
        "/api2/json/cluster/ha/status/manager_status": {"quorum": {"quorate": "1"}},
        "/api2/json/cluster/resources": [{"type": "qemu", "vmid": 201, "node": "pve1", "status": "running"}],
        "/api2/json/nodes/pve1/qemu/201/config": {"smbios1": f"uuid={guest.uuid}"},
    }
    with ThreadingHTTPServer(("127.0.0.1", 0), HangsUp) as server:
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"https://127.0.0.1:{server.server_address[1]}"
        agent = home.agent(servers=(url, url), ca_file=authority.ca_file)
        with pytest.raises(HypervisorUnreachable):
            order(agent.stop, guest)
        agent.close()
        server.shutdown()
    assert HangsUp.orders == ["/api2/json/nodes/pve1/qemu/201/status/stop"]


def test_an_order_that_fails_later_is_said_to(home):
    conf = home.guest()
    home.pve.set_lock(conf.vmid, "backup")
    with pytest.raises(
        HypervisorProtocol, match=r"stop of k8s-1 .* failed: VM is locked \(backup\).*qm unlock"
    ):
        order(home.hypervisor.stop, home.ref(conf))
    assert home.read(conf).power_state is PowerState.RUNNING


def test_a_task_that_takes_long_is_left_to_itself(home):
    """A guest that obeys slowly: the request is sent, and that is all that the port promises."""
    conf = home.guest()
    home.pve.deafen(conf.vmid)
    began_s = home.pve.clock.now_s()
    order(home.hypervisor.shutdown, home.ref(conf))
    assert home.pve.clock.now_s() - began_s < 12
    assert home.read(conf).power_state is PowerState.RUNNING


def test_a_paused_guest_cannot_be_asked_to_shut_down(home):
    conf = home.guest()
    home.pve.qm.suspend(conf.vmid).finish()
    with pytest.raises(HypervisorProtocol, match="VM is paused"):
        order(home.hypervisor.shutdown, home.ref(conf))


def test_under_ha_an_order_is_queued_and_kept(home):
    conf = home.guest(ha="started")
    home.watch(30)
    order(home.hypervisor.stop, home.ref(conf))
    assert home.read(conf).power_state is PowerState.RUNNING
    home.watch(40)
    assert (home.read(conf).power_state, home.read(conf).settled) == (PowerState.STOPPED, True)
    order(home.hypervisor.start, home.ref(conf))
    home.watch(40)
    assert home.read(conf).power_state is PowerState.RUNNING


def test_without_the_right_nothing_is_powered(home):
    conf = home.guest()
    home.pve.access.add_token("look@pve!tk", home.pve.secret, {"/": {"Sys.Audit", "VM.Audit"}})
    agent = home.agent(token_id="look@pve!tk", power=Admission())  # noqa: S106 - a name
    with pytest.raises(HypervisorDenied, match=r"VM\.PowerMgmt"):
        order(agent.stop, home.ref(conf))
    info = agent.describe()
    assert (info.can_power, info.problems) == (False, ())


def test_an_order_to_a_host_that_is_gone_is_not_sent_elsewhere(home):
    conf = home.guest(host="pve3")
    home.pve.set_daemon("pve3", "pvedaemon", Daemon.DEAD)
    with pytest.raises(HypervisorUnreachable):
        order(home.hypervisor.stop, home.ref(conf))
    assert len([it for it in home.api.requests if it.method == "POST"]) == 1


def lose_a_stop(home, conf):
    """Have an order sent that nobody answers; the guest runs on, and what hung goes on."""
    home.pve.set_daemon("pve1", "pvedaemon", Daemon.DEAD)
    with pytest.raises(HypervisorUnreachable):
        order(home.hypervisor.stop, home.ref(conf))
    home.pve.set_daemon("pve1", "pvedaemon", Daemon.OK)
    home.pve.clock.advance(60)


def test_an_order_that_was_lost_and_hits_a_later_run_is_told(home):
    """Somebody has restarted the guest meanwhile; then pvedaemon goes on with what it was asked for."""
    conf = home.guest()
    home.read(conf)
    lose_a_stop(home, conf)
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.clock.advance(5)
    started = home.pve.qm.start(conf.vmid)
    started.finish()
    home.pve.clock.advance(30)
    late = home.pve.qm.stop(conf.vmid, user=home.pve.token)
    late.finish()
    home.pve.clock.advance(30)
    told = home.read(conf).told
    assert late.upid in told
    assert started.upid in told
    assert "does not start it again" in told


def test_one_that_hits_the_run_that_was_meant_is_only_late(home):
    conf = home.guest()
    home.read(conf)
    lose_a_stop(home, conf)
    home.pve.qm.stop(conf.vmid, user=home.pve.token).finish()
    home.pve.clock.advance(30)
    assert (home.read(conf).power_state, home.read(conf).told) == (PowerState.STOPPED, "")


def test_what_others_stop_after_an_order_was_lost_is_their_own_business(home):
    conf = home.guest()
    home.read(conf)
    lose_a_stop(home, conf)
    home.pve.qm.reboot(conf.vmid).finish()
    home.pve.clock.advance(30)
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.clock.advance(30)
    assert home.read(conf).told == ""
