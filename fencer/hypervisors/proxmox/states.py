"""What Proxmox's words mean: the table from status, QEMU's state and lock to a power state. Pure.

A word that is in no table reads UNKNOWN.

Source: qemu-server, src/PVE/QemuServer.pm, the enum of `lock` and vmstatus(); QEMU, qapi/run-state.json.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fencer.core.model import PowerState
from fencer.hypervisors.proxmox.errors import shown
from fencer.hypervisors.proxmox.parse import Config, Row, Status

QMP_STATES: Final[dict[str, PowerState]] = {
    "running": PowerState.RUNNING,
    "paused": PowerState.PAUSED,
    "suspended": PowerState.PAUSED,
    "io-error": PowerState.PAUSED,
    "internal-error": PowerState.PAUSED,
    "guest-panicked": PowerState.PAUSED,
    "watchdog": PowerState.PAUSED,
    "shutdown": PowerState.STOPPING,
    "prelaunch": PowerState.STOPPING,
    "finish-migrate": PowerState.STOPPING,
    "postmigrate": PowerState.STOPPING,
    "inmigrate": PowerState.STOPPING,
    "save-vm": PowerState.STOPPING,
    "restore-vm": PowerState.STOPPING,
}
"""What QEMU says of itself, while there is a process."""

HARMLESS_LOCKS: Final = frozenset({"backup", "clone", "snapshot-delete"})
"""Locks that say nothing about a guest that is off: only a cold start can follow. Their tasks may."""

TRANSIENT_LOCKS: Final = frozenset({"migrate", "rollback", "snapshot", "create"})
"""Locks of a guest that may run elsewhere, or get its old memory back: not settled, for however long."""

SUSPENDED: Final = "suspended"
SUSPENDING: Final = "suspending"
POWERED_OFF: Final = "shutdown"
"""QEMU's state of a VM that has powered itself off, until qmeventd ends its process.

Only a reset lets it run again. Source: QEMU, qapi/run-state.json; qemu-server starts it with `-no-shutdown`.
"""
_IO_ERROR: Final = "io-error"


@dataclass(frozen=True, slots=True)
class PowerReading:
    """What an answer says.

    Attributes:
        power_state: UNKNOWN for every word that is not in a table.
        settled: False while a lock keeps it from being final.
        raw: Proxmox's own words, for people.
        io_error: Paused because its storage failed.
    """

    power_state: PowerState
    settled: bool
    raw: str
    io_error: bool = False


def read_power(status: Status, config: Config | None) -> PowerReading:
    """Read what the guest's own host says, by the table.

    Args:
        status: Its `status/current`.
        config: Its configuration; None: could not be read, and then a guest that is off reads UNKNOWN.
    """
    lock = status.lock or (config.lock if config else None)
    words = status.status if status.qmpstatus == status.status else f"{status.status} ({status.qmpstatus})"
    raw = shown(f"{words}, lock {lock}" if lock else f"{words}, no lock")
    if status.template or (config is not None and config.template):
        return PowerReading(PowerState.UNKNOWN, settled=False, raw=f"{raw}, a template")
    if status.status == "running":
        state = QMP_STATES.get(status.qmpstatus, PowerState.UNKNOWN)
        if lock == SUSPENDING:
            state = PowerState.STOPPING
        settled = lock is None and state in {PowerState.RUNNING, PowerState.PAUSED}
        return PowerReading(state, settled, raw, io_error=status.qmpstatus == _IO_ERROR)
    if status.status != "stopped" or status.qmpstatus != "stopped" or status.pid is not None:
        return PowerReading(PowerState.UNKNOWN, settled=False, raw=raw)
    if config is None:
        return PowerReading(PowerState.UNKNOWN, settled=False, raw=f"{raw}; its configuration was not read")
    return _off(lock, config, raw)


def _off(lock: str | None, config: Config, raw: str) -> PowerReading:
    if lock == SUSPENDING:
        return PowerReading(PowerState.STOPPING, settled=False, raw=raw)
    if lock == SUSPENDED or config.saved:
        return PowerReading(PowerState.SAVED, settled=True, raw=f"{raw}; its memory is on disk")
    if lock is None or lock in HARMLESS_LOCKS:
        return PowerReading(PowerState.STOPPED, settled=True, raw=raw)
    if lock in TRANSIENT_LOCKS:
        return PowerReading(PowerState.STOPPED, settled=False, raw=raw)
    return PowerReading(PowerState.UNKNOWN, settled=False, raw=raw)


def ends_with_host(lock: str | None) -> bool:
    """Whether nothing of a guest's run is left once its host has no power: no copy on its way, or on disk."""
    return lock is None or lock in HARMLESS_LOCKS


def read_row(row: Row, *, host_online: bool) -> PowerReading:
    """Read what `cluster/resources` says of a guest: a hint of up to 300 s of age, and never a proof.

    Args:
        row: The guest's.
        host_online: Corosync counts its host in.
    """
    lock = f", lock {row.lock}" if row.lock else ""
    if not host_online:
        raw = shown(f"{row.host} is offline; last heard of the guest: {row.status}{lock}")
        return PowerReading(PowerState.UNKNOWN, settled=ends_with_host(row.lock), raw=raw)
    raw = shown(f"{row.status}{lock} (by cluster/resources)")
    if row.status == "stopped":
        state = PowerState.SAVED if row.lock == SUSPENDED else PowerState.STOPPED
        settled = row.lock not in TRANSIENT_LOCKS
    else:
        state = QMP_STATES.get(row.status, PowerState.UNKNOWN)
        settled = row.lock is None and state in {PowerState.RUNNING, PowerState.PAUSED}
    return PowerReading(state, settled, raw, io_error=row.status == _IO_ERROR)
