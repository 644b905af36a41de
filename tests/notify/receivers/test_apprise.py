"""apprise, in its own process: what it is told, and that nothing it does holds fencer up or leaks."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fencer.errors import ReceiverError
from fencer.notify.hidden import HIDDEN
from fencer.notify.receivers.apprise import _CHILD
from fencer.notify.settings import ALL, AppriseSettings
from fencer.notify.summary import summary
from fencer.wording.occasions import Occasion
from tests.cluster.standin import StandIn, answer, in_turn, silent
from tests.notify.receivers.labs import TEXT, built, message, written
from tests.support import wait_until


@pytest.fixture
def standing():
    with contextlib.ExitStack() as stack:
        yield lambda behave: stack.enter_context(StandIn(behave, key=None))


def at(server: StandIn, path: str = "") -> str:
    return f"{server.url.replace('http://', 'json://')}{path}"


def telling(folder: Path, *urls: str, deadline_s: float = 60.0):
    return built(AppriseSettings("p", ALL, written(folder / "urls", "\n".join(urls))), deadline_s)


def test_what_it_is_told(standing, tmp_path):
    server = standing(answer({}))
    receiver = telling(tmp_path, at(server))
    receiver.send([message()])
    receiver.send([message(number=2, occasion=Occasion.ALARM, over=True)])
    first, second = (json.loads(request.body) for request in server.requests)
    assert first["title"] == "[lab] k8s-2 is fenced, its pods are cleared"
    assert first["message"] == f"{TEXT}\n\nhttps://fencer.lab/"
    assert (first["type"], second["type"]) == ("warning", "success")


def test_each_url_is_told_and_one_that_fails_is_told_again_alone(standing, tmp_path):
    good, bad = standing(answer({})), standing(in_turn(answer("no", status=500), answer({})))
    receiver = telling(tmp_path, "# chats", at(good), "", at(bad))
    with pytest.raises(ReceiverError, match=r"^URL 2 \(json://…\): .*500") as caught:
        receiver.send([message()])
    assert caught.value.works  # others need not wait for it
    receiver.send([message()])
    assert (len(good.requests), len(bad.requests)) == (1, 2)
    receiver.send([message(number=2)])
    assert (len(good.requests), len(bad.requests)) == (2, 3)


def test_a_summary_of_what_an_url_has_is_not_sent_there(standing, tmp_path):
    good, bad = standing(answer({})), standing(answer("no", status=500))
    receiver = telling(tmp_path, at(good), at(bad))
    first, second, new = (message(key=f"{name}-1", about=name) for name in ("a", "b", "c"))
    for one in (first, second, summary([first, second])):
        with pytest.raises(ReceiverError, match="URL 2"):
            receiver.send([one])
    assert (len(good.requests), len(bad.requests)) == (2, 3)
    with pytest.raises(ReceiverError, match="URL 2"):
        receiver.send([summary([first, second, new])])
    assert (len(good.requests), len(bad.requests)) == (3, 4)


@pytest.mark.slow  # it is waited for
def test_an_url_that_hangs_keeps_no_other_back_and_has_none_told_again(tmp_path, monkeypatch):
    child = f"""
import json, sys, time
for url in json.load(sys.stdin)["urls"]:
    open({str(tmp_path / "asked")!r}, "a").write(url + "\\n")
    time.sleep(60 if "hangs" in url else 0)
    print(json.dumps([True, ""]), flush=True)
