"""What takes a guest from one state or host to another in several steps, with its hypervisor's words between.

Each step happens only if nothing else has happened to the guest since the one before.
"""

from __future__ import annotations

from collections.abc import Callable

from fencer.core.model import PowerState
from fencer.simulation.datacenter import SHUTDOWN_S, Datacenter
from fencer.simulation.guests import PROCESS_KEPT, PROCESS_LEFT, Guest, Passage, Snapshot

COPY_S = 40.0
"""How long a migration copies memory while the guest runs on."""

SWITCH_S = 25.0
"""How long the guest stands still while the rest is copied: long, for one that writes a lot."""

ARRIVAL_S = 60.0
"""How long the endpoint goes on asking the host that the guest has left."""

CARRIED_S = 8.0
"""How long the disks of a guest that is off take to another endpoint."""

BACKUP_BEGINS_S = 7.0
"""How long a backup in stop mode leaves a guest without a process: longer than `confirm_s`."""

BACKUP_CONNECTS_S = 20.0
"""How long its new process waits for the backup's storage before it may run."""

BACKUP_LASTS_S = 2 * 3600.0
"""How long a backup reads the disks of a guest that is off."""

BACKUP_GOES_ON_S = 120.0
"""How long a backup goes on of a guest that has ended amid it: longer than `paused_for_s` by default."""

ROLLBACK_S = 12.0
"""How long it takes to read a snapshot's memory back from disk."""


def migrate(world: Datacenter, guest: Guest, host: str) -> bool:
    """Move a running guest to another host, memory and all; it is the same boot there, in another process."""
    if guest.power is not PowerState.RUNNING or guest.passage is not None:
        return False
    if host == guest.host or {host, guest.host} & world.dead_hosts:
        return False
    origin = guest.host

    def switch() -> None:
        standing = Passage(PowerState.STOPPING, "paused (migration)")
        world.become(guest, PowerState.PAUSED, "migration", standing)
        _then(world, guest, SWITCH_S, arrive)

    def arrive() -> None:
        if host in world.dead_hosts:  # the migration fails, and the guest runs on where it was
            world.become(guest, PowerState.RUNNING, "migration failed")
            return
        guest.host, guest.came_from = host, (origin,)
        guest.starts += 1
        guest.cold = None
        left = Passage(PowerState.UNKNOWN, f"shut off (migrated), asked of {origin}", away=True)
        world.become(guest, PowerState.RUNNING, "migrated", left)
        _then(world, guest, ARRIVAL_S, lambda: world.become(guest, PowerState.RUNNING, f"came from {origin}"))

    copying = Passage(PowerState.RUNNING, f"running, being migrated to {host}")
    world.become(guest, PowerState.RUNNING, guest.why, copying)
    _then(world, guest, COPY_S, switch)
    return True


def move_out(world: Datacenter, guest: Guest, endpoint: str, host: str, left: Passage) -> bool:
    """Move a running guest to another endpoint, memory and all, and leave its definition where it was.

    Args:
        world: The world.
        guest: The guest.
        endpoint: Where it goes.
        host: And to which host there.
        left: What the endpoint that it leaves tells of the definition.
    """
    if guest.power is not PowerState.RUNNING or guest.passage is not None:
        return False

    def arrive() -> None:
        world.leave_behind(guest, left)
        guest.endpoint, guest.host, guest.came_from, guest.cold = endpoint, host, (), None
        guest.starts += 1
        world.become(guest, PowerState.RUNNING, "migrated")

    copying = Passage(PowerState.RUNNING, f"running, being migrated to {host}")
    world.become(guest, PowerState.RUNNING, guest.why, copying)
    _then(world, guest, COPY_S, arrive)
    return True


def move_cold(world: Datacenter, guest: Guest, endpoint: str, host: str) -> bool:
    """Shut a guest down, and boot it at another endpoint; its definition stays where it was.

    Args:
        world: The world.
        guest: The guest.
        endpoint: Where it goes.
        host: And to which host there.
    """
    left = any(one.endpoint == endpoint and one.uuid == guest.uuid for one in world.guests.values())
    if guest.power is not PowerState.RUNNING or guest.passage is not None or left:
        return False  # no endpoint has two definitions of one id
    world.power_off(guest, "shutdown")
    starts = guest.starts

    def arrive() -> None:
        if guest.power is not PowerState.STOPPED or guest.starts != starts:
            return
        world.leave_behind(guest, None)
        guest.endpoint, guest.host, guest.came_from = endpoint, host, ()
        world.start(guest)

    _then(world, guest, CARRIED_S, arrive)
    return True


