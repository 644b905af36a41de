"""Where a VirtualBox endpoint is, and how patient to be with it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from fencer.core.text import printable
from fencer.hypervisors.virtualbox.budget import Budget


@dataclass(frozen=True, slots=True)
class VirtualBoxSettings:
    """Which endpoint, and how patient to be with it.

    All that happens in one call of the port ends within the 10 s that a call has, or the 15 s of a power-off.
    What reads is run a second time where it does not answer at once: VBoxManage now and then stands still for
    10 s, one that is started meanwhile does not.

    Source: docs/virtualbox.md, "How VirtualBox is reached": with 7.2.22, 2 of 500 calls one at a time, 10 of
    1,000 four at a time, for 10.0 to 10.4 s.

    Attributes:
        name: What fencer calls the endpoint; unique.
        command: VBoxManage, and what stands before it: ``("ssh", "me@box", "VBoxManage")``. The name alone is
            the program itself where it is installed as usual.
        look_s: Seconds for all processes of one sweep or reading together.
        read_s: Seconds for one of them.
        again_s: Seconds after which one that reads is run once more beside the first.
        off_s: Seconds for a power-off before the machine's process is killed instead.
        kill_s: Seconds for that.
        still_s: Seconds for the look whether a machine that was powered off runs on.
        stop_s: Seconds for all of a power-off together.
        start_s: Seconds for a start, which waits until the last run has let go, and until the machine runs.
        rest_s: Seconds for which sweeps do not ask again a machine that hangs.
        parallel: Readings at a time in a sweep: of four at a time one in a hundred stands still.
    """

    name: str
    command: tuple[str, ...] = ("VBoxManage",)
    _: KW_ONLY
    look_s: float = 9.0
    read_s: float = 4.0
    again_s: float = 1.0
    off_s: float = 6.0
    kill_s: float = 5.0
    still_s: float = 2.5
    stop_s: float = 14.5
    start_s: float = 13.0
    rest_s: float = 30.0
    parallel: int = 2

    @property
    def tool(self) -> str:
        """The command as people would type it."""
        return printable(" ".join(self.command))

    def budget(self, total_s: float | None = None) -> Budget:
        """Return the time that one call of the port has, counted from now.

        Args:
            total_s: Seconds; None: those of a sweep or reading.
        """
        return Budget(self.name, self.look_s if total_s is None else total_s, self.read_s)
