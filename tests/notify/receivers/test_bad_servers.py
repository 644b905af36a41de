"""What no server can do to fencer, whichever receiver leads to it: take its time, memory or secrets."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fencer.errors import ReceiverError
from fencer.notify.hidden import HIDDEN
from fencer.notify.post import ANSWER_BYTES, LONGEST_PAUSE_S, Address, post
from fencer.notify.settings import ALL, AlertmanagerSettings
from tests.cluster.standin import (
    Endless,
    StandIn,
    again,
    answer,
    drip,
    dripping,
    hang_up,
    silent,
    stream,
)
from tests.controlplane.certificates import Authority
from tests.notify.receivers.labs import RECORDINGS, built, message, recorded, settings_of
from tests.support.kernel import held_bytes

KINDS = ["ntfy", "gotify", "alertmanager", "webhook"]
SHORT_S = 0.5
SECRETS = ("tk_s3cr3t0fThisReceiver", "T0PS3CRETPATH", "S3CR3TKEY", "t0psecret-topic")


def endlessly_continuing(_request, connection, end):
    while not end.wait(0.01):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


SLOW = {
    "silence": silent,
    "a head that drips": dripping(answer({}), "head"),
    "continue without end": endlessly_continuing,
    "a refusal that drips": dripping(answer("no " * 10_000, status=403), "body"),
}


@pytest.fixture
def standing():
    with contextlib.ExitStack() as stack:
        yield lambda behave: stack.enter_context(StandIn(behave, key=None))


def refusal(kind, url, folder, *, ca_file=None, deadline_s=10.0) -> ReceiverError:
    """Send, and return the error; none of the secrets is in it, nor in what else would be logged."""
    with pytest.raises(ReceiverError) as caught:
        built(settings_of(kind, url, folder, ca_file), deadline_s).send([message()])
    for secret in SECRETS:
        assert secret not in str(caught.value)
        assert secret not in repr(caught.value.__context__)
    assert str(caught.value).isprintable()
    return caught.value


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_there(kind, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    assert str(refusal(kind, url, tmp_path)) == f"{url}: Connection refused"


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_is_none(kind, tmp_path):
    error = refusal(kind, "https://fencer-no-such-host.invalid", tmp_path)
    assert str(error).startswith("https://fencer-no-such-host.invalid: its name cannot be resolved: ")


def gave_up_in_time(text):
    """Return whether the time that a server was given is all that there was, or what was left of it."""
    found = re.search(r"no answer within ([0-9.]+) s", text)
    return found is not None and 0 < float(found[1]) <= SHORT_S


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", SLOW)
def test_a_slow_server_is_left_alone_in_time(standing, tmp_path, kind, what):
    server = standing(SLOW[what])
    text = str(refusal(kind, server.url, tmp_path, deadline_s=SHORT_S))
    assert text.startswith(f"{server.url}")
    # A refusal that came is told, although the rest of its text did not.
    assert " answered 403: no " in text or text.endswith("; whether it was taken is not known")
    assert " answered 403: no " in text or gave_up_in_time(text)
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slow", [drip, stream(b"x", then=again(b"x"))])
def test_what_was_taken_is_taken_although_the_rest_of_the_answer_drips(standing, tmp_path, kind, slow):
    server = standing(slow)
    built(settings_of(kind, server.url, tmp_path), SHORT_S).send([message()])
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_does_not_read(tmp_path, kind):
    """What does not fit into the kernel's buffers waits, and the time counts there, too."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert gave_up_in_time(str(refusal(kind, url, tmp_path, deadline_s=SHORT_S)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [200, 401, 500])
def test_an_answer_without_an_end_is_not_kept(standing, tmp_path, kind, status):
    body = Endless(status)
    receiver = built(settings_of(kind, standing(body).url, tmp_path))
    with (
        contextlib.nullcontext()
        if status == 200
        else pytest.raises(ReceiverError, match=f"answered {status}")
    ):
        receiver.send([message()])
    assert body.sent_bytes < ANSWER_BYTES + held_bytes() + (1 << 20)


