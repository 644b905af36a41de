"""What an agent has seen outlives it: as a whole or not at all, signed, and for its own cluster alone."""

import errno
import fcntl
import itertools
import logging
import multiprocessing
import os
import re
import resource
import signal
import stat
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fencer.core.kept import Kept
from fencer.core.model import Note
from fencer.errors import ClusterNotFound, ClusterUnreachable, StateError
from fencer.state.form import MAGIC, derive_signer, pack, pack_signers
from fencer.state.lock import FileLock
from fencer.state.reading import DamagedStateError, Reading, read_state
from fencer.state.settings import key_file_of, lock_file_of
from fencer.state.store import StateFile
from tests.core.build import doubt, node
from tests.state.untouched import identity_of

FORK = multiprocessing.get_context("fork")
KEY, OTHER_KEY = b"the key of a cluster, 32 bytes..", b"the key of another cluster......"
SIGNER, OTHER_SIGNER = derive_signer(KEY), derive_signer(OTHER_KEY)
KEPT = Kept((node(),), (Note("k8s-2", "uid-2", (doubt(),)),), "2026-11-29T02:14:30Z")
LATER = replace(KEPT, utc="2026-11-29T02:15:00Z")
AWAY = "the API server does not answer"
ASIDE = "damaged-20261129T021430Z"
STRANGER = 12345


def utc():
    return datetime(2026, 11, 29, 2, 14, 30, tzinfo=UTC)


def ours():
    return KEY


def others():
    return OTHER_KEY


def away():
    raise ClusterUnreachable(AWAY)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "state.jsonl"


def state(path, key=ours):
    return StateFile(path, key, utc)


def kept_by(path, key=ours, kept=KEPT):
    """Have an agent keep something there."""
    state(path, key).save(kept)


def open_files():
    """Return how many files this process has open."""
    return len([*Path("/proc/self/fd").iterdir()])


def in_folder(path):
    """Return the names of all files there but the lock, which is empty."""
    lock = lock_file_of(path)
    assert not lock.exists() or not lock.read_bytes()
    return sorted(one.name for one in path.parent.iterdir() if one != lock)


# -- kept, and found again ---------------------------------------------------------------------------------


def test_what_is_saved_is_loaded_by_the_next_agent(path):
    state(path).save(KEPT)
    assert state(path).load() == KEPT


def test_without_a_file_nothing_was_seen_and_only_the_lock_is_made(path):
    assert state(path).load() == Kept()
    assert [one.name for one in path.parent.iterdir()] == ["state.jsonl.lock"]


def test_an_agent_that_starts_while_the_api_server_is_away_reads_and_goes_on_signing(path):
    kept_by(path)
    agent = state(path, away)
    assert agent.load() == KEPT
    agent.save(LATER)
    with pytest.raises(ClusterUnreachable):
        agent.confirm()
    assert state(path, away).load() == LATER


def test_without_any_key_nothing_is_written(path):
    agent = state(path, away)
    assert agent.load() == Kept()
    with pytest.raises(StateError, match=f"nothing is there to sign it with: {AWAY}"):
        agent.save(KEPT)
    assert not in_folder(path)


