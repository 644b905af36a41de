"""Who really writes which volume: the ground truth of the end-to-end tests, apart from Kubernetes and fencer.

Every volume of the lab is ReadWriteOnce. A guest that has one mounted writes it at each beat of its CPU, as a
database would, until it unmounts it or its memory is gone; what the API says does not matter to it.
"""

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, auto


@dataclass(frozen=True, slots=True)
class Life:
    """Which life of a guest: its QEMU process, and how often it had booted."""

    pid: int | None
    boots: int


class Memory(StrEnum):
    """What the hypervisor's host really holds of a guest's memory."""

    RUNNING = auto()
    RESUMABLE = auto()
    """Paused, or saved to disk: it can write on."""
    GONE = auto()


class MountLedger:
    """Notes mounts and writes, and every volume that two guests could write.

    Args:
        life_of: Tells a guest's present life.
        memory_of: Finds out, for a guest's name and one of its lives, what is left of that life's memory.
            Asked only when a volume is mounted that another guest had.

    Attributes:
        double_writers: One sentence for each time that two running guests had one volume.
        hazards: The same for a guest that could be resumed with the volume that another has mounted.
    """

    def __init__(self, life_of: Callable[[str], Life], memory_of: Callable[[str, Life], Memory]) -> None:
        self.double_writers: list[str] = []
        self.hazards: list[str] = []
        self.writes_count = 0
        self._life_of = life_of
        self._memory_of = memory_of
        self._lives: dict[tuple[str, str], Life] = {}  # by volume and guest: when it was mounted
        self._lock = threading.Lock()
        self._holders: defaultdict[str, list[str]] = defaultdict(list)  # the newest last

    def mount(self, volume: str, guest: str) -> None:
        """From now on the guest writes the volume."""
        with self._lock:
            for other in [holder for holder in self._holders[volume] if holder != guest]:
                self._judge(volume, other, guest)
            self._drop(volume, guest)
            self._holders[volume].append(guest)
            self._lives[volume, guest] = self._life_of(guest)

    def unmount(self, volume: str, guest: str) -> None:
        """The guest does not write it any more."""
        with self._lock:
            self._drop(volume, guest)

    def forget(self, guest: str) -> None:
        """The guest has booted: whatever it had mounted before is gone with its old memory."""
        with self._lock:
            for volume in self._holders:
                self._drop(volume, guest)

    def write(self, guest: str) -> None:
        """Let the guest write all that it has mounted: its CPU ran."""
        with self._lock:
            for volume, holders in self._holders.items():
                if guest in holders:
                    self.writes_count += 1
                    if holders[-1] != guest:
                        self.double_writers.append(
                            f"{guest} wrote {volume}, which {holders[-1]} has mounted since"
                        )

    def mounted(self, guest: str) -> set[str]:
        """Return what the guest has mounted."""
        with self._lock:
            return {volume for volume, holders in self._holders.items() if guest in holders}

    def _judge(self, volume: str, holder: str, guest: str) -> None:
        match self._memory_of(holder, self._lives[volume, holder]):
            case Memory.RUNNING:
                self.double_writers.append(f"{guest} mounted {volume}, which running {holder} has mounted")
            case Memory.RESUMABLE:
                self.hazards.append(f"{guest} mounted {volume}, which {holder} has, and it can be resumed")
            case Memory.GONE:
                self._drop(volume, holder)

    def _drop(self, volume: str, guest: str) -> None:
        if guest in self._holders[volume]:
            self._holders[volume].remove(guest)
