"""The Proxmox hookscript as Proxmox runs it: a process that exits 0 and says nothing, whatever happens."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from fencer.errors import ConfigError
from fencer.planned.hook import AT_ONCE, HookDrains, Request
from fencer.runtime.hookserver import HookServer, answers
from tests.support import wait_until

HOOK = Path(__file__).parents[2] / "config" / "proxmox" / "fencer-hook"
LONG_S = 30
NOBODY = 65534


@pytest.fixture
def hook(tmp_path):
    """Run the hook; its interpreter may be another than this one's, so only its text is used."""

    def run(*arguments, conf="", path=None):
        settings = tmp_path / "hook.conf"
        settings.write_text(conf)
        environment = {
            "FENCER_RUN_DIR": str(tmp_path),
            "FENCER_HOOK_CONF": str(settings),
            "PATH": path or os.environ["PATH"],
        }
        # -ISE ignores the environment only for the interpreter itself, as Proxmox's call does.
        return subprocess.run(
            [sys.executable, "-ISE", str(HOOK), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LONG_S,
            check=False,
        )

    return run


class Ear:
    """Counts nudges, and keeps whom they were about."""

    def __init__(self):
        self.heard = threading.Semaphore(0)
        self.guests = []

    def __call__(self, guest):
        self.guests.append(guest)
        self.heard.release()


@pytest.fixture
def agent(tmp_path):
    ear = Ear()
    server = HookServer(tmp_path / "home.sock", ear)
    yield ear
    server.close()


def silent(done):
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("phase", ["pre-start", "post-start", "pre-stop", "post-stop"])
def test_each_phase_wakes_the_agent(hook, agent, phase):
    assert silent(hook("101", phase))
    assert agent.heard.acquire(timeout=LONG_S)
    assert set(agent.guests) == {"101"}


@pytest.mark.parametrize(
    "garbage",
    [
        (),
        ("101",),
        ("101", "post-migrate"),
        ("../101", "post-stop"),
        ("", ""),
        ("\u0661", "post-stop"),
        ("1", "2", "3"),
    ],
)
def test_garbage_is_survived_and_wakes_nobody(hook, agent, garbage):
    assert silent(hook(*garbage))
    assert not agent.heard.acquire(blocking=False)


def test_a_python_without_its_socket_module_is_survived(tmp_path):
    """Half upgraded, say: a hook that failed in pre-start would keep the guest from starting."""
    broken = tmp_path / "hook"
    broken.write_text(HOOK.read_text().replace("from _socket import", "from _no_such_socket import"))
    done = subprocess.run(
        [sys.executable, "-ISE", str(broken), "101", "pre-start"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LONG_S,
        check=False,
    )
    assert silent(done)


def test_every_agent_of_the_host_is_told(hook, tmp_path):
    ears = [Ear(), Ear()]
    servers = [HookServer(tmp_path / f"{n}.sock", ear) for n, ear in enumerate(ears)]
    assert silent(hook("101", "post-stop"))
    assert all(ear.heard.acquire(timeout=LONG_S) for ear in ears)
    for server in servers:
        server.close()


def test_without_an_agent_and_with_a_dead_ones_socket_it_is_silent(hook, tmp_path):
    assert silent(hook("101", "post-stop"))
    server = HookServer(tmp_path / "dead.sock", Ear())
    server._socket.close()
    assert silent(hook("101", "post-stop"))


def test_who_asks_whether_an_agent_answers_wakes_nobody(hook, agent, tmp_path):
    assert answers(tmp_path / "home.sock") is True
    assert silent(hook("101", "post-stop"))
    assert agent.heard.acquire(timeout=LONG_S)
    assert set(agent.guests) == {"101"}


def test_neither_a_dead_agents_socket_nor_none_answers(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(tmp_path / "dead.sock"))
    assert answers(tmp_path / "dead.sock") is False
    assert answers(tmp_path / "none.sock") is False


def test_a_socket_that_is_closed_to_us_tells_nothing(tmp_path):
    path = tmp_path / "home.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(path))
        path.chmod(0)
        own = os.geteuid()
        os.seteuid(own or NOBODY)  # nothing is closed to root
        try:
            assert answers(path) is None
        finally:
            os.seteuid(own)


def test_two_hundred_at_once_all_end_well(hook, agent):
    with ThreadPoolExecutor(200) as many:
        assert all(silent(done) for done in many.map(lambda n: hook(str(n), "post-stop"), range(100, 300)))
    assert agent.heard.acquire(timeout=LONG_S)


class Drains:
    """Answers requests for a drain as a test wants."""

    def __init__(self, folder, answer=lambda: "drained"):
        self.asked = []
        self._answer = answer
        self._server = HookDrains(folder / "home.drain", self._drain)

    def _drain(self, request):
        self.asked.append(request)
        return self._answer()

    def close(self):
        self._server.close()


class TestDrain:
    """pre-stop, where hook.conf says that it may wait."""

    CONF = "drain_s = 30\n"

    @pytest.fixture
    def drains(self, tmp_path):
        drains = Drains(tmp_path)
        yield drains
        drains.close()

    def test_the_agent_is_asked_and_waited_for(self, hook, agent, tmp_path):
        """Its nudge, which comes last, is not sent while the drain goes on."""
        early = []
        drains = Drains(tmp_path, lambda: early.append(agent.heard.acquire(timeout=1)))
        assert silent(hook("101", "pre-stop", conf=self.CONF))
        assert agent.heard.acquire(timeout=LONG_S)
        assert drains.asked == [Request("101", socket.gethostname().partition(".")[0], 30.0)]
        assert early == [False]
        drains.close()

    @pytest.mark.parametrize(
        ("phase", "conf"),
        [("pre-stop", ""), ("pre-stop", "drain_s = 0"), ("pre-stop", "drain_s = soon"), ("post-stop", CONF)],
    )
    def test_otherwise_nobody_is_asked(self, hook, drains, phase, conf):
        assert silent(hook("101", phase, conf=conf))
        assert drains.asked == []

    def test_the_nudge_comes_all_the_same(self, hook, agent):
        assert silent(hook("101", "pre-stop", conf=self.CONF))
        assert agent.heard.acquire(timeout=LONG_S)

    def test_an_agent_that_hangs_is_left_when_the_budget_is_over(self, hook, tmp_path):
        over = threading.Event()
        drains = Drains(tmp_path, over.wait)
        assert silent(hook("101", "pre-stop", conf="drain_s = 1"))
        wait_until(lambda: drains.asked, "request")  # the hook may be gone before the agent has read it
        assert len(drains.asked) == 1
        over.set()
        drains.close()

    def test_an_agent_that_dies_in_mid_drain_holds_nobody(self, tmp_path, hook):
        """It is killed; the hook would wait for ten minutes."""
        program = (
            "import sys, os, pathlib; from fencer.planned.hook import HookDrains; import threading\n"
            "HookDrains(pathlib.Path(sys.argv[1]), lambda request: os._exit(9))\n"
            "print('up', flush=True); threading.Event().wait()"
        )
        agent = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "home.drain")], stdout=subprocess.PIPE
        )
        assert agent.stdout.readline()
        assert silent(hook("101", "pre-stop", conf="drain_s = 600"))
        assert agent.wait(LONG_S) == 9
        agent.stdout.close()

    def test_a_socket_of_a_dead_agent_and_one_that_is_none_hold_nobody(self, hook, tmp_path):
        left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        left.bind(str(tmp_path / "dead.drain"))
        left.close()
        (tmp_path / "odd.drain").write_text("")
        assert silent(hook("101", "pre-stop", conf="drain_s = 600"))

    @pytest.mark.parametrize(
        "said",
        [
            b"",
            b"pre-stop\n",
            b"drain 1 pve1 60\n",
            b"pre-stop x pve1 60\n",
            b"pre-stop 1 pve1 nan\n",
            b"\xff",
        ],
    )
    def test_garbage_is_answered_with_the_end(self, drains, tmp_path, said):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as odd:
            odd.settimeout(LONG_S)
            odd.connect(str(tmp_path / "home.drain"))
            odd.sendall(said)
            odd.shutdown(socket.SHUT_WR)
            assert odd.recv(100) == b""
        assert drains.asked == []

    def test_more_than_can_be_drained_are_sent_away(self, tmp_path):
        over = threading.Event()
        drains = Drains(tmp_path, over.wait)
        with ExitStack() as hooks:

            def ask():
                one = hooks.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                one.settimeout(LONG_S)
                one.connect(str(tmp_path / "home.drain"))
                return one

            for _ in range(AT_ONCE):
                ask().sendall(b"pre-stop 101 pve1 60\n")
            wait_until(lambda: len(drains.asked) == AT_ONCE, "drains")
            assert ask().recv(100) == b""
            over.set()
        drains.close()

    def test_a_folder_that_is_not_there_is_told(self, tmp_path):
        with pytest.raises(ConfigError, match="no socket for hooks"):
            HookDrains(tmp_path / "missing" / "x.drain", str)


