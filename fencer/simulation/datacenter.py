"""The ground truth: which guests run, which volumes their memory has mounted, and that no two write the same.

Neither Kubernetes nor the hypervisors' answers are in here, only what is really so. Every volume of this
world is ReadWriteOnce.

*Able to write* is judged carefully, on the side of the data:

- A **running** guest writes every volume that its memory has mounted, whatever the API says of attachments,
  pods or the node: detaching a kernel's RBD or NFS mount from outside does not take the mount away. Two
  running guests with one volume mounted are a *double writer*.
- A **paused** or **saved** guest does not write, but goes on with its dirty pages once it is resumed or
  restored. One of those and a running one are counted as a *resumable hazard*: not yet damage, but nothing
  stands in its way.
- A **stopped** guest has no memory, so no mounts: it can only start cold.
- A **revenant** is a guest whose memory was gone and was brought back by hand, from a snapshot with RAM. It
  writes like any other, and its double writers are counted; but whoever gave its volumes away before had all
  the proof there is, so they are no breach of the promise.
- The same goes for memory that is **outdated**: another tool booted its disk at another place, while it lay
  in a file, inside that disk, or in a process whose configuration was moved away. No hypervisor lists it.
- **Two machines of one node** are told to run the same pods: their double writers are counted, and are
  nobody's breach.

**Two running copies** are two VMs that boot from one disk and run at once: a VM and another definition of it
(`Guest.disk`). Both write to that disk, which ruins it. They are counted; `fencer.simulation.truth` judges
whether fencer started one of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from uuid import UUID

from fencer.core.model import PowerState
from fencer.simulation.clock import VirtualClock
from fencer.simulation.guests import NO_ENDPOINT, PROCESS_LEFT, Guest, Passage
from fencer.simulation.timeline import Timeline

SHUTDOWN_S = 8.0
"""How long a guest takes to shut down after ACPI asked it to."""

REBOOT_S = 1.6
"""How long a guest is off in the middle of a reboot.

