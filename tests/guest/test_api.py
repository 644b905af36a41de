"""The small HTTPS client: what it sends, whom it trusts, and that nothing keeps it waiting."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fencer.guest.api import Api
from fencer.guest.errors import Unreachable, Unusable
from fencer.guest.kubeconfig import Access
from tests.controlplane.certificates import Authority

WITHIN_S = 10.0
SOON_S = 0.3
Respond = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@contextmanager
def _serving(
    authority: Authority, respond: Respond, names: tuple[str, ...] = ("127.0.0.1",)
) -> Iterator[Access]:
    """Serve over TLS; give the way there, without credentials."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            respond(self)

        do_GET = do_POST = do_PATCH = _any  # noqa: N815 - http.server's names

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    pair = authority.server("-".join(names).replace("*", "x"), names)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.cert_file, pair.key_file)
    tls.load_verify_locations(authority.ca_file)
    tls.verify_mode = ssl.CERT_OPTIONAL
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Access("test", "127.0.0.1", server.server_port, authority=authority.ca_file.read_text())
        finally:
            server.shutdown()
            thread.join()


def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def _echo(handler: BaseHTTPRequestHandler) -> None:
    sent = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    peer = handler.connection.getpeercert() if isinstance(handler.connection, ssl.SSLSocket) else None
    seen = {
        "method": handler.command,
        "path": handler.path,
        "headers": {key.lower(): value for key, value in handler.headers.items()},
        "sent": sent.decode(),
        "peer": str(peer and peer.get("subject")),
    }
    _send(handler, 200, json.dumps(seen).encode())


def test_what_is_sent(authority: Authority) -> None:
    with _serving(authority, _echo) as access:
        api = Api(replace(access, prefix="/k8s", token="t-1"))  # noqa: S106 - of nobody
        seen = api.ask("PATCH", "/api?a=b", {"x": 1}, within_s=WITHIN_S)
    assert (seen.body["method"], seen.body["path"], seen.body["sent"]) == (
        "PATCH",
        "/k8s/api?a=b",
        '{"x": 1}',
    )
    assert seen.body["headers"]["authorization"] == "Bearer t-1"
    assert seen.body["headers"]["content-type"] == "application/merge-patch+json"


def test_the_client_certificate_is_shown(authority: Authority) -> None:
    pair = authority.client("system:node:k8s-1", ["system:nodes"])
    identity = {"certificate": pair.cert_file.read_text(), "key": pair.key_file.read_text()}
    with _serving(authority, _echo) as access:
        seen = Api(replace(access, **identity)).ask("GET", "/", within_s=WITHIN_S)
    assert "system:node:k8s-1" in seen.body["peer"]


@pytest.mark.parametrize(
    ("body", "headers", "found", "retry_after_s"),
    [
        (b'{"message": "no"}', {"Retry_After": "10"}, {"message": "no"}, 10),
        (b"<html>", {"Retry_After": "Fri, 20 Nov 2026 10:00:00 GMT"}, {}, None),
        (b"[1]", {"Retry_After": "-1"}, {}, None),
        (b"[" * 100_000, {"Retry_After": "9" * 400}, {}, None),
        (b"", {}, {}, None),
    ],
    ids=["a Status", "a page", "a list", "nested without end", "nothing"],
)
def test_any_answer_is_an_answer(
    authority: Authority, body: bytes, headers: dict[str, str], found: object, retry_after_s: float | None
) -> None:
    with _serving(authority, lambda handler: _send(handler, 429, body, **headers)) as access:
        answer = Api(access).ask("GET", "/", within_s=WITHIN_S)
    assert (answer.status, answer.body, answer.retry_after_s) == (429, found, retry_after_s)


def _trickling(over: threading.Event) -> Respond:
    """Return how to send a byte now and then, until it is over."""

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        while not over.wait(0.05):
            handler.wfile.write(b" ")
            handler.wfile.flush()
        handler.close_connection = True

    return trickle


def _break_off(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.close_connection = True


def test_a_server_that_trickles_is_given_up(authority: Authority) -> None:
    """A timeout of the socket alone would wait for ever."""
    over = threading.Event()
    with _serving(authority, _trickling(over)) as access:
        with pytest.raises(Unreachable, match=r"no answer within 0\.3 s"):
            Api(access).ask("GET", "/", within_s=SOON_S)
        over.set()  # else the call that was given up reads on, for an hour


def test_an_answer_that_breaks_off_is_none(authority: Authority) -> None:
    with _serving(authority, _break_off) as access, pytest.raises(Unreachable):
        Api(access).ask("GET", "/", within_s=WITHIN_S)


def test_a_frozen_server_is_given_up(authority: Authority) -> None:
    """The kernel accepts the connection, and nobody shakes hands."""
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        access = Access("test", "127.0.0.1", frozen.getsockname()[1], authority=authority.ca_file.read_text())
        with pytest.raises(Unreachable, match=r"https://127\.0\.0\.1"):
            Api(access).ask("GET", "/", within_s=SOON_S)


def test_a_closed_port_is_said(authority: Authority) -> None:
    with socket.socket() as closed:  # bound, so that nobody else takes the port, and never listening
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        access = Access("test", "127.0.0.1", port, authority=authority.ca_file.read_text())
        with pytest.raises(Unreachable, match="Connection refused"):
            Api(access).ask("GET", "/", within_s=WITHIN_S)


def test_a_server_that_another_authority_signed_is_not_asked(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other").ca_file.read_text()
    with _serving(authority, _echo) as access, pytest.raises(Unreachable, match="not trusted"):
        Api(replace(access, authority=other)).ask("GET", "/", within_s=WITHIN_S)


def test_the_name_in_the_certificate_counts(authority: Authority) -> None:
    """`tls-server-name` says which it is where the address is none of them."""
    with _serving(authority, _echo, ("kubernetes",)) as access:
        with pytest.raises(Unreachable, match="not trusted"):
            Api(access).ask("GET", "/", within_s=WITHIN_S)
        assert Api(replace(access, server_name="kubernetes")).ask("GET", "/", within_s=WITHIN_S).status == 200


def test_insecure_is_taken_at_its_word(authority: Authority) -> None:
    with _serving(authority, _echo, ("kubernetes",)) as access:
        assert (
            Api(replace(access, authority="", insecure=True)).ask("GET", "/", within_s=WITHIN_S).status == 200
        )


@pytest.mark.parametrize(
    "broken", [{"authority": "x"}, {"certificate": "x", "key": "y"}], ids=["authority", "client certificate"]
)
def test_broken_certificates_are_said_before_anything_is_asked(broken: dict[str, str]) -> None:
    with pytest.raises(Unusable, match=r"kubelet\.conf: its certificates"):
        Api(Access("kubelet.conf", "127.0.0.1", 1, **broken))  # type: ignore[arg-type]