@pytest.mark.parametrize("line", [b"x" * 60_000, b"X-Many: x\r\n" * 50_000])
def test_a_head_without_an_end_is_not_kept(standing, tmp_path, line):
    def behave(_request, connection, _end):
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: " + line * 3)

    server = standing(behave)
    assert str(refusal("ntfy", server.url, tmp_path)).startswith(f"{server.url}: ")


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_hangs_up(standing, tmp_path, kind):
    server = standing(hang_up)
    assert str(refusal(kind, server.url, tmp_path)).startswith(f"{server.url}: ")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"220 mail.example ESMTP\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x03\x00\x02\x02\x46",
        b"HTTP/1.1 \xff\xfe OK\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 500 X\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 302 X\r\nLocation: http://a@b:x/\r\n\r\n",
        b"HTTP/1.1 302 X\r\nLocation: \x1b[31m\r\n\r\n",
    ],
)
def test_an_answer_that_is_none(standing, tmp_path, raw):
    server = standing(lambda _request, connection, _end: connection.sendall(raw))
    text = str(refusal("ntfy", server.url, tmp_path))
    assert text.startswith(
        (f"{server.url}: what it answers cannot be understood: ", f"{server.url} answered ")
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(standing, tmp_path, kind, status):
    there = standing(answer({}))
    leads = f"{there.url.replace('://', '://me:hidd3n@')}/login?next=hidd3n#hidd3n"
    here = standing(answer("", status=status, headers={"Location": leads}))
    text = str(refusal(kind, here.url, tmp_path))
    assert (
        text == f"{here.url} answered {status}: go to {there.url}/login."
        " fencer does not: is that its right address?"
    )
    assert (len(here.requests), there.requests) == (1, [])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_what_a_server_repeats_of_a_request_is_not_shown(standing, tmp_path, kind, status):
    """As Express does it: ``Cannot POST /hooks/…``."""

    def behave(request, connection, end):
        said = f"Cannot POST {request.target} {dict(request.headers)} {request.body.decode()}\x1b[31m\n"
        answer(said, status=status)(request, connection, end)

    error = refusal(kind, standing(behave).url, tmp_path)
    assert f"answered {status}: {HIDDEN}" in str(error)
    if status in {401, 403}:
        assert f"Is the token in {tmp_path}/token the right one?" in str(error)


@pytest.mark.parametrize(
    "said",
    [
        "bad credentials YWRtaW46aHVudGVyMnNlY3JldA==",
        "no:".ljust(ANSWER_BYTES - len("tk_s3cr3t0fThisReceive")) + "tk_s3cr3t0fThisReceiver",
        r'{"error": "bad key b\/tk_s3\/cr3t"}',
        "no such hook /services/t00/t0ps3cretpath",
        "no such hook /services/T00/T0PS3CRETPAT",
        "no such hook %54%30PS3CRETPATH",
        "not for h\nu\tn ter2secret",
        "the pin is pin:4",
    ],
)
def test_an_answer_with_a_part_of_a_secret_is_not_shown(standing, said):
    server = standing(answer(said, status=500))
    url = server.url.replace("://", "://admin:hunter2secret@")
    secrets = ("T0PS3CRETPATH", "services/T00/T0PS3CRETPATH", "b/tk_s3/cr3t", "pin:4")
    with pytest.raises(ReceiverError) as caught:
        post(Address(url, "tk_s3cr3t0fThisReceiver", hidden=secrets), {})
    assert str(caught.value) == f"{server.url} answered 500: {HIDDEN}"


def test_a_redirect_with_a_part_of_a_secret_is_not_shown(standing):
    def behave(_request, connection, _end):
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://other/x;s3cr3t0fThis/y\r\n\r\n")

    server = standing(behave)
    with pytest.raises(ReceiverError, match="answered 302") as caught:
        post(Address(server.url, "tk_s3cr3t0fThisReceiver"), {})
    assert "s3cr3t" not in str(caught.value)
    assert HIDDEN in str(caught.value)


def test_an_answer_with_too_little_of_a_secret_to_tell_anything_is_shown(standing):
    server = standing(answer("no topic   fencer-x\n", status=500))
    with pytest.raises(ReceiverError, match=r"answered 500: no topic fencer-x$"):
        post(Address(server.url, "fencer-token", hidden=("topic/ten",)), {})


@pytest.mark.parametrize(
    ("server", "what"),
    [(server, what) for server, said in RECORDINGS.items() if server != "about" for what in said],
)
def test_what_real_servers_said(standing, tmp_path, server, what):
    status, said = RECORDINGS[server][what]
    there = standing(recorded(server, what))
    if status == 200:
        built(settings_of(server, there.url, tmp_path)).send([message()])
    else:
        hint = f". Is the token in {tmp_path}/token the right one?" if status in {401, 403} else ""
        assert (
            str(refusal(server, there.url, tmp_path))
            == f"{there.url} answered {status}: {json.dumps(said)}{hint}"
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("status", "said", "least_s", "most_s"),
    [
        (429, "17", 17, 17),
        (503, "17", 17, 17),
        (429, "0", 0, 0),
        (429, "86400", LONGEST_PAUSE_S, LONGEST_PAUSE_S),
        (429, "9" * 500, LONGEST_PAUSE_S, LONGEST_PAUSE_S),
        (429, 1800, 1, 1800),
        (429, 1 << 30, LONGEST_PAUSE_S, LONGEST_PAUSE_S),
        (429, "Thu, 26 Nov 2020 10:00:00 GMT", 0, 0),
    ],
)
def test_how_long_a_server_wants_to_be_left_alone(standing, tmp_path, kind, status, said, least_s, most_s):
    if isinstance(said, int):  # from now, as a date
        said = format_datetime(datetime.now(UTC) + timedelta(seconds=said), usegmt=True)
    server = standing(answer("later", status=status, headers={"Retry-After": said}))
    retry_s = refusal(kind, server.url, tmp_path).retry_s
    assert retry_s is not None
    assert least_s <= retry_s <= most_s


@pytest.mark.parametrize("said", ["", "soon", "-5", "1.5", "٣", "Thu, 99 Nov 2026 10:00:00 GMT", "nan"])
def test_a_pause_that_is_none(standing, tmp_path, said):
    server = standing(answer("later", status=429, headers={"Retry-After": said.encode().decode("latin-1")}))
    assert refusal("ntfy", server.url, tmp_path).retry_s is None


def test_only_who_is_too_busy_may_ask_for_a_pause(standing, tmp_path):
    server = standing(answer("no", status=403, headers={"Retry-After": "17"}))
    assert refusal("ntfy", server.url, tmp_path).retry_s is None


class _Taken(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def by_tls(authority: Authority, name: str, valid_for=timedelta(days=1)) -> Iterator[int]:
    """Serve by TLS, and yield the port."""
    pair = authority.server("receiver", [name], valid_for)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.cert_file, pair.key_file)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Taken) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("kind", KINDS)
