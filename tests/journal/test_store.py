"""The journal's file: every row is held by the next one, whoever writes, whatever happens to them."""

import multiprocessing
import os
import resource
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from fencer.errors import JournalError
from fencer.journal.again import again
from fencer.journal.database import CorruptJournalError
from fencer.journal.reading import entries, verify
from fencer.journal.rows import Kind, Row, text_of
from fencer.journal.store import Store, set_aside
from tests.core.build import observation
from tests.journal.build import BEGAN, decided, row

FORK = multiprocessing.get_context("fork")
LARGE = 10**9


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


def written(path, *rows, by="fencer@pve1"):
    store = Store(path, "5e55105a", by)
    store.append(rows)
    store.close()
    return path


def tampered(path, statement):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


def test_what_was_written_is_read_in_order_with_who_and_when(path):
    written(path, row("one"), decided(seconds=1.5))
    first, second = entries(path)
    assert (first.number, first.body, first.kind, first.seen) == (1, {"text": "one"}, Kind.NOTICE, None)
    assert (second.at, second.at_s) == (BEGAN + timedelta(seconds=1.5), 1001.5)
    assert (second.session, second.by, second.node) == ("5e55105a", "fencer@pve1", "k8s-2")
    assert (second.uid, second.incident, second.seen) == ("u2", "inc-1", observation())


def test_what_is_written_is_verified_and_goes_on_after_it_is_opened_again(path):
    written(path, row("one"), decided())
    before = verify(path)
    written(path, row("three"), by="root@pve1 (by hand)")
    after = verify(path)
    assert (before.rows, after.rows, after.dropped) == (2, 3, 0)
    assert before.digest != after.digest
    assert before.digest in {one.digest for one in entries(path)}


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE rows SET body = '{}' WHERE number = 2", "row 2"),
        ("UPDATE rows SET at = '2026-11-26T02:00:00.000Z' WHERE number = 2", "row 2"),
        ("UPDATE rows SET by = 'nobody' WHERE number = 2", "row 2"),
        ("UPDATE rows SET node = 'k8s-3' WHERE number = 2", "row 2"),
        ("UPDATE rows SET seen = x'00' WHERE number = 2", "row 2"),
        ("UPDATE rows SET seen = NULL WHERE number = 2", "row 2"),
        ("UPDATE rows SET digest = 'x' WHERE number = 3", "row 3"),
        ("DELETE FROM rows WHERE number = 2", "after row 1 comes row 3"),
        ("DELETE FROM rows WHERE number = 1", "after row 0 comes row 2"),
        ("UPDATE root SET digest = 'x'", "row 1"),
        ("UPDATE rows SET number = CASE number WHEN 2 THEN 9 ELSE number END", "after row 1 comes row 3"),
    ],
)
def test_a_row_that_was_changed_or_taken_out_is_named(path, statement, says):
    written(path, row("one"), decided(), row("three"))
    tampered(path, statement)
    with pytest.raises(JournalError, match=says):
        verify(path)


def test_rows_that_change_places_are_found(path):
    written(path, row("one"), row("two"), row("three"))
    for statement in ("SET number = 9 WHERE number = 1", "SET number = 1 WHERE number = 2"):
        tampered(path, f"UPDATE rows {statement}")
    tampered(path, "UPDATE rows SET number = 2 WHERE number = 9")
    with pytest.raises(JournalError, match="row 1"):
        verify(path)


def test_old_rows_go_and_what_is_left_is_whole(path):
    store = Store(path, "5e55105a", "fencer")
    store.append([row(str(n), seconds=n * 60.0) for n in range(10)])
    dropped = [store.prune(LARGE, text_of(BEGAN + timedelta(seconds=250))) for _ in range(6)]
    assert dropped == [1, 1, 1, 1, 1, 0]
    store.append([row("after")])
    store.close()
    assert [one.body["text"] for one in entries(path)] == [*"56789", "after"]
    assert (verify(path).rows, verify(path).dropped) == (6, 5)


def test_of_rows_that_are_all_too_old_the_newest_stays(path):
    store = Store(path, "5e55105a", "fencer")
    store.append([row(str(n)) for n in range(3)])
    assert [store.prune(LARGE, text_of(BEGAN + timedelta(days=500))) for _ in range(3)] == [1, 1, 0]
    assert [one.body["text"] for one in entries(path)] == ["2"]
    verify(path)