def test_both_files_are_for_their_owner_alone_and_nothing_is_left_beside_them(path):
    before = os.umask(0)
    try:
        kept_by(path)
        kept_by(path, kept=LATER)
    finally:
        os.umask(before)
    assert in_folder(path) == ["state.jsonl", "state.jsonl.key"]
    assert {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_clusters_own_key_is_nowhere_on_the_disk(path):
    kept_by(path)
    for file in path.parent.iterdir():
        content = file.read_bytes()
        assert KEY not in content
        assert KEY.hex().encode() not in content


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_writes_belongs_to_the_folders_owner(path):
    path.parent.mkdir()
    os.chown(path.parent, STRANGER, STRANGER)
    kept_by(path)
    assert {one.stat().st_uid for one in path.parent.iterdir()} == {STRANGER}
    assert state(path).load() == KEPT


def test_the_key_is_written_again_if_it_is_lost_or_damaged_meanwhile(path):
    agent = state(path)
    agent.save(KEPT)
    key_file_of(path).unlink()
    agent.save(KEPT)
    assert state(path).load() == KEPT
    key_file_of(path).write_bytes(b"junk")
    path.write_bytes(MAGIC)  # and the state itself
    agent.save(LATER)
    assert state(path).load() == LATER


# -- is it this cluster's? ---------------------------------------------------------------------------------


def test_what_was_signed_for_this_cluster_is_confirmed(path):
    kept_by(path)
    agent = state(path)
    agent.load()
    assert agent.confirm()
    assert agent.confirm()
    agent.save(LATER)
    assert state(path).load() == LATER


def test_what_was_signed_for_another_cluster_is_set_aside_and_a_new_one_begun(path, caplog):
    kept_by(path, others)
    agent = state(path)
    assert agent.load() == KEPT
    agent.save(LATER)  # with the key of the other one: there is no other yet
    assert not agent.confirm()
    assert in_folder(path) == [f"state.jsonl.{ASIDE}", f"state.jsonl.key.{ASIDE}"]
    assert "is not signed with this cluster's key. What an agent saw here before is not" in caplog.text
    assert str(path.with_name(f"state.jsonl.{ASIDE}")) in caplog.text
    assert not agent.confirm(), "the first answer may have come too late for who asked"
    agent.save(Kept())
    assert state(path).load() == Kept()
    assert key_file_of(path).read_bytes() == pack_signers([SIGNER])


def test_where_nothing_was_loaded_there_is_nothing_to_refuse(path):
    assert state(path).confirm()
    agent = state(path)
    agent.load()
    assert agent.confirm()


def test_what_was_seen_in_this_life_is_signed_again_with_the_right_key(path):
    """An old key was left alone on the disk: this agent signed with it while the API server was away."""
    kept_by(path, others)
    path.unlink()
    agent = state(path)
    assert agent.load() == Kept()
    agent.save(KEPT)
    assert read_state(path).signer == OTHER_SIGNER
    assert agent.confirm()
    assert read_state(path).kept == KEPT
    assert read_state(path).signer == SIGNER


def test_a_disk_that_then_refuses_is_told_and_the_next_save_signs(path, caplog):
    kept_by(path, others)
    path.unlink()
    agent = state(path)
    agent.load()
    agent.save(KEPT)
    blocked = path.with_name("state.jsonl.key.new")
    blocked.mkdir()
    assert agent.confirm()
    assert "cannot be written" in caplog.text
    blocked.rmdir()
    agent.save(LATER)
    assert read_state(path).signer == SIGNER


def test_an_old_key_with_nothing_signed_is_replaced(path):
    kept_by(path, others)
    path.unlink()
    agent = state(path)
    agent.load()
    assert agent.confirm()
    agent.save(KEPT)
    assert read_state(path).signer == SIGNER


def test_what_is_another_clusters_stays_so_until_the_next_load(path):
    kept_by(path, others)
    agent = state(path)
    agent.load()
    assert not agent.confirm()
    agent.save(KEPT)
    assert not agent.confirm()
    assert agent.load() == KEPT
    assert agent.confirm()


# -- a cluster that has no key yet -------------------------------------------------------------------------


def no_key():
    raise ClusterNotFound("no secret fencer/fencer-key yet")


def in_turn(*keys):
    """Return what asks these, one after the other; the last one again and again."""
    left = list(keys)

    def key():
        return (left.pop(0) if len(left) > 1 else left[0])()

    return key


def test_on_a_new_cluster_a_local_key_signs_and_what_was_seen_survives_a_restart(path):
    agent = state(path, no_key)
    assert agent.load() == Kept()
    assert agent.confirm()
    agent.save(KEPT)
    assert read_state(path).signer.local
    del agent
    again = state(path, no_key)
    assert again.load() == KEPT
    assert again.confirm()
    again.save(LATER)
    assert again.confirm()
    del again
    assert state(path, away).load() == LATER


def test_two_new_clusters_have_two_local_keys(path, tmp_path):
    kept_by(path, no_key)
    kept_by(tmp_path / "other.jsonl", no_key)
    assert read_state(path).signer != read_state(tmp_path / "other.jsonl").signer


def test_what_a_local_key_signed_is_signed_with_the_clusters_key_once_there_is_one(path):
    kept_by(path, no_key)
    agent = state(path)
    assert agent.load() == KEPT
    assert agent.confirm()
    assert read_state(path) == Reading(KEPT, SIGNER)
    agent.save(LATER)
    assert key_file_of(path).read_bytes() == pack_signers([SIGNER]), "the local key is gone"
    assert read_state(path) == Reading(LATER, SIGNER)
    assert agent.confirm()


def test_a_key_that_appears_while_the_agent_runs_signs_from_the_next_confirmation_on(path):
    agent = state(path, in_turn(no_key, no_key, ours))
    agent.load()
    agent.save(KEPT)
    assert agent.confirm()
    agent.save(LATER)
    assert agent.confirm()
    assert read_state(path) == Reading(LATER, SIGNER)


def test_another_error_of_the_cluster_is_raised_and_the_local_key_goes_on_signing(path):
    kept_by(path, no_key)
    agent = state(path, in_turn(away, ours))
    assert agent.load() == KEPT
    with pytest.raises(ClusterUnreachable):
        agent.confirm()
    agent.save(LATER)
    assert read_state(path).signer.local
    assert agent.confirm()
    assert read_state(path) == Reading(LATER, SIGNER)


def test_what_a_clusters_key_signed_is_not_confirmed_by_a_cluster_without_one(path):
    kept_by(path)
    agent = state(path, no_key)
    assert agent.load() == KEPT
    with pytest.raises(ClusterNotFound):
        agent.confirm()
    agent.save(LATER)
    assert read_state(path) == Reading(LATER, SIGNER)


def test_an_old_key_with_nothing_signed_signs_nothing_for_a_cluster_without_one(path):
    """Else the agent's own state would be another cluster's, as soon as this one has a key."""
    kept_by(path, others)
    path.unlink()
    agent = state(path, in_turn(no_key, ours))
    agent.load()
    agent.save(KEPT)
    assert agent.confirm()
    assert read_state(path).kept == KEPT
    assert read_state(path).signer.local
    assert agent.confirm()
    assert read_state(path) == Reading(KEPT, SIGNER)


def save_until(path, key, dies_at):
    """Load, confirm and save, and die before this rename."""
    renames = itertools.count()

    def rename(one, other):
        if next(renames) == dies_at:
            os._exit(9)
        return one.rename(other)

    Path.replace = rename
    agent = state(path, key)
    agent.load()
    agent.confirm()
    agent.save(LATER)


@pytest.mark.parametrize(
    ("before", "renames"),
    [(no_key, 4), (others, 2)],
    ids=["a local key", "another cluster's key, which has signed nothing"],
)
def test_an_agent_that_is_killed_while_one_key_takes_the_place_of_another_loses_nothing(
    path, before, renames
):
    kept_by(path, before)
    if before is others:
        path.unlink()
    first = state(path, ours).load()
    for dies_at in itertools.count():
        child = FORK.Process(target=save_until, args=(path, ours, dies_at))
        child.start()
        child.join()
        found = state(path, away).load()  # the disk alone tells that it is ours
        assert found in (first, LATER)
        if child.exitcode == 0:
            break
        for file in (path, key_file_of(path)):
            file.unlink(missing_ok=True)
        kept_by(path, before)
        if before is others:
            path.unlink()
    assert dies_at == renames
    assert found == LATER
    assert in_folder(path) == ["state.jsonl", "state.jsonl.key"]
    assert key_file_of(path).read_bytes() == pack_signers([SIGNER])


def test_a_kill_in_between_leaves_two_keys_and_the_next_agent_goes_on(path):
    kept_by(path, no_key)
    local = read_state(path).signer
    blocked = path.with_name("state.jsonl.new")
    blocked.mkdir()
    agent = state(path)
    agent.load()
    assert agent.confirm()
    blocked.rmdir()
    del agent
    assert key_file_of(path).read_bytes() == pack_signers([SIGNER, local])
    assert read_state(path) == Reading(KEPT, local)
    agent = state(path)
    assert agent.load() == KEPT
    assert agent.confirm()
    assert read_state(path) == Reading(KEPT, SIGNER)


# -- two agents on one machine -----------------------------------------------------------------------------

IN_USE = (
    "state.jsonl: another agent on this machine uses it. To find that one: lslocks | grep state.jsonl.lock"
)


def test_the_second_agent_reads_and_writes_nothing(path):
    first, second = state(path), state(path)
    first.load()
    first.save(KEPT)
    assert second.load() == KEPT
    assert second.confirm()
    with pytest.raises(StateError, match=re.escape(IN_USE)):
        second.save(LATER)
    first.save(LATER)
    assert state(path).load() == LATER


def test_the_second_agent_takes_over_once_the_first_one_is_gone(path):
    first, second = state(path), state(path)
    first.load()
    second.load()
    with pytest.raises(StateError, match="another agent"):
        second.save(KEPT)
    del first
    second.save(KEPT)
    second.save(LATER)
    third = state(path)
    assert third.load() == LATER
    with pytest.raises(StateError, match="another agent"):
        third.save(KEPT)


def test_what_the_first_agent_wrote_meanwhile_is_not_overwritten(path):
    first, second = state(path), state(path)
    first.load()
    second.load()
    first.save(KEPT)
    del first
    for _ in range(2):
        with pytest.raises(StateError, match=r"has written it since this one read it. Restart this agent"):
            second.save(LATER)
    assert state(path).load() == KEPT
    assert second.load() == KEPT, "as a restart does"
    second.save(LATER)
    assert state(path).load() == LATER


def test_the_second_agent_sets_nothing_aside(path, caplog):
    kept_by(path)
    first = state(path)
    first.load()
    path.write_bytes(b"")
    second = state(path)
    with pytest.raises(StateError, match="is damaged"):
        second.load()
    first.save(KEPT)  # what it knows takes the place of what was damaged meanwhile
    assert second.load() == KEPT
    second = state(path, others)
    assert second.load() == KEPT
    assert not second.confirm()
    with pytest.raises(StateError, match=r"another agent on this machine uses it.* It is not overwritten"):
        second.save(LATER)
    assert in_folder(path) == ["state.jsonl", "state.jsonl.key"]
    assert "It is left alone" in caplog.text
    assert state(path).load() == KEPT


def hold(path, telling, words):
    """Load and save, say so, and run these words in place of this process."""
    agent = state(path)
    agent.load()
    agent.save(KEPT)
    os.write(telling, b".")
    if words:
        os.execv(words[0], words)  # noqa: S606 - as a reload does
    signal.pause()


@pytest.mark.parametrize(
    ("words", "holds"), [((), True), (("/bin/sh", "-c", "echo; sleep 600"), False)], ids=["agent", "exec"]
)
def test_another_process_holds_the_lock_until_it_is_killed_or_becomes_another_program(path, words, holds):
    told, telling = os.pipe()
    child = FORK.Process(target=hold, args=(path, telling, words))
    child.start()
    try:
        assert os.read(told, 1) == b"."
        until = time.monotonic() + 60
        while state(path).load() == KEPT and not holds and time.monotonic() < until:
            with suppress(StateError):  # the other one has not become another program yet
                kept_by(path, kept=LATER)
        if holds:
            with pytest.raises(StateError, match="another agent on this machine uses it"):
                kept_by(path, kept=LATER)
    finally:
        child.kill()
        child.join()
    kept_by(path, kept=LATER)
    assert state(path).load() == LATER


@pytest.mark.parametrize(
    "make", [Path.mkdir, lambda lock: lock.symlink_to("/etc/passwd")], ids=["folder", "link"]
)
def test_what_cannot_be_locked_is_read_and_not_written(path, make):
    kept_by(path)
    lock_file_of(path).unlink()
    make(lock_file_of(path))
    agent = state(path)
    assert agent.load() == KEPT
    with pytest.raises(StateError, match=r"state\.jsonl\.lock: cannot be locked: "):
        agent.save(LATER)
    (Path.rmdir if make is Path.mkdir else Path.unlink)(lock_file_of(path))
    agent.save(LATER)
    assert state(path).load() == LATER


def test_a_file_system_without_locks_is_no_place_to_write(path, monkeypatch):
    def refuse(_descriptor, _how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = open_files()
    with pytest.raises(StateError, match="cannot be locked: No locks available"):
        kept_by(path)
    assert open_files() == before


def test_a_lock_is_released_with_what_holds_it(path):
    before = open_files()
    agent = state(path)
    agent.load()
    assert open_files() == before + 1
    del agent
    assert open_files() == before
    FileLock(lock_file_of(path)).release()  # which does not hold it


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_lock_that_root_makes_can_be_taken_by_the_folders_owner(path):
    path.parent.mkdir()
    os.chown(path.parent, STRANGER, STRANGER)
    state(path).load()
    assert lock_file_of(path).stat().st_uid == STRANGER
    assert stat.S_IMODE(lock_file_of(path).stat().st_mode) == 0o600


# -- damage ------------------------------------------------------------------------------------------------


def damage(change):
    def at(path):
        path.write_bytes(change(path.read_bytes()))

    return at


DAMAGED = {
    "changed": damage(lambda content: content.replace(b"k8s-2", b"k8s-3")),
    "cut off": damage(lambda content: content[:-30]),
    "empty": damage(lambda _: b""),
    "zeros": damage(lambda content: b"\0" * len(content)),
    "forged": damage(lambda _: pack(LATER, OTHER_SIGNER)),
}


def moved_away(*files):
    return " && ".join(f"mv {file} {file}.damaged" for file in files)


def contents(path):
    return {name: (path.parent / name).read_bytes() for name in in_folder(path)}


def refused(path, agent, *files):
    """Load and save again and again: nothing changes.

    Returns:
        Why, without the way out, which moves these files away.
    """
    before, texts = contents(path), set()
    for _ in range(3):
        with pytest.raises(StateError) as caught:
            agent.load()
        texts.add(str(caught.value))
        with pytest.raises(StateError):
            agent.save(LATER)
    with pytest.raises(StateError):
        state(path, away).load()  # the next process
    assert contents(path) == before
    [text] = texts
    why, _, way_out = text.partition(
        ". It is left alone, and nothing is kept there. What an agent saw here before is not known. "
    )
    assert way_out == (
        "If you know that no VM that is off now was saved or moved away, type this; the agent then goes on "
        f"within a poll: `{moved_away(*files)}`"
    )
    return why


def move_away(*files):
    """Type the command."""
    subprocess.run(["/bin/sh", "-c", moved_away(*files)], check=True)


@pytest.mark.parametrize("change", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_never_read_nor_overwritten_until_a_person_moves_it_away(path, change):
    kept_by(path)
    change(path)
    content = path.read_bytes()
    agent = state(path, away)
    assert refused(path, agent, path).startswith(f"{path}: ")
    move_away(path)
    assert agent.load() == Kept()
    agent.save(LATER)  # its key is undamaged, so no API server is needed
    assert path.with_name("state.jsonl.damaged").read_bytes() == content
    del agent
    assert state(path, away).load() == LATER


def test_without_its_key_a_file_is_left_alone(path):
    kept_by(path)
    key_file_of(path).unlink()
    agent = state(path)
    assert refused(path, agent, path) == f"{path}: cannot be verified: the key beside it is missing"
    with pytest.raises(StateError, match=r"the key beside it is missing\. It is left alone"):
        agent.save(LATER)
    move_away(path)
    assert agent.load() == Kept()
    agent.save(LATER)
    assert read_state(path) == Reading(LATER, SIGNER)


def test_a_key_that_is_found_again_reads_the_file_again(path):
    kept_by(path)
    key = key_file_of(path).read_bytes()
    key_file_of(path).unlink()
    agent = state(path)
    refused(path, agent, path)
    key_file_of(path).write_bytes(key)
    key_file_of(path).chmod(0o600)
    assert agent.load() == KEPT
    agent.save(LATER)
    assert read_state(path).kept == LATER


@pytest.mark.parametrize("alone", [False, True], ids=["with what it signed", "alone"])
def test_a_damaged_key_is_left_alone(path, alone):
    kept_by(path)
    key = key_file_of(path)
    key.write_bytes(key.read_bytes()[:-3])
    files = (path, key)
    if alone:
        path.unlink()
        files = (key,)
    agent = state(path)
    assert refused(path, agent, *files) == f"{key}: is damaged"
    move_away(*files)
    assert agent.load() == Kept()
    agent.save(KEPT)
    assert read_state(path) == Reading(KEPT, SIGNER)


def test_the_command_can_be_typed_whatever_the_folder_is_called(tmp_path):
    path = tmp_path / "it's here; rm -rf" / "state.jsonl"
    kept_by(path)
    path.write_bytes(b"")
    with pytest.raises(DamagedStateError) as caught:
        read_state(path)
    subprocess.run(["/bin/sh", "-c", caught.value.remedy], check=True)
    assert in_folder(path) == ["state.jsonl.damaged", "state.jsonl.key"]


def test_a_state_of_another_cluster_that_vanishes_meanwhile_is_no_error(path, caplog):
    kept_by(path, others)

    def now():
        path.unlink()
        key_file_of(path).unlink()
        return utc()

    agent = StateFile(path, ours, now)
    agent.load()
    assert not agent.confirm()
    assert "nothing is left of it" in caplog.text
    agent.save(LATER)
    assert read_state(path) == Reading(LATER, SIGNER)


@pytest.fixture
def immovable(path):
    """Its name for what is set aside is taken by a folder."""
    path.parent.mkdir()
    path.with_name(f"state.jsonl.{ASIDE}").mkdir()


@pytest.mark.usefixtures("immovable")
def test_what_is_another_clusters_and_cannot_be_set_aside_is_not_overwritten(path, caplog):
    kept_by(path, others)
    agent = state(path)
    agent.load()
    assert not agent.confirm()
    assert "cannot be set aside: Is a directory" in caplog.text
    with pytest.raises(StateError, match="It is not overwritten"):
        agent.save(LATER)
    assert read_state(path).kept == KEPT


# -- what is not fencer's ----------------------------------------------------------------------------------

FOREIGN = {
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "text": lambda path: path.write_text("root:x:0:0\n"),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "newer": lambda path: path.write_bytes(MAGIC + b"2}\n"),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("loads", [True, False])
def test_what_is_not_this_fencers_is_left_alone(path, make, loads):
    path.parent.mkdir()
    make(path)
    before = identity_of(path)
    agent = state(path)
    if loads:
        with pytest.raises(StateError, match="It is left alone, and nothing is kept there"):
            agent.load()
    for _ in range(2):
        with pytest.raises(StateError):
            agent.save(KEPT)
    assert agent.confirm()
    assert identity_of(path) == before
    assert in_folder(path) == ["state.jsonl"]


@pytest.mark.parametrize("make", [FOREIGN["folder"], FOREIGN["pipe"], FOREIGN["dangling link"]])
def test_a_key_that_is_not_fencers_is_left_alone_too(path, make):
    kept_by(path)
    key_file_of(path).unlink()
    make(key_file_of(path))
    before = identity_of(key_file_of(path))
    agent = state(path)
    with pytest.raises(StateError, match=r"state\.jsonl\.key: is"):
        agent.load()
    with pytest.raises(StateError):
        agent.save(LATER)
    with pytest.raises(StateError):
        state(path).save(LATER)
    assert identity_of(key_file_of(path)) == before


def test_a_link_is_not_followed_even_to_a_right_file(path, tmp_path):
    real = tmp_path / "real.jsonl"
    kept_by(real)
    path.parent.mkdir()
    path.symlink_to(real)
    with pytest.raises(StateError, match="is a link, and not followed"):
        state(path).load()
    with pytest.raises(StateError, match="is a link, and not followed"):
        state(path).save(LATER)
    assert read_state(real).kept == KEPT


def test_nothing_is_written_through_a_link_that_is_planted_beside_it(path, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.parent.mkdir()
    for name in ("state.jsonl.new", "state.jsonl.key.new"):
        (path.parent / name).symlink_to(victim)
    kept_by(path)
    assert victim.read_text() == "precious"
    assert in_folder(path) == ["state.jsonl", "state.jsonl.key"]


@pytest.mark.parametrize("which", [lambda path: path, key_file_of], ids=["state", "key"])
def test_what_other_users_can_write_is_not_believed(path, which):
    kept_by(path)
    which(path).chmod(0o602)
    with pytest.raises(StateError, match=r"can be written by all users \(mode 0602\)"):
        state(path).load()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("which", [lambda path: path, key_file_of], ids=["state", "key"])
def test_what_another_user_has_put_there_is_not_believed(path, which):
    kept_by(path)
    os.chown(which(path), STRANGER, STRANGER)
    with pytest.raises(StateError, match=f"belongs to user {STRANGER}"):
        state(path).load()


# -- the disk ----------------------------------------------------------------------------------------------


def test_a_disk_that_refuses_leaves_the_old_one(path, tmp_path):
    (tmp_path / "no-folder").touch()
    with pytest.raises(StateError, match="cannot be read: Not a directory"):
        state(tmp_path / "no-folder" / "state.jsonl").load()
    with pytest.raises(StateError, match="Not a directory"):
        kept_by(tmp_path / "no-folder" / "state.jsonl")
    kept_by(path)
    path.with_name("state.jsonl.new").mkdir()
    with pytest.raises(StateError, match="cannot be written"):
        kept_by(path, kept=LATER)
    assert state(path).load() == KEPT


def save_on_a_full_disk(path, told):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    agent = state(path)
    agent.load()
    try:
        agent.save(replace(KEPT, nodes=KEPT.nodes * 100))
    except StateError as error:
        told.put(str(error))
        agent.save(Kept())  # which is small enough
        told.put("saved")


def test_a_full_disk_leaves_the_old_one_and_the_next_save_succeeds(path):
    kept_by(path)
    told = FORK.Queue()
    writer = FORK.Process(target=save_on_a_full_disk, args=(path, told))
    writer.start()
    assert "cannot be written: File too large" in told.get(timeout=60)
    assert told.get(timeout=60) == "saved"
    writer.join()
    assert state(path).load() == Kept()
    assert in_folder(path) == ["state.jsonl", "state.jsonl.key"]


def save_for_ever(path, large, telling):
    agent = state(path)
    for number in itertools.count():
        agent.save(replace(large, utc=str(number)))
        os.write(telling, b".")


def test_an_agent_that_is_killed_at_any_moment_leaves_all_of_what_it_saved_last(path):
    """``kill -9`` in the middle of writes: what was reported as saved is there, as a whole."""
    large = replace(KEPT, nodes=KEPT.nodes * 300)
    for killed_after in range(1, 25):
        told, telling = os.pipe()
        child = FORK.Process(target=save_for_ever, args=(path, large, telling))
        child.start()
        os.close(telling)
        saved = 0
        while saved < killed_after:
            saved += len(os.read(told, 1))
        child.kill()
        child.join()
        while os.read(told, 1):
            saved += 1
        os.close(told)
        found = state(path).load()
        assert int(found.utc) in {saved - 1, saved}
        assert len(found.nodes) == 300


def test_one_that_is_too_large_is_not_written(path):
    kept_by(path)
    agent = state(path)
    agent.load()
    with pytest.raises(StateError, match="bytes are too many"):
        agent.save(Kept(utc="x" * 2**26))
    assert state(path).load() == KEPT


def test_reading_changes_nothing(path):
    kept_by(path)
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(DamagedStateError) as caught:
        read_state(path)
    assert caught.value.remedy == moved_away(path)
    assert in_folder(path) == ["state.jsonl", "state.jsonl.key"]


# -- calls that were abandoned -----------------------------------------------------------------------------


def test_a_save_that_was_abandoned_never_replaces_a_later_one(path):
    """The first one waits for the cluster's key; meanwhile the API server answers the second one."""
    asked, go_on = threading.Event(), threading.Event()

    def slow():
        asked.set()
        go_on.wait(60)
        return KEY

    def key():
        return ours() if asked.is_set() else slow()

    agent = state(path, key)
    first = threading.Thread(target=agent.save, args=(KEPT,))
    first.start()
    assert asked.wait(60)
    agent.save(LATER)
    go_on.set()
    first.join(60)
    assert state(path).load() == LATER


def test_a_text_with_control_characters_in_its_path_is_shown_harmless(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / "a\x1b[2J" / "state.jsonl"
    kept_by(path, others)
    agent = state(path)
    agent.load()
    assert not agent.confirm()
    assert all(record.getMessage().isprintable() for record in caplog.records)
