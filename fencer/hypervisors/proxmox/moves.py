"""Why a guest is where it is, when it may have run elsewhere: the hosts that a record lets it have left.

A configuration can be moved by hand while the guest runs on, and nothing in the API shows it. So a guest that
is off counts as off only where it last ran, or where a record says how it came here: the last of its
migrations, a recovery by HA, or a boot of the host where it ran.
"""

from __future__ import annotations

from collections.abc import Sequence

from fencer.hypervisors.proxmox.errors import HostSilent
from fencer.hypervisors.proxmox.ha import HaState, moved_from
from fencer.hypervisors.proxmox.look import Look
from fencer.hypervisors.proxmox.memory import Memory, Sighting
from fencer.hypervisors.proxmox.parse import Task, read_log, read_uptime
from fencer.hypervisors.proxmox.tasks import MIGRATION, STARTS, left_by, migration_target

CHAIN = 3
"""So many migrations in a row are followed back."""

LOG_LINES = 500
"""The target stands near the beginning."""

_SKEW_S = 2.0
"""Hosts of a cluster keep the same time, to so many seconds."""


def explained(look: Look, memory: Memory, vmid: int, host: str) -> tuple[str, ...]:
    """Return the hosts which a guest that is off has left for good.

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
        moved = [*_by_migration(look, vmid, host, seen), *_by_reboot(look, seen)]
    elif earlier:  # it ran here, and elsewhere before
        moved = _by_migration(look, vmid, host, seen)
    # HA may have brought it to any of these places, on its way here.
    fenced = [left for place in (host, *moved) for left in _by_ha(ha, vmid, place, seen)]
    return tuple(dict.fromkeys([*fenced, *moved]))


def away(look: Look, vmid: int, host: str, here: Sequence[Task]) -> Task | None:
    """Return the migration by which a guest has left for a place that is not known; None: it has not.

    The last thing that is on record of it here is that it left, with its memory, and nothing has started it
    since. `qm remote-migrate` leaves the configuration behind, for somebody to unlock; and one that left
    within the cluster has its configuration there, unless a later migration, or somebody by hand, brought it
    back.

    Args:
        look: At the endpoint.
        vmid: The guest's number.
        host: Where its configuration is, or was.
        here: Its tasks there.

    Raises:
        HypervisorError: something could not be asked.
    """
    left = left_by(here)
    if left is None:
        return None
    for task in _all_tasks(look, vmid):
        back = (
            task.kind == MIGRATION and task.ok and task.host != host and task.started_s >= (left.ended_s or 0)
        )
        if back:
            log = look.api.get("nodes", task.host, "tasks", task.upid, "log", limit=LOG_LINES)
            if migration_target(read_log(log.data)) == host:
                return None
    return left


def _by_ha(ha: HaState, vmid: int, host: str, seen: Sighting | None) -> list[str]:
    recovery = moved_from(ha, f"vm:{vmid}", host)
    if recovery is None or (seen is not None and seen.host == recovery.left and seen.at_s > recovery.at_s):
        return []
    return [recovery.left]


def _by_migration(look: Look, vmid: int, host: str, seen: Sighting | None) -> list[str]:
    """Follow the migrations back, the last one first; one that did not end here breaks the chain.

    So does a start where it came from, later than the migration: it was brought back, and may run there. The
    host itself is asked as well: the guest may have left it again, and been brought back by hand.
    """
    tasks = _all_tasks(look, vmid)
    done = [task for task in tasks if task.kind == MIGRATION and task.ok]
    done.sort(key=lambda task: task.ended_s or 0, reverse=True)
    left: list[str] = []
    for task in done[:CHAIN]:
        seen_since = seen is not None and seen.host == task.host and _later(seen, task)
        started_since = any(
            other.host == task.host and other.started_s >= (task.ended_s or 0)
            for other in tasks
            if other.kind in STARTS
        )
        log = look.api.get("nodes", task.host, "tasks", task.upid, "log", limit=LOG_LINES)
        ended_here = migration_target(read_log(log.data)) == (left[-1] if left else host)
        if seen_since or started_since or not ended_here:
            break
        left.append(task.host)
    return left


def _all_tasks(look: Look, vmid: int) -> list[Task]:
    found: list[Task] = []
    for host, online in look.members.online.items():
        if not online:
            continue
        try:
            found.extend(look.tasks(host, vmid))
        except HostSilent:
            continue  # what it would tell can only be missing, and then the move stays unexplained
    return found


def _later(seen: Sighting, task: Task) -> bool:
    return seen.utc_s is None or task.ended_s is None or seen.utc_s > task.ended_s + _SKEW_S


def _by_reboot(look: Look, seen: Sighting | None) -> list[str]:
    """Name the host where it was seen running, if that has booted since."""
    if seen is None or not look.online(seen.host):
        return []
    try:
        reply = look.api.get("nodes", seen.host, "status")
    except HostSilent:
        return []
    booted_s = look.began_s - read_uptime(reply.data)
    return [seen.host] if booted_s > seen.at_s + _SKEW_S else []