def test_a_ca_of_ones_own(tmp_path, kind):
    authority = Authority(tmp_path / "ca")
    with by_tls(authority, "127.0.0.1") as port:
        built(settings_of(kind, f"https://127.0.0.1:{port}", tmp_path, authority.ca_file)).send([message()])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("trusted", "name", "hours", "why"),
    [
        (
            "other",
            "127.0.0.1",
            1,
            "unable to get local issuer certificate|self-signed certificate in certificate chain",
        ),
        (
            None,
            "127.0.0.1",
            1,
            "unable to get local issuer certificate|self-signed certificate in certificate chain",
        ),
        ("own", "10.0.0.1", 1, "IP address mismatch"),
        ("own", "127.0.0.1", -1, "certificate has expired"),
    ],
)
def test_a_wrong_certificate_gets_nothing(tmp_path, kind, trusted, name, hours, why):
    own, other = Authority(tmp_path / "own"), Authority(tmp_path / "other")
    ca_file = {"own": own.ca_file, "other": other.ca_file, None: None}[trusted]
    with by_tls(own, name, timedelta(hours=hours)) as port:
        error = refusal(kind, f"https://127.0.0.1:{port}", tmp_path, ca_file=ca_file)
    assert re.search(f"its certificate is not accepted: .*({why}).*`ca_file` names its CA", str(error))


@pytest.mark.parametrize("kind", KINDS)
def test_a_handshake_that_does_not_end(tmp_path, kind):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        assert gave_up_in_time(str(refusal(kind, url, tmp_path, deadline_s=SHORT_S)))


