"""What keeps an agent's state does the same in the simulation as on a disk."""

import pytest

from fencer.core.kept import Kept
from fencer.core.model import Note
from fencer.errors import StateError
from fencer.simulation.clock import VirtualClock
from fencer.simulation.disk import ReadState, SimulatedDisk, SimulatedState
from fencer.simulation.timeline import Timeline
from fencer.state.reading import StateReader
from fencer.state.store import StateFile

KEPT = Kept(notes=(Note("k8s-2", "uid-2"),), utc="2026-01-01T00:00:00Z")
KEY = bytes(range(32))


class OnDisk:
    """The real one; its folder refuses writes once something else is in the way of the new file."""

    def __init__(self, folder):
        self._path = folder / "state.jsonl"
        self.store = StateFile(self._path, lambda: KEY)
        self.read_only = StateReader(self._path, lambda: KEY)

    def refuse(self):
        (self._path.with_name("state.jsonl.new")).mkdir()


class Simulated:
    def __init__(self, _folder):
        clock = VirtualClock()
        self._disk = SimulatedDisk(clock, Timeline(clock))
        self.store = SimulatedState(self._disk)
        self.read_only = ReadState(self.store)

    def refuse(self):
        self._disk.hang()


@pytest.fixture(params=[OnDisk, Simulated])
def disk(request, tmp_path):
    return request.param(tmp_path)


def test_a_new_one_has_kept_nothing_and_is_this_cluster_s(disk):
    assert (disk.store.load(), disk.store.confirm()) == (Kept(), True)


def test_what_was_saved_is_loaded_again_and_a_command_reads_it(disk):
    disk.store.load()
    disk.store.save(KEPT)
    assert disk.store.load() == disk.read_only.load() == KEPT
    assert disk.store.confirm()


def test_one_that_cannot_be_written_raises_and_keeps_what_it_had(disk):
    disk.store.load()
    disk.store.save(KEPT)
    disk.refuse()
    with pytest.raises(StateError):
        disk.store.save(Kept())
    assert disk.store.load() == KEPT


def test_a_command_writes_nothing(disk):
    disk.store.load()
    disk.store.save(KEPT)
    disk.read_only.save(Kept())
    assert disk.store.load() == KEPT