def test_a_clock_that_is_years_ahead_for_a_moment_takes_few_rows_with_it(path):
    """As after a start with a dead battery, until the time is set."""
    store = Store(path, "5e55105a", "fencer")
    store.append([row(str(n)) for n in range(100)])
    assert store.prune(LARGE, text_of(BEGAN + timedelta(days=9999))) == 10
    store.close()
    assert verify(path).rows == 90


def test_an_empty_journal_has_nothing_to_drop(path):
    assert Store(path, "5e55105a", "fencer").prune(1, text_of(BEGAN)) == 0
    assert verify(path).rows == 0


def test_a_file_that_is_too_large_stops_growing(path):
    store = Store(path, "5e55105a", "fencer")
    sizes = []
    for _ in range(40):
        store.append([row("x" * 10_000) for _ in range(20)])
        store.prune(2_000_000, text_of(BEGAN - timedelta(days=1)))
        sizes.append(path.stat().st_size)
    assert max(sizes) < 2 * 2_000_000
    assert sizes[-1] == sizes[-10]
    store.close()
    assert verify(path).dropped > 0


def write_often(path, name, times):
    for number in range(times):
        written(path, row(f"{name} {number}"), by=name)


def test_several_write_at_the_same_time(path):
    written(path, row("first"))
    writers = [FORK.Process(target=write_often, args=(path, f"fencer-{n}", 30)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert verify(path).rows == 121
    for number in range(4):
        own = [one.body["text"] for one in entries(path) if one.by == f"fencer-{number}"]
        assert own == [f"fencer-{number} {n}" for n in range(30)]


def test_somebody_reads_while_others_write(path):
    written(path, row("one"))
    reader = entries(path)
    assert next(reader).body == {"text": "one"}
    written(path, row("two"))
    assert list(reader) == []  # all of one moment
    assert [one.body["text"] for one in entries(path)] == ["one", "two"]


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 8000])
def test_a_file_that_is_no_journal_is_said(path, content):
    path.write_bytes(content)
    with pytest.raises(CorruptJournalError, match=r"journal\.db: "):
        Store(path, "5e55105a", "fencer")
    with pytest.raises(CorruptJournalError):
        list(entries(path))


def test_a_database_of_another_program_is_left_alone(path):
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE kine (name TEXT)")
    before = path.read_bytes()
    for opens in (
        lambda: Store(path, "5e55105a", "fencer"),
        lambda: list(entries(path)),
        lambda: verify(path),
    ):
        with pytest.raises(JournalError, match="another program's database"):
            opens()
    assert path.read_bytes() == before


def test_an_empty_file_is_no_journal_yet_and_becomes_one(path):
    path.touch()
    with pytest.raises(JournalError, match="empty: no journal yet"):
        list(entries(path))
    written(path, row("one"))
    assert verify(path).rows == 1


def test_what_is_no_file_is_no_journal(tmp_path):
    for path in (tmp_path, Path("/dev/null")):
        with pytest.raises(JournalError, match="no file, and so no journal"):
            list(entries(path))


def test_a_journal_on_a_disk_that_became_read_only_is_read(path, monkeypatch):
    written(path, row("one"))
    there = os.statvfs(path)
    frozen = SimpleNamespace(f_flag=there.f_flag | os.ST_RDONLY)
    monkeypatch.setattr(os, "statvfs", lambda _path: frozen)
    assert verify(path).rows == 1
    assert not list(path.parent.glob("*-shm"))  # nothing could be put beside it


def test_a_row_that_is_no_text_any_more_is_named(path):
    written(path, row("one"), row("two"))
    tampered(path, "UPDATE rows SET body = CAST(x'7b22ff' AS TEXT) WHERE number = 2")
    with pytest.raises(JournalError, match="row 2 cannot be read"):
        list(entries(path))
    with pytest.raises(JournalError, match=r"row 2 \(.*\) is not as it was written"):
        verify(path)


def test_damage_in_the_middle_is_said(path):
    written(path, *(decided() for _ in range(200)))
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 20_000] = b"\xff" * 20_000
    path.write_bytes(content)
    with pytest.raises(JournalError, match=r"journal\.db: "):
        verify(path)


def test_a_journal_of_a_newer_fencer_is_left_alone(path):
    written(path, row("one"))
    tampered(path, "PRAGMA user_version = 7")
    for tried in (lambda: Store(path, "5e55105a", "fencer"), lambda: list(entries(path))):
        with pytest.raises(JournalError, match="schema 7 is of another fencer") as caught:
            tried()
        assert not isinstance(caught.value, CorruptJournalError)


