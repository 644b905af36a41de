"""A virtual machine as it really is, and what its hypervisor says of it while it is between two states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fencer.core.model import GuestRef, PowerState


def _nothing() -> None:
    """Stand-in until a world takes the guest in."""


NO_ENDPOINT = "no endpoint"
"""Where a process is whose configuration was moved to another host: no hypervisor lists it any more."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What a hypervisor says of a guest that is on its way from one state or host to another.

    Attributes:
        state: The word, as an adapter translates it.
        words: The hypervisor's own.
        settled: No task is in the way of calling that final.
        away: It says that the guest has moved away, and its memory with it.
        filed: It says that its memory was saved, and not whether it is still there.
        hibernated: It says that the guest hibernated.
        idle: There is a process that has never run, and may be let run on: where its hypervisor has read the
            guest off before, it goes on to call it that.
        powered_off: It is one that has powered itself off: what is left of it cannot run on.
    """

    state: PowerState
    words: str
    settled: bool = False
    away: bool = False
    filed: bool = False
    hibernated: bool = False
    idle: bool = False
    powered_off: bool = False


PROCESS_LEFT = Passage(PowerState.STOPPING, "running (shutdown), no lock", settled=True, powered_off=True)
"""What Proxmox reports of a VM that has powered itself off, where qmeventd is dead, which ends its process.

Source: docs/proxmox.md, "A guest on its own host".
"""
PROCESS_KEPT = Passage(PowerState.STOPPING, "running (shutdown), lock backup")
"""The same while a backup reads its disks through that process."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of a guest's memory, kept with its disk: with the boot and the mounts of that moment."""

    boot_id: str
    mounts: frozenset[str]


@dataclass(slots=True, eq=False)
class Guest:
    """A virtual machine as it really is; to the kubelet in it, the machine.

    Attributes:
        uuid: What it sees in its SMBIOS; a copy has the same.
        node: The node that its kubelet registers as; empty: it has no kubelet.
        power: RUNNING, PAUSED, SAVED, STOPPED or ABSENT.
        why: The hypervisor's reason for that state, for people.
        boot_id: Changes with every cold start, and with nothing else.
        starts: How often it was started or restored: names the incarnation.
        cold: The present run began with a boot. None: on this host it began with an arrival.
        mounts: Volumes mounted in its memory.
        ended: It was stopped before it was deleted.
        obeys_acpi: It shuts down when asked to.
        panicked: Its kernel has stopped with an error: the hypervisor calls it running.
        passage: It is between two states.
        snapshot: A copy of its memory.
        revenant: Its memory was gone, and came back from a copy.
        came_from: The host from which a finished migration, or HA, brought it here.
        recovered: It was HA, and it has not been started since.
        label: What its endpoint calls it by; empty: its name.
        number: The same as a number, where VMs have one, as on Proxmox; empty: it has none.
        to_file: Its memory was saved to a file that its hypervisor knows nothing of once it has restarted.
        hibernated: Its memory was saved by itself, inside its own disk, and it powered itself off.
        woken_run: The run in which it went on from there.
        dozing: Its kernel has not come up in that run: cut off now, it continues from there next time.
        seems_booted: Its hypervisor calls that run booted, as nothing is subscribed that saw it hibernate.
        forgotten: Its hypervisor has restarted, and has forgotten how it came to be off.
        outdated: Its disk was booted elsewhere, while no hypervisor listed it or the file with its memory.
        disk: What it boots from; a copy of its definition has the same. Empty: one of its own.
    """

    name: str
    uuid: str
    endpoint: str
    host: str
    node: str = ""
    power: PowerState = PowerState.RUNNING
    why: str = "booted"
    boot_id: str = ""
    starts: int = 1
    cold: bool | None = True
    nic_up: bool = True
    io_error: bool = False
    ended: bool = False
    obeys_acpi: bool = True
    panicked: bool = False
    passage: Passage | None = None
    snapshot: Snapshot | None = None
    revenant: bool = False
    came_from: tuple[str, ...] = ()
    recovered: bool = False
    label: str = ""
    number: str = ""
    to_file: bool = False
    hibernated: bool = False
    woken_run: int = 0
    dozing: bool = False
    seems_booted: bool = False
    forgotten: bool = False
    outdated: bool = False
    disk: str = ""
    mounts: set[str] = field(default_factory=set)
    on_mounts: Callable[[], None] = _nothing

    def __post_init__(self) -> None:
        """Give it a disk of its own, unless it shares one."""
        self.disk = self.disk or self.name

    @property
    def ref(self) -> GuestRef:
        """How fencer names it."""
        label = self.label or self.name
        return GuestRef(self.endpoint, self.number or label, self.uuid, label, self.host)

    @property
    def writes(self) -> bool:
        """Whether it can write what it has mounted: a kernel that has panicked is not trusted to be dead."""
        return self.power is PowerState.RUNNING

    @property
    def untracked(self) -> bool:
        """Whether its memory, if it is saved, is where its hypervisor keeps no track of it."""
        return self.to_file or self.hibernated

    @property
    def process_left(self) -> bool:
        """Whether it has powered itself off, and nothing ends its process."""
        return self.passage is PROCESS_LEFT

    @property
    def stands_still(self) -> bool:
        """Whether it is paused, or only its process is left, perhaps because a backup keeps that."""
        return self.power is PowerState.PAUSED or self.passage in {PROCESS_LEFT, PROCESS_KEPT}

    def running(self) -> bool:
        """Whether anything in it still works."""
        return self.writes and not self.panicked and not self.dozing

    def boot(self) -> str:
        """Return the boot id."""
        return self.boot_id

    def mount(self, volume: str) -> None:
        """Mount a volume in its memory."""
        self.mounts.add(volume)
        self.on_mounts()

    def unmount(self, volume: str) -> None:
        """Unmount a volume."""
        self.mounts.discard(volume)
        self.on_mounts()
