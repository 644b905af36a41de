"""Why a guest is where it is, if it may have run elsewhere: the hosts that records show it has left.

A configuration can be moved by hand while the guest keeps running, and nothing in the API shows it. So a
guest that is off counts as off only where it last ran, or where a record says how it came here: the last of
its migrations, a recovery by HA, or a boot of the host where it ran.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fencer.hypervisors.proxmox.errors import HostSilent
from fencer.hypervisors.proxmox.ha import HaState, moved_from
from fencer.hypervisors.proxmox.look import Look
from fencer.hypervisors.proxmox.memory import Memory, Sighting
from fencer.hypervisors.proxmox.parse import Task, read_log, read_uptime
from fencer.hypervisors.proxmox.tasks import (
    BEGINNINGS,
    ENDS,
    MIGRATION,
    STARTS,
    last_coming_or_going,
    last_start,
    migration_target,
)

CHAIN = 3
"""How many migrations in a row are followed back."""

LOG_LINES = 500
"""How much of a log to read: the target is near the beginning."""

SKEW_S = 2.0
"""Hosts of a cluster have the same time, within this many seconds."""


def explained(look: Look, memory: Memory, vmid: int, host: str) -> tuple[str, ...]:
    """Return the hosts that a guest that is off has left for good.

    Args:
        look: At the endpoint.
        memory: Where it was seen running, and what HA did.
        vmid: The guest's number.
        host: Where its configuration is.

    Raises:
        HypervisorError: something could not be asked.
    """
    with memory.lock:
        seen, earlier, ha = memory.of(vmid).sighting, memory.of(vmid).earlier, memory.ha
    moved: list[str] = []
    if seen is None or seen.host != host:
        moved = [*_by_migration(look, vmid, host, seen), *_by_reboot(look, vmid, host, seen)]
    elif earlier:  # it ran here, and elsewhere before
        moved = _by_migration(look, vmid, host, seen)
    # HA may have brought it to any of these places, on its way here.
    fenced = [left for place in (host, *moved) for left in _by_ha(ha, vmid, place, seen)]
    return tuple(dict.fromkeys([*fenced, *moved]))


def away(look: Look, vmid: int, host: str, here: Sequence[Task], until_s: float = math.inf) -> Task | None:
    """Return the migration by which a guest has left for a place that is not known; None: it has not.

    The last thing that is on record of it is that it left, with its memory, and nothing has started it since:
    neither here, nor, where it came here without being started, on the host where it came from.
    `qm remote-migrate` leaves the configuration behind, for somebody to unlock, and to move about.

    Args:
        look: At the endpoint.
        vmid: The guest's number.
        host: Where its configuration is, or was.
        here: Its tasks there.
        until_s: Only what had ended by then counts, Unix seconds.

    Raises:
        HypervisorError: something could not be asked.
    """
    tasks: Sequence[Task] | None = None
    while True:
        last = last_coming_or_going(task for task in here if _ended_by(task, until_s))
        if last is not None and last.kind != MIGRATION:
            return None
        if last is not None and _target(look, last) not in look.members.online:
            return last  # into another cluster: no arrival counts that only another host's clock calls later
        tasks = look.tasks_anywhere(vmid) if tasks is None else tasks
        came = _arrival(look, host, tasks, (last and last.ended_s) or 0, until_s)
        if came is None:
            return last
        host, until_s = came.host, came.started_s
        here = [task for task in tasks if task.host == host]


def begun_elsewhere(look: Look, vmid: int, host: str, *, by_ha: bool) -> Task | None:
    """Return a guest's newest start, if that was on another host and nothing there has ended it since.

    Two halves of a cluster that both had a quorum have both started it. When they are one again, one
    configuration stays, and the other half's process runs on: nothing but this task is left to show it.
    (A migration that fails stops what it had started on its target, and that is a task, too.)

    Args:
        look: At the endpoint.
        vmid: The guest's number.
        host: Where its configuration is.
        by_ha: HA manages it, and so may have started it twice: then no host may be silent.

    Raises:
        HypervisorError: something could not be asked.

    Source: Proxmox VE 9.2 with `two_node: 1` and HA, its link cut for four minutes, as run for this project.
    """
    if sum(look.members.online.values()) < 2:  # noqa: PLR2004 - itself, and another
        return None
    tasks = look.tasks_anywhere(vmid, leave_out_silent=not by_ha)
    start = last_start(task for task in tasks if task.ok or task.runs)
    if start is None or start.host == host or _booted_since(look, start):
        return None
    ended = any(it.host == start.host and it.kind in ENDS and it.ok and _after(it, start) for it in tasks)
    return None if ended else start


def _after(end: Task, start: Task) -> bool:
    return (end.ended_s or 0) >= start.started_s


def _booted_since(look: Look, start: Task) -> bool:
    """Whether a start's host has booted since, by the clock that both are told by."""
    try:
        reply = look.api.get("nodes", start.host, "status")
    except HostSilent:
        return False
    if reply.utc_s is None:
        return False
    return reply.utc_s - read_uptime(reply.data) > start.started_s + SKEW_S