Source: docs/proxmox.md, "A guest on its own host": `qm reboot`.
"""

KERNEL_S = 30.0
"""How long the firmware and the boot loader of a VM take that continues from its disk; an assumption."""

FROZEN = (PowerState.PAUSED, PowerState.SAVED)
ALIVE = (PowerState.RUNNING, *FROZEN)


class DoubleWriter(AssertionError):
    """Two running guests, none of them a revenant, have one volume mounted: what fencer exists to prevent."""


class Datacenter:
    """Guests, hosts, volumes and the network, and the invariant over them.

    Args:
        clock: Whose time.
        timeline: Where breaches are told.
        seed: Of all chance in this world.
        strict: A double writer raises; otherwise it is told and counted.
    """

    def __init__(self, clock: VirtualClock, timeline: Timeline, *, seed: int, strict: bool) -> None:
        self.clock = clock
        self.random = random.Random(seed)  # noqa: S311 - chance that can be repeated is the point
        self.guests: dict[str, Guest] = {}
        self.dead_hosts: set[str] = set()
        self.revived_s: dict[str, float] = {}
        """Host → when it was last powered on again."""
        self.cut_hosts: set[str] = set()
        self.leaving_hosts: set[str] = set()
        """Hosts that leave the process of a VM that has powered itself off: their qmeventd is dead."""
        self.double_writers = 0
        self.resumable_hazards = 0
        self.hazards: list[frozenset[str]] = []
        """Of each of those: the VMs that have the volume mounted."""
        self.running_copies = 0
        """So many times a VM began to run while another one ran from the same disk."""
        self.on_power: list[Callable[[Guest], None]] = []
        self.timeline = timeline
        self._strict = strict
        self._touched = False
        self._doubled: set[str] = set()
        self._hazardous: set[str] = set()
        clock.after_event = self.check

    def new_uuid(self) -> str:
        """Return a random UUID that the seed determines."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def add_guest(self, name: str, *, endpoint: str, host: str, node: str = "") -> Guest:
        """Add a running guest; its kubelet registers as a node of the same name, or as `node`."""
        guest = Guest(
            name,
            self.new_uuid(),
            endpoint,
            host,
            node=node or name,
            boot_id=self.new_uuid(),
            on_mounts=self._touch,
        )
        self.guests[name] = guest
        return guest

    def add_bystander(self, name: str, *, endpoint: str, host: str) -> Guest:
        """Add a running VM that is no node's: fencer has nothing to do with it."""
        uuid, boot_id = self.new_uuid(), self.new_uuid()
        guest = Guest(name, uuid, endpoint, host, boot_id=boot_id, on_mounts=self._touch)
        self.guests[name] = guest
        return guest

    def copy_guest(self, guest: Guest, endpoint: str = "", *, own_disk: bool = True) -> Guest:
        """Add a copy that is off, with the same UUID and no network: no kubelet of it is ever heard.

        Args:
            guest: The guest.
            endpoint: Where; empty: at its own.
            own_disk: Its disk was copied, too; otherwise only its definition.
        """
        name = f"{guest.name}-copy"
        copy = Guest(
            name,
            guest.uuid,
            endpoint or guest.endpoint,
            guest.host,
            power=PowerState.STOPPED,
            why="never started",
            nic_up=False,
            disk="" if own_disk else guest.disk,
            on_mounts=self._touch,
        )
        self.guests[name] = copy
        return copy

    def define_elsewhere(self, guest: Guest, endpoint: str, host: str) -> Guest:
        """Define a VM once more, at another place: the same disk and UUID, and the same node once it boots.

        Source: `pcs resource create VirtualDomain` on shared storage, `virsh dumpxml` and `virsh define`.
        """
        name = f"{guest.name}@{host if endpoint == guest.endpoint else endpoint}"
        while name in self.guests:
            name += "'"
        copy = Guest(
            name,
            guest.uuid,
            endpoint,
            host,
            node=guest.node,
            power=PowerState.STOPPED,
            why="never started",
            label=guest.label or guest.name,
            number=guest.number,
            starts=0,
            disk=guest.disk,
            on_mounts=self._touch,
        )
        self.guests[name] = copy
        return copy

    def copies_of(self, guest: Guest) -> list[Guest]:
        """Return the other VMs that boot from the same disk."""
        return [one for one in self.guests.values() if one.disk == guest.disk and one is not guest]

    def leave_behind(self, guest: Guest, told: Passage | None) -> Guest:
        """Leave a guest's definition where it was, as it moves to another endpoint, and what is told of it.

        Source: `virsh migrate` without ``--undefinesource``, `qm remote-migrate` without ``--delete``.
        """
        label = guest.label or guest.name
        left = Guest(
            f"{label}@{guest.endpoint}",
            guest.uuid,
            guest.endpoint,
            guest.host,
            power=PowerState.STOPPED,
            why="migrated",
            label=label,
            number=guest.number,
            starts=guest.starts,
            nic_up=False,
            passage=told,
            disk=guest.disk,
            on_mounts=self._touch,
        )
        self.guests[left.name] = left
        return left

    # --- power. Each returns whether it could be done; a state that does not allow it changes nothing.

    def power_off(self, guest: Guest, why: str = "destroyed") -> bool:
        """Cut the power: the memory is gone, with everything that was mounted or not yet written."""
        if guest.power not in ALIVE and not guest.process_left:
            return False
        if guest.dozing:  # its memory is inside its disk still
            guest.dozing, guest.forgotten = False, guest.seems_booted
            return self.become(guest, PowerState.SAVED, why)
        self._forget_memory(guest)
        return self.become(guest, PowerState.STOPPED, why)

    def power_itself_off(self, guest: Guest) -> bool:
        """Let a guest end from within; what is left of its process is its host's to end."""
        if guest.power not in ALIVE or guest.dozing:
            return False
        self._forget_memory(guest)
        left = PROCESS_LEFT if guest.host in self.leaving_hosts else None
        return self.become(guest, PowerState.STOPPED, "shutdown", left)

    def pause(self, guest: Guest, why: str = "user", *, io_error: bool = False) -> bool:
        """Stop the processors; memory, mounts and containers stay as they are."""
        if guest.power is not PowerState.RUNNING:
            return False
        guest.io_error = io_error
        return self.become(guest, PowerState.PAUSED, why)

    def resume(self, guest: Guest) -> bool:
        """Let the processors run on, as if nothing had happened."""
        if guest.power is not PowerState.PAUSED or guest.passage is not None:
            return False
        guest.io_error = False
        return self.become(guest, PowerState.RUNNING, "unpaused")

    def save(self, guest: Guest, *, to_file: bool = False) -> bool:
        """Write the memory to disk, where its hypervisor keeps it or to any file, and end the process."""
        alive = guest.power in {PowerState.RUNNING, PowerState.PAUSED}
        if not alive or guest.dozing or guest.passage is not None:
            return False
        guest.to_file, guest.hibernated = to_file, False
        return self.become(guest, PowerState.SAVED, "saved")

    def hibernate(self, guest: Guest) -> bool:
        """Let its kernel write the memory inside its own disk, and power itself off."""
        if not guest.running() or guest.passage is not None:
            return False
        guest.to_file, guest.hibernated = False, True
        return self.become(guest, PowerState.SAVED, "hibernated")

    def restart_daemon(self, endpoint: str) -> None:
        """Restart an endpoint's daemon: guests run on; how one that is off came to be off is forgotten.

        Source: docs/libvirt.md, "What a restart forgets": "shut off (migrated)" and "shut off (saved)" become
        "shut off (unknown)"; only a save image that libvirt itself keeps is found again. Nor does it keep the
        event of a hibernation.
        """
        for guest in self.guests.values():
            off = guest.power is PowerState.STOPPED or (guest.power is PowerState.SAVED and guest.untracked)
            if guest.endpoint == endpoint and off:
                guest.forgotten = True
            elif guest.endpoint == endpoint:
                guest.seems_booted = True

    def discard(self, guest: Guest) -> bool:
        """Throw a saved memory away, with what was mounted in it, where the hypervisor knows of it."""
        if guest.power is not PowerState.SAVED or guest.untracked:
            return False
        self._forget_memory(guest)
        return self.become(guest, PowerState.STOPPED, "saved state discarded")

    def start(self, guest: Guest, *, in_place: bool = False) -> bool:
        """Power on: a cold start, or the restore of a saved memory.

        Args:
            guest: The guest.
            in_place: Its process is there still, as after a reset: for its hypervisor it is the same run.
        """
        free = guest.passage is None or guest.passage.idle
        at_rest = guest.power in {PowerState.STOPPED, PowerState.SAVED} and free
        if not at_rest or guest.host in self.dead_hosts:
            return False
        guest.cold = guest.power is PowerState.STOPPED
        guest.starts += not in_place
        if not guest.cold and guest.hibernated:
            guest.woken_run, guest.seems_booted, guest.dozing = guest.starts, guest.forgotten, True
        guest.recovered = guest.forgotten = False
        if guest.cold:
            guest.boot_id = self.new_uuid()
            self._outdate_copies(guest)
        guest.revenant = guest.revenant or guest.outdated
        return self.become(guest, PowerState.RUNNING, "booted" if guest.cold else "restored")

    def reboot(self, guest: Guest) -> bool:
        """Shut down and start again, as one request."""
        if not self.power_off(guest, "shutdown, to be started again"):
            return False
        starts = guest.starts
        self.clock.after(REBOOT_S, lambda: guest.starts == starts and self.start(guest))
        return True

    def panic(self, guest: Guest) -> bool:
        """Let the kernel stop with an error: nothing works any more, and the hypervisor sees nothing."""
        if not guest.running():
            return False
        guest.panicked = True
        return True

    def shut_down(self, guest: Guest) -> None:
        """Press the power button: the guest may take its time, or not care."""
        if guest.power is PowerState.RUNNING and guest.obeys_acpi:
            starts = guest.starts
            self.clock.after(SHUTDOWN_S, lambda: guest.starts == starts and self.power_itself_off(guest))

    def delete(self, guest: Guest) -> bool:
        """Remove the guest from its hypervisor, stopped or not."""
        if guest.power is PowerState.ABSENT:
            return False
        guest.ended = guest.power is PowerState.STOPPED
        self._forget_memory(guest)
        return self.become(guest, PowerState.ABSENT, "undefined")

    def restore_backup(self, guest: Guest) -> bool:
        """Delete a guest, bring its backup back under another id, and start that: its UUID stays.

        Source: `qmrestore ARCHIVE NEWID`, which keeps ``smbios1`` unless it is asked for a unique one.
        """
        self._forget_memory(guest)
        guest.label, guest.starts, guest.snapshot = f"{guest.label or guest.name}-restored", 0, None
        guest.number = guest.number and f"9{guest.number}"
        self.become(guest, PowerState.STOPPED, "restored from a backup")
        return self.start(guest)

    def kill_host(self, host: str) -> bool:
        """Cut the power of a host and so of everything on it."""
        if host in self.dead_hosts:
            return False
        self.dead_hosts.add(host)
        for guest in self.guests.values():
            runs = guest.power in {PowerState.RUNNING, PowerState.PAUSED} or guest.process_left
            if guest.host == host and runs:
                self.power_off(guest, "host lost power")
        return True

    def revive_host(self, host: str) -> bool:
        """Power the host on again; its guests stay off."""
        if host not in self.dead_hosts:
            return False
        self.dead_hosts.discard(host)
        self.revived_s[host] = self.clock.now_s()
        return True

    def cut_host(self, host: str, *, off: bool) -> None:
        """Take a host's network away, or give it back: its guests run on, and nobody hears of them."""
        (self.cut_hosts.add if off else self.cut_hosts.discard)(host)
        for guest in self.guests.values():
            if guest.host == host:
                guest.nic_up = not off

    @property
    def silent_hosts(self) -> set[str]:
        """Hosts that do not answer."""
        return self.dead_hosts | self.cut_hosts

    # --- the invariant

    def writers(self) -> dict[str, list[Guest]]:
        """Return for each mounted volume the guests whose memory has it mounted, running or frozen."""
        holders: dict[str, list[Guest]] = {}
        for guest in self.guests.values():
            for volume in guest.mounts:
                holders.setdefault(volume, []).append(guest)
        return holders

    def check(self) -> None:
        """Count, and refuse where strict, every volume that *became* writable by two guests.

        Raises:
            DoubleWriter: two running guests have one volume mounted (only where strict).
        """
        if not self._touched:
            return
        self._touched = False
        shared = {volume: guests for volume, guests in self.writers().items() if len(guests) > 1}
        hazards = {volume for volume, guests in shared.items() if any(guest.writes for guest in guests)}
        doubled = {volume for volume in hazards if sum(guest.writes for guest in shared[volume]) > 1}
        hazards -= {volume for volume in hazards - doubled if _not_by_an_agent(shared[volume])}
        fresh = hazards - doubled - self._hazardous - self._doubled
        self.resumable_hazards += len(fresh)
        self.hazards += [frozenset(guest.name for guest in shared[volume]) for volume in sorted(fresh)]
        new = sorted(doubled - self._doubled)
        self._hazardous, self._doubled = hazards - doubled, doubled
        self.double_writers += len(new)
        for volume in new:
            writers = [guest for guest in shared[volume] if guest.writes]
            names = [guest.name for guest in writers]
            text = f"{volume} is mounted and being written in {' and in '.join(names)} at once"
            self.timeline.tell("world", None, "double-writer", text, volume=volume, guests=names)
            if self._strict and not _not_by_an_agent(writers):
                raise DoubleWriter(f"{self.clock.now_s():.1f} s: {text}")

    def become(self, guest: Guest, power: PowerState, why: str, passage: Passage | None = None) -> bool:
        """Change a guest's power, and tell the listeners. Always true. For this room's own use."""
        began = power is PowerState.RUNNING and not guest.writes
        guest.power, guest.why, guest.passage = power, why, passage
        self._touch()
        if began:
            self._count_copies(guest)
        if began and guest.dozing:
            starts = guest.starts
            self.clock.after(KERNEL_S, lambda: self._wake(guest, starts))
        for call in self.on_power:
            call(guest)
        return True

    def _wake(self, guest: Guest, starts: int) -> None:
        """Let the kernel of a VM continue from its disk: that uses up what is there."""
        if guest.dozing and guest.starts == starts and guest.writes:
            guest.dozing = False
            self.become(guest, PowerState.RUNNING, "restored", guest.passage)

    def _outdate_copies(self, guest: Guest) -> None:
        """Take note that the disk is booted, of memory of its copies that no hypervisor lists."""
        for copy in self.copies_of(guest):
            untracked = copy.power is PowerState.SAVED and copy.untracked
            if untracked or (copy.endpoint == NO_ENDPOINT and copy.power in ALIVE):
                copy.outdated = True

    def _count_copies(self, guest: Guest) -> None:
        """Count, and tell, that a VM begins to run beside another one that runs from its disk."""
        beside = [one.name for one in self.copies_of(guest) if one.writes]
        if beside:
            self.running_copies += 1
            text = f"{guest.name} runs from the same disk as {' and '.join(beside)}"
            self.timeline.tell("world", guest.node or None, "running-copies", text)

    def _forget_memory(self, guest: Guest) -> None:
        guest.mounts.clear()
        guest.io_error = guest.panicked = guest.revenant = guest.outdated = guest.dozing = False

    def _touch(self) -> None:
        self._touched = True


def _not_by_an_agent(guests: list[Guest]) -> bool:
    """Whether a volume is shared only by old memory, or by two machines of one node."""
    return len({guest.node for guest in guests if not (guest.revenant or guest.outdated)}) <= 1
