"""A backup of a guest that is off: for hours it has a process, which never runs or holds its memory.

QEMU reads the disks for vzdump. For a guest that is off, vzdump starts one whose processors stand still
(`prelaunch`), under the lock `backup`, and ends it with the backup. Such a process proves nothing by itself:
one that was paused and reset reads the same; so does that of a backup in stop mode, which is about to boot;
and memory that had been saved to disk comes back in it, where somebody had taken that lock off before.

But where the guest was read off for good, with nothing saved, and nothing that starts a guest is on record on
its host since, that reading goes on to hold: no process held its memory then, and what began later can only
be the backup's, and began without it. Times of tasks are not compared, so no clock has to be right; nor does
it matter when the backup's task began, as that of many guests does long before it comes to this one.

Source: qemu-server 9.2.6, PVE/VZDump/QemuServer.pm (enforce_vm_running_for_backup, restore_vm_power_state)
and PVE/QemuServer.pm (vm_start); pve-manager 9.2.11, PVE/VZDump.pm (exec_backup_task): it looks for a process
right before it takes the lock, and does not get that where there is another. HA calls such a guest not
running, too: pve-ha-manager 5.2.0, PVE/HA/Resources/PVEVM.pm (check_running).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from fencer.core.model import Evidence, PowerState
from fencer.core.text import age
from fencer.hypervisors.proxmox.look import Look
from fencer.hypervisors.proxmox.memory import Memory
from fencer.hypervisors.proxmox.parse import Config, Status, Task
from fencer.hypervisors.proxmox.states import PowerReading
from fencer.hypervisors.proxmox.tasks import BACKUP, BACKUP_LOCK

PASSES_S: Final = 120.0
"""After this long it cannot be a backup in stop mode that is about to boot its guest: the start of its
process, and of the job, takes seconds, and up to a minute on slow storage."""


def may_be_of_backup(status: Status, config: Config) -> bool:
    """Whether a guest's process may be one that a backup has started to read its disks through.

    Args:
        status: Its `status/current`.
        config: Its configuration.
    """
    idle = (status.status, status.qmpstatus) == ("running", "prelaunch")
    locked = {status.lock, config.lock} == {BACKUP_LOCK}
    return idle and locked and not config.saved and not (status.template or config.template)


def off_under_backup(reading: PowerReading) -> PowerReading:
    """Return the reading of a guest that was off before its backup began."""
    words = "a process that a backup reads its disks through, and that never ran: it was off before"
    return PowerReading(PowerState.STOPPED, settled=True, raw=f"{reading.raw}, {words}")


def but_for_backups(active: Iterable[Task]) -> tuple[Task, ...]:
    """Return the tasks that are at work besides backups."""
    return tuple(task for task in active if task.kind != BACKUP)


def backup_of(tasks: Iterable[Task], vmid: int) -> Task | None:
    """Return the backup that is at work on a guest whose lock is its; None: none is on record.

    One works at a time on each host, and those that wait for it began later. That of several guests carries
    no number. Source: pve-manager, PVE/VZDump.pm, getlock.
    """
    found = (task for task in tasks if task.runs and task.kind == BACKUP and task.guest in {"", str(vmid)})
    return min(found, key=lambda task: (task.started_s, task.upid), default=None)


def with_backup(look: Look, memory: Memory, evidence: Evidence, task: Task | None) -> Evidence:
    """Name, in a reading, the backup that keeps it from being final, and what would end it.

    Args:
        look: At the endpoint.
        memory: For how long it has been read so.
        evidence: As it was read; it stays as settled as it is.
        task: The backup; None: one that is not on record.
    """
    vmid, host = int(evidence.guest.id), evidence.guest.host
    if evidence.power_state not in {PowerState.STOPPED, PowerState.STOPPING}:
        memory.lock_stands_s(vmid, None, look.began_s)
        return evidence
    stood_s = memory.lock_stands_s(vmid, f"{BACKUP_LOCK}, at work", look.began_s)
    raw = f"{evidence.raw}; {_named(look, task)} is at work on it, and this agent did not read it off before"
    if stood_s < PASSES_S:
        return replace(evidence, raw=raw)
    upid = "UPID" if task is None else task.upid
    ends = (
        f"the end of its backup, or that task stopped (`pvesh delete /nodes/{host}/tasks/{upid}`, or Stop in "
        f"the window of the task); `qm stop {vmid}` is refused meanwhile"
    )
    return replace(evidence, raw=raw, stuck=ends)


def _named(look: Look, task: Task | None) -> str:
    if task is None:
        return "a backup"
    if look.utc_s is None:
        return f"the backup {task.upid}"
    return f"the backup {task.upid}, begun {age(max(0.0, look.utc_s - task.started_s))} ago,"
