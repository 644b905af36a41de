"""A left-over lock: the operation that set it broke off, and nothing takes the lock off again.

Proxmox keeps such a lock for ever, for example when a host dies during its nightly snapshots, and no token
may take it off. So fencer waits as long as it is there, and tells people what would help.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from fencer.core.model import Evidence, PowerState
from fencer.core.text import age
from fencer.hypervisors.proxmox.backup import backup_of, with_backup
from fencer.hypervisors.proxmox.errors import shown
from fencer.hypervisors.proxmox.look import Look
from fencer.hypervisors.proxmox.memory import Memory
from fencer.hypervisors.proxmox.parse import Task
from fencer.hypervisors.proxmox.states import POWERED_OFF
from fencer.hypervisors.proxmox.tasks import (
    BACKUP,
    BACKUP_LOCK,
    BEGINNINGS,
    CONSOLES,
    TUNNEL,
    goes_on,
    newest,
)

LEFT_OVER_S = 600.0
"""This long after the last task of a guest, the operation that set its lock is over: its end takes
seconds."""

PASSES_S: Final = 5.0
"""An ordinary power-off is over by then: qmeventd ends the process of a VM within a moment."""

LEFT_BY: Final[dict[str, str]] = {
    "backup": "a backup",
    "create": "a restore or the like, whose disks may be incomplete",
    "rollback": "a rollback, whose disks may be incomplete",
    "snapshot": "a snapshot",
    "snapshot-delete": "the removal of a snapshot",
}
"""Locks that tasks leave behind when they break off, and what that was.

Never ``migrate``: the guest may run elsewhere, and an unlocked copy here could be started as well. Nor
``suspended`` and ``suspending``: its memory is, or may be, on disk. Nor ``clone``, whose task carries another
guest's number.
"""

_REFUSED = "VM is locked"
"""How a task ends that met a lock.

Source: pve-guest-common, src/PVE/AbstractConfig.pm, check_lock; docs/proxmox.md, "Locks".
"""


def with_leftover(
    look: Look, memory: Memory, evidence: Evidence, lock: str | None, qmpstatus: str
) -> Evidence:
    """Add to a live reading what would take off a left-over lock, or end a process that is left over.

    Args:
        look: At the endpoint.
        memory: Since when the lock has been seen to stand.
        evidence: As it was read; it stays as settled as it is.
        lock: Of the guest's configuration.
        qmpstatus: QEMU's own state.

    Raises:
        HypervisorError: the tasks of its host could not be asked for.
    """
    vmid, host = int(evidence.guest.id), evidence.guest.host
    if evidence.power_state is PowerState.STOPPING and lock is None and host is not None:
        return _with_stuck(look, memory, evidence, powered_off=qmpstatus == POWERED_OFF)
    in_the_way = not evidence.settled and evidence.power_state is not PowerState.UNKNOWN
    if host is None or lock not in LEFT_BY or not in_the_way:
        memory.lock_stands_s(vmid, None, look.began_s)
        return evidence
    tasks = look.tasks(host, vmid)
    if lock == BACKUP_LOCK:  # that of several guests carries no number
        tasks += look.tasks_of_kind(host, BACKUP)
    last = newest(task for task in tasks if task.kind in BEGINNINGS)
    if last is not None and last.kind == TUNNEL:
        return evidence  # half of a guest that runs in another cluster: nothing to be unlocked, or started
    at_work = goes_on(tasks, vmid, lock)
    if at_work is not None and at_work.kind == BACKUP:
        return with_backup(look, memory, evidence, backup_of(tasks, vmid))
    stood_s = memory.lock_stands_s(vmid, None if at_work else lock, look.began_s)
    idle_s = 0.0 if at_work else _idle_s(look, tasks, stood_s)
    if idle_s < LEFT_OVER_S or _may_run_elsewhere(memory, evidence):
        return evidence
    said = _words(lock, vmid, host, age(idle_s))
    told = evidence.told or _words(lock, vmid, host, f"more than {age(LEFT_OVER_S)}")  # the same each time
    unlock = f"`qm unlock {vmid}` on {host}"
    return replace(evidence, raw=f"{evidence.raw}; {said}", told=told, stuck=unlock)


def _with_stuck(look: Look, memory: Memory, evidence: Evidence, *, powered_off: bool) -> Evidence:
    """Add what would end a guest whose process stays where it should only pass through.

    One that has shut itself down waits for qmeventd to end it, which no one starts again when it dies. While
    a task is at work, such as a shutdown that waits for that end, or a backup, it is kept.
    """
    vmid, host = int(evidence.guest.id), str(evidence.guest.host)
    at_work = goes_on(look.tasks(host, vmid), vmid, None)
    stood_s = memory.lock_stands_s(vmid, None if at_work else evidence.raw, look.began_s)
    stop = f"`qm stop {vmid}` on {host}"
    if powered_off and at_work is None:
        evidence = replace(evidence, powered_off=True, settled=True, stuck=stop)
    if PASSES_S <= stood_s < LEFT_OVER_S and evidence.powered_off:
        raw = f"{evidence.raw}: it has powered itself off; {stop} ends its process"
        evidence = replace(evidence, raw=raw)
    if stood_s < LEFT_OVER_S:
        return evidence
    said = (
        f"it has been so for more than {age(LEFT_OVER_S)}, without a task: {stop} ends "
        "it. Does qmeventd run there (systemctl status qmeventd)?"
    )
    told = evidence.told or f"{evidence.raw}; {said}"
    return replace(evidence, raw=f"{evidence.raw}; {said}", told=told, stuck=stop)


def _idle_s(look: Look, tasks: Iterable[Task], stood_s: float) -> float:
    """Return for how long no task was at work: by those on record, or else for as long as we have watched.

    Looking at the guest's screen does nothing to it; nor does an operation that the lock refused.
    """
    done = (task for task in tasks if task.kind not in CONSOLES and not task.status.startswith(_REFUSED))
    since_utc_s = max((task.ended_s for task in done if task.ended_s is not None), default=None)
    return stood_s if since_utc_s is None or look.utc_s is None else look.utc_s - since_utc_s


def _may_run_elsewhere(memory: Memory, evidence: Evidence) -> bool:
    """Whether it was last seen running on another host, and no record explains the move."""
    with memory.lock:
        seen = memory.of(int(evidence.guest.id)).sighting
    return seen is not None and seen.host not in {evidence.guest.host, *evidence.moved_from}


def _words(lock: str, vmid: int, host: str, lasted: str) -> str:
    return shown(
        f"its lock ({lock}) is left over from {LEFT_BY[lock]}: no task has been at work on it for {lasted}. "
        f"`qm unlock {vmid}` on {host} takes it off, which no token may"
    )
