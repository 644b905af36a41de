"""What is an answer of this API, and what no answer means."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
from contextlib import contextmanager

import pytest

from fencer.bounded import LARGEST_BYTES
from fencer.errors import (
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.proxmox.errors import ServerUnfit
from fencer.hypervisors.proxmox.server import read_answer
from tests.controlplane.certificates import Authority
from tests.support.kernel import held_bytes


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
