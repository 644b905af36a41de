"""What was told outlives the agent: a restart repeats nothing, and forgets nothing."""

import json
import logging
import os
import stat
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.errors import ToldError
from fencer.notify.lane import Known, Last, Pace
from fencer.notify.outbox import Outbox
from fencer.notify.past import LONGEST_TEXT, Past, pack, unpack
from fencer.notify.settings import ALL
from fencer.notify.told import Told
from fencer.notify.told_file import LARGEST_BYTES, DamagedError, ForeignError, read, write
from fencer.wording.occasions import Occasion
from tests.notify.boxes import WITHIN_S, Box, message, over

ROOT = Path(__file__).parents[2]
PAST = Past(
    {
        one.key: one
        for one in (message(), over("k8s-3", loud=False), message("k8s-4", done=True, text="a\nb"))
    },
    {
        "phone": Known({"k8s-2-1": Last(1, Occasion.FENCED)}, {"k8s-3-1": True}),
        "mail": Known({}, {"k8s-4-1": False}),
    },
)


def utc():
    return datetime(2026, 11, 26, 20, 0, tzinfo=UTC)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state" / "notified.json"


# -- the file ----------------------------------------------------------------------------------------------


def test_what_is_written_is_read(file):
    write(file, pack(PAST))
    assert read(file) == PAST
    assert [one.about for one in read(file).standing] == ["k8s-2", "k8s-4"]


def test_there_may_be_no_file_or_nothing_in_it(file):
    assert read(file) == Past()
    file.parent.mkdir()
    file.touch()
    assert read(file) == Past()


def test_an_end_that_nobody_waits_for_is_not_kept():
    assert unpack(pack(Past({"k8s-3-1": over("k8s-3")}, {"phone": Known()}))).incidents == {}


def test_it_is_for_its_owner_alone_and_nothing_is_left_beside_it(file):
    before = os.umask(0)
    try:
        write(file, pack(PAST))
        write(file, pack(Past()))
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [*file.parent.iterdir()] == [file]


@pytest.mark.parametrize("where", ["notified.json", "notified.json.new"])
def test_nothing_is_written_through_a_planted_link(file, tmp_path, where):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    file.parent.mkdir()
    (file.parent / where).symlink_to(victim)
    if where == file.name:
        with pytest.raises(ForeignError, match="is a link"):
            read(file)
    write(file, pack(PAST))
    assert victim.read_text() == "precious"
    assert not file.is_symlink()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.write_text("root:x:0:0\n")])
def test_what_is_not_ours_is_left_alone(file, make, caplog):
    file.parent.mkdir()
    make(file)
    with pytest.raises(ForeignError, match=r"Name another one as notify\.told_file"):
        read(file)
    told = Told(file, utc)
    told.keeps(lambda: PAST)
    told.changed()
    assert not told.close(WITHIN_S)
    assert caplog.text.count("What is told is not kept over a restart") == 1
    assert [*file.parent.iterdir()] == [file]
    assert not file.is_file() or file.read_text() == "root:x:0:0\n"


def broken(change):
    data = json.loads(pack(PAST))
    change(data)
    return json.dumps(data)


