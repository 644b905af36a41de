"""The thread that writes the journal: rows arrive in order, and no trouble of a disk stops whoever acts."""

import logging
import threading
from datetime import UTC, datetime
from functools import partial

import pytest

from fencer.errors import JournalError
from fencer.journal.database import CorruptJournalError
from fencer.journal.reading import entries, verify
from fencer.journal.rows import Kind
from fencer.journal.store import Store
from fencer.journal.writer import HANGS_S, KEPT_ROWS, JournalWriter
from tests.journal.build import row

DAMAGED = b"SQLite format 3\0" + b"\xff" * 8000
LONG_S = 30.0
"""Far longer than any of this takes."""
NOW = datetime(2026, 11, 26, 2, 14, tzinfo=UTC)


class Disk:
    """A file that hangs, or refuses, as a test says; and then writes to a real one."""

    def __init__(self, path):
        self._opens = partial(Store, path, "5e55105a", "fencer@pve1")
        self._store = self._opens()
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.hung = threading.Event()
        self.refuses = self.refuses_once = self.keeps = ""
        self.tried, self.wrote = threading.Semaphore(0), threading.Semaphore(0)

    def append(self, rows):
        self.tried.release()
        if not self.goes_on.is_set():
            self.hung.set()
            self.goes_on.wait(LONG_S)
        refuses, self.refuses_once = self.refuses or self.refuses_once, ""
        if refuses:
            raise JournalError(refuses)
        self._store.append(rows)
        self.wrote.release()

    def prune(self, largest_bytes, oldest_utc):
        if self.keeps:
            raise JournalError(self.keeps)
        return self._store.prune(largest_bytes, oldest_utc)

    def close(self):
        """Keep the file open for the next time."""


