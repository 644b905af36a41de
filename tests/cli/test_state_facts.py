"""What `fencer check` finds out about an agent's state; it writes nothing."""

import os

import pytest

from fencer.cli.state_facts import inspect_state
from fencer.cli.writable import LEAST_FREE_BYTES
from fencer.core.kept import Kept
from fencer.preflight.facts import StateFacts
from fencer.state.settings import key_file_of
from fencer.state.store import StateFile


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state" / "state.jsonl"


def saved(file):
    StateFile(file, lambda: b"the key of a cluster, 32 bytes..").save(Kept())


def test_none_yet_is_no_trouble_and_none_is_made(file):
    assert inspect_state(file) == StateFacts()
    assert not file.parent.exists()


def test_its_size(file):
    saved(file)
    assert inspect_state(file) == StateFacts(file.stat().st_size)


def test_a_damaged_one_is_left_where_it_is(file):
    saved(file)
    file.write_bytes(file.read_bytes() + b" ")
    found = inspect_state(file)
    assert found.damage.startswith("has a wrong signature")
    assert found.remedy == f"mv {file} {file}.damaged"
    assert not found.trouble
    assert file.exists()


def test_one_without_its_key(file):
    saved(file)
    key_file_of(file).unlink()
    assert inspect_state(file).damage == "cannot be verified: the key beside it is missing"


def test_a_damaged_key_is_moved_away_with_what_it_signed(file):
    saved(file)
    key = key_file_of(file)
    key.write_bytes(b"junk")
    found = inspect_state(file)
    assert found.damage == f"{key}: is damaged"
    assert found.remedy == f"mv {file} {file}.damaged && mv {key} {key}.damaged"


def test_one_that_is_not_fencers(file):
    file.parent.mkdir()
    file.write_text("root:x:0:0\n")
    assert inspect_state(file).trouble == "is no state file of fencer's"


def test_a_link(file, tmp_path):
    file.parent.mkdir()
    file.symlink_to(tmp_path / "nowhere")
    assert inspect_state(file).trouble == f"cannot be written: {file} is a link, and not followed"


def test_a_key_that_is_a_link(file, tmp_path):
    saved(file)
    key_file_of(file).rename(tmp_path / "key")
    key_file_of(file).symlink_to(tmp_path / "key")
    assert inspect_state(file).trouble == f"{key_file_of(file)}: is a link, and not followed"


def test_a_full_disk_is_seen(file):
    saved(file)
    found = inspect_state(file, lambda _folder: LEAST_FREE_BYTES - 1)
    assert found.trouble == "cannot be written: the disk is full"


def test_below_a_file_there_is_no_folder(tmp_path):
    (tmp_path / "it").touch()
    assert "it is no folder" in inspect_state(tmp_path / "it" / "state.jsonl").trouble


def test_one_that_cannot_be_looked_at(tmp_path):
    assert inspect_state(tmp_path / ("x" * 300)).trouble == "cannot be looked at: File name too long"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_one_that_may_not_be_written_by_this_user(file):
    saved(file)
    file.parent.chmod(0o500)
    try:
        assert "cannot be written by user" in inspect_state(file).trouble
    finally:
        file.parent.chmod(0o700)