DAMAGED = {
    "cut off": pack(PAST)[:200],
    "version": broken(lambda data: data.update(version=2)),
    "nothing": broken(lambda data: data.pop("incidents")),
    "a list": broken(lambda data: data.update(incidents=7)),
    "occasion": broken(lambda data: data["incidents"][0].update(occasion="party")),
    "key": broken(lambda data: data["incidents"][0].update(key="../../etc/passwd")),
    "time": broken(lambda data: data["incidents"][0].update(at="yesterday")),
    "no zone": broken(lambda data: data["incidents"][0].update(at="2026-11-26T20:00:00")),
    "too early": broken(lambda data: data["incidents"][0].update(began="0001-01-01T00:00:00+23:59")),
    "too early to be": broken(lambda data: data["incidents"][0].update(began="1969-12-31T23:59:59+00:00")),
    "too late": broken(lambda data: data["incidents"][0].update(at="9999-12-31T23:59:59-23:59")),
    "too late for pauses": broken(lambda data: data["incidents"][0].update(at="9999-12-31T00:00:00+00:00")),
    "number": broken(lambda data: data["incidents"][0].update(number=True)),
    "text": broken(lambda data: data["incidents"][0].update(title=None)),
    "flag": broken(lambda data: data["incidents"][0].update(over=1)),
    "told": broken(lambda data: data["receivers"]["phone"].update(told={"k": 1})),
    "deep": '{"fencer": "notified", "version": 1, "incidents": ' + "[" * 100_000,
    "too large": '{"fencer": "notified"' + " " * LARGEST_BYTES,
    "not UTF-8": '{"fencer": "notified", "\udcff',
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(file, text, caplog):
    file.parent.mkdir()
    content = text.encode(errors="surrogateescape")
    file.write_bytes(content)
    with pytest.raises(DamagedError):
        read(file)
    told = Told(file, utc)
    assert told.past == Past()
    told.keeps(lambda: PAST)
    told.changed()
    assert told.close(WITHIN_S)
    assert read(file) == PAST
    aside = file.with_name("notified.json.damaged-20261126T200000Z")
    assert aside.read_bytes() == content
    assert caplog.text.count("It is set aside as") == 1
    assert all(record.getMessage().isprintable() for record in caplog.records)


@given(st.binary(max_size=300), st.integers(0, 2000))
def test_whatever_is_in_it_is_read_or_refused(tmp_path_factory, noise, at):
    file = tmp_path_factory.getbasetemp() / "notified.json"
    content = pack(PAST).encode()
    file.write_bytes(content[:at] + noise + content[at + len(noise) :])
    try:
        past = read(file)
    except ToldError:
        return
    for one in past.incidents.values():
        assert all(text.isprintable() for text in (one.about, one.title, one.guest, one.reason))
        assert all(line.isprintable() for line in one.text.split("\n"))


def test_texts_are_bounded_and_a_hostile_one_comes_back_harmless(file):
    write(file, pack(Past({"k8s-2-1": message(title="a\x1b[2J\ud800", text="x" * 10**6)})))
    [one] = read(file).standing
    assert (one.title, len(one.text)) == ("a\\x1b[2J\\ud800", LONGEST_TEXT)


# -- the thread --------------------------------------------------------------------------------------------


def test_a_disk_that_refuses_is_told_once_and_what_was_told_is_not_kept(tmp_path, caplog):
    (tmp_path / "no-folder").touch()
    told = Told(tmp_path / "no-folder" / "notified.json", utc)
    told.keeps(lambda: PAST)
    told.changed()
    assert not told.close(WITHIN_S)
    assert caplog.text.count("cannot be written: File exists. Messages go out all the same") == 1


def test_a_disk_that_hangs_keeps_no_message_back(file):
    began, go_on = threading.Event(), threading.Event()

    def hang(_path, _text):
        began.set()
        go_on.wait(WITHIN_S)

    box, told = Box(), Told(file, utc, writes=hang)
    out = Outbox([(box, ALL)], told, time.monotonic, Pace(gather_s=0.0))
    out.put(message())
    assert box.next() == [("k8s-2", 1, False)]
    assert began.wait(WITHIN_S)
    for number in range(2, 100):
        out.put(message(number=number))
        assert box.next() == [("k8s-2", number, False)]
    out.close(0.0)
    go_on.set()


def test_a_disk_that_hangs_keeps_no_agent_from_its_start(file, caplog):
    go_on = threading.Event()

    def hang(_path):
        go_on.wait(WITHIN_S)
        return PAST

    told = Told(file, utc, reads=hang, patience_s=0.0)
    assert told.past == Past()
    assert "nobody waits for it" in caplog.text
    box = Box("phone")
    out = Outbox([(box, ALL)], told, time.monotonic, Pace(gather_s=0.0))
    out.put(message("k8s-9"))
    assert box.next() == [("k8s-9", 1, False)]
    go_on.set()
    out.close(WITHIN_S)
    assert [one.about for one in read(file).standing] == ["k8s-9"]  # and it is kept, once the disk answers


def test_a_bug_is_named_and_does_not_end_it(file, caplog):
    bugs = [ZeroDivisionError()]

    def snapshot():
        if bugs:
            raise bugs.pop()
        return PAST

    told = Told(file, utc)
    told.keeps(snapshot)
    told.changed()
    assert not told.close(WITHIN_S)
    assert "a bug in fencer" in caplog.text


# -- restarts ----------------------------------------------------------------------------------------------


@pytest.fixture
def started(file):
    """Start outboxes in processes of their own, one after the other; all that is left is killed."""
    running = []

    def start(*words):
        command = [sys.executable, "-m", "tests.notify.sender", str(file), *words]
        running.append(
            subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
        )
        return running[-1]

    yield start
    for one in running:
        one.kill()
        one.communicate()


def says(process, *words):
    for word in words:
        process.stdin.write(f"{word}\n")


def until(process, *expected):
    """Read what it says, until all of this was said; return all of it."""
    left, lines = [*expected], []
    while left:
        line = process.stdout.readline()
        assert line, lines
        lines.append(line.strip())
        left = [one for one in left if one not in line]
    return lines


def test_what_was_told_before_a_kill_is_not_told_again_and_its_end_is(started):
    first = started()
    says(first, "open k8s-2")
    until(first, "sent k8s-2 1", '"told": {"k8s-2-1": [1, "fenced"]}')
    first.kill()
    second = started()
    until(second, "standing 1")
    says(second, "over k8s-2", "close")
    assert [line for line in until(second, "closed") if "sent" in line] == ["sent k8s-2 2"]
    third = started()
    until(third, "standing 0")
    says(third, "close")
    assert until(third, "closed") == ["closed"]


def test_a_kill_between_sending_and_keeping_tells_it_twice_rather_than_never(started):
    first = started("hang")
    says(first, "open k8s-2")
    until(first, "sent k8s-2 1", '"waiting": {"k8s-2-1": true}')
    first.kill()
    second = started()
    until(second, "standing 1", "sent k8s-2 1")
    says(second, "close")
    until(second, "closed")
    third = started()
    says(third, "close")
    assert "sent k8s-2 1" not in until(third, "closed")


def test_what_ended_while_nobody_could_be_told_is_told_after_the_restart(started):
    first = started("hang")
    says(first, "open k8s-3", "open k8s-2", "over k8s-2")
    until(first, "sent k8s-3 1", '"waiting": {"k8s-3-1": true, "k8s-2-1": true}')
    first.kill()
    second = started()
    until(second, "standing 1", "sent k8s-2 2", "sent k8s-3 1")


def test_a_running_log_says_once_that_it_is_written_again(file, caplog):
    caplog.set_level(logging.INFO)
    fails = [ToldError("the disk is full")]
    kept = threading.Event()

    def writes(path, text):
        if fails:
            raise fails.pop()
        write(path, text)
        kept.set()

    told = Told(file, utc, writes=writes, retry_s=0.001)
    told.keeps(lambda: PAST)
    told.changed()
    assert kept.wait(WITHIN_S)
    assert told.close(WITHIN_S)
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]


def test_what_another_agent_has_told_is_kept_with_its_name_and_sent_to_nobody(tmp_path):
    path = tmp_path / "notified.json"
    box, told = Box("phone"), Told(path, utc)
    out = Outbox([(box, ALL)], told, time.monotonic, Pace(gather_s=0.0))
    out.heard(message(), "fencer@pve2")
    out.put(message("k8s-3"))
    assert box.next() == [("k8s-3", 1, False)]
    out.close(WITHIN_S)
    past = read(path)
    assert past.others == {message().key: "fencer@pve2"}
    assert message().key in past.receivers["phone"].told
