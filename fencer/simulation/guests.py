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
        idle: There is a process that has never run, and may be let run on: where its hypervisor has read the
            guest off before, it goes on to call it that.
    """

    state: PowerState
    words: str
    settled: bool = False
    away: bool = False
    filed: bool = False
    idle: bool = False


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
        to_file: Its memory was saved to a file that its hypervisor knows nothing of once it has restarted.
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
    to_file: bool = False
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
        return GuestRef(self.endpoint, label, self.uuid, label, self.host)

    @property
    def writes(self) -> bool:
        """Whether it can write what it has mounted: a kernel that has panicked is not trusted to be dead."""
        return self.power is PowerState.RUNNING

    def running(self) -> bool:
        """Whether anything in it still works."""
        return self.writes and not self.panicked

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