def test_a_damaged_journal_is_set_aside_with_all_that_belongs_to_it(path):
    Store(path, "5e55105a", "fencer").append([row("one")])  # open: its side files are there
    aside = set_aside(path, "damaged-now")
    assert aside == path.with_name("journal.db.damaged-now")
    assert not list(path.parent.glob("journal.db"))
    assert [one.body["text"] for one in entries(aside)] == ["one"]


@pytest.mark.parametrize("body", ["no JSON", "{"])
def test_a_row_that_cannot_be_read_is_named(path, body):
    written(path, row("one"))
    tampered(path, f"UPDATE rows SET body = '{body}'")  # noqa: S608 - the test's own
    with pytest.raises(JournalError, match="row 1 cannot be read"):
        list(entries(path))


@pytest.mark.parametrize("column", ["at = 'noon'", "kind = 'gossip'", "at_s = 'soon'"])
def test_a_row_with_a_value_of_another_sort_is_named(path, column):
    written(path, row("one"))
    tampered(path, f"UPDATE rows SET {column}")  # noqa: S608 - the test's own
    with pytest.raises(JournalError, match="row 1 cannot be read"):
        list(entries(path))


def test_a_journal_that_is_not_there_is_said(path):
    with pytest.raises(JournalError, match="No such file"):
        list(entries(path))


def test_the_folder_is_made_for_its_owner_alone(tmp_path):
    written(tmp_path / "state" / "fencer" / "journal.db", row())
    assert (tmp_path / "state" / "fencer").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "state" / "fencer" / "journal.db").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away: run it as root")
def test_what_root_begins_belongs_to_the_owner_of_the_folder(tmp_path):
    folder = tmp_path / "fencer"
    folder.mkdir()
    os.chown(folder, 12345, 12346)
    path = folder / "journal.db"
    store = Store(path, "5e55105a", "root@pve1 (by hand)")
    store.append([row()])
    files = {file.name: (file.stat().st_uid, file.stat().st_gid) for file in folder.iterdir()}
    store.close()
    assert files == dict.fromkeys(("journal.db", "journal.db-wal", "journal.db-shm"), (12345, 12346))


def test_names_that_are_no_text_are_kept_escaped(path):
    written(path, row("x", node="k8s-\ud800", uid="\ud800"), by="fencer@\udcff")
    [one] = entries(path)
    assert (one.node, one.uid, one.by) == ("k8s-\\ud800", "\\ud800", "fencer@\\udcff")
    verify(path)