class TestDrainsWithoutRoom:
    """An agent that may open no file, or start no thread, for a while: under the real limits of a process."""

    AGENT = """
import logging, pathlib, resource, sys
from fencer.planned.hook import HookDrains

logging.basicConfig(filename=sys.argv[2], level=logging.INFO)
server = HookDrains(pathlib.Path(sys.argv[1]), lambda request: "drained")
size = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
leasts = {"files": (resource.RLIMIT_NOFILE, 3), "threads": (resource.RLIMIT_AS, size + (1 << 20))}
kind, least = leasts[sys.argv[3]]
soft, hard = resource.getrlimit(kind)
for line in sys.stdin:  # each is answered once it is so
    if line == "close\\n":
        server.close()
    else:
        resource.setrlimit(kind, (least if line == "least\\n" else soft, hard))
    print("so", flush=True)
"""

    @pytest.fixture(params=["files", "threads"])
    def short_of(self, request):
        return request.param

    @pytest.fixture
    def order(self, tmp_path, short_of):
        """Give the agent an order: `least` of what it may use, `all` of it, `close`."""
        command = [sys.executable, "-c", self.AGENT, tmp_path / "home.drain", tmp_path / "log", short_of]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:

            def order(word):
                agent.stdin.write(f"{word}\n")
                agent.stdin.flush()
                assert agent.stdout.readline() == "so\n"

            order("all")
            yield order
            agent.kill()

    @pytest.fixture
    def ask(self, tmp_path):
        """Ask for a drain as the hook does; whoever waits in vain for an answer fails the test."""
        with ExitStack() as hooks:

            def ask():
                one = hooks.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                one.settimeout(LONG_S)
                one.connect(str(tmp_path / "home.drain"))
                with contextlib.suppress(BrokenPipeError):  # it may have been sent away by now
                    one.sendall(b"pre-stop 101 pve1 60\n")
                return one

            yield ask

    def test_it_says_so_and_goes_on_when_there_is_room_again(self, order, ask, tmp_path, short_of):
        order("least")
        # The kernel takes the descriptor before it waits for a connection: the first hook may still get one.
        first, second = ask(), ask()
        told = {"files": "Too many open files", "threads": "can't start new thread"}[short_of]
        wait_until(lambda: told in (tmp_path / "log").read_text(), told, timeout_s=LONG_S)
        if short_of == "threads":
            assert answer(first) == answer(second) == b""  # sent away, as without an agent
        order("all")
        assert ask().recv(100) == b"done\n"
        assert (tmp_path / "log").read_text().count(told) <= 2

    def test_its_end_lets_go_of_whoever_still_waits(self, order, ask, tmp_path):
        order("least")
        waiting = [ask(), ask()]
        order("close")
        assert not (tmp_path / "home.drain").exists()
        for hook in waiting:
            assert answer(hook) in {b"", b"done\n"}


