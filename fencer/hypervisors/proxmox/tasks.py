"""What a guest's tasks show: what is under way, what started it last, how it came where it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fencer.hypervisors.proxmox.parse import Task

CONSOLES = frozenset({"vncproxy", "termproxy", "spiceproxy", "vncshell", "spiceshell"})
"""Tasks that last as long as somebody looks at a screen."""

STARTS = frozenset({"qmstart", "qmrollback"})
"""Tasks that begin a run of a guest; whatever else does (HA, reboot, a host's boot) goes through qmstart."""

RESUME = "qmresume"
"""Of a paused guest, or of one whose memory is on disk: then it begins a run, and says so as a start does.

Source: qemu-server, PVE/API2/Qemu.pm, vm_resume."""

POWER = frozenset({"qmstart", "qmstop", "qmshutdown", "qmreboot", "qmreset", "qmrollback", "qmdestroy"})

BACKUP = "vzdump"
BACKUP_LOCK = "backup"
MIGRATION = "qmigrate"
"""Within a cluster, and out of it (`qm remote-migrate`). Source: qemu-server, PVE/API2/Qemu.pm."""
TUNNEL = "qmtunnel"
"""The other end of a migration from another cluster: the guest is here, running if it ran, with no qmstart.

Source: qemu-server, PVE/API2/Qemu.pm, mtunnel.
"""
BEGINNINGS = STARTS | {RESUME, TUNNEL}
"""Tasks after which a guest may run where they were at work."""
ENDS = frozenset({"qmstop", "qmshutdown", "qmdestroy", MIGRATION})
"""Tasks after which nothing of a guest runs on their host, if they ended well."""
_TARGET = re.compile(r"starting migration of VM \d+ to node '([^']+)'")
_REMOTE = re.compile(r"remote: started tunnel worker '|remote WS tunnel version: ")
"""What only a migration into another cluster says; the host that its log names may be called as one here is.

Source: qemu-server, PVE/QemuMigrate.pm, prepare and phase1; pve-guest-common, PVE/Tunnel.pm.
"""
_REBOOT_S = 120
"""After so long, a finished reboot starts its guest no more."""


def goes_on(active: Iterable[Task], vmid: int, lock: str | None) -> Task | None:
    """Return a task that is at work on a guest; None: there is none.

    Args:
        active: What runs on its host.
        vmid: The guest's number.
        lock: Of its configuration: a backup's task may carry no guest's number.
    """
    for task in active:
        backs_up = task.kind == BACKUP and lock == BACKUP_LOCK
        if task.runs and (task.guest == str(vmid) or backs_up) and task.kind not in CONSOLES:
            return task
    return None


def reboots(tasks: Sequence[Task], utc_s: float | None) -> bool:
    """Whether the last thing done to a guest's power was a reboot: what starts it again is no task yet.

    Args:
        tasks: Of the guest, on its host.
        utc_s: The server's clock; None: not known.
    """
    last = newest(task for task in tasks if task.kind in POWER)
    if last is None or last.kind != "qmreboot" or not last.ok:
        return False
    return utc_s is None or utc_s - (last.ended_s or 0) <= _REBOOT_S


def last_start(tasks: Iterable[Task]) -> Task | None:
    """Return the task that last started a guest, or tried to."""
    return newest(task for task in tasks if task.kind in STARTS)


def began_by(tasks: Iterable[Task], began_s: float) -> Task | None:
    """Return the task that began a run; None: it is not on record.

    Args:
        tasks: Of the guest, on its host.
        began_s: When its process began, Unix seconds.
    """
    return newest(task for task in tasks if task.kind in STARTS | {RESUME} and task.started_s <= began_s + 1)


def last_coming_or_going(tasks: Iterable[Task]) -> Task | None:
    """Return the last start on a host, arrival from another cluster, or migration away that ended well.

    A start that failed is none: what `qm remote-migrate` leaves behind is locked, and does not start.

    Args:
        tasks: Of the guest, on that host.
    """
    return newest(task for task in tasks if task.kind in STARTS | {TUNNEL, MIGRATION} and task.ok)


def carried_out_late(
    tasks: Iterable[Task], kind: str, user: str, given_utc_s: float
) -> tuple[Task, Task] | None:
    """Find an order of ours that was given up and carried out all the same, on a run that began after it.

    Args:
        tasks: Of the guest, on its host.
        kind: Of the order's task: ``qmstop`` or ``qmshutdown``.
        user: Who gave it, as UPIDs name them.
        given_utc_s: When it was given, by the cluster's clock.

    Returns:
        The order's task, and the start of the run that it hit; None: there is no such thing.
    """
    known = list(tasks)
    order = newest(task for task in known if task.kind == kind and task.user == user)
    if order is None:
        return None
    start = last_start(task for task in known if task.started_s <= order.started_s)
    hit = start is not None and given_utc_s < start.started_s
    return (order, start) if start is not None and hit else None


def last_beginning(tasks: Iterable[Task], host: str) -> str:
    """Name the last thing on record by which a guest may have come to run on a host.

    Unlike `off_token` it also tells of a process that a backup had started, and that was let run on.
    """
    began = newest(task for task in tasks if task.kind in BEGINNINGS)
    return began.upid if began else f"nothing on record on {host}"


def off_token(tasks: Iterable[Task], host: str) -> str:
    """Name the time since a guest's last start."""
    started = last_start(tasks)
    return f"off since {started.upid}" if started else f"off, no start on record on {host}"


def newest(tasks: Iterable[Task]) -> Task | None:
    """Return the task that began last."""
    return max(tasks, key=lambda task: (task.started_s, task.upid), default=None)


def migration_target(log: str) -> str | None:
    """Return the host of this cluster to which a migration went, by its log; None: none that is known."""
    found = _TARGET.search(log)
    return found[1] if found and not _REMOTE.search(log) else None
