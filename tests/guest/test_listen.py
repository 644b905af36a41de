"""What can be seen of a shutdown from in here: report C's `gdbus monitor`, with what the queue says."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from fencer.guest.errors import Unusable
from fencer.guest.facts import DRAIN_UNIT
from fencer.guest.listen import Ear, Queue, held, monitor
from fencer.guest.system import Ran
from tests.guest.machine import Machine
from tests.guest.speaker import LOGIND, Speaker
from tests.support import missing_real_part

SAID = {
    "busctl 252": """\
Monitoring bus message stream.
‣ Type=signal  Endian=l  Flags=1  Version=1 Cookie=2  Timestamp="Wed 2026-11-25 18:49:58.916544 UTC"
  Sender=:1.3  Path=/org/freedesktop/login1  Interface=org.freedesktop.login1.Manager  \
Member=PrepareForShutdown
  UniqueName=:1.3
  MESSAGE "b" {
          BOOLEAN true;
  };

‣ Type=signal  Endian=l  Flags=1  Version=1 Cookie=2  Timestamp="Wed 2026-11-25 18:49:58.920376 UTC"
  Sender=:1.5  Path=/org/freedesktop/login1  Interface=org.freedesktop.login1.Manager  \
Member=PrepareForShutdown
  UniqueName=:1.5
  MESSAGE "b" {
          BOOLEAN false;
  };

""",
    "dbus-monitor 1.14": """\
signal time=1795632597.919427 sender=org.freedesktop.DBus -> destination=:1.0 serial=2 \
path=/org/freedesktop/DBus; interface=org.freedesktop.DBus; member=NameAcquired
   string ":1.0"
signal time=1795632598.916490 sender=:1.3 -> destination=(null destination) serial=2 \
path=/org/freedesktop/login1; interface=org.freedesktop.login1.Manager; member=PrepareForShutdown
   boolean true
signal time=1795632598.920378 sender=:1.5 -> destination=(null destination) serial=2 \
path=/org/freedesktop/login1; interface=org.freedesktop.login1.Manager; member=PrepareForShutdown
   boolean false
""",
    "gdbus 2.74": """\