def answer(hook):
    """What a hook is told; nothing, where it was sent away before anybody read what it asked."""
    try:
        return hook.recv(100)
    except ConnectionResetError:
        return b""


class TestOneShot:
    @pytest.fixture
    def started(self, tmp_path):
        """A systemd-run that writes down how it was called."""
        tools = tmp_path / "bin"
        tools.mkdir()
        told = tmp_path / "told"
        os.mkfifo(told)
        tool = tools / "systemd-run"
        tool.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" > {told}\n')
        tool.chmod(0o755)
        return str(tools) + ":" + os.environ["PATH"], told

    def test_without_an_agent_a_fence_by_hand_is_started_where_wanted(self, hook, started):
        path, told = started
        with ThreadPoolExecutor(1) as reader:
            line = reader.submit(told.read_text)
            assert silent(hook("101", "post-stop", conf="# what\noneshot = yes\n", path=path))
            assert "fence --guest 101 --yes" in line.result(LONG_S)

    @pytest.mark.parametrize(
        ("phase", "conf"), [("post-stop", ""), ("post-stop", "oneshot = no"), ("pre-stop", "oneshot = yes")]
    )
    def test_otherwise_nothing_is_started(self, hook, started, phase, conf):
        path, told = started
        told.unlink()
        assert silent(hook("101", phase, conf=conf, path=path))
        assert not told.exists()


class TestServer:
    def test_a_nudge_is_passed_on_again_when_the_task_around_the_hook_should_be_over(self, hook, tmp_path):
        ear = Ear()
        server = HookServer(tmp_path / "a.sock", ear, again_s=(0.05, 0.1))
        hook("101", "post-stop")
        for _ in range(3):
            assert ear.heard.acquire(timeout=LONG_S)
        server.close()
        assert ear.guests == ["101"] * 3

    def test_its_end_does_not_wait_for_what_it_would_pass_on_again(self, hook, tmp_path):
        ear = Ear()
        server = HookServer(tmp_path / "a.sock", ear, again_s=(3600.0,))
        hook("101", "post-stop")
        assert ear.heard.acquire(timeout=LONG_S)
        closing = threading.Thread(target=server.close, daemon=True)
        closing.start()
        closing.join(LONG_S)
        assert not closing.is_alive()
        assert ear.guests == ["101"]

    def test_its_end_is_no_nudge(self, agent, tmp_path, caplog):
        HookServer(tmp_path / "a.sock", agent).close()
        said = [record for record in caplog.records if record.name == HookServer.__module__]
        assert (agent.guests, said) == ([], [])  # threads that other tests left may say something too

    @pytest.mark.usefixtures("agent")
    def test_a_second_agent_of_the_same_name_is_refused(self, tmp_path):
        with pytest.raises(ConfigError, match="listens there already"):
            HookServer(tmp_path / "home.sock", Ear())

    def test_a_folder_that_is_not_there_is_told(self, tmp_path):
        with pytest.raises(ConfigError, match="no socket for hooks"):
            HookServer(tmp_path / "missing" / "x.sock", Ear())

    def test_the_socket_is_ours_alone_and_goes_with_us(self, tmp_path):
        server = HookServer(tmp_path / "a.sock", Ear())
        assert (tmp_path / "a.sock").stat().st_mode & 0o777 == 0o600
        server.close()
        assert not (tmp_path / "a.sock").exists()
