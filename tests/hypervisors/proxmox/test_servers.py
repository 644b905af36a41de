"""Towards the API: who is asked, who is believed, what is sent once, and what no answer means."""

from __future__ import annotations

import gzip
import json
import re
import socket
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from fencer.bounded import LARGEST_BYTES
from fencer.contract.deadlines import order
from fencer.core.identity import Admission
from fencer.core.model import GuestRef, PowerState
from fencer.errors import (
    ConfigError,
    HypervisorDenied,
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.proxmox.api import HostCalls
from fencer.hypervisors.proxmox.errors import HostSilent, ServerUnfit
from fencer.hypervisors.proxmox.server import read_answer
from fencer.hypervisors.proxmox.settings import Token
from tests.controlplane.certificates import Authority
from tests.hypervisors.proxmox.conftest import Home, serve
from tests.support.kernel import held_bytes
from tests.support.pve import Daemon, PveCluster, PveServers
from tests.support.pve.cluster import RIGHTS

READ = ["GET /cluster/status", "GET /cluster/ha/status/manager_status", "GET /cluster/resources"]


# -- whom to believe --------------------------------------------------------------------------------------


def test_certificates_may_be_pinned(home):
    pins = tuple(home.api.fingerprint(host) for host in home.pve.hosts)
    assert home.agent(ca_file=None, fingerprints=pins).describe().problems == ()


def test_another_certificate_than_the_pinned_one_is_not_believed(home):
    """Not even one by the same CA, under the right name."""
    wrong = (home.api.fingerprint("pve2"),)
    agent = home.agent(servers=(home.api.url("pve1"),), ca_file=None, fingerprints=wrong)
    with pytest.raises(HypervisorUnreachable, match=r"(?i)fingerprint"):
        agent.sweep()
    assert home.asked() == []  # nothing was sent, the token least of all


def test_another_ca_is_not_believed(home, tmp_path):
    (tmp_path / "other").mkdir()
    agent = home.agent(ca_file=Authority(tmp_path / "other").ca_file)
    with pytest.raises(HypervisorUnreachable, match="certificate"):
        agent.sweep()
    assert home.asked() == []


def test_without_ca_and_pin_only_public_cas_are_believed(home, monkeypatch):
    """Whatever the environment says."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(home.api.ca_file))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    with pytest.raises(HypervisorUnreachable, match="certificate"):
        home.agent(ca_file=None).sweep()


def test_a_token_that_was_rotated_is_read_again(home):
    conf = home.guest()
    assert home.read(conf).power_state is PowerState.RUNNING
    home.token_file.write_text(home.pve.access.rotate(home.pve.token) + "\n")
    assert home.read(conf).power_state is PowerState.RUNNING
    home.asked()
    home.read(conf)
    assert not [it for it in home.api.requests if it.status == 401]


def test_a_token_that_is_refused_is_said_to_be(home):
    conf = home.guest()
    home.pve.access.expire(home.pve.token)
    with pytest.raises(HypervisorDenied, match=r"fencer@pve!agent was refused.*USER@REALM!ID"):
        home.read(conf)


def test_a_token_whose_file_vanished_is_said_to_be(home):
    conf = home.guest()
    home.pve.access.rotate(home.pve.token)
    home.token_file.unlink()
    with pytest.raises(HypervisorDenied, match="No such file"):
        home.read(conf)


def test_a_secret_is_shown_nowhere(home):
    token = Token(home.settings())
    shown = repr(token) + repr(home.settings()) + repr(home.hypervisor)
    assert home.pve.secret not in shown
    home.pve.access.expire(home.pve.token)
    with pytest.raises(HypervisorDenied) as caught:
        home.hypervisor.sweep()
    assert home.pve.secret not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "must hold"), ("two words", "must hold"), ("a\nb", "must hold"), ("größe", "ASCII")],
)
def test_a_file_without_a_secret_is_refused(home, text, why):
    home.token_file.write_text(text)
    with pytest.raises(ConfigError, match=why):
        home.agent()


def test_a_secret_may_be_written_as_proxmox_prints_it(home):
    home.token_file.write_text(f"{home.pve.token}={home.pve.secret}\n")
    assert home.agent().describe().problems == ()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"servers": ()}, "name one at least"),
        ({"servers": ("http://pve1:8006",)}, "not like https"),
        ({"servers": ("https://root:x@pve1:8006",)}, "not like https"),
        ({"servers": ("https://pve1:8006/api2",)}, "not like https"),
        ({"token_id": "fencer@pve"}, "not like fencer@pve!agent"),
        ({"fingerprints": ("aa:bb",)}, "one of the two"),
        ({"ca_file": None, "fingerprints": ("aa:bb",)}, "1 for 3 servers"),
        ({"ca_file": None, "fingerprints": ("aa:bb",) * 3}, "no SHA-256"),
    ],
)
def test_settings_that_cannot_work_are_refused(home, changes, why):
    with pytest.raises(ConfigError, match=why):
        home.agent(**changes)


# -- whom to ask ------------------------------------------------------------------------------------------


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


# -- what an answer is ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Please sign in to the \x1b[31mwifi</html>",
        b'{"data": {"status": "stop',
        b"",
        b"[1, 2]",
        b'{"errors": null}',
        b"[" * 100_000,
        b"\xff\xfe{}",
        b"9" * 5000,
    ],
    ids=["html", "cut off", "empty", "list", "no data", "deep", "no UTF-8", "long number"],
)
def test_what_is_no_answer_of_this_api_is_not_taken_for_one(body):
    with pytest.raises(HypervisorProtocol) as caught:
        read_answer(200, "OK", body, ("version",), "home (https://pve1:8006)", "fencer@pve!agent")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("status", [301, 302, 404, 418, 500, 501])
def test_a_refusal_without_a_class_of_its_own_is_one_of_the_protocol(status):
    with pytest.raises(HypervisorProtocol, match=str(status)):
        read_answer(status, "No\x1bidea", b"", ("version",), "home", "fencer@pve!agent")


@pytest.mark.parametrize("status", [502, 503, 504, 595, 596, 599])
def test_a_gateway_that_reaches_nobody_is_no_answer(status):
    with pytest.raises(HypervisorUnreachable):
        read_answer(status, "", b"", ("cluster", "status"), "home", "fencer@pve!agent")


@pytest.mark.parametrize(
    "reason",
    [
        "RPCEnvironment init request failed: Unable to load access control list: Connection refused",
        "ipcc_send_rec[12] failed: Connection refused",
        "ipcc_send_rec[4] failed: Transport endpoint is not connected",
        "pve configuration filesystem not mounted",
    ],
)
def test_a_server_whose_cluster_file_system_goes_away_is_unfit_and_another_is_asked(reason):
    with pytest.raises(ServerUnfit):
        read_answer(500, reason, b'{"data":null}', ("cluster", "resources"), "home", "fencer@pve!agent")


@contextmanager
def answering(tmp_path, answer):
    """A server that answers each request with what it is told, given a socket and what tells the end."""
    authority, over = Authority(tmp_path), threading.Event()
    pair = authority.server("pve1", ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert_file, pair.key_file)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while not over.is_set():
            try:
                with context.wrap_socket(listener.accept()[0], server_side=True) as talk:
                    talk.settimeout(10)
                    talk.recv(65536)
                    answer(talk, over)
            except OSError:
                pass  # the client had enough, or all is over

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}", authority.ca_file
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def drip(said):
    """Say something byte by byte, for 5 s at most; whoever waits for all of it waits so long."""

    def answer(talk, over):
        for byte in said:
            talk.sendall(bytes([byte]))
            if over.wait(5 / len(said)):
                return

    return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b" " * 100,
        b"HTTP/1.1 596 Late\r\nX-Long: " + b"x" * 100 + b"\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["body", "head"],
)
def test_a_server_that_drips_does_not_outlast_its_time(home, tmp_path, said):
    """Each byte comes in time; the answer does not."""
    (tmp_path / "drip").mkdir()
    with answering(tmp_path / "drip", drip(said)) as (url, ca_file):
        # More than a busy machine takes for a handshake or a byte.
        agent = home.agent(servers=(url,), ca_file=ca_file, call_timeout_s=1.5, connect_timeout_s=5)
        with pytest.raises(HypervisorUnreachable, match=r"did not end|timed out"):
            agent.sweep()


@pytest.mark.parametrize("status", [200, 403, 500])
def test_a_server_whose_answer_has_no_end_is_given_up(home, tmp_path, status):
    (tmp_path / "endless").mkdir()
    sent_bytes = [0]

    def answer(talk, over):
        talk.sendall(f"HTTP/1.1 {status} Said\r\n\r\n".encode())
        while sent_bytes[0] < 4 * LARGEST_BYTES and not over.is_set():
            talk.sendall(b" " * 65536)
            sent_bytes[0] += 65536

    with answering(tmp_path / "endless", answer) as (url, ca_file):
        agent = home.agent(servers=(url,), ca_file=ca_file)
        with pytest.raises(
            HypervisorProtocol, match=r"home \(https.*\): /.*: the answer has more than 32 MiB"
        ):
            agent.sweep()
    assert sent_bytes[0] < LARGEST_BYTES + held_bytes()


def test_nothing_compressed_is_asked_for_or_unpacked(home, tmp_path):
    (tmp_path / "bomb").mkdir()
    bomb = gzip.compress(b'{"data": []}') + gzip.compress(b" " * (1 << 20)) * 100
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n"
    with (
        answering(tmp_path / "bomb", lambda talk, _: talk.sendall(head.encode() + bomb)) as (url, ca_file),
        pytest.raises(HypervisorProtocol, match=r"the answer is compressed .'gzip'."),
    ):
        home.agent(servers=(url,), ca_file=ca_file).sweep()


# -- what a look costs ------------------------------------------------------------------------------------


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


# -- what a sweep is worth --------------------------------------------------------------------------------


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


# -- power ------------------------------------------------------------------------------------------------


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


# -- who it is --------------------------------------------------------------------------------------------


def test_it_says_what_it_is(home):
    info = home.hypervisor.describe()
    assert info.version == "Proxmox VE 9.2.11"
    assert info.detail.startswith("cluster lab, quorate, 3 of 3 hosts")


@pytest.mark.parametrize(
    ("rights", "problem"),
    [
        ({"/vms": {"VM.Audit", "VM.PowerMgmt"}}, r"lacks Sys\.Audit on /:"),
        ({"/": {"Sys.Audit"}}, "it sees no guest"),
        ({"/": {"Sys.Audit"}, "/vms/101": {"VM.Audit", "VM.PowerMgmt"}}, "it overlooks guests"),
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