Monitoring signals on object /org/freedesktop/login1 owned by org.freedesktop.login1
The name org.freedesktop.login1 is owned by :1.4
/org/freedesktop/login1: org.freedesktop.DBus.Properties.PropertiesChanged \
('org.freedesktop.login1.Manager', {'PreparingForShutdown': <true>}, @as [])
/org/freedesktop/login1: org.freedesktop.login1.Manager.PrepareForShutdown (true,)
/org/freedesktop/login1: org.freedesktop.login1.Manager.PrepareForShutdownWithMetadata \
(true, {'type': <'poweroff'>})
/org/freedesktop/login1: org.freedesktop.login1.Manager.SessionRemoved ('true', objectpath '/x')
/org/freedesktop/login1: org.freedesktop.login1.Manager.PrepareForShutdown (false,)
""",
}
BUS = """\
<busconfig><type>system</type><listen>unix:path={}/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
<allow own="*"/>
<deny send_interface="org.freedesktop.login1.Manager" send_type="method_call"/></policy>
</busconfig>
"""


@pytest.mark.parametrize("text", SAID.values(), ids=SAID)
@pytest.mark.parametrize("size", [1, 7, 1 << 16], ids=lambda it: f"by {it}")
def test_the_signal_is_heard_from_every_program_in_pieces_of_any_size(text: str, size: int) -> None:
    """And nothing else that says true or false."""
    ear = Ear()
    heard = [it for at in range(0, len(text), size) for it in ear.hear(text[at : at + size])]
    assert heard == [True, False]


@pytest.mark.parametrize(
    ("there", "systemd", "chosen"),
    [
        (["busctl", "dbus-monitor", "gdbus"], "systemd 252 (252.39)", "busctl"),
        (["busctl", "dbus-monitor", "gdbus"], "systemd 219", "dbus-monitor"),
        (["busctl", "gdbus"], "systemd 219", "gdbus"),
        (["dbus-monitor"], "systemd 257", "dbus-monitor"),
    ],
)
def test_whoever_is_there_is_asked(tmp_path: Path, there: list[str], systemd: str, chosen: str) -> None:
    machine = Machine(tmp_path)
    machine.systemd = systemd
    assert monitor(machine.run, lambda name: name in there)[0] == chosen


@pytest.mark.parametrize("there", [[], ["busctl"]])
def test_where_nobody_can_listen_it_says_what_to_install(tmp_path: Path, there: list[str]) -> None:
    machine = Machine(tmp_path)
    machine.systemd = "systemd 219"
    with pytest.raises(Unusable, match="install dbus-monitor"):
        monitor(machine.run, lambda name: name in there)


def test_what_is_queued_is_told_once() -> None:
    """Of a shutdown of Debian 13, of which most is left out."""
    looks = [
        " 12 apt-daily.service start running\n",
        f"301 poweroff.target start waiting\n302 {DRAIN_UNIT} stop running\n303 ssh.service stop waiting\n",
        f"301 poweroff.target start waiting\n302 {DRAIN_UNIT} stop running\n",
        "No jobs running.\n",
        "401 reboot.target start waiting\n402 rescue.target stop waiting\n",
    ]

    def run(command: Sequence[str]) -> Ran:
        assert command[:2] == ["systemctl", "list-jobs"]
        return Ran(0, looks.pop(0))

    queue = Queue(run)
    news = [list(queue.news()) for _ in range(len(looks))]
    drain = f"queued: stop {DRAIN_UNIT}"
    assert news == [[], [drain, "queued: start poweroff.target"], [], [], ["queued: start reboot.target"]]


def test_the_locks_in_force_are_told(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert held(machine.run) == "locks on shutdown: none"
    machine.locks = [("sleep", "NetworkManager", "delay"), ("shutdown:sleep", "kubelet", "delay")]
    assert held(machine.run) == "locks on shutdown: kubelet (delay)"
    machine.uid = 1000
    assert held(machine.run) == "locks on shutdown: kubelet (delay, of user 1000)"


# -- on a real bus ----------------------------------------------------------------------------------------


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[str]:
    """A message bus of our own; its address."""
    if shutil.which("dbus-daemon") is None:
        missing_real_part("nothing is heard on a real bus: no dbus-daemon; apt-get install dbus")
    config = tmp_path / "bus.conf"
    config.write_text(BUS.format(tmp_path))
    command = ["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address=1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as daemon:
        assert daemon.stdout is not None
        yield daemon.stdout.readline().strip()
        daemon.terminate()


MONITORS = pytest.mark.parametrize("by", ["busctl", "dbus-monitor", "gdbus"])


@MONITORS
def test_it_hears_what_logind_announces_until_it_is_stopped(bus: str, tmp_path: Path, by: str) -> None:
    """Each line as it comes; Ctrl-C ends it, and the exit code tells whether there was one."""
    with closing(Speaker(bus, LOGIND)) as logind, _listening(bus, tmp_path, by) as listening:
        line = _first_heard(listening, logind, down=True)
        assert "  PrepareForShutdown true; locks on shutdown: " in line
        listening.send_signal(signal.SIGINT)
        rest = list(_lines(listening))
    assert rest[-1].endswith("  a shutdown was announced\n")
    assert listening.returncode == 0


@MONITORS
def test_nobody_but_logind_announces_a_shutdown(bus: str, tmp_path: Path, by: str) -> None:
    """The system bus lets every user of the machine send signals, whatever they are called."""
    with closing(Speaker(bus, LOGIND)) as logind, _listening(bus, tmp_path, by) as listening:
        _first_heard(listening, logind, down=False)
        logind.announce(down=True)
        assert any("PrepareForShutdown true" in line for line in _lines(listening)), "all before is heard"
        with closing(Speaker(bus)) as stranger:
            stranger.announce(down=False)
        logind.announce("/elsewhere", down=False)
        logind.announce(down=True)
        assert "PrepareForShutdown true" in next(_lines(listening))


def _lines(listening: "subprocess.Popen[str]") -> Iterator[str]:
    assert listening.stdout is not None
    return iter(listening.stdout.readline, "")


def _first_heard(listening: "subprocess.Popen[str]", logind: Speaker, *, down: bool) -> str:
    """Announce until it is heard, for the monitor may not listen yet; give what was heard."""
    heard = threading.Event()

    def announce() -> None:
        while not heard.wait(0.05):
            logind.announce(down=down)

    announcing = threading.Thread(target=announce)
    announcing.start()
    try:
        return next(_lines(listening))
    finally:
        heard.set()
        announcing.join()


@contextmanager
def _listening(bus: str, folder: Path, by: str) -> Iterator["subprocess.Popen[str]"]:
    """Listen by one of the monitors."""
    found = shutil.which(by)
    if found is None:
        what = "dbus systemd libglib2.0-bin"
        missing_real_part(f"nothing is heard by {by}: it is not here; apt-get install {what}")
    only = folder / "bin"
    only.mkdir()
    for name in (by, "systemctl"):
        (only / name).symlink_to(shutil.which(name) or "/nowhere")
    environment = {**os.environ, "PATH": str(only), "DBUS_SYSTEM_BUS_ADDRESS": bus}
    command = [sys.executable, "-m", "fencer.guest", "check", "--listen", "--timeout", "60"]
    # Who runs tests in the background ignores Ctrl-C, and so would all that they start: for that minute.
    heeding = [shutil.which("env") or "env", "--default-signal=INT", *command]
    with subprocess.Popen(heeding, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert f"listening by {by}; " in next(_lines(process))
            yield process
        finally:
            process.kill()


def test_a_bus_that_is_not_there_is_told(tmp_path: Path) -> None:
    nowhere = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={tmp_path}/nowhere"}
    if not (shutil.which("busctl") or shutil.which("dbus-monitor") or shutil.which("gdbus")):
        missing_real_part("no program here listens to a bus; apt-get install dbus")
    command = [sys.executable, "-m", "fencer.guest", "check", "--listen"]
    done = subprocess.run(command, env=nowhere, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "No such file or directory" in done.stdout