"""
    (tmp_path / "child.py").write_text(child)
    monkeypatch.setattr(
        sys, "executable", str(child_that(tmp_path, f"exec {sys.executable} {tmp_path}/child.py"))
    )
    receiver = telling(tmp_path, "json://hangs", "json://works", deadline_s=2.0)
    for works in (False, True, True):
        with pytest.raises(ReceiverError, match=r"did not end within 2 s") as caught:
            receiver.send([message()])
        assert caught.value.works is works
    asked = (tmp_path / "asked").read_text().split()
    assert asked == [f"json://{name}" for name in ("hangs", "works", "hangs", "hangs")]


def test_if_no_url_is_told_it_does_not_work(standing, tmp_path):
    bad = standing(answer("no", status=500))
    with pytest.raises(ReceiverError) as caught:
        telling(tmp_path, at(bad), at(bad, "/2")).send([message()])
    assert not caught.value.works


@pytest.mark.parametrize(
    "url",
    [
        "json://us3rname:p4ssw0rd@127.0.0.1:1/T0PS3CRETPATH?k=v4lu3s",
        "nosuch://T0PS3CRETPATH",
        "T0PS3CRETPATH",
    ],
)
def test_no_part_of_an_url_is_shown(tmp_path, url):
    with pytest.raises(ReceiverError, match="URL 1") as caught:
        telling(tmp_path, url).send([message()])
    for secret in ("us3rname", "p4ssw0rd", "T0PS3CRETPATH", "v4lu3s"):
        assert secret not in str(caught.value)


@pytest.mark.slow  # it is waited for
def test_one_that_hangs_is_ended_with_all_that_it_started(standing, tmp_path):
    server = standing(silent)
    with pytest.raises(ReceiverError, match=r"apprise did not end within 3 s"):
        telling(tmp_path, at(server), deadline_s=3.0).send([message()])
    wait_until(lambda: not children(), "end of apprise")


def children() -> list[str]:
    return [
        one
        for one in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        if "apprise_child" in Path(f"/proc/{one}/cmdline").read_text()
    ]


def test_it_has_nothing_of_our_environment_and_no_message_on_its_command_line(
    standing, tmp_path, monkeypatch
):
    seen = {}

    def behave(request, connection, end):
        [child] = children()
        seen["command"] = Path(f"/proc/{child}/cmdline").read_text()
        seen["environment"] = Path(f"/proc/{child}/environ").read_text()
        answer({})(request, connection, end)

    server = standing(behave)
    for name in ("KUBECONFIG", "http_proxy", "PYTHONPATH", "APPRISE_URLS", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://t0psecret:1")
    telling(tmp_path, at(server, "/T0PS3CRETPATH")).send([message()])
    assert len(server.requests) == 1
    assert not any(word in seen["command"] for word in ("T0PS3CRETPATH", "k8s-2"))
    assert "t0psecret" not in seen["environment"]


@pytest.mark.parametrize("status", [200, 302, 307])
def test_an_endless_answer_ends_it_before_it_has_taken_much_memory(standing, tmp_path, status):
    most_kib, first_to_go = [], set()

    def behave(_request, connection, _end):
        [child] = children()
        head = f"HTTP/1.1 {status} So\r\n{'Location: /' if status > 300 else 'X: y'}\r\n\r\n"
        connection.sendall(head.encode())
        for _ in range(500):
            connection.sendall(b"x" * (1 << 20))
            seen = Path(f"/proc/{child}/status").read_text()
            most_kib.extend(int(found) for found in re.findall(r"VmHWM:\s+(\d+) kB", seen))
            first_to_go.add(Path(f"/proc/{child}/oom_score_adj").read_text())

    server = standing(behave)
    with pytest.raises(ReceiverError, match="URL 1"):
        telling(tmp_path, at(server)).send([message()])
    assert first_to_go == {"1000\n"}
    assert 50 << 10 < max(most_kib) < 256 << 10


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_nobody_counts_as_told(standing, tmp_path, status):
    other = standing(answer({}))

    def behave(_request, connection, _end):
        connection.sendall(
            f"HTTP/1.1 {status} So\r\nLocation: {other.url}/\r\nContent-Length: 0\r\n\r\n".encode()
        )

    server = standing(behave)
    with pytest.raises(ReceiverError, match="URL 1"):
        telling(tmp_path, at(server)).send([message()])
    assert (len(server.requests), other.requests) == (1, [])


def test_it_ends_by_itself_if_nobody_ends_it():
    with subprocess.Popen([sys.executable, "-I", str(_CHILD), "1"], stdin=subprocess.PIPE) as child:
        assert child.wait(60) == -signal.SIGALRM


def test_there_is_one_at_a_time_whatever_the_number_of_receivers(standing, tmp_path):
    go_on = threading.Event()

    def behave(request, connection, end):
        go_on.wait(60)
        answer({})(request, connection, end)

    server = standing(behave)
    first = threading.Thread(target=telling(tmp_path, at(server)).send, args=([message()],))
    first.start()
    try:
        wait_until(lambda: server.requests, "first message", timeout_s=60)
        second = telling(tmp_path, at(server), deadline_s=0.2)
        with pytest.raises(ReceiverError, match="busy for another receiver; this one is told later"):
            second.send([message()])
    finally:
        go_on.set()
        first.join(60)
    assert len(server.requests) == 1
    telling(tmp_path, at(server)).send([message()])
    assert len(server.requests) == 2


def without_apprise(folder: Path) -> Path:
    """Return a Python that has no apprise."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o700)
    return python


