"""The small HTTPS client: what it sends, whom it trusts, and that nothing keeps it waiting."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from fencer.guest.api import Api
from fencer.guest.errors import Unreachable, Unusable
from fencer.guest.kubeconfig import Access
from tests.controlplane.certificates import Authority
from tests.guest.serving import Respond, send, serving

WITHIN_S = 10.0
SOON_S = 0.3
PATIENT_S = 120.0
"""For 32 MiB on a busy machine."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@contextmanager
def _serving(
    authority: Authority, respond: Respond, names: tuple[str, ...] = ("127.0.0.1",)
) -> Iterator[Access]:
    """Serve over TLS; give the way there, without credentials."""
    with serving(authority, respond, names) as port:
        yield Access("test", "127.0.0.1", port, authority=authority.ca_file.read_text())


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
    send(handler, 200, json.dumps(seen).encode())


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
    assert seen.body["headers"]["accept-encoding"] == "identity", (
        "what is compressed can be as large as one likes"
    )


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
    with _serving(authority, lambda handler: send(handler, 429, body, **headers)) as access:
        answer = Api(access).ask("GET", "/", within_s=WITHIN_S)
    assert (answer.status, answer.body, answer.retry_after_s) == (429, found, retry_after_s)


@pytest.mark.parametrize(
    ("date", "utc"),
    [
        ("Fri, 20 Nov 2026 10:00:00 GMT", "2026-11-20T10:00:00Z"),
        ("Fri, 20 Nov 2026 10:00:00 +0000", ""),
        ("Mon, 30 Feb 2026 10:00:00 GMT", ""),
        ("9" * 400, ""),
        ("", ""),
    ],
)
def test_what_time_it_is_there(authority: Authority, date: str, utc: str) -> None:
    with _serving(authority, lambda handler: send(handler, 200, b"{}", Date=date)) as access:
        assert Api(access).ask("GET", "/", within_s=WITHIN_S).utc == utc


class _Endless:
    """A server that sends on and on, until nobody takes it any more.

    Args:
        begin: What comes first, the status line too.
        more: What follows again and again.
        pause_s: Between two of these.
    """

    def __init__(self, begin: bytes, more: bytes, pause_s: float = 0.0) -> None:
        self._begin, self._more, self._pause_s = begin, more, pause_s
        self.left_alone = threading.Event()
        self._over = threading.Event()

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a request."""
        handler.close_connection = True
        try:
            handler.wfile.write(self._begin)
            while not self._over.wait(self._pause_s):
                handler.wfile.write(self._more)
        except OSError:
            self.left_alone.set()

    def stop(self) -> None:
        """Stop in any case."""
        self._over.set()


OK = b"HTTP/1.1 200 OK\r\n"


def _break_off(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.close_connection = True


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (OK + b"Content-Length: 100000\r\n\r\n", b" "),
        (OK + b"X-Long: ", b"x"),
        (OK[:8], b" "),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["a body", "a header", "a status line", "nothing yet"],
)
def test_a_server_that_trickles_is_given_up_and_left(authority: Authority, begin: bytes, more: bytes) -> None:
    """A timeout of the socket alone would wait for ever; and so would a call that only nobody waits for."""
    endless = _Endless(begin, more, pause_s=0.05)
    with _serving(authority, endless) as access:
        try:
            with pytest.raises(Unreachable, match=r"no answer within 1 s"):
                Api(access).ask("GET", "/", within_s=1)
            assert endless.left_alone.wait(WITHIN_S), "it is still listened to"
        finally:
            endless.stop()


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    ("header", "more"),
    [
        (b"Content-Length: 4000000000\r\n", b" " * 1_000_000),
        (b"Transfer-Encoding: chunked\r\n", b"186A0\r\n" + b" " * 100_000 + b"\r\n"),
        (b"", b" " * 1_000_000),
    ],
    ids=["its length told", "in chunks", "until the end"],
)
def test_an_answer_without_end_is_given_up_at_its_limit(
    authority: Authority, status: int, header: bytes, more: bytes
) -> None:
    endless = _Endless(b"HTTP/1.1 %d X\r\n%s\r\n" % (status, header), more)
    with _serving(authority, endless) as access:
        try:
            with pytest.raises(Unreachable, match="more than 32 MiB"):
                Api(access).ask("GET", "/", within_s=PATIENT_S)
        finally:
            endless.stop()


MANY = 10_000_000
"""Times three bytes is below the limit of 32 MiB."""
DENSE = {
    "of objects": b'{"a":[' + b"{}," * MANY + b"{}]}",
    "of lists": b'{"a":[' + b"[]," * MANY + b"[]]}",
    "of texts": b'{"a":[' + b'"",' * MANY + b'""]}',
    "of numbers": b'{"a":[' + b"9," * MANY + b"9]}",
    "of fields": b'{"a":[' + b'{"a":0},' * (MANY // 3) + b"{}]}",
}


@pytest.mark.parametrize("answer", DENSE.values(), ids=DENSE)
def test_an_answer_that_would_take_gigabytes_once_it_is_read_is_none(
    authority: Authority, answer: bytes
) -> None:
    """`[{},{},…]` takes 24 times its length, in a machine that may have little to spare."""
    with (
        _serving(authority, lambda handler: send(handler, 200, answer)) as access,
        pytest.raises(Unreachable, match=r"an answer that takes [0-9]+ MiB once it is read"),
    ):
        Api(access).ask("GET", "/", within_s=PATIENT_S)


@pytest.mark.parametrize("text", ['{[":,', '\\"{', "\\\\", "\\"], ids=["marks", "quotes", "escapes", "one"])
def test_what_stands_in_a_text_takes_no_more_than_its_length(authority: Authority, text: str) -> None:
    """Or a pod could be refused for what an annotation contains."""
    sent = {"a": text * (MANY // 10 * 9 // len(text)), "b": ["c"], "d": text}
    with _serving(authority, lambda handler: send(handler, 200, json.dumps(sent).encode())) as access:
        answer = Api(access).ask("GET", "/", within_s=PATIENT_S)
    assert answer.body == sent


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


@pytest.mark.parametrize(
    "broken", [{"authority": "x"}, {"certificate": "x", "key": "y"}], ids=["authority", "client certificate"]
)
def test_broken_certificates_are_said_before_anything_is_asked(broken: dict[str, Any]) -> None:
    with pytest.raises(Unusable, match=r"kubelet\.conf: its certificates"):
        Api(Access("kubelet.conf", "127.0.0.1", 1, **broken))
