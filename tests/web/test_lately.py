"""The last incidents: out of the journal, never in the way of whoever looks, and with why they are old."""

import os
import sqlite3
import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from fencer.errors import JournalError
from fencer.journal.rows import Kind
from fencer.journal.store import Store
from fencer.web.lately import KEPT, LATE_S, MOST, Lately, LatelyReader, read
from tests.journal.build import BEGAN, row
from tests.support import wait_until
from tests.web.worlds import BERLIN

NOW = (BEGAN + timedelta(days=1)).astimezone(BERLIN)


def kept(path, incidents):
    """Keep so many refusals, a minute after the other."""
    store = Store(path, "5e55105a", "fencer@pve1")
    for number in range(incidents):
        facts = {"node": f"k8s-{number}", "uid": f"u{number}", "incident": f"inc-{number}"}
        told = {"verdict": "refuse", "reason": "guest_running", "text": "its guest runs (running)"}
        made = row(seconds=60.0 * number, kind=Kind.DECISION, **facts)
        store.append((replace(made, body=lambda told=told: told),))
    store.close()
    return path


class Clock:
    def __init__(self):
        self.s = 100.0

    def now_s(self):
        return self.s

    def wall(self):
        return NOW + timedelta(seconds=self.s)


@pytest.fixture
def clock():
    return Clock()


def test_the_newest_come_first_and_older_ones_are_counted(tmp_path):
    found = read(kept(tmp_path / "journal.db", MOST + 3), NOW)
    assert [one.node for one in found.incidents] == [f"k8s-{number}" for number in range(MOST + 2, 2, -1)]
    assert (found.more, found.read, found.trouble) == (3, NOW, "")
    first = found.incidents[0]
    assert (first.id, first.refused, first.over) == (f"inc-{MOST + 2}", True, False)
    assert first.told == "silent → refused: its guest runs, goes on"
    assert first.began.utcoffset() == timedelta(hours=1)


def test_what_is_older_than_a_month_is_left_out(tmp_path):
    journal = kept(tmp_path / "journal.db", 1)
    assert read(journal, (BEGAN + KEPT).astimezone(BERLIN)).incidents != ()
    assert read(journal, (BEGAN + KEPT + timedelta(minutes=1)).astimezone(BERLIN)).incidents == ()


def test_a_journal_that_is_not_there_is_told_and_what_was_read_before_stays(tmp_path, clock):
    journal = kept(tmp_path / "journal.db", 2)
    reader = LatelyReader(journal, clock.wall, clock.now_s)
    reader.look_again()
    journal.unlink()
    reader.look_again()
    found = reader.look()
    assert len(found.incidents) == 2
    assert found.read == clock.wall()
    assert found.trouble == f"{journal}: No such file or directory"
    with pytest.raises(JournalError):
        read(journal, NOW)


def test_without_a_journal_that_is_said(clock):
    reader = LatelyReader(None, clock.wall, clock.now_s)
    reader.begin()
    assert reader.look() == Lately(trouble="no journal is kept: `journal.enabled` is false")


def test_it_is_read_once_somebody_looks_in_a_thread_of_its_own(tmp_path, clock):
    reader = LatelyReader(kept(tmp_path / "journal.db", 2), clock.wall, clock.now_s)
    reader.begin()
    assert [one.name for one in threading.enumerate()].count("fencer-web-journal") == 1
    assert reader.look() == Lately()
    wait_until(lambda: reader.look().incidents != (), "the journal was not read")
    reader.end()
    wait_until(lambda: "fencer-web-journal" not in [one.name for one in threading.enumerate()], "it goes on")


def test_a_disk_that_hangs_delays_nobody_who_looks_and_is_told(tmp_path, clock):
    hangs, goes_on = threading.Event(), threading.Event()

    def wall():
        hangs.set()
        assert goes_on.wait(60)
        return NOW

    reader = LatelyReader(kept(tmp_path / "journal.db", 1), wall, clock.now_s)
    reader.begin()
    reader.look()
    assert hangs.wait(60)
    clock.s += LATE_S
    assert reader.look().trouble == ""
    clock.s += 1
    assert reader.look().trouble == "its disk has not answered for 6 s"
    reader.end()  # does not wait for it
    goes_on.set()


@pytest.mark.parametrize(
    "body", ["[]", "{", '{"verdict": {"a": 1}}', '{"verdict": "refuse", "text": 7, "nodes": 3}']
)
def test_rows_that_nobody_understands_end_nothing(tmp_path, body, clock):
    journal = kept(tmp_path / "journal.db", 2)
    with sqlite3.connect(journal) as database:
        database.execute("UPDATE rows SET body = ? WHERE number = 1", (body,))
    reader = LatelyReader(journal, clock.wall, clock.now_s)
    reader.look_again()
    found = reader.look()
    assert found.incidents or found.trouble
    assert os.linesep not in found.trouble
