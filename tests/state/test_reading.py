"""What a command reads of the state of the agent beside it: it counts, and nothing is changed."""

import os
import threading

import pytest

from fencer.core.kept import Kept
from fencer.errors import ClusterNotFound
from fencer.state.reading import StateReader
from fencer.state.settings import key_file_of
from fencer.state.store import StateFile
from tests.state.untouched import identity_of

KEY = b"the key of a cluster, 32 bytes.."
KEPT = Kept(utc="2026-11-29T02:14:30Z")
UNCOUNTED = "What the agent here has noted does not count for this command"


def ours():
    return KEY


def others():
    return b"the key of another cluster......"


def no_key():
    raise ClusterNotFound("no secret fencer/fencer-key yet")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "state.jsonl"


@pytest.fixture
def agent(path):
    """An agent that runs meanwhile."""
    agent = StateFile(path, ours)
    agent.load()
    agent.save(KEPT)
    return agent


def everything(path):
    return {file.name: (file.read_bytes(), identity_of(file)) for file in path.parent.iterdir()}


def read(path, key=ours):
    """Return what a command reads; it looks twice."""
    reader = StateReader(path, key)
    found = reader.load()
    assert reader.confirm()
    reader.save(Kept(utc="what the command saw"))
    assert reader.load() == found
    return found


@pytest.mark.usefixtures("agent")
def test_what_the_agent_kept_is_read_and_nothing_is_written(path, caplog):
    before = everything(path)
    assert read(path) == KEPT
    assert everything(path).keys() == before.keys()
    assert [content for content, _ in everything(path).values()] == [
        content for content, _ in before.values()
    ]
    assert not caplog.records


def test_without_an_agent_there_is_nothing_and_nothing_is_made(path, caplog):
    assert read(path, no_key) == Kept()
    assert not path.parent.exists()
    assert not caplog.records


def test_what_a_local_key_signed_counts_without_asking(path, caplog):
    StateFile(path, no_key).save(KEPT)
    assert read(path, ours) == KEPT
    assert read(path, no_key) == KEPT
    assert not caplog.records


@pytest.mark.usefixtures("agent")
def test_what_another_cluster_signed_does_not_count_and_stays(path, caplog):
    before = sorted(everything(path))
    assert read(path, others) == Kept()
    assert caplog.messages == [f"{path}: is not signed with this cluster's key. {UNCOUNTED}"]
    assert sorted(everything(path)) == before


@pytest.mark.usefixtures("agent")
def test_what_cannot_be_verified_counts_and_that_is_logged(path, caplog):
    assert read(path, no_key) == KEPT
    told = f"{path}: cannot be verified: no secret fencer/fencer-key yet. It counts all the same"
    assert caplog.messages == [told]


@pytest.mark.usefixtures("agent")
def test_what_is_damaged_stays_and_is_logged_once(path, caplog):
    path.write_bytes(b"")
    before = sorted(everything(path))
    assert read(path) == Kept()
    assert caplog.messages == [f"{path}: is damaged: it is cut off. {UNCOUNTED}"]
    assert sorted(everything(path)) == before


def load_as_stranger(path, caplog):
    """Load in a thread of its own, which is another user's: Linux has a user for each thread."""
    libc_found = []

    def load():
        os.seteuid(12345)
        try:
            libc_found.append(read(path))
        finally:
            os.seteuid(0)

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    return libc_found[0]


@pytest.mark.usefixtures("agent")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_file_that_this_user_may_not_read_is_logged_once_and_the_command_goes_on(path, caplog):
    assert load_as_stranger(path, caplog) == Kept()
    assert caplog.messages == [f"{path}: cannot be read: Permission denied. {UNCOUNTED}"]
    assert key_file_of(path).exists()