def emigrated(look: Look, tasks: Iterable[Task], since_s: float) -> Task | None:
    """Return a migration that went to no host of this cluster; None: there is none.

    Args:
        look: At the endpoint.
        tasks: Of everybody who had a guest's number, on all hosts.
        since_s: Those that ended later, Unix seconds.

    Raises:
        HypervisorError: a log could not be read.
    """
    done = (task for task in tasks if task.kind == MIGRATION and task.ok and not _ended_by(task, since_s))
    return next((task for task in done if _target(look, task) not in look.members.online), None)


def _arrival(look: Look, host: str, tasks: Sequence[Task], since_s: float, until_s: float) -> Task | None:
    """Return the last migration that brought a guest to a host between two times; None: none did."""
    done = [
        task
        for task in tasks
        if task.kind == MIGRATION
        and task.ok
        and task.host != host
        and task.started_s >= since_s
        and _ended_by(task, until_s)
    ]
    done.sort(key=lambda task: task.started_s, reverse=True)
    return next((task for task in done if _target(look, task) == host), None)


def _ended_by(task: Task, until_s: float) -> bool:
    return task.ended_s is not None and task.ended_s <= until_s


def _target(look: Look, task: Task) -> str | None:
    log = look.api.get("nodes", task.host, "tasks", task.upid, "log", limit=LOG_LINES)
    return migration_target(read_log(log.data))


def _by_ha(ha: HaState, vmid: int, host: str, seen: Sighting | None) -> list[str]:
    recovery = moved_from(ha, f"vm:{vmid}", host)
    if recovery is None or (seen is not None and seen.host == recovery.left and seen.at_s > recovery.at_s):
        return []
    return [recovery.left]


def _by_migration(look: Look, vmid: int, host: str, seen: Sighting | None) -> list[str]:
    """Follow the migrations back, the last one first; one that did not end here breaks the chain.

    So does a start where it came from, later than the migration: it was brought back, and may run there. Not
    a start that a later one of them made on its target: a live migration starts the process that it fills.
    The host itself is asked as well: the guest may have left it again, and been brought back by hand.
    """
    tasks = look.tasks_anywhere(vmid)
    done = [task for task in tasks if task.kind == MIGRATION and task.ok]
    done.sort(key=lambda task: task.ended_s or 0, reverse=True)
    starts = [task for task in tasks if task.kind in STARTS]
    left: list[str] = []
    for task in done[:CHAIN]:
        place = left[-1] if left else host
        seen_since = seen is not None and seen.host == task.host and _later(seen, task)
        ended_s = task.ended_s or 0
        started_since = any(one.host == task.host and one.started_s >= ended_s for one in starts)
        if seen_since or started_since or _target(look, task) != place:
            break
        starts = [one for one in starts if not _made_by(task, place, one)]
        left.append(task.host)
    return left


def _made_by(migration: Task, target: str, start: Task) -> bool:
    """Whether a start is the one by which a migration begins the guest's process on its target."""
    ended_s = migration.started_s if migration.ended_s is None else migration.ended_s
    within = migration.started_s - SKEW_S <= start.started_s <= ended_s + SKEW_S
    return start.host == target and within


def _later(seen: Sighting, task: Task) -> bool:
    return seen.utc_s is None or task.ended_s is None or seen.utc_s > task.ended_s + SKEW_S


def _by_reboot(look: Look, vmid: int, host: str, seen: Sighting | None) -> list[str]:
    """Name the host where it was seen running, if that has booted since, and the guest was not started since.

    That takes the records of all hosts: none may be missing, or silent.
    """
    if seen is None or seen.utc_s is None or look.utc_s is None:
        return []
    if look.members.missing or not look.online(seen.host):  # or it is no member any more
        return []
    try:
        tasks = {place: look.tasks(place, vmid) for place in look.members.online}
        uptime_s = read_uptime(look.api.get("nodes", seen.host, "status").data)
    except HostSilent:
        return []
    last = last_coming_or_going(tasks[seen.host])
    left = last is not None and last.kind == MIGRATION
    since_s = dict.fromkeys(tasks, seen.utc_s) | {seen.host: look.utc_s - uptime_s}
    started = any(
        task.kind in BEGINNINGS and task.started_s >= since_s[place] - SKEW_S
        for place in tasks.keys() - {host}
        for task in tasks[place]
    )
    booted_s = look.began_s - uptime_s
    return [] if left or started or booted_s <= seen.at_s + SKEW_S else [seen.host]