class Time:
    """A clock that only a test moves on."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


@pytest.fixture
def disk(path):
    return Disk(path)


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def journal(path, disk, time, monkeypatch):
    monkeypatch.setattr("fencer.journal.writer.RETRY_S", 0.01)
    writer = JournalWriter(path, lambda: disk, 400.0, 10**9, lambda: NOW, time)
    yield writer
    disk.goes_on.set()
    disk.refuses = ""
    writer.close(LONG_S)


def texts(path):
    return [one.body.get("text") for one in entries(path)]


def test_rows_are_written_in_order_and_said_to_be(journal, path):
    tickets = [journal.put(row(str(n))) for n in range(5)]
    assert journal.written(tickets[-1], LONG_S)
    assert texts(path) == ["0", "1", "2", "3", "4"]


def test_many_rows_at_once_are_all_written(journal, path):
    ticket = [journal.put(row(str(n))) for n in range(1500)][-1]
    assert journal.written(ticket, LONG_S)
    assert texts(path) == [str(n) for n in range(1500)]


def test_the_end_writes_what_waits(journal, path):
    for number in range(50):
        journal.put(row(str(number)))
    assert journal.close(LONG_S)
    assert len(texts(path)) == 50


def test_a_disk_that_hangs_is_waited_for_once(journal, disk, path):
    disk.goes_on.clear()
    first = journal.put(row("one"))
    assert disk.hung.wait(LONG_S)
    assert not journal.written(first, 0.01)
    second = journal.put(row("two"))
    assert not journal.written(second, LONG_S)  # at once: a test that waits for ever here has failed
    disk.goes_on.set()
    assert journal.close(LONG_S)
    assert texts(path) == ["one", "two"]


def test_after_a_hang_rows_are_waited_for_again(journal, disk, path):
    disk.goes_on.clear()
    assert not journal.written(journal.put(row("one")), 0.01)
    disk.goes_on.set()
    while not journal.written(journal.put(row("more")), LONG_S):  # until the thread has taken note
        assert disk.wrote.acquire(timeout=LONG_S)
    assert texts(path)[:2] == ["one", "more"]


def test_a_long_hang_is_told_once_and_its_end(journal, disk, time, caplog):
    caplog.set_level(logging.INFO)
    disk.goes_on.clear()
    journal.put(row("one"))
    assert disk.hung.wait(LONG_S)
    for _ in range(3):
        time.now += HANGS_S
        journal.put(row("more"))
    disk.goes_on.set()
    assert journal.close(LONG_S)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2, told
    assert "has not been written for 3 s; nobody waits for it" in told[0]
    assert told[1] == "the journal is written again; 0 rows were lost"


def test_a_short_delay_is_not_told(journal, disk, time, caplog):
    disk.goes_on.clear()
    journal.put(row("one"))
    assert disk.hung.wait(LONG_S)
    time.now += HANGS_S / 2
    journal.put(row("two"))
    disk.goes_on.set()
    assert journal.close(LONG_S)
    assert not caplog.records


def test_a_disk_that_refuses_is_told_once_tried_again_and_loses_nothing(journal, disk, path, caplog):
    caplog.set_level(logging.INFO)
    disk.refuses = f"{path}: database or disk is full"
    assert not journal.written(journal.put(row("one")), LONG_S)
    last = journal.put(row("two"))
    assert not journal.written(last, LONG_S)
    for _ in range(4):  # it is tried again by itself
        assert disk.tried.acquire(timeout=LONG_S)
    disk.refuses = ""
    assert disk.wrote.acquire(timeout=LONG_S)
    assert journal.close(LONG_S)
    assert texts(path) == ["one", "two"]
    assert [record.getMessage() for record in caplog.records] == [
        f"the journal cannot be written: {path}: database or disk is full. Fencing goes on",
        "the journal is written again; 0 rows were lost",
    ]


def hang_with_one_row_and_too_many_waiting(journal, disk):
    """One row is in the write that hangs; 7 more rows than may wait come after it."""
    disk.goes_on.clear()
    first = journal.put(row("0"))
    assert disk.hung.wait(LONG_S)
    for number in range(KEPT_ROWS + 7):
        journal.put(row(str(number + 1)))
    return first


def test_what_is_too_much_to_keep_is_counted_and_the_count_written(journal, disk, path):
    """The write fails, and its row has to wait as well: it is the eighth that is lost."""
    hang_with_one_row_and_too_many_waiting(journal, disk)
    disk.refuses = "full"
    disk.goes_on.set()
    for _ in range(2):  # the second try shows that the first has failed
        assert disk.tried.acquire(timeout=LONG_S)
    disk.refuses = ""
    assert journal.close(LONG_S)
    first, *others = entries(path)
    assert (first.kind, first.body["rows"]) == (Kind.LOST, 8)
    assert [one.body["text"] for one in others] == [str(number) for number in range(8, KEPT_ROWS + 8)]
    verify(path)


def test_rows_lost_during_a_hang_are_counted_where_they_are_missing(journal, disk, path):
    hang_with_one_row_and_too_many_waiting(journal, disk)
    disk.goes_on.set()
    assert journal.close(LONG_S)
    first, lost, *others = entries(path)
    assert first.body["text"] == "0"
    assert (lost.kind, lost.body["rows"]) == (Kind.LOST, 7)
    assert [one.body["text"] for one in others] == [str(number) for number in range(8, KEPT_ROWS + 8)]


def test_a_row_that_is_still_being_written_is_not_called_written_because_later_ones_are_lost(journal, disk):
    first = hang_with_one_row_and_too_many_waiting(journal, disk)
    assert not journal.written(first, 0.01)


def test_a_row_that_was_lost_is_never_called_written(journal, disk):
    first = hang_with_one_row_and_too_many_waiting(journal, disk)
    disk.goes_on.set()
    assert journal.written(first + KEPT_ROWS + 7, LONG_S)
    assert not journal.written(first + 7, LONG_S)
    assert journal.written(first + 8, LONG_S)


def test_a_write_that_fails_while_the_agent_stops_is_tried_once_more(journal, disk, path, monkeypatch):
    """The disk recovers between the write's failure and the end."""
    monkeypatch.setattr("fencer.journal.writer.RETRY_S", LONG_S)
    disk.goes_on.clear()
    journal.put(row("one"))
    assert disk.hung.wait(LONG_S)
    stopped = []
    stopping = threading.Thread(target=lambda: stopped.append(journal.close(LONG_S)))
    stopping.start()
    while not journal._closed:
        stopping.join(0.001)
    disk.refuses_once = "full"
    disk.goes_on.set()
    stopping.join(LONG_S)
    assert stopped == [True]
    assert texts(path) == ["one"]


def test_old_rows_that_cannot_be_dropped_leave_the_new_ones_written_once(journal, disk, path, caplog):
    disk.keeps = "full"
    assert journal.written(journal.put(row("one")), LONG_S)
    assert journal.close(LONG_S)
    assert texts(path) == ["one"]
    assert "the journal cannot drop its old rows: full" in caplog.text


