"""What one unbroken subscription to an endpoint's lifecycle events has shown of its guests. No I/O.

Three questions need more than one reading: was a guest started in between, was its end seen before it was
gone, and did its memory go elsewhere before that? They are answered only within one subscription. A lost
connection begins a new chronicle that knows nothing.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from enum import Enum

from fencer.core.model import PowerState
from fencer.hypervisors.libvirt.parse import PowerReading, Saved

# Source: libvirt, include/libvirt/libvirt-domain.h, virDomainEventType and virDomainEvent*DetailType.
_STARTED, _SUSPENDED, _RESUMED, _STOPPED = 2, 3, 4, 5
_ARRIVES, _RESTORED = (_STARTED, 1), (_STARTED, 2)
_OLD_MEMORY = {_RESTORED, (_STARTED, 3), (_RESUMED, 2)}  # restored, from snapshot
_HANDED_OVER = {
    _ARRIVES,
    (_SUSPENDED, 1),
    (_SUSPENDED, 7),
    (_SUSPENDED, 8),
}  # migrated, post-copy, its failure
_MIGRATED, _SAVED = 3, 4
HIBERNATED = (7, 1)
"""The lifecycle event of a guest that hibernates, in whatever state libvirt had it (PMSUSPENDED, DISK)."""
_ENDS = {0: "shut down", 1: "destroyed", 2: "crashed", 5: "failed"}
"""Details of STOPPED after which no memory is left: not migrated (3), saved (4), from snapshot (6)."""

_OFF = -1  # the domain id of a guest that is off
MOVED_WORDS = (
    ", after it was migrated away, or while a migration here was under way: it may run on at the other end"
)
_OLD_IMAGE_WORDS = (
    ", in a file of `virsh save FILE`, which `virsh restore FILE` goes on from; an old managed save image "
    "lies there, too, or was written over since, and `virsh start` would go on from that"
)
HIBERNATED_WORDS = ", after it hibernated"
_WOKEN_WORDS = f"{HIBERNATED_WORDS}: an image of its memory may still be inside its own disk"
_WOKEN_READINGS = 3
"""So many readings of the run after a hibernation carry that it hibernated: one of them may get lost (D2)."""
_FILE_TOO_WORDS = "; its memory is in a file, too, which `virsh restore FILE` goes on from"
_LOST_WORDS = (
    ", last read alive by this agent, which heard of no end: a session daemon whose XDG_RUNTIME_DIR went "
    "away (a logout without `loginctl enable-linger`) reports a guest off that still runs"
)


class Left(Enum):
    """Where a guest's memory went; the guest's end here does not end that memory."""

    MOVED = 1
    SAVED = 2
    HIBERNATED = 3
    """Its memory is inside its own disk."""


class _Midway(Enum):
    """Where a run that stands still comes from, or goes to."""

    MIGRATION = 1
    RESTORE = 2


@dataclass(slots=True)
class _Record:
    """One guest: numbers of its last start and stop, how it ended, and the run that began with old memory.

    `woken_id` is the run that followed a hibernation: libvirt calls it booted, whatever memory it has, and
    its kernel may not have come up yet; `woken_readings` are its running ones so far. `left`
    stands until the guest is seen to run here, as a process that only waits to be let go is no sign
    that the memory is back: an arrival or a restore may fail yet. It ends, too, where a restore has used the
    managed save image up, which libvirt removes once it is done. HIBERNATED stands until enough readings have
    carried it: from then on the note on the Node does (D3). `image_after` is the start after which it
    was seen off with a managed save image that may be of its last run. `has_old_image` says that one is none
    of the present or last run: it lay there beside it.
    """

    last_start: int = 0
    last_stop: int = 0
    end: str | None = None
    restored_id: int | None = None
    left: Left | None = None
    midway: _Midway | None = None
    left_since: int = 0
    woken_id: int | None = None
    woken_readings: int = 0
    image_after: int | None = None
    has_image: bool = False
    has_old_image: bool = False


class Chronicle:
    """Remembers starts and ends of guests over one subscription. Safe from any thread.

    Args:
        epoch: Which subscription this is; tells the incarnations of two of them apart, of any processes.
        alive: UUIDs of guests that were last read alive, over this subscription or an earlier one of the
            process, and none of whose ends was heard. None: the daemon is the system's, whose runtime folder
            is there for as long as the host is up.
    """

    def __init__(self, epoch: str, alive: set[str] | None = None) -> None:
        self._epoch = epoch
        self._alive = alive
        self._turns_count = 0  # starts, stops and handovers of any guest
        self._records: dict[str, _Record] = {}
        self._lock = threading.Lock()

    def moment(self) -> int:
        """Return the current moment, to pass to `read` with the answer of a call that began now."""
        with self._lock:
            return self._turns_count

    def heard(self, uuid: str, domain_id: int, event: int, detail: int) -> None:
        """Take in a lifecycle event.

        Args:
            uuid: The guest's, in lower case.
            domain_id: libvirt's id of the run it is about.
            event: A virDomainEventType.
            detail: Of the enum that belongs to the event.
        """
        with self._lock:
            record = self._records.setdefault(uuid, _Record())
            if event in {_STARTED, _RESUMED}:
                self._turns_count += 1
                self._heard_start(record, domain_id, event, detail)
            elif event == _STOPPED:
                self._turns_count += 1
                self._heard_stop(record, detail)
                if self._alive is not None:
                    self._alive.discard(uuid)
            elif (event, detail) in _HANDED_OVER:
                self._turns_count += 1
                record.midway, record.left_since = _Midway.MIGRATION, self._turns_count
            elif (event, detail) == HIBERNATED:
                self._turns_count += 1
                record.left, record.left_since, record.end = Left.HIBERNATED, self._turns_count, None

    def _heard_start(self, record: _Record, domain_id: int, event: int, detail: int) -> None:
        if record.image_after != record.last_start or not record.has_image:
            record.image_after = None  # not of the last run, or removed since
        record.last_start = self._turns_count
        record.end = None
        if (event, detail) in _OLD_MEMORY:
            record.restored_id = domain_id
        if event == _RESUMED:
            record.left = Left.HIBERNATED if record.left is Left.HIBERNATED else None
            record.midway = None
            return
        if record.left is Left.HIBERNATED:
            record.woken_id, record.woken_readings = domain_id, 0
        if (event, detail) == _RESTORED:  # from an image, which is used up then, or from a file, which is not
            record.left = record.left or Left.SAVED
        record.midway = {_ARRIVES: _Midway.MIGRATION, _RESTORED: _Midway.RESTORE}.get((event, detail))
        record.left_since = self._turns_count
        # Whether this start used the image up, only a reading of the run will tell.
        record.has_old_image = record.has_old_image or record.has_image

    def _heard_stop(self, record: _Record, detail: int) -> None:
        record.last_stop = self._turns_count
        if detail == _MIGRATED or record.midway is _Midway.MIGRATION:
            record.left = Left.MOVED
        elif detail == _SAVED and record.left is not Left.HIBERNATED:
            record.left = Left.SAVED
        record.midway = None
        record.end = None if record.left else _ENDS.get(detail)

    def read(self, uuid: str, domain_id: int, reading: PowerReading, moment: int) -> PowerReading:
        """Take in what a call has answered.

        Args:
            uuid: The guest's, in lower case.
            domain_id: libvirt's id of its run, -1 for a guest that is off.
            reading: What it said.
            moment: When the call began. A guest started or stopped since then may have been read before that.

        Returns:
            The same; but UNKNOWN for a guest that is off, and hibernated or its memory went elsewhere before;
            STOPPED for one that is still called saved after its managed save image, which was seen since it
            stopped, is gone (libvirt forgets that word only when it restarts); and PAUSED for one that was
            restored and not let go yet, which libvirt calls by the reason of a migration. The first readings
            of a run after a hibernation carry that its memory may still be inside its disk.
        """
        with self._lock:
            record = self._records.setdefault(uuid, _Record())
            _note_image(record, reading)
            if reading.off:
                reading = _off(record, reading, moment)
            elif record.last_stop <= moment:
                reading = _on(record, reading, domain_id, moment)
            if self._alive is not None:
                reading = _not_lost(self._alive, uuid, reading, is_late=record.last_stop > moment)
            if reading.power_state is not PowerState.STOPPED:
                if record.last_stop <= moment:
                    record.end = None
            elif record.last_start <= moment:
                record.end = record.end or "read as shut off"
            if reading.cold_start is False:
                record.restored_id = domain_id
            if record.woken_id == domain_id:
                reading = replace(reading, cold_start=None)
        return reading

    def incarnation(self, uuid: str, domain_id: int, moment: int) -> str:
        """Name the run of a guest, or, for a guest that is off, a value that a start would change.

        A run is named by its domain id. libvirtd keeps the ids of running domains over its restarts but may
        then give the id of an ended run to a new one; a guest that was seen off or started in between has had
        another incarnation meanwhile. (libvirt shows neither QEMU's process nor its start time.)

        Args:
            uuid: The guest's, in lower case.
            domain_id: libvirt's id of its run, -1 for a guest that is off.
            moment: When the call that read it began.
        """
        if domain_id != _OFF:
            return f"id {domain_id}"
        with self._lock:
            record = self._records.get(uuid, _Record())
            return f"off since start {min(record.last_start, moment)} of subscription {self._epoch}"

    def began_with_old_memory(self, uuid: str, domain_id: int) -> bool:
        """Tell whether this run was seen to begin with a restore or a revert, whatever it reads now."""
        with self._lock:
            record = self._records.get(uuid)
            return record is not None and domain_id != _OFF and record.restored_id == domain_id

    def end_of(self, uuid: str) -> str | None:
        """Tell how the guest's last run ended, if that was seen and no start since; None otherwise.

        Nor is there an end where its memory went elsewhere before.
        """
        with self._lock:
            record = self._records.get(uuid)
            return record.end if record and record.left is None else None

    def left(self, uuid: str) -> Left | None:
        """Tell where the guest's memory went, if that was seen and the guest not seen to run here since."""
        with self._lock:
            record = self._records.get(uuid)
            return record.left if record else None

    def image_is_old(self, uuid: str) -> bool:
        """Tell whether a guest's managed save image may be another one's than of the run that was saved."""
        with self._lock:
            record = self._records.get(uuid)
            return record is not None and record.left is Left.SAVED and record.has_old_image


def _note_image(record: _Record, reading: PowerReading) -> None:
    """Remember whether an image is there, and whether it was there beside a run."""
    record.has_image = bool(reading.image)
    if not record.has_image:
        record.has_old_image = False
    elif not reading.off and not reading.starting:  # that may be a start from it, which may fail
        record.has_old_image = True


def _on(record: _Record, reading: PowerReading, domain_id: int, moment: int) -> PowerReading:
    """Judge a guest that has a process."""
    if reading.handed_over and record.midway is _Midway.RESTORE:
        return _beside_its_memory(record, _restored(record, reading))
    if reading.power_state is not PowerState.STOPPING:
        record.image_after = None
    if reading.handed_over and record.last_start <= moment:
        record.midway = _Midway.MIGRATION
    # A guest that was paused when it left arrives without ever being resumed.
    arrived = reading.power_state is PowerState.PAUSED and record.midway is _Midway.MIGRATION
    if (reading.power_state is PowerState.RUNNING or arrived) and record.left_since <= moment:
        record.midway = None
        if record.left is not Left.HIBERNATED:
            record.left = None
        elif record.woken_id == domain_id and not arrived:
            return _woken(record, reading)
    return _beside_its_memory(record, reading)


def _woken(record: _Record, reading: PowerReading) -> PowerReading:
    """Judge one that runs since it hibernated, and forget that once enough readings have carried it."""
    woken = _beside_its_memory(record, reading)
    record.woken_readings += 1
    record.left = None if record.woken_readings >= _WOKEN_READINGS else Left.HIBERNATED
    return woken


def _restored(record: _Record, reading: PowerReading) -> PowerReading:
    """Judge a guest that was restored and waits to be let go."""
    if record.image_after is not None and reading.image is False:
        record.left = record.image_after = None
    return replace(
        reading,
        power_state=PowerState.PAUSED,
        settled=True,
        raw=f"{reading.raw}, restored, and not resumed since",
        handed_over=False,
    )


def _beside_its_memory(record: _Record, reading: PowerReading) -> PowerReading:
    """Judge one that was saved, or hibernated, and may not have run since: its memory is on disk, too.

    A run that followed a hibernation may not have continued from it yet, so no one knows how it began.
    """
    paused = reading.power_state is PowerState.PAUSED
    if record.left is Left.HIBERNATED and (paused or reading.power_state is PowerState.RUNNING):
        words = f"{HIBERNATED_WORDS}{Saved.DISK.value}" if paused else _WOKEN_WORDS
        return replace(reading, saved=Saved.DISK, cold_start=None, raw=f"{reading.raw}{words}")
    if not paused or record.left is not Left.SAVED or reading.image:
        return reading
    return replace(reading, saved=Saved.FILE, raw=f"{reading.raw}{_FILE_TOO_WORDS}")


def _off(record: _Record, reading: PowerReading, moment: int) -> PowerReading:
    """Judge a guest that has no process by where its memory went before that.

    Tells, too, saved memory that was thrown away from memory in a file, of which libvirt keeps no track.
    """
    last_start = min(record.last_start, moment)
    left = Left.MOVED if reading.away else record.left or (Left.SAVED if reading.was_saved else None)
    if record.last_start <= moment:
        record.left = left
    if left in {Left.MOVED, Left.HIBERNATED}:
        return _gone_on(reading, hibernated=left is Left.HIBERNATED)
    if reading.saved is Saved.MANAGED:
        if left is Left.SAVED and record.has_old_image:
            return replace(_unknown(reading, f"{reading.numbers}{_OLD_IMAGE_WORDS}"), saved=Saved.FILE)
        record.image_after = last_start
        return reading
    ended = reading.power_state is PowerState.STOPPED or reading.saved is Saved.FILE
    if left is Left.SAVED and ended and record.image_after == last_start:
        record.left = None
        words = f"{reading.numbers}: off, its managed save image was removed"
        return replace(reading, power_state=PowerState.STOPPED, settled=True, saved=None, raw=words)
    if left is Left.SAVED and reading.saved is None:
        words = f"{reading.numbers}, after it was saved{Saved.FILE.value}"
        return replace(_unknown(reading, words), saved=Saved.FILE)
    return reading


def _gone_on(reading: PowerReading, *, hibernated: bool) -> PowerReading:
    """Judge one whose memory is elsewhere, or inside its own disk, whatever else libvirt has of it."""
    if hibernated:
        words = f"{reading.numbers}{HIBERNATED_WORDS}{Saved.DISK.value}"
        return replace(_unknown(reading, words), saved=Saved.DISK)
    words = reading.raw if reading.away else f"{reading.numbers}{MOVED_WORDS}"
    return replace(_unknown(reading, words), saved=None, away=True)


def _not_lost(alive: set[str], uuid: str, reading: PowerReading, *, is_late: bool) -> PowerReading:
    """Judge a guest of a session daemon, which may have lost sight of what it had started.

    Args:
        alive: As `Chronicle` has it.
        uuid: The guest's.
        reading: What was read.
        is_late: The guest was heard to stop since the call began.
    """
    if not reading.off:
        if not is_late:
            alive.add(uuid)
    elif not reading.forgotten:
        alive.discard(uuid)
    elif uuid in alive and reading.power_state is PowerState.STOPPED:
        return _unknown(reading, f"{reading.raw}{_LOST_WORDS}")
    return reading


def _unknown(reading: PowerReading, raw: str) -> PowerReading:
    return replace(reading, power_state=PowerState.UNKNOWN, settled=False, raw=raw)