def fill(path, limit_bytes, told):
    """Write until the disk takes no more, as a process whose files may only become so large."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    store, count = Store(path, "5e55105a", "fencer"), 0
    try:
        while True:
            store.append([row("x" * 20_000)])
            count += 1
    except JournalError as error:
        told.put((count, str(error)))


def test_a_disk_that_is_full_loses_nothing_that_was_written(path):
    told = FORK.Queue()
    writer = FORK.Process(target=fill, args=(path, 600_000, told))
    writer.start()
    count, error = told.get(timeout=60)
    writer.join()
    assert count > 5
    assert str(path) in error
    assert verify(path).rows == count


def write_and_wait(path, rows, told):
    """Write row after row, and say so after each; whoever listens kills at any moment."""
    store = Store(path, "5e55105a", "fencer")
    for one in rows:
        store.append([one])
        os.write(told, b".")


def test_an_agent_that_is_killed_after_any_row_leaves_all_its_rows(tmp_path):
    """``kill -9`` after each row of an incident: the file opens, and has what was reported as written."""
    every = [decided(seconds=float(n)) for n in range(36)]  # as many as an incident has
    for killed_after in range(1, len(every) + 1):
        path = tmp_path / f"{killed_after}.db"
        told, telling = os.pipe()
        child = FORK.Process(target=write_and_wait, args=(path, every, telling))
        child.start()
        os.close(telling)
        for _ in range(killed_after):
            assert os.read(told, 1) == b"."
        child.kill()
        child.join()
        os.close(told)
        assert verify(path).rows >= killed_after
        written(path, row("the next agent"))
        assert verify(path).rows > killed_after
        assert list(entries(path))[-1].body == {"text": "the next agent"}


def test_rows_are_written_all_or_none(path):
    store = Store(path, "5e55105a", "fencer")
    with pytest.raises(JournalError, match="NOT NULL"):
        store.append([row("one"), Row(text_of(BEGAN), float("nan"), Kind.NOTICE, dict)])
    store.append([row("two")])
    assert [one.body["text"] for one in entries(path)] == ["two"]


def test_a_path_that_needs_escaping_is_read(tmp_path):
    path = Path(tmp_path / "a ?b#c %20" / "journal.db")
    written(path, row("one"))
    assert [one.body["text"] for one in entries(path)] == ["one"]


@pytest.mark.parametrize("moved", [True, False])
def test_a_file_that_was_moved_or_deleted_is_told_and_made_anew(path, moved):
    store = Store(path, "5e55105a", "fencer@pve1")
    store.append([row("one")])
    if moved:
        path.rename(path.with_name("journal.old"))
    else:
        path.unlink()
    with pytest.raises(JournalError, match="No such file"):
        store.append([row("two")])
    store.close()
    written(path, row("two"))
    assert [one.body["text"] for one in entries(path)] == ["two"]


def test_another_file_in_its_place_is_told(path, tmp_path):
    store = Store(path, "5e55105a", "fencer@pve1")
    store.append([row("one")])
    written(tmp_path / "other.db", row("other")).replace(path)
    with pytest.raises(JournalError, match="is another file now"):
        store.append([row("two")])
    store.close()


def append_beside_a_cut_index(path):
    store = Store(path, "5e55105a", "fencer@pve1")
    store.append([row("one")])
    os.truncate(f"{path}-shm", 0)
    store.append([row("two")])
    os.truncate(f"{path}-shm", 0)
    store.close()


def test_an_index_that_somebody_cuts_does_not_end_the_process(path):
    """As `cp` does, when a journal is put back beside an agent that runs: SQLite has mapped it."""
    writer = FORK.Process(target=append_beside_a_cut_index, args=(path,))
    writer.start()
    writer.join()
    assert writer.exitcode == 0
    assert verify(path).rows == 2


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_not_followed(path, tmp_path, there):
    """Root writes in a folder that is fencer's: a link there must not lead it elsewhere."""
    elsewhere = tmp_path / "elsewhere"
    if there:
        elsewhere.touch()
    path.symlink_to(elsewhere)
    with pytest.raises(JournalError, match="is a link, and not followed"):
        Store(path, "5e55105a", "root@pve1")
    assert elsewhere.exists() is there
    assert not there or not elsewhere.read_bytes()


def test_nobody_makes_rows_huge(path):
    """A kubelet may say of itself what it likes, 1.5 MB in all."""
    secret = os.urandom(400_000).hex()
    huge = decided(f"no guest has UUID {secret}")
    assert huge.seen is not None
    seen = replace(huge.seen, node=replace(huge.seen.node, system_uuid=secret))
    written(path, replace(huge, seen=seen))
    [one] = entries(path)
    assert one.seen is None
    assert one.body["unkept_bytes"] > 400_000
    assert one.body["text"].endswith("more characters)")
    assert len(one.body["text"]) < 10_100
    assert again(one, None).why_not == "what was known was too large to be kept"


HUGE_NUMBER, DEEP = "9" * 6000, "[" * 100_000


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rows SET body = '[]' WHERE number = 2",
        "UPDATE rows SET body = 5 WHERE number = 2",
        "UPDATE rows SET body = CAST(body AS BLOB) WHERE number = 2",
        "UPDATE rows SET seen = 'text' WHERE number = 2",
        "UPDATE root SET number = 'x'",
        "DELETE FROM root",
    ],
)
def test_what_no_fencer_ever_wrote_is_told_and_no_traceback(path, statement):
    written(path, row("one"), decided())
    tampered(path, statement)
    with pytest.raises(JournalError):
        verify(path)


@pytest.mark.parametrize("body", ["[]", DEEP, HUGE_NUMBER])
def test_a_body_that_no_fencer_ever_wrote_is_told_and_no_traceback(path, body):
    written(path, row("one"), decided())
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE rows SET body = ? WHERE number = 2", (body,))
    with pytest.raises(JournalError, match="row 2 cannot be read"):
        list(entries(path))


def test_a_row_that_cannot_be_made_keeps_no_other_from_being_written(path):
    def impossible():
        raise ValueError("impossible")

    written(path, row("one"), replace(row(), body=impossible), row("three"))
    assert [one.body["text"] for one in entries(path)] == [
        "one",
        "not kept: a bug in fencer: ValueError: impossible",
        "three",
    ]
    verify(path)
