"""`Lab`: what a package brings besides its adapter, so that the contract can be run on it.

It is found by an entry point of the group `GROUP`, of the adapter's name, which names a callable: given an
empty folder, it returns the lab. Nothing in a lab goes through the adapter: else a lie would vouch for
itself.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar

from fencer.contract import GROUP
from fencer.contract.needs import ABILITIES
from fencer.core.model import GuestRef
from fencer.core.text import printable
from fencer.hypervisors.guarded import with_place


class Lab(ABC):
    """Does to guests what operators, accidents and the guests do themselves; one for a run of pytest.

    A method returns once it is done, though the hypervisor may take another moment to notice. What the
    hypervisor or the lab cannot do is named in `cannot`, with why: the tests that need it are left out,
    visibly.

    Attributes:
        endpoint: What the adapter's endpoint is called here, and in each `GuestRef`.
        cannot: What there is not, of `fencer.contract.needs.ABILITIES`, each with why.
        settings: What a user would write under `settings`.
        secret_files: What a user would write under `secret_files`.
        patience_s: For how long `eventually` waits.
    """

    endpoint: ClassVar[str] = "lab"
    cannot: Mapping[str, str] = {}
    settings: Mapping[str, Any] = {}
    secret_files: Mapping[str, Path] = {}
    patience_s: ClassVar[float] = 60.0

    @abstractmethod
    def make_guest(self) -> GuestRef:
        """Make a guest, named as by the adapter, and start it; return when it obeys the power button."""

    @abstractmethod
    def start(self, guest: GuestRef) -> None:
        """Start a guest that is off (from saved memory if there is any); return when it runs as above."""

    @abstractmethod
    def destroy(self, guest: GuestRef) -> None:
        """Cut the power of a guest, as an operator would at the hypervisor; return when it is off."""

    @abstractmethod
    def lives(self, guest: GuestRef) -> bool:
        """Tell whether anything still holds the guest's memory, running or paused, by a look of its own."""

    def wait_until_up(self, guest: GuestRef) -> None:  # noqa: B027 - one that runs at once has nothing to wait for
        """Return when a guest that was started by the adapter runs as above."""

    def close(self) -> None:  # noqa: B027 - a lab of files alone has nothing to end
        """End and remove all that was made."""

    def now_s(self) -> float:
        """Tell the monotonic time that the adapter is given."""
        return time.monotonic()

    def eventually(self, condition: Callable[[], bool], what: str) -> None:
        """Let time pass until the condition holds; an AssertionError that names `what` if it never does."""
        until_s = time.monotonic() + self.patience_s
        while not condition():
            assert time.monotonic() < until_s, f"{what}: not within {self.patience_s:g} s"
            time.sleep(0.01)

    def pause(self, guest: GuestRef) -> None:
        """Pause a running guest."""
        raise NotImplementedError(self._missing("pause"))

    def resume(self, guest: GuestRef) -> None:
        """Resume a paused guest."""
        raise NotImplementedError(self._missing("pause"))

    def power_off_inside(self, guest: GuestRef) -> None:
        """Have a running guest shut itself down."""
        raise NotImplementedError(self._missing("power_off_inside"))

    def crash(self, guest: GuestRef) -> None:
        """Kill the process that runs the guest."""
        raise NotImplementedError(self._missing("crash"))

    def save(self, guest: GuestRef) -> None:
        """Stop a running guest with its memory on disk; its next start goes on from there."""
        raise NotImplementedError(self._missing("save"))

    def remove(self, guest: GuestRef) -> None:
        """Delete a guest that is off."""
        raise NotImplementedError(self._missing("records"))

    def cut(self) -> None:
        """Make the endpoint unreachable. The guests run on."""
        raise NotImplementedError(self._missing("cut"))

    def mend(self) -> None:
        """Make it reachable again. Nothing happens when it is."""
        raise NotImplementedError(self._missing("cut"))

    def spoil(self, guest: GuestRef) -> None:
        """Make the state of this one guest unreadable, as a broken configuration would, and leave it so."""
        raise NotImplementedError(self._missing("spoil"))

    def hold(self, guest: GuestRef) -> None:
        """Hold a running guest, so that whatever kills it takes no effect until it is released.

        So a disk that hangs holds a process that was killed: its memory is still there, and once the disk
        answers, so are its last writes. A guest's disk that is suspended does the same.
        """
        raise NotImplementedError(self._missing("hold"))

    def release(self, guest: GuestRef) -> None:
        """Let a guest go that was held, to its end if it was killed meanwhile."""
        raise NotImplementedError(self._missing("hold"))

    def _missing(self, ability: str) -> str:
        return f"the lab does not {ABILITIES[ability]}: write it, or say why not in cannot[{ability!r}]"


class NoLab(Exception):
    """There is no lab for an adapter, or none that can be used; with why, for people."""


def build(name: str, folder: Path) -> Lab:
    """Make the lab for an adapter.

    Args:
        name: The adapter's.
        folder: An empty one for the lab.

    Raises:
        NoLab: there is none, or two, or it is none, or cannot be made.
    """
    found = list(entry_points(group=GROUP, name=name))
    if len(found) != 1:
        known = ", ".join(sorted({point.name for point in entry_points(group=GROUP)}))
        raise NoLab(
            f"{len(found)} installed packages bring a lab called {printable(name)}, by an entry point "
            f"of the group {GROUP}; {f'there is {known}' if known else 'there is none at all'}"
        )
    try:
        lab = found[0].load()(folder)
    except (Exception, SystemExit) as error:  # said once, not by each test
        raise NoLab(f"the lab {found[0].value} cannot be made: {with_place(error)}") from error
    if not isinstance(lab, Lab):
        raise NoLab(f"{found[0].value} made no fencer.contract.lab.Lab, but a {type(lab).__name__}")
    if unknown := set(lab.cannot) - set(ABILITIES):
        raise NoLab(
            f"{found[0].value}: `cannot` names {', '.join(sorted(unknown))}; known: {', '.join(ABILITIES)}"
        )
    return lab