def test_a_handshake_that_drips(tmp_path):
    """Each byte of an endless TLS record comes in time; all of them do not."""
    over = threading.Event()

    def drop(listener):
        with contextlib.suppress(OSError):  # on a busy machine the deadline can pass before anything connects
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"\x16\x03\x03\x40\x00")
                while not over.wait(0.02):
                    connection.sendall(b"\x00")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drop, args=(listener,), daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        text = str(refusal("ntfy", url, tmp_path, deadline_s=SHORT_S))
        over.set()
        thread.join(10)
    assert gave_up_in_time(text)


@pytest.mark.parametrize("status", [200, 403])
def test_a_password_in_an_url_is_sent_and_not_shown(standing, tmp_path, status):
    def behave(request, connection, end):
        answer(f"for {request.headers['authorization']}, us3r:p%40ss of us3r:p@ss", status=status)(
            request, connection, end
        )

    server = standing(behave)
    url = server.url.replace("://", "://us3r:p%40ss@")
    receiver = built(AlertmanagerSettings("a", ALL, (url,)))
    with contextlib.nullcontext() if status == 200 else pytest.raises(ReceiverError) as caught:
        receiver.send([message()])
    assert server.requests[0].headers["authorization"] == "Basic dXMzcjpwQHNz"
    if caught is not None:
        assert str(caught.value).endswith(f" answered 403: {HIDDEN}")


def test_a_server_without_tls(standing, tmp_path):
    server = standing(answer({}))
    url = server.url.replace("http:", "https:")
    assert str(refusal("gotify", url, tmp_path)).startswith(f"{url}: ")
    assert server.requests == []


@pytest.mark.parametrize("content", ["", "no certificate"])
def test_a_ca_file_that_is_none(tmp_path, content):
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text(content)
    assert f"{ca_file}: no CA can be read there" in str(
        refusal("ntfy", "https://127.0.0.1:1", tmp_path, ca_file=ca_file)
    )


def test_proxies_of_the_environment_are_not_asked(standing, tmp_path, monkeypatch):
    server, proxy = standing(answer({})), standing(answer({}))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    built(settings_of("gotify", server.url, tmp_path)).send([message()])
    assert (len(server.requests), proxy.requests) == (1, [])


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_read_each_time(standing, tmp_path, kind):
    server = standing(answer({}))
    receiver = built(settings_of(kind, server.url, tmp_path))
    receiver.send([message()])
    (tmp_path / "token").write_text("  anotherone\n\n")
    receiver.send([message(number=2)])
    names = ("authorization", "x-gotify-key")
    sent = [
        next(request.headers[name] for name in names if name in request.headers)
        for request in server.requests
    ]
    assert [one.removeprefix("Bearer ") for one in sent] == ["tk_s3cr3t0fThisReceiver", "anotherone"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"one\ntwo\n", "must have one line, and has 2"),
        (b"a\x00b", "has characters that nobody can type"),
        (b"a\rb", "has characters that nobody can type"),
        ("tök".encode(), "has something else than ASCII"),
        (b"x" * 20_000, "is larger than 16 KiB"),
        (None, "No such file"),
    ],
)
def test_a_token_file_that_is_none(standing, tmp_path, kind, content, why):
    server = standing(answer({}))
    receiver = built(settings_of(kind, server.url, tmp_path))
    (tmp_path / "token").unlink()
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with pytest.raises(ReceiverError, match=why) as caught:
        receiver.send([message()])
    assert str(tmp_path / "token") in str(caught.value)
    assert server.requests == []


@pytest.mark.parametrize(
    "text", ["nonsense", "ftp://host/x", "https://", "https://[::1", "/hooks/T0PS3CRETPATH"]
)
def test_an_url_that_is_none_is_not_shown(tmp_path, text):
    settings = settings_of("webhook", "https://127.0.0.1:1", tmp_path)
    (tmp_path / "url").write_text(text)
    with pytest.raises(ReceiverError, match="the URL is none") as caught:
        built(settings).send([message()])
    assert "T0PS3CRETPATH" not in str(caught.value)


def test_no_secret_gets_into_the_log(standing, tmp_path, caplog):
    caplog.set_level(logging.DEBUG, logger="fencer")
    for kind in KINDS:
        refusal(kind, standing(answer("no", status=403)).url, tmp_path)
    assert not any(
        secret in record.getMessage()
        for record in caplog.records
        for secret in SECRETS
        if record.name.startswith("fencer")
    )