def child_that(folder: Path, script: str) -> Path:
    """Return a program that does something else than apprise."""
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o700)
    return python


def test_if_it_is_not_installed_it_is_said_how(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(without_apprise(tmp_path)))
    with pytest.raises(
        ReceiverError, match=r"^apprise is not installed: pip install 'fencer-agent\[apprise\]'$"
    ):
        telling(tmp_path, "json://127.0.0.1:1").send([message()])


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 1", "apprise ended with 1"),
        (
            "cat >/dev/null; echo Traceback; echo ImportError: T0PS3CRETPATH; exit 1",
            f"ended with 1: {re.escape(HIDDEN)}$",
        ),
        ("cat >/dev/null; echo '[]'", "ended with 0: "),
        ("cat >/dev/null; echo '[[true]]'", "ended with 0: "),
        ("cat >/dev/null; echo nonsense", "ended with 0: nonsense"),
        ("kill -SEGV $$", "ended with -11"),
        ("cat >/dev/null; exec yes", "more than 64 KiB"),
    ],
)
def test_a_child_that_goes_wrong(tmp_path, monkeypatch, script, why):
    monkeypatch.setattr(sys, "executable", str(child_that(tmp_path, script)))
    with pytest.raises(ReceiverError, match=why):
        telling(tmp_path, "json://127.0.0.1:1/T0PS3CRETPATH", deadline_s=30.0).send([message()])


@pytest.mark.slow  # it is waited for
@pytest.mark.parametrize(
    "script",
    [
        "exec sleep 60",
        "sleep 60 & exec sleep 60",
        "exec >&- 2>&- <&-; exec sleep 60",
        "trap '' TERM; cat; sleep 60",
    ],
)
def test_a_child_that_does_not_end(tmp_path, monkeypatch, script):
    monkeypatch.setattr(sys, "executable", str(child_that(tmp_path, script)))
    with pytest.raises(ReceiverError, match="did not end within 1 s; whether anybody was told is not known"):
        telling(tmp_path, "json://127.0.0.1:1/T0PS3CRETPATH", deadline_s=1.0).send([message()])


def test_a_python_that_is_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    with pytest.raises(ReceiverError, match=r"cannot run .*/gone: No such file"):
        telling(tmp_path, "json://127.0.0.1:1").send([message()])


def test_an_urls_file_that_is_none(tmp_path):
    receiver = telling(tmp_path, "# nothing")
    with pytest.raises(ReceiverError, match="is empty"):
        receiver.send([message()])
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "socket"))
        with pytest.raises(ReceiverError, match="cannot be read"):
            built(AppriseSettings("p", ALL, tmp_path / "socket")).send([message()])
