"""What one unbroken subscription to an endpoint's lifecycle events has shown of its guests. No I/O.

Two questions need more than one reading: was a guest started in between, and was its end seen before it was
gone? Both are answered only within one subscription. A lost connection begins a new chronicle that knows
nothing, which delays a fence and never hastens one.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from fencer.core.model import PowerState
from fencer.hypervisors.libvirt.parse import PowerReading, Saved

# Source: libvirt, include/libvirt/libvirt-domain.h, virDomainEventType and virDomainEvent*DetailType.
_STARTED, _RESUMED, _STOPPED = 2, 4, 5
_OLD_MEMORY = {(_STARTED, 2), (_STARTED, 3), (_RESUMED, 2)}  # restored, from snapshot
_ENDS = {0: "shut down", 1: "destroyed", 2: "crashed", 5: "failed"}
"""Details of STOPPED after which no memory is left: not migrated (3), saved (4), from snapshot (6)."""

_OFF = -1  # the domain id of a guest that is off


@dataclass(slots=True)
class _Record:
    """One guest: numbers of its last start and stop, how it ended, and the run that began with old memory.

    `image_after` is the start after which it was seen off with a managed save image.
    """

    last_start: int = 0
    last_stop: int = 0
    end: str | None = None
    restored_id: int | None = None
    image_after: int | None = None


class Chronicle:
    """Remembers starts and ends of guests over one subscription. Safe from any thread.

    Args:
        epoch: Which subscription of this process this is; tells the incarnations of two of them apart.
    """

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._turns_count = 0  # starts and stops, of whomever
        self._records: dict[str, _Record] = {}
        self._lock = threading.Lock()

    def moment(self) -> int:
        """Name the present moment, to be given to `read` with what a call that began now has answered."""
        with self._lock:
            return self._turns_count

    def heard(self, uuid: str, domain_id: int, event: int, detail: int) -> None:
        """Take in a lifecycle event.

        Args:
            uuid: Whose, in lower case.
            domain_id: libvirt's id of the run it is about.
            event: A virDomainEventType.
            detail: Of the enum that belongs to the event.
        """
        with self._lock:
            record = self._records.setdefault(uuid, _Record())
            if event in {_STARTED, _RESUMED}:
                self._turns_count += 1
                record.last_start = self._turns_count
                record.end = None
                if (event, detail) in _OLD_MEMORY:
                    record.restored_id = domain_id
            elif event == _STOPPED:
                self._turns_count += 1
                record.last_stop = self._turns_count
                record.end = _ENDS.get(detail)

    def read(self, uuid: str, domain_id: int, reading: PowerReading, moment: int) -> PowerReading:
        """Take in what a call has answered.

        Args:
            uuid: About whom, in lower case.
            domain_id: libvirt's id of its run, -1 for a guest that is off.
            reading: What it said.
            moment: When the call began. A guest started or stopped since then may have been read before that.

        Returns:
            The same; but STOPPED for a guest that is still called saved after its managed save image, which
            was seen since it stopped, is gone. libvirt forgets that word only when it restarts.
        """
        with self._lock:
            record = self._records.setdefault(uuid, _Record())
            reading = _judged(record, reading, min(record.last_start, moment))
            if reading.power_state is not PowerState.STOPPED:
                if record.last_stop <= moment:
                    record.end = None
            elif record.last_start <= moment:
                record.end = record.end or "read as shut off"
            if reading.cold_start is False:
                record.restored_id = domain_id
        return reading

    def incarnation(self, uuid: str, domain_id: int, moment: int) -> str:
        """Name the run of a guest, or, for a guest that is off, what would change had it been started.

        A run is named by its domain id. libvirtd keeps the ids of running domains over its restarts but may
        then give the id of an ended run to a new one; a guest that was seen off or started in between has had
        another incarnation meanwhile. (libvirt shows neither QEMU's process nor its start time.)

        Args:
            uuid: Whose, in lower case.
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
        """Tell how the guest's last run ended, if that was seen and no start since; None otherwise."""
        with self._lock:
            record = self._records.get(uuid)
            return record.end if record else None


def _judged(record: _Record, reading: PowerReading, last_start: int) -> PowerReading:
    """Tell saved memory that was thrown away from memory in a file, of which libvirt keeps no track."""
    if reading.saved is Saved.MANAGED:
        record.image_after = last_start
    elif reading.saved is not Saved.FILE:
        record.image_after = None
    elif record.image_after == last_start:
        words = "off, its managed save image was removed"
        return replace(
            reading,
            power_state=PowerState.STOPPED,
            settled=True,
            saved=None,
            raw=f"{reading.numbers}: {words}",
        )
    return reading
