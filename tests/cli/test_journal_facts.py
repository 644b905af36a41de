"""What `fencer check` finds out about the journal; it writes nothing."""

import os

import pytest

from fencer.cli.journal_facts import inspect_journal
from fencer.cli.writable import LEAST_FREE_BYTES
from fencer.journal.rows import Kind, Row
from fencer.journal.store import Store
from fencer.preflight.facts import JournalFacts


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state" / "journal.db"


def filled(file, *days):
    store = Store(file, "5e55105a", "fencer@pve1")
    for day in days:
        store.append([Row(f"2026-01-{day:02}T10:00:00.000Z", 0.0, Kind.NOTICE, dict)])
    store.close()


def test_none_yet_is_no_trouble_and_none_is_made(file):
    assert inspect_journal(file) == JournalFacts()
    assert not file.parent.exists()


def test_its_size_and_since_when_it_goes_back(file):
    filled(file, 3, 4)
    size = file.stat().st_size  # reading adds files beside it
    found = inspect_journal(file)
    assert found.trouble is None
    assert found.since.isoformat() == "2026-01-03T10:00:00+00:00"
    assert found.size_bytes == size


def test_an_empty_file_is_none_yet(file):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    assert inspect_journal(file) == JournalFacts()


def test_one_without_a_row(file):
    filled(file)
    found = inspect_journal(file)
    assert (found.since, found.trouble) == (None, None)


def test_one_that_is_damaged_says_so(file):
    file.parent.mkdir()
    file.write_bytes(b"no database at all, " * 100)  # 2000 bytes
    found = inspect_journal(file)
    assert found.trouble.startswith(f"cannot be read: {file}: ")
    assert found.size_bytes == 2000


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_one_that_may_not_be_written_by_this_user(file):
    filled(file, 3)
    file.parent.chmod(0o500)
    try:
        assert inspect_journal(file).trouble == f"cannot be written by user {os.geteuid()}: see {file.parent}"
    finally:
        file.parent.chmod(0o700)


def test_below_a_file_there_is_no_folder(tmp_path):
    (tmp_path / "it").touch()
    found = inspect_journal(tmp_path / "it" / "journal.db")
    assert found.trouble == f"cannot be written: {tmp_path / 'it'} is no folder"


@pytest.mark.parametrize(("free", "trouble"), [(-1, "cannot be written: the disk is full"), (0, None)])
def test_a_full_disk_is_seen(tmp_path, free, trouble):
    found = inspect_journal(tmp_path / "journal.db", lambda _folder: LEAST_FREE_BYTES + free)
    assert found.trouble == trouble


def test_a_link_is_told_because_it_is_not_followed(tmp_path):
    file = tmp_path / "journal.db"
    file.symlink_to(tmp_path / "elsewhere.db")
    assert "is a link, and not followed" in str(inspect_journal(file).trouble)
