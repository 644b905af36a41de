"""fencer's adapter to cells: the smallest there is. Why it is as it is, is told in fencer's docs/adapters.md.

A word that stands in no table reads UNKNOWN, every error names the endpoint, and nothing is kept from one
call to the next.
"""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from fencer.core.model import Evidence, GuestRef, PowerState
from fencer.core.text import printable
from fencer.errors import ConfigError, GuestChanged, GuestNotFound, HypervisorProtocol, HypervisorUnreachable
from fencer.hypervisors.adapters import Adapter, AdapterSettings
from fencer.ports import Deadline, EndpointInfo, StopSettings
from fencer_cells import cell

STATES = {
    "R": PowerState.RUNNING,
    "S": PowerState.RUNNING,
    "D": PowerState.RUNNING,
    "T": PowerState.PAUSED,
    "t": PowerState.PAUSED,
}
"""What the kernel says of a process that lives. Source: proc_pid_stat(5)."""
START_S = 10.0


class CellHypervisor:
    """One farm of cells. Implements `fencer.ports.Hypervisor`; safe from any thread, since it keeps nothing.

    A guest's `id` is the name of its folder. A run is named by its process: boot, number and start time.

    Args:
        settings: The endpoint's. Known is `farm`, the folder.
    """

    def __init__(self, settings: AdapterSettings) -> None:
        unknown = set(settings.settings) - {"farm"}
        farm = settings.settings.get("farm")
        if unknown or not isinstance(farm, str) or not Path(farm).is_absolute():
            said = f"unknown: {', '.join(sorted(unknown))}; " if unknown else ""
            raise ConfigError(f"{said}a farm of cells takes one setting, farm, which is an absolute path")
        self.endpoint = settings.endpoint
        self._farm = Path(farm)
        self._now_s: Callable[[], float] = settings.now_s

    def describe(self) -> EndpointInfo:
        """Tell which farm it is."""
        guests, witness = self._listed()
        detail = f"{self._farm}, {witness}: {len(guests)} cells"
        identity = f"cells:{witness}"  # the farm's own name: agents agree by it on who gives orders there
        return EndpointInfo("cells", platform.release(), detail, can_power=True, identity=identity)

    def sweep(self) -> Sequence[Evidence]:
        """Read all guests."""
        began_s = self._now_s()
        guests, witness = self._listed()
        return [self._look(guest, witness, began_s) for guest in guests]

    def read(self, guest: GuestRef) -> Evidence:
        """Read one guest."""
        began_s = self._now_s()
        found, witness = self._found(guest)
        return self._look(found, witness, began_s)

    def stop_settings(self, guest: GuestRef) -> StopSettings | None:
        """Return None: nobody but people stops cells."""
        self._found(guest)
        return None

    def shutdown(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Press the power button."""
        self._signal(signal.SIGTERM, guest, incarnation, not_after)

    def stop(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Cut the power."""
        self._signal(signal.SIGKILL, guest, incarnation, not_after)

    def discard(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Refuse: cells are never saved."""
        self._look_again(guest, incarnation, not_after)
        raise HypervisorProtocol(f"{self.endpoint}: {printable(str(guest))}: cells have no saved memory")

    def start(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Power on. Its lock sees to it that a guest never runs twice."""
        self._look_again(guest, incarnation, not_after)
        command = [sys.executable, cell.__file__, str(self._farm / self._found(guest)[0].id)]
        try:
            done = subprocess.run(  # noqa: S603 - the cells' own program, and a folder that was listed
                command, check=False, capture_output=True, text=True, timeout=START_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HypervisorUnreachable(f"{self.endpoint}: start {printable(str(guest))}: {error}") from error
        if done.returncode:
            why = printable(done.stderr.strip())
            raise HypervisorProtocol(f"{self.endpoint}: start {printable(str(guest))}: {why}")

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Do nothing: cells tell of nothing by themselves, so that fencer's polling has to do."""

    def nudge(self, guest: str) -> None:
        """Do nothing: every sweep is live."""

    def attend(self, guests: Collection[GuestRef]) -> None:
        """Do nothing, for the same reason."""

    def close(self) -> None:
        """Do nothing: nothing is held."""

    # -- reading ------------------------------------------------------------------------------------------

    def _listed(self) -> tuple[list[GuestRef], str]:
        """List the guests that have a UUID, and tell what the farm calls itself: who says what is read here.

        Without that name this is no farm: its disk is not mounted, for example, and nobody knows of any
        guest. It is read last, so that a farm that vanishes amid the list is not a farm without guests.

        Raises:
            HypervisorUnreachable: there is no farm.
        """
        try:
            found = {one.parent.name: one.read_text().strip() for one in self._farm.glob("*/uuid")}
            witness = (self._farm / "farm").read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise HypervisorUnreachable(f"{self.endpoint}: {self._farm} is no farm: {error}") from error
        host = platform.node()
        guests = [GuestRef(self.endpoint, name, uuid.lower(), name, host) for name, uuid in found.items()]
        return guests, printable(witness)

    def _found(self, guest: GuestRef) -> tuple[GuestRef, str]:
        """Return a guest as it is listed, and who says so: neither id nor UUID alone makes it the same.

        Raises:
            GuestNotFound: nobody is listed with both.
            HypervisorUnreachable: there is no farm.
        """
        guests, witness = self._listed()
        for one in guests:
            if one.key == guest.key:
                return one, witness
        raise GuestNotFound(f"{self.endpoint}: no cell {printable(guest.id)} with the UUID {guest.uuid}")

    def _look(self, guest: GuestRef, witness: str, began_s: float) -> Evidence:
        """Look at one guest. What cannot be read is UNKNOWN, and concerns this one only."""
        state, run, raw = PowerState.UNKNOWN, None, ""
        folder = self._farm / guest.id
        try:
            # The last run first: of a guest that is started in between, the older one is told.
            last = (folder / "run").read_text()
            pid = cell.holder(folder)
            if pid == 0:
                state, run, raw = PowerState.STOPPED, last, "nobody holds its lock"
            else:
                now = cell.process(pid)
                state, run = STATES.get(now.state, PowerState.UNKNOWN), now.run
                raw = f"process {pid}, state {now.state}"
        except (OSError, UnicodeDecodeError) as error:
            raw = printable(str(error))
        return Evidence(
            guest=guest,
            power_state=state,
            settled=state is not PowerState.UNKNOWN,
            incarnation=run,
            cold_start=True,
            raw=raw,
            source="lock and /proc",
            observed_at_s=began_s,
            witness=witness,
        )

    # -- orders -------------------------------------------------------------------------------------------

    def _look_again(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> Evidence:
        """Refuse what is meant for another run, or comes too late; else return what was read."""
        now = self.read(guest)
        if incarnation is not None and now.incarnation != incarnation:
            said = f"{incarnation!r} was meant, it is {now.incarnation!r}; nothing was sent"
            raise GuestChanged(f"{self.endpoint}: {printable(str(guest))}: {said}")
        not_after.refuse_if_over(printable(str(guest)))
        return now

    def _signal(
        self, what: signal.Signals, guest: GuestRef, incarnation: str | None, not_after: Deadline
    ) -> None:
        """Send a signal to the very process that was looked at, though its number be given again."""
        said = f"{self.endpoint}: {what.name} for {printable(str(guest))}"
        folder = self._farm / self._found(guest)[0].id
        try:
            pid = cell.holder(folder)
            if pid == 0:
                raise HypervisorProtocol(f"{said}: nobody holds its lock")
            process = os.pidfd_open(pid)
            try:
                self._look_again(guest, incarnation, not_after)
                if cell.holder(folder) == pid:
                    signal.pidfd_send_signal(process, what)
            finally:
                os.close(process)
        except OSError as error:
            raise HypervisorProtocol(f"{said}: {error}") from error


ADAPTER = Adapter(connect=CellHypervisor, api=1)
