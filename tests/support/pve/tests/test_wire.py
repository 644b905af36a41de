"""What the stand-in does on the wire: connections, headers, refusals, silence."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

import pytest

from tests.support import wait_until
from tests.support.pve import Daemon, Pmxcfs, PveCluster, PveServers
from tests.support.pve.api.answers import PROXY_TIMEOUT_S
from tests.support.pve.https.server import LOOPBACK
from tests.support.pve.tests.client import Client
from tests.support.pve.tests.conftest import Serve

TIMES_OUT_S = 0.3
HUNG_UP = (ConnectionResetError, BrokenPipeError)
"""What a client sees that talks on: the latter of OpenSSL 3.5, also where it only reads."""


def raw(api: PveServers, host: str, request: str) -> bytes:
    """Send something to a host over TLS, and return all that comes back."""
    context = ssl.create_default_context(cafile=str(api.ca_file))
    with (
        socket.create_connection((LOOPBACK, api.port(host)), 10) as plain,
        context.wrap_socket(plain, server_hostname=LOOPBACK) as secure,
    ):
        secure.sendall(request.encode())
        answer = b""
        while piece := secure.recv(65536):
            answer += piece
        return answer


def test_the_certificate_is_the_hosts_own(api: PveServers) -> None:
    """A client that pins certificates, and one that asks the API for them, see the same."""
    seen = {}
    for host in api.pve.hosts:
        pem = ssl.get_server_certificate((LOOPBACK, api.port(host)))
        with Client(api, host) as client:
            told = {row["node"]: row["ssl_fingerprint"] for row in client.get("/nodes")}
        seen[host] = (pem, told[host])
        assert told[host] == api.fingerprint(host)
    assert len(set(seen.values())) == len(api.pve.hosts)


def test_a_certificate_of_nobody_we_know_is_refused(api: PveServers) -> None:
    context = ssl.create_default_context()
    with (
        socket.create_connection((LOOPBACK, api.port("pve1")), 10) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        context.wrap_socket(plain, server_hostname=LOOPBACK)


def test_a_success_keeps_the_connection_and_a_failure_closes_it(ask: Client) -> None:
    ask.get("/version")
    first = ask.connection.sock
    ask.get("/version")
    assert ask.connection.sock is first
    assert ask("GET", "/no/such/path").headers["Connection"] == "close"
    assert ask.connection.sock is None


def test_an_idle_connection_is_closed_without_a_word(pve: PveCluster, serve: Serve) -> None:
    api = serve(pve, keep_alive_s=0.1)
    with Client(api) as client:
        client.get("/version")
        wait_until(lambda: not api._doors["pve1"]._talks, "end of the idle connection")
        with pytest.raises(HUNG_UP):
            client.get("/version")


def test_a_recycled_worker_drops_its_connections(api: PveServers, ask: Client) -> None:
    api.recycle_after = 2
    ask.get("/version")
    ask.get("/version")
    with pytest.raises(HUNG_UP):
        ask.get("/version")


def test_idle_connections_can_be_dropped_from_outside(api: PveServers, ask: Client) -> None:
    ask.get("/version")
    wait_until(lambda: not any(api._doors["pve1"]._talks.values()), "idle connection")
    api.drop_keepalive()
    with pytest.raises(HUNG_UP):
        ask.get("/version")


def test_http_1_0_gets_an_answer_of_its_kind_and_a_closed_connection(api: PveServers) -> None:
    token = f"PVEAPIToken={api.pve.token}={api.pve.secret}"
    answer = raw(api, "pve1", f"GET /api2/json/version HTTP/1.0\r\nAuthorization: {token}\r\n\r\n")
    assert answer.startswith(b"HTTP/1.0 200 OK\r\n")
    assert b"Connection: close\r\n" in answer


def test_a_chunked_request_is_not_taken(api: PveServers) -> None:
    head = "POST /api2/json/version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    answer = raw(api, "pve1", head)
    assert answer.startswith(b"HTTP/1.1 501 chunked transfer encoding not supported\r\n")


def test_plain_http_is_sent_elsewhere(api: PveServers) -> None:
    with socket.create_connection((LOOPBACK, api.port("pve1")), 10) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert plain.recv(65536).startswith(b"HTTP/1.1 301 Moved Permanently\r\n")


@pytest.mark.parametrize(
    ("authorization", "reason"),
    [
        ("", "No ticket"),
        ("Bearer abc", "No ticket"),
        ("PVEAPIToken=fencer@pve!agent=wrong", "Authentication failed!"),
        ("PVEAPIToken=fencer@pve!other=wrong", "Authentication failed!"),
        ("PVEAPIToken=fencer@pve=wrong", "Authentication failed!"),
    ],
)
def test_a_wrong_token_is_refused_after_three_seconds_without_a_body(
    api: PveServers, authorization: str, reason: str
) -> None:
    with Client(api, authorization=authorization) as client:
        answer = client("GET", "/version")
    assert (answer.status, answer.reason, answer.body) == (401, reason, None)
    assert api.requests[-1].delay_s == 3.0


def test_a_rotated_secret_is_refused_and_the_new_one_taken(api: PveServers, ask: Client) -> None:
    new = api.pve.access.rotate(api.pve.token)
    assert ask("GET", "/version").status == 401
    with Client(api, authorization=f"PVEAPIToken={api.pve.token}={new}") as client:
        assert client("GET", "/version").status == 200


def test_delays_are_waited_for_in_proportion(pve: PveCluster, serve: Serve) -> None:
    """The three seconds of a 401 are none, or too long for this client."""
    api = serve(pve)
    with Client(api, authorization="") as client:
        client.connection.timeout = TIMES_OUT_S * 5
        assert client("GET", "/version").status == 401
        api.delay_scale = 1.0
        with pytest.raises(TimeoutError):
            client("GET", "/version")


def test_a_dead_host_refuses_and_keeps_its_port(api: PveServers) -> None:
    port = api.port("pve2")
    with Client(api, "pve2") as client:
        client.get("/version")
        api.pve.host_dies("pve2")
        with pytest.raises(OSError):  # noqa: PT011 - refused, reset or closed: all of them are right
            client.get("/version")
        with pytest.raises(ConnectionRefusedError):
            client.get("/version")
        api.pve.host_returns("pve2")
        assert api.port("pve2") == port
        client.get("/version")


@pytest.mark.parametrize(
    "silence",
    [
        lambda pve: pve.host_dies("pve2", silent=True),
        lambda pve: pve.drop_link("pve2"),
        lambda pve: pve.set_daemon("pve2", "pveproxy", Daemon.FROZEN),
    ],
    ids=["host", "link", "pveproxy"],
)
def test_what_swallows_packets_is_never_heard(
    api: PveServers, silence: Callable[[PveCluster], object]
) -> None:
    silence(api.pve)
    with Client(api, "pve2") as client:
        client.connection.timeout = TIMES_OUT_S
        with pytest.raises(TimeoutError):
            client.get("/version")


def test_a_frozen_pveproxy_answers_when_it_is_thawed(api: PveServers) -> None:
    with Client(api, "pve2") as client:
        client.get("/version")
        api.pve.set_daemon("pve2", "pveproxy", Daemon.FROZEN)
        client.connection.sock.settimeout(TIMES_OUT_S)
        with pytest.raises(TimeoutError):
            client.get("/version")
    api.pve.set_daemon("pve2", "pveproxy", Daemon.OK)
    with Client(api, "pve2") as client:
        client.get("/version")


def test_a_frozen_file_system_is_heard_of_by_others_only(api: PveServers, ask: Client) -> None:
    api.pve.set_pmxcfs("pve2", Pmxcfs.FROZEN)
    with Client(api, "pve2") as client:
        client.connection.timeout = TIMES_OUT_S
        with pytest.raises(TimeoutError):
            client.get("/version")
    answer = ask("GET", "/nodes/pve2/status")
    assert (answer.status, answer.body) == (596, None)
    # pve2 may only now take note of what it was asked: its client has not waited for that.
    assert [it.delay_s for it in api.requests if it.host == "pve1"] == [PROXY_TIMEOUT_S]


def test_parameters_of_query_and_body_are_the_same_to_it(api: PveServers, ask: Client) -> None:
    api.pve.add_guest("one", vmid=101)
    path = "/nodes/pve1/qemu/101/status/stop"
    for answer in (ask("POST", f"{path}?skiplock=1", ""), ask("POST", path, "skiplock=1")):
        assert answer.body["errors"] == {"skiplock": "Only root may use this option."}


def test_a_parameter_that_nobody_knows_is_refused(ask: Client) -> None:
    answer = ask("GET", "/version?verbose=1")
    assert answer.status == 400
    assert "verbose" in answer.body["errors"]
