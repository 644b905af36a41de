"""What is answered over HTTP, by a real server on loopback; and that the agent does not notice."""

import logging
import socket
import threading
import time
from contextlib import ExitStack

import pytest

from fencer.web.server import CONNECTIONS, Server
from fencer.web.settings import WebSettings
from tests.support import wait_until
from tests.web.onstage import OnStage


def test_the_page_the_metrics_and_health_are_there(serve):
    asked = serve()
    for path, kind, words in (
        ("/", "text/html; charset=utf-8", "<p>fencer@pve1"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8", "fencer_armed 1.0"),
        ("/healthz", "text/plain; charset=utf-8", "ok"),
        ("/readyz", "text/plain; charset=utf-8", "ok, armed"),
    ):
        status, headers, body = asked.get(path)
        assert (status, headers["Content-Type"]) == (200, kind)
        assert words in body
        status, head, nothing = asked.get(path, method="HEAD")
        assert (status, nothing) == (200, "")
        assert head["Content-Type"] == kind
        if path != "/metrics":  # what it tells of this process changes
            assert head["Content-Length"] == str(len(body))


def test_an_agent_that_is_not_ready_answers_503_with_why(serve, stage):
    stage.happen("api_down", "")
    stage.passes(4)
    status, _, body = serve().get("/readyz")
    assert status == 503
    assert body.startswith("kubernetes: ")


def test_there_is_nothing_else_and_nothing_can_be_changed(serve):
    asked = serve()
    for path in ("/x", "/metrics/", "/../etc/passwd", "/%2e%2e/", "/favicon.ico"):
        status, _, body = asked.get(path)
        assert status == 404, path
        assert "/metrics" in body
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        status, headers, _ = asked.get("/", method=method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_a_body_is_not_read(serve):
    status, _, _ = serve().get("/", method="POST", body=b"x" * 100)
    assert status == 413


def test_browsers_are_told_to_load_run_keep_and_frame_nothing(serve):
    for path in ("/", "/metrics", "/nothing"):
        _, headers, _ = serve(styles=["sha256-abc="]).get(path)
        assert headers["Content-Security-Policy"] == (
            "default-src 'none'; style-src 'sha256-abc='; img-src data:; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"
        )
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Server"] is None, "a version is of use only to attackers"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:9721",
        "[::1]:80",
        "10.0.0.5",
        "localhost:9721",
        "BOX",
        "box.",
        "fencer.example",
    ],
)
def test_it_answers_by_its_own_names(serve, host):
    assert serve(names=["fencer.example"]).get("/metrics", host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "box.evil.example",
        "localhost.evil",
        "127.0.0.1.evil",
        "[box]",
        "a b",
        "box:80:80",
        "@box",
    ],
)
def test_another_name_is_refused_with_what_to_add(serve, host):
    for path in ("/", "/metrics", "/healthz"):
        status, _, body = serve().get(path, host=host)
        assert status == 421
        assert "`web: {names: [NAME]}`" in body
        assert "fencer_armed" not in body


def test_a_probe_without_a_name_is_answered(serve):
    with socket.create_connection(("127.0.0.1", serve().server.port), timeout=30) as probe:
        probe.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert probe.recv(100).startswith(b"HTTP/1.0 200 OK")


