"""systemd's journal: fields by its own protocol; where it is not there, no line is lost, and nobody waits."""

import json
import logging
import os
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from fencer.reporting.journald import LONGEST_BYTES, JournalHandler
from fencer.reporting.story import LogReporter
from tests.reporting.stand_ins import EVIL, GUEST, NODE, REFUSED, REFUSED_TEXT, tell_everything
from tests.support import wait_until

JOURNALD = Path("/lib/systemd/systemd-journald")
MESSAGE = f"k8s-4: refused: {REFUSED_TEXT}"


def read(datagram):
    """Take a datagram apart, as journald does."""
    fields = {}
    while datagram:
        line, _, datagram = datagram.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            length = int.from_bytes(datagram[:8], "little")
            value, end, datagram = (
                datagram[8 : 8 + length],
                datagram[8 + length :][:1],
                datagram[9 + length :],
            )
            assert end == b"\n"
        fields[name.decode()] = value.decode()
    return fields


class Scene:
    """A handler between a socket and a stream, and a reporter that logs to it."""

    def __init__(self, address, stream):
        self.handler = JournalHandler(stream, str(address))
        self.logger = logging.getLogger("test.journald")
        self.logger.setLevel(logging.DEBUG)
        self.logger.handlers = [self.handler]
        self.log = LogReporter(self.logger, lambda: 0.0)


@pytest.fixture
def beside():
    """Ends what a test has opened."""
    with ExitStack() as ending:
        yield ending


@pytest.fixture
def stderr(tmp_path, beside):
    return beside.enter_context((tmp_path / "stderr").open("w+"))


@pytest.fixture
def journal(tmp_path, beside):
    """A socket where journald would listen."""
    listening = beside.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    listening.bind(str(tmp_path / "socket"))
    listening.settimeout(0)
    return listening


@pytest.fixture
def scene(tmp_path, journal, stderr, beside):
    scene = Scene(tmp_path / "socket", stderr)
    beside.callback(scene.handler.close)
    return scene


def received(journal):
    """All that has come so far."""
    with suppress(BlockingIOError):
        while True:
            yield journal.recv(9999)


def written(stream):
    stream.seek(0)
    return stream.read()


def test_each_record_is_a_datagram_with_fields_and_without_a_time(scene, journal, stderr):
    tell_everything(scene.log)
    assert read(journal.recv(9999)) == {
        "MESSAGE": MESSAGE,
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "fencer",
        "FENCER_NODE": "k8s-4",
        "FENCER_VERDICT": "refused",
        "FENCER_REASON": "guest_running",
        "FENCER_GUEST": "lab/k8s-4",
    }
    acted = read(journal.recv(9999))
    assert (acted["FENCER_ACTION"], acted["FENCER_OK"], acted["PRIORITY"]) == ("TaintNode", "true", "6")
    assert read(journal.recv(9999))["MESSAGE"] == "lab: lost"
    assert written(stderr) == ""


def test_a_name_can_neither_forge_a_field_nor_drive_a_terminal(scene, journal):
    name = f"k8s-4\nFENCER_NODE=k8s-1\n{EVIL}"
    scene.log.decided(replace(NODE, name=name), replace(REFUSED, guest=replace(GUEST, name=name)))
    fields = read(journal.recv(9999))
    assert fields["FENCER_NODE"] == name.encode(errors="backslashreplace").decode()
    assert fields["FENCER_VERDICT"] == "refused"
    assert fields["MESSAGE"].isprintable()


def test_a_traceback_stands_in_the_message(scene, journal):
    try:
        {}["x"]
    except KeyError:
        scene.logger.exception("a call failed")
    fields = read(journal.recv(9999))
    assert fields["MESSAGE"].splitlines()[:2] == ["a call failed", "Traceback (most recent call last):"]
    assert fields["FENCER_LOGGER"] == "test.journald"
    assert fields["PRIORITY"] == "3"