def back_up(world: Datacenter, guest: Guest) -> bool:
    """Shut a guest down, start its process for the backup to read from, and let it boot once that began.

    Of a guest that is off, only start a process, which never runs, and end it with the backup.
    """
    if guest.passage is not None or guest.host in world.dead_hosts:
        return False
    if guest.power is PowerState.STOPPED:
        return _back_up_off(world, guest)
    if guest.power is not PowerState.RUNNING:
        return False

    def stop() -> None:
        world.power_off(guest, "shutdown")
        locked = Passage(PowerState.STOPPED, "stopped, lock backup; vzdump is at work")
        world.become(guest, PowerState.STOPPED, "backup", locked)
        _then(world, guest, BACKUP_BEGINS_S, prepare)

    def prepare() -> None:
        waiting = Passage(PowerState.STOPPING, "running (prelaunch), lock backup")
        world.become(guest, PowerState.STOPPED, "backup", waiting)
        _then(world, guest, BACKUP_CONNECTS_S, go_on)

    def go_on() -> None:
        world.become(guest, PowerState.STOPPED, "backup")
        world.start(guest)

    leaving = Passage(PowerState.RUNNING, "running, lock backup")
    world.become(guest, PowerState.RUNNING, guest.why, leaving)
    _then(world, guest, SHUTDOWN_S, stop)
    return True


def end_amid_backup(world: Datacenter, guest: Guest) -> bool:
    """Let a guest power itself off while a backup reads its disks: its process is kept until that is over."""
    if guest.power is not PowerState.RUNNING or guest.passage is not None:
        return False
    world.power_itself_off(guest)
    world.become(guest, PowerState.STOPPED, "shutdown", PROCESS_KEPT)
    left = PROCESS_LEFT if guest.host in world.leaving_hosts else None
    _then(world, guest, BACKUP_GOES_ON_S, lambda: world.become(guest, PowerState.STOPPED, "shutdown", left))
    return True


def _back_up_off(world: Datacenter, guest: Guest) -> bool:
    why = guest.why
    reading = Passage(PowerState.STOPPING, "running (prelaunch), lock backup", idle=True)
    world.become(guest, PowerState.STOPPED, why, reading)
    _then(world, guest, BACKUP_LASTS_S, lambda: world.become(guest, PowerState.STOPPED, why))
    return True


def take_snapshot(guest: Guest) -> bool:
    """Keep a copy of the memory of a running guest."""
    if not guest.running() or guest.passage is not None:
        return False
    guest.snapshot = Snapshot(guest.boot_id, frozenset(guest.mounts))
    return True


def revert(world: Datacenter, guest: Guest, on_return: Callable[[], None]) -> bool:
    """Bring the memory of the snapshot back: with its boot, and with what was mounted then.

    Args:
        world: The world.
        guest: The guest, running or not.
        on_return: Called when it is about to run on: what else was in that memory can be put back.
    """
    kept = guest.snapshot
    possible = guest.power is not PowerState.ABSENT and guest.passage is None
    if kept is None or not possible or guest.host in world.dead_hosts:
        return False
    lost_since = kept.boot_id != guest.boot_id or not kept.mounts <= guest.mounts
    guest.revenant = guest.revenant or lost_since
    guest.mounts.clear()
    guest.mounts.update(kept.mounts)
    guest.boot_id = kept.boot_id
    guest.panicked = guest.io_error = False

    def run_on() -> None:
        if guest.host in world.dead_hosts:
            world.power_off(guest, "host lost power")
            return
        guest.starts += 1
        guest.cold = False
        on_return()
        world.become(guest, PowerState.RUNNING, "reverted to a snapshot with its memory")

    # Until then the memory is on disk, and the hypervisor says "stopped" with a lock: not to be believed.
    world.become(guest, PowerState.SAVED, "rollback", Passage(PowerState.STOPPED, "stopped, lock: rollback"))
    _then(world, guest, ROLLBACK_S, run_on)
    return True


def _then(world: Datacenter, guest: Guest, delay_s: float, step: Callable[[], object]) -> None:
    """Take the next step, if the guest is still in the passage that it is in now."""
    passage = guest.passage
    world.clock.after(delay_s, lambda: guest.passage is passage and step())
