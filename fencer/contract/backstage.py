"""What the contract needs besides the port: a lab that changes guests behind its back; and its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import pytest

from fencer.contract.deadlines import IN_TIME
from fencer.contract.needs import needs
from fencer.core.model import Evidence, GuestRef, PowerState
from fencer.ports import Deadline, Hypervisor

NOBODY = "00000000-dead-4000-8000-000000000000"


class Backstage(Protocol):
    """Does to guests, behind the port's back, what operators, accidents and the guests themselves do.

    A method returns once it is done, though the hypervisor may take another moment to notice: the contract
    waits with `eventually`. None of them goes through the implementation under test.
    """

    def now_s(self) -> float:
        """Tell the monotonic time by which the implementation dates its evidence."""

    def eventually(self, condition: Callable[[], bool], what: str) -> None:
        """Let time pass until the condition holds; an AssertionError that names `what` if it never does."""

    def make_guest(self) -> GuestRef:
        """Make a guest, named as the port does, and start it; return when it obeys the power button."""

    def start(self, guest: GuestRef) -> None:
        """Start a guest that is off (from its saved memory if there is any); return when it runs as above."""

    def wait_until_up(self, guest: GuestRef) -> None:
        """Return when a guest that was started through the port runs as above."""

    def pause(self, guest: GuestRef) -> None:
        """Pause a running guest."""

    def resume(self, guest: GuestRef) -> None:
        """Resume a paused guest."""

    def destroy(self, guest: GuestRef) -> None:
        """Cut the power of a guest, as an operator would at the hypervisor."""

    def power_off_inside(self, guest: GuestRef) -> None:
        """Have a running guest shut itself down."""

    def crash(self, guest: GuestRef) -> None:
        """Kill the process that runs the guest."""

    def remove(self, guest: GuestRef) -> None:
        """Delete a guest that is off."""


class SavingBackstage(Backstage, Protocol):
    """What `SavingContract` asks for besides."""

    def save(self, guest: GuestRef) -> None:
        """Stop a running guest with its memory on disk; its next start goes on from there."""


class LosableBackstage(Backstage, Protocol):
    """What `LosableContract` asks for besides."""

    def cut(self) -> None:
        """Make the endpoint unreachable. The guests run on."""

    def mend(self) -> None:
        """Make it reachable again. Nothing happens when it is."""


def eventually_reads(
    hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef, state: PowerState
) -> Evidence:
    """Wait until a guest reads a state, and return that reading."""
    readings: list[Evidence] = []

    def reads_so() -> bool:
        readings.append(hypervisor.read(guest))
        return readings[-1].power_state is state

    backstage.eventually(reads_so, f"{guest} read as {state}")
    return readings[-1]


def swept(hypervisor: Hypervisor, guest: GuestRef) -> list[Evidence]:
    """Return what a sweep says of one guest."""
    return [evidence for evidence in hypervisor.sweep() if evidence.guest.uuid == guest.uuid]


Ending: TypeAlias = Callable[[Backstage, GuestRef], None]


def _leave_alone(_backstage: Backstage, _guest: GuestRef) -> None:
    """Change nothing."""


def _pause(backstage: Backstage, guest: GuestRef) -> None:
    backstage.pause(guest)


def _destroy(backstage: Backstage, guest: GuestRef) -> None:
    backstage.destroy(guest)


def _power_off_inside(backstage: Backstage, guest: GuestRef) -> None:
    backstage.power_off_inside(guest)


def _crash(backstage: Backstage, guest: GuestRef) -> None:
    backstage.crash(guest)


every_change = pytest.mark.parametrize(
    "change",
    [
        pytest.param(_leave_alone, id="running"),
        pytest.param(_pause, id="paused", marks=needs("pause")),
        pytest.param(_destroy, id="destroyed"),
    ],
)
every_end = pytest.mark.parametrize(
    "end",
    [
        pytest.param(_destroy, id="destroyed"),
        pytest.param(_power_off_inside, id="powered off inside", marks=needs("power_off_inside")),
        pytest.param(_crash, id="crashed", marks=needs("crash")),
    ],
)


class Order(Protocol):
    """One of the port's power methods."""

    def __call__(
        self, hypervisor: Hypervisor, guest: GuestRef, run: str | None = None, until: Deadline = IN_TIME
    ) -> None:
        """Give that order, in time and for any run if nothing else is said."""


POWER: dict[str, Order] = {
    "shutdown": lambda hypervisor, guest, run=None, until=IN_TIME: hypervisor.shutdown(guest, run, until),
    "stop": lambda hypervisor, guest, run=None, until=IN_TIME: hypervisor.stop(guest, run, until),
    "start": lambda hypervisor, guest, run=None, until=IN_TIME: hypervisor.start(guest, run, until),
}
every_power_action = pytest.mark.parametrize("act", POWER.values(), ids=list(POWER))