def test_a_record_of_another_library_that_has_no_text_stops_nobody(scene, journal):
    scene.handler.handle(logging.makeLogRecord({"msg": "%d retries", "args": ("many",)}))
    scene.logger.warning("the next one")
    assert read(journal.recv(9999))["MESSAGE"] == "the next one"


def test_what_is_too_long_is_shortened(scene, journal):
    scene.log.said("x" * 999_999, warning=False)
    message = read(journal.recv(99_999))["MESSAGE"]
    assert len(message) == LONGEST_BYTES
    assert message.endswith("x ...")


def test_if_nobody_listens_every_line_goes_to_stderr_with_its_priority(tmp_path, stderr):
    tell_everything(Scene(tmp_path / "nobody", stderr).log)
    assert written(stderr).splitlines() == [f"<4>{MESSAGE}", "<6>k8s-4: tainted", "<4>lab: lost"]


def test_what_is_too_long_for_a_datagram_is_no_longer_on_stderr(tmp_path, stderr):
    Scene(tmp_path / "nobody", stderr).log.said("\u20ac" * 99_999, warning=False)
    assert len(written(stderr).encode()) <= LONGEST_BYTES + len("<6>\n")


def test_a_journal_that_takes_no_more_delays_nobody_and_no_line_is_lost(scene, journal, stderr):
    number = 1000
    for each in range(number):
        scene.log.said(f"line {each}", warning=True)
    taken = [read(datagram)["MESSAGE"] for datagram in received(journal)]
    rest = [line.removeprefix("<4>") for line in written(stderr).splitlines()]
    assert rest
    assert taken + rest == [f"line {each}" for each in range(number)]


def test_a_stderr_that_takes_no_more_delays_nobody_either(tmp_path, beside):
    """As a journal that is stopped leaves it. What waits goes on as soon as it is read again."""
    reader, writer = os.pipe()
    beside.callback(os.close, reader)
    stream = beside.enter_context(os.fdopen(writer, "w"))
    scene = Scene(tmp_path / "nobody", stream)
    lines = [f"<4>{each} {'x' * 2000}" for each in range(100)]
    for line in lines:
        scene.log.said(line.removeprefix("<4>"), warning=True)
    heard = b""
    while heard.count(b"\n") < len(lines):
        heard += os.read(reader, 999_999)
        scene.handler.flush()
    assert heard.decode().splitlines() == lines


@pytest.mark.skipif(
    os.geteuid() != 0 or not JOURNALD.exists() or shutil.which("unshare") is None,
    reason="only root runs a journald of its own, in a mount namespace where /run is empty",
)
def test_a_real_journald_finds_them_by_their_fields(beside, stderr):
    script = f"mount -t tmpfs tmpfs /run && mkdir -p /run/systemd && exec {JOURNALD}"
    journald = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], stderr=subprocess.DEVNULL)
    beside.callback(journald.wait, 30)
    beside.callback(journald.terminate)
    run = Path(f"/proc/{journald.pid}/root/run")
    address = run / "systemd/journal/socket"
    wait_until(lambda: address.is_socket() or journald.poll() is not None, "journald")
    scene = Scene(address, stderr)
    tell_everything(scene.log)
    scene.log.said("two\nlines\x1b[2J", warning=False)

    def found(*match):
        done = subprocess.run(
            ["journalctl", "--directory", str(run / "log/journal"), "-o", "json", *match],
            capture_output=True,
            text=True,
            check=False,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    wait_until(lambda: len(found("SYSLOG_IDENTIFIER=fencer")) == 4, "four records in the journal")
    story = found("FENCER_NODE=k8s-4")
    assert [one["MESSAGE"] for one in story] == [MESSAGE, "k8s-4: tainted"]
    assert story[0]["FENCER_REASON"] == "guest_running"
    assert story[0]["PRIORITY"] == "4"
    assert time.time() - int(story[0]["__REALTIME_TIMESTAMP"]) / 1e6 < 600
    assert found("SYSLOG_IDENTIFIER=fencer")[-1]["MESSAGE"] == "two\\nlines\\x1b[2J"