def test_a_page_that_cannot_be_made_costs_one_answer_and_is_logged_once(serve, caplog):
    def broken(_shown):
        raise ZeroDivisionError

    asked = serve({"/": broken})
    for _ in range(3):
        status, _, body = asked.get("/")
        assert status == 500
        assert "Traceback" not in body
    assert asked.get("/healthz")[0] == 200
    [record] = [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert record.getMessage().startswith("/ cannot be shown: ZeroDivisionError at ")


def test_a_page_is_made_once_a_second_however_many_ask(serve):
    made, now = [], [0.0]

    def page(_shown):
        made.append(now[0])
        return b"page"

    asked = serve({"/": page}, now_s=lambda: now[0])
    for _ in range(20):
        asked.get("/")
    assert made == [0.0]
    now[0] = 1.1
    asked.get("/")
    assert made == [0.0, 1.1]


def test_health_is_looked_at_once_a_second_however_many_ask(serve, stage):
    looks, now = [], [0.0]

    def snapshot():
        looks.append(now[0])
        return stage.shown()

    asked = serve(snapshot=snapshot, now_s=lambda: now[0])
    for path in ("/healthz", "/readyz") * 5:
        assert asked.get(path)[0] == 200
    assert looks == [0.0, 0.0]
    now[0] = 1.1
    asked.get("/readyz")
    assert looks == [0.0, 0.0, 1.1]


def test_a_page_that_takes_long_to_make_is_made_less_often(serve):
    made, now = [], [0.0]

    def page(_shown):
        made.append(now[0])
        now[0] += 2.0
        return b"page"

    asked = serve({"/": page}, now_s=lambda: now[0])
    asked.get("/")
    for now[0] in (3.0, 12.0, 21.9):
        asked.get("/")
    assert made == [0.0]
    now[0] = 22.1
    asked.get("/")
    assert made == [0.0, 22.1]


def test_a_large_page_arrives_whole(serve):
    page = b"0123456789" * 500_000
    assert serve({"/": lambda _: page}).get("/")[2].encode() == page


def test_a_port_that_is_taken_is_told_once_and_tried_again_until_it_is_free(caplog):
    caplog.set_level(logging.INFO)
    with ExitStack() as open_:
        other = open_.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = other.getsockname()[1]
        server = Server(WebSettings(port=port), lambda *_: (), again_s=0.02)
        open_.callback(server.close)
        assert not server.wait(0.2)
        assert server.port is None
        other.close()
        assert server.wait(30)
        assert server.port == port
    taken, listening = [one for one in caplog.records if one.name == "fencer.web.server"]
    assert (taken.levelname, taken.getMessage()) == (
        "WARNING",
        f"no page and no metrics: cannot listen on 127.0.0.1:{port}: Address already in use; tried again "
        "every 0.02 s. Another place: `web: {listen: HOST:PORT}`; none: `web: {enabled: false}`",
    )
    assert listening.getMessage() == f"page and metrics: http://127.0.0.1:{port}/"


def test_an_address_that_is_not_there_is_told_too(caplog):
    server = Server(WebSettings("192.0.2.1", 9721), lambda *_: ())
    server.close()
    [record] = caplog.records
    assert "cannot listen on 192.0.2.1:9721: Cannot assign requested address" in record.getMessage()


def test_it_listens_on_ipv6(stage):
    del stage
    server = Server(WebSettings("::1", 0), lambda *_: ())
    try:
        assert server.wait(30)
        socket.create_connection(("::1", server.port), timeout=30).close()
    finally:
        server.close()


def test_once_closed_it_listens_no_more_and_its_threads_end(serve):
    asked = serve()
    port = asked.server.port
    asked.get("/")
    asked.server.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    wait_until(
        lambda: not any(one.name.startswith(("waitress", "fencer-web")) for one in threading.enumerate()),
        "end of its threads",
        timeout_s=30,
    )


def test_a_connection_that_says_nothing_is_closed(serve):
    asked = serve(request_s=0.1)
    with socket.create_connection(("127.0.0.1", asked.server.port), timeout=30) as silent:
        assert silent.recv(1) == b""


def test_a_connection_that_says_a_byte_now_and_then_is_closed_too(serve):
    asked = serve(request_s=0.5)
    with socket.create_connection(("127.0.0.1", asked.server.port), timeout=0.1) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nX: ")

        def ended():
            try:
                slow.sendall(b"x")
                return slow.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        wait_until(ended, "end of a slow connection", timeout_s=30)


def test_a_wall_clock_that_is_set_back_keeps_no_connection(serve, monkeypatch):
    asked = serve(request_s=0.5)
    with socket.create_connection(("127.0.0.1", asked.server.port), timeout=30) as silent:
        monkeypatch.setattr(time, "time", lambda: 0.0)
        assert silent.recv(1) == b""


def test_a_connection_has_one_request(serve):
    with socket.create_connection(("127.0.0.1", serve().server.port), timeout=30) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: box\r\n\r\n" * 2)
        with client.makefile("rb") as answers:
            answer = answers.read()
    assert answer.count(b"HTTP/1.1 200") == 1
    assert b"\r\nConnection: close\r\n" in answer


def test_more_connections_than_there_is_room_for_wait_and_cost_nothing(serve):
    asked = serve(request_s=1.0)
    before = threading.active_count()
    with ExitStack() as open_:
        for _ in range(4 * CONNECTIONS):
            one = socket.socket()
            open_.callback(one.close)
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", asked.server.port))
        assert threading.active_count() == before
        assert asked.get("/healthz")[0] == 200, "idle ones make room"


# --- the agent does not notice --------------------------------------------------------------------------


def test_a_page_that_hangs_keeps_no_pass_waiting(serve, stage):
    begun, go_on = threading.Event(), threading.Event()

    def hangs(_shown):
        begun.set()
        go_on.wait(60)
        return b"at last"

    asked = serve({"/": hangs})
    asker = threading.Thread(target=asked.get, args=("/",))
    asker.start()
    try:
        assert begun.wait(30)
        before = sum(stage.shown().passes.values())
        stage.happen("crash")
        stage.passes(120)
        assert stage.stage.node().fenced
        assert sum(stage.shown().passes.values()) > before + 50
        assert not go_on.is_set()
        assert asked.get("/healthz")[0] == 200
    finally:
        go_on.set()
        asker.join(30)


def test_a_crowd_of_fast_and_slow_clients_changes_nothing_about_passes(serve, stage):
    """The same incident, once alone and once under a crowd: the same calls in the same order, and no more."""

    def incident(scene):
        scene.stage.calls.clear()
        scene.happen("crash")
        scene.passes(150)
        return list(scene.stage.calls), dict(scene.shown().passes)

    alone = OnStage()
    alone.passes(25)
    asked, stop = serve(), threading.Event()
    answered = []

    def ask():
        while not stop.is_set():
            answered.append(asked.get(("/", "/metrics", "/readyz")[len(answered) % 3])[0])

    with ExitStack() as open_:
        crowd = [threading.Thread(target=ask) for _ in range(4)]
        for one in crowd:
            one.start()
        open_.callback(lambda: [one.join(30) for one in crowd])
        open_.callback(stop.set)
        for _ in range(8):
            slow = open_.enter_context(socket.create_connection(("127.0.0.1", asked.server.port), timeout=30))
            slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-")
        wait_until(lambda: len(answered) > 10, "answers before", timeout_s=60)
        crowded = incident(stage)
        wait_until(lambda: len(answered) > 50, "answers after", timeout_s=60)
    assert crowded == incident(alone)
    assert set(answered) == {200}
