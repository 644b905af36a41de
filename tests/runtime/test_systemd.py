"""What systemd is told."""

import socket

from fencer.runtime.systemd import notify
from fencer.runtime.watch import watch
from tests.runtime.stagehand import Stagehand


def test_each_pass_feeds_the_watchdog_and_without_systemd_nothing_happens(tmp_path, monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        stage, passes = Stagehand(), iter([False, False, False, False, True])
        watch(stage.agent, stage.world, 2.0, lambda: next(passes))
        assert systemd.recv(64) == b"WATCHDOG=1"
        assert systemd.recv(64) == b"WATCHDOG=1"


def test_a_socket_that_is_gone_is_survived(tmp_path, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    notify("READY=1")