def test_damage_that_only_dropping_old_rows_finds_sets_the_file_aside(path, time):
    """A row in the damaged file could not be read again."""

    class Damaged(Store):
        def prune(self, *_limits):
            raise CorruptJournalError(f"{self.path}: malformed")

    kinds = [Damaged, Store]
    writer = JournalWriter(
        path, lambda: kinds.pop(0)(path, "5e55105a", "fencer@pve1"), 400.0, 10**9, lambda: NOW, time
    )
    assert writer.written(writer.put(row("one")), LONG_S)
    assert writer.close(LONG_S)
    assert texts(path) == ["one"]
    assert path.with_name("journal.db.damaged-20261126T021400Z").exists()


def test_at_the_end_a_disk_that_hangs_is_not_waited_for(journal, disk):
    disk.goes_on.clear()
    journal.put(row("one"))
    assert disk.hung.wait(LONG_S)
    assert not journal.close(0.01)


def test_at_the_end_rows_that_cannot_be_written_are_given_up(journal, disk):
    disk.refuses = "full"
    journal.put(row("one"))
    assert not journal.close(LONG_S)


def real(path, time, **bounds):
    opens = partial(Store, path, "5e55105a", "fencer@pve1")
    return JournalWriter(path, opens, *{"days": 400.0, "bytes": 10**9, **bounds}.values(), lambda: NOW, time)


def test_a_damaged_file_is_set_aside_and_a_new_one_begun(path, time, caplog):
    path.write_bytes(DAMAGED)
    writer = real(path, time)
    assert writer.written(writer.put(row("one")), LONG_S)
    assert writer.close(LONG_S)
    assert texts(path) == ["one"]
    aside = path.with_name("journal.db.damaged-20261126T021400Z")
    assert aside.read_bytes() == DAMAGED
    [told] = [record.getMessage() for record in caplog.records]
    assert told.endswith(f"It is set aside as {aside}, and a new journal begun")


def test_a_file_that_was_never_a_journal_is_left_where_it_is(path, time, caplog):
    path.write_bytes(b"apiVersion: v1\nkind: Config\n" * 100)
    writer = real(path, time)
    assert not writer.written(writer.put(row("one")), LONG_S)
    assert not writer.close(LONG_S)
    assert list(path.parent.iterdir()) == [path]
    assert "no journal. Name another file as journal.file" in caplog.text


def test_a_file_whose_damage_shows_while_it_is_written_is_set_aside(path, time):
    class Damaged(Store):
        def append(self, rows):
            if len(opened) == 1:
                raise CorruptJournalError(f"{path}: database disk image is malformed")
            super().append(rows)

    def opens():
        opened.append(Damaged(path, "5e55105a", "fencer@pve1"))
        return opened[-1]

    opened = []
    writer = JournalWriter(path, opens, 400.0, 10**9, lambda: NOW, time)
    assert writer.written(writer.put(row("one")), LONG_S)
    assert writer.close(LONG_S)
    assert len(opened) == 2
    assert texts(path) == ["one"]
    assert len(list(path.parent.glob("journal.db.damaged-*"))) >= 1


def test_a_file_that_cannot_be_made_delays_nobody(tmp_path, time, caplog):
    (tmp_path / "state").write_text("a file where a folder should be")
    writer = real(tmp_path / "state" / "journal.db", time)
    assert not writer.written(writer.put(row("one")), LONG_S)
    assert not writer.close(LONG_S)
    assert "cannot be written" in caplog.text


def test_old_rows_go_by_themselves(path, time):
    writer = real(path, time, days=1.0)
    assert writer.written(writer.put(row("old", seconds=-3 * 86_400.0)), LONG_S)
    time.now += 2 * 3600.0
    assert writer.written(writer.put(row("new")), LONG_S)
    assert writer.close(LONG_S)
    assert texts(path) == ["new"]


def test_a_row_that_cannot_be_put_into_words_loses_no_other_for_ever(path, time, caplog):
    broken = row("x", node="k8s-1")
    object.__setattr__(broken, "body", lambda: 1 / 0)
    writer = real(path, time)
    writer.put(broken)
    assert writer.written(writer.put(row("another")), LONG_S)
    assert "a bug in fencer" in caplog.text
    assert writer.close(LONG_S)
    assert texts(path) == ["not kept: a bug in fencer: ZeroDivisionError: division by zero", "another"]
