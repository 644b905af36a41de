"""A farm to run fencer's contract in: ``pytest --adapter=cells``. Guests are handled as by a shell."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

from fencer.contract.lab import Lab
from fencer.core.model import GuestRef
from fencer_cells import cell

SIGNALS_S = 10.0
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
PTRACE_O_TRACEEXIT = 0x40  # A process stops at its end, before it lets go of anything. Source: ptrace(2).

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_libc.ptrace.restype = ctypes.c_long


class CellLab(Lab):
    """A farm in a folder of its own.

    Args:
        folder: An empty one.
    """

    cannot: Mapping[str, str] = MappingProxyType(
        {
            "save": "cells have no memory on disk",
            "events": "cells tell of nothing by themselves",
            "records": "the adapter keeps nothing, so that a cell that was deleted is never called off",
        }
    )

    def __init__(self, folder: Path) -> None:
        self._farm = folder / "farm"
        self._away = folder / "away"
        self._farm.mkdir()
        (self._farm / "farm").write_text(f"farm {uuid4()}")
        self.settings = {"farm": str(self._farm)}

    def make_guest(self) -> GuestRef:
        """Make a cell and start it."""
        name, uuid = f"cell-{uuid4().hex[:8]}", str(uuid4())
        folder = self._farm / name
        folder.mkdir()
        (folder / "lock").touch()
        (folder / "uuid").write_text(uuid)
        guest = GuestRef(self.endpoint, name, uuid, name, os.uname().nodename)
        self.start(guest)
        return guest

    def start(self, guest: GuestRef) -> None:
        """Start it; it obeys SIGTERM at once."""
        command = [sys.executable, cell.__file__, str(self._farm / guest.id)]
        subprocess.run(command, check=True)  # noqa: S603 - the lab's own program

    def destroy(self, guest: GuestRef) -> None:
        """Kill it."""
        self._end(guest, signal.SIGKILL)

    def crash(self, guest: GuestRef) -> None:
        """Kill it otherwise."""
        self._end(guest, signal.SIGABRT)

    def power_off_inside(self, guest: GuestRef) -> None:
        """Press its button."""
        self._end(guest, signal.SIGTERM)

    def pause(self, guest: GuestRef) -> None:
        """Stop its process."""
        os.kill(self.pid(guest), signal.SIGSTOP)
        self._wait(lambda: self.state(guest) == "T", f"{guest} stopped")

    def resume(self, guest: GuestRef) -> None:
        """Continue it."""
        os.kill(self.pid(guest), signal.SIGCONT)
        self._wait(lambda: self.state(guest) != "T", f"{guest} continued")

    def cut(self) -> None:
        """Take the folder away, as a disk that is not mounted is."""
        self._farm.rename(self._away)

    def mend(self) -> None:
        """Bring it back."""
        if self._away.exists():
            self._away.rename(self._farm)

    def spoil(self, guest: GuestRef) -> None:
        """Take its lock away: nobody can tell any more whether it runs."""
        (self._farm / guest.id / "lock").unlink()

    def hold(self, guest: GuestRef) -> None:
        """Trace it: what is killed stops at its end."""
        self._ptrace(PTRACE_SEIZE, guest, PTRACE_O_TRACEEXIT)

    def release(self, guest: GuestRef) -> None:
        """Trace it no more, which takes that it stands still."""
        if not self.lives(guest):
            return
        if self.state(guest) != "t":
            self._ptrace(PTRACE_INTERRUPT, guest)
        self._wait(lambda: self.state(guest) == "t", f"{guest} held")
        self._ptrace(PTRACE_DETACH, guest)

    def lives(self, guest: GuestRef) -> bool:
        """Look for its process, whatever its lock says."""
        return self.state(guest) not in {"", "X", "Z"}

    def close(self) -> None:
        """Kill all that is left."""
        self.mend()
        for one in self._farm.glob("*/uuid"):
            guest = GuestRef(self.endpoint, one.parent.name, one.read_text(), one.parent.name)
            if self.lives(guest):
                self.destroy(guest)

    def _end(self, guest: GuestRef, how: signal.Signals) -> None:
        os.kill(self.pid(guest), how)
        self._wait(lambda: not self.lives(guest), f"{guest} ended")

    def _run(self, guest: GuestRef) -> list[str]:
        farm = self._away if self._away.exists() else self._farm
        return (farm / guest.id / "run").read_text().split()

    def pid(self, guest: GuestRef) -> int:
        """Return the number of the process of its last run."""
        return int(self._run(guest)[1])

    def state(self, guest: GuestRef) -> str:
        """Return the state of the process of its last run; empty: there is none of that number and start."""
        _boot, pid, started = self._run(guest)
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return fields[0] if fields[19] == started else ""

    def _ptrace(self, request: int, guest: GuestRef, options: int = 0) -> None:
        if _libc.ptrace(request, self.pid(guest), None, options) != 0:
            why = os.strerror(ctypes.get_errno())
            raise OSError(f"{guest}: it cannot be traced, see kernel.yama.ptrace_scope: {why}")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        until_s = time.monotonic() + SIGNALS_S
        while not condition():
            if time.monotonic() > until_s:
                raise TimeoutError(f"not yet: {what}")
            time.sleep(0.002)
