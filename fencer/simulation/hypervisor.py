"""A hypervisor's endpoint over the world: usually truthful, and every wrong way that the scripts ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from fencer.core.model import Evidence, GuestRef, PowerState, Proof
from fencer.errors import (
    GuestChanged,
    GuestNotFound,
    HypervisorDenied,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.ports import Deadline, EndpointInfo, StopSettings
from fencer.simulation.datacenter import Datacenter
from fencer.simulation.guests import Guest, Passage

EVENT_S = 0.02
"""How long a lifecycle event takes to reach a subscriber."""


@dataclass(slots=True)
class Trouble:
    """What is wrong with an endpoint; nothing at first.

    Attributes:
        delay_s: How long it takes to answer; infinity: it hangs.
        unreachable: Its connections are refused.
        denied: It refuses our credentials.
        power_denied: It refuses power actions.
        stop_raises: A power-off is carried out, and raises.
        missing: Guests (by name) that it does not list any more.
        unlisted: Guests (by name) that its lists leave out; asked for one, it knows it.
        lies: Guests that it gives a wrong state for.
        unsettled: Guests with a task in the way.
        moved: Guests whose configuration somebody moved to another host (by name), where it reads stopped.
        hearsay: Its sweeps prove of no guest that it is off, as a cluster's cache does not.
        stale: Sweeps repeat this old answer, not conclusive; None: they do not.
        quorate: Its hosts are a majority; what a minority says is not believed.
        freeze_s: How long the caller stands still before the next power order.
    """

    delay_s: float = 0.01
    unreachable: bool = False
    denied: bool = False
    power_denied: bool = False
    stop_raises: bool = False
    missing: set[str] = field(default_factory=set)
    unlisted: set[str] = field(default_factory=set)
    lies: dict[str, PowerState] = field(default_factory=dict)
    unsettled: set[str] = field(default_factory=set)
    moved: dict[str, str] = field(default_factory=dict)
    hearsay: bool = False
    stale: tuple[Evidence, ...] | None = None
    quorate: bool = True
    freeze_s: float = 0.0


class SimulatedHypervisor:
    """The `Hypervisor` port over the guests of one endpoint.

    Args:
        endpoint: Its name.
        world: The truth.
        tells_cold: It tells whether a guest was booted or restored; not every real one can, of every guest.
        groups: The groups of each VM, see `Evidence.groups`.
    """

    def __init__(
        self,
        endpoint: str,
        world: Datacenter,
        *,
        tells_cold: bool = True,
        groups: frozenset[str] = frozenset(),
    ) -> None:
        self.trouble = Trouble()
        self._groups = groups
        self._tells_cold = tells_cold
        self._endpoint = endpoint
        self._world = world
        self.on_stop: list[Callable[[Guest], None]] = []
        """Called with a guest whose power is being cut on request."""
        self._wakes: list[Callable[[], None]] = []
        self._rested: dict[str, int] = {}
        """Guest → its run when it was last read off for good, as every adapter of this endpoint remembers."""
        world.on_power.append(self._notify)

    @property
    def endpoint(self) -> str:
        """The endpoint's name."""
        return self._endpoint

    def describe(self) -> EndpointInfo:
        """Say who it is."""
        self._answer()
        count = sum(1 for _ in self._guests())
        hosts = {guest.host for guest in self._guests()}
        detail = f"{count} guests on {len(hosts)} hosts, all of them in memory"
        identity = f"simulation:{self._endpoint}"
        return EndpointInfo(
            "simulation", "1", detail, can_power=not self.trouble.power_denied, identity=identity
        )

    def sweep(self) -> Sequence[Evidence]:
        """Read all guests."""
        self._answer()
        if self.trouble.stale is not None:
            return self.trouble.stale
        missing = self.trouble.missing | self.trouble.unlisted
        return [
            self._evidence(guest, "sweep", conclusive=guest.writes or not self.trouble.hearsay)
            for guest in self._guests()
            if guest.power is not PowerState.ABSENT and guest.name not in missing
        ]

    def read(self, guest: GuestRef) -> Evidence:
        """Read one guest."""
        self._answer()
        found = self._find(guest)
        if found.power is PowerState.ABSENT and not found.ended:
            raise GuestNotFound(f"{self._endpoint}: knows no guest with UUID {guest.uuid}")
        return self._evidence(found, "read")

    def stop_settings(self, _guest: GuestRef) -> StopSettings | None:
        """Return None: hosts here give no time to anybody."""
        return None

    def shutdown(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Press the power button."""
        self._world.shut_down(self._powered(guest, "shut down", incarnation, not_after))

    def stop(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Cut the power."""
        found = self._powered(guest, "stop", incarnation, not_after)
        for call in self.on_stop:
            call(found)
        done = self._world.power_off(found)
        if self.trouble.stop_raises:
            raise HypervisorProtocol(f"{guest}: the connection broke while it was being stopped")
        if not done:
            raise HypervisorProtocol(f"{guest}: cannot be stopped, it is {found.power}")

    def discard(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Throw the saved memory away."""
        found = self._powered(guest, "discard the saved state of", incarnation, not_after)
        if not self._world.discard(found):
            raise HypervisorProtocol(f"{guest}: has no saved state, it is {found.power}")

    def start(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Power on."""
        found = self._powered(guest, "start", incarnation, not_after)
        if not self._world.start(found):
            raise HypervisorProtocol(f"{guest}: cannot be started, it is {found.power}")

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called after each change of a guest's power."""
        self._wakes.append(wake)

    def nudge(self, guest: str) -> None:
        """Do nothing: every sweep reads every guest live."""

    def attend(self, guests: Collection[GuestRef]) -> None:
        """Do nothing, for the same reason."""

    def close(self) -> None:
        """Forget the subscribers."""
        self._wakes.clear()

    def freeze_sweeps(self) -> None:
        """From now on sweeps repeat what is true now, and admit that it may be old."""
        self.trouble.stale = self.cached()

    def cached(self) -> tuple[Evidence, ...]:
        """Return a sweep of now that is to be repeated later, and admits that it may be old."""
        return tuple(
            self._evidence(guest, "cached sweep", conclusive=False)
            for guest in self._guests()
            if guest.power is not PowerState.ABSENT
        )

    def lie(self, guest: str, state: PowerState) -> None:
        """From now on give this state for a guest, whatever is true."""
        self.trouble.lies[guest] = state

    def lie_about_all(self, state: PowerState) -> None:
        """From now on give this state for every guest."""
        for guest in self._guests():
            self.lie(guest.name, state)

    def move_config(self, guest: str, host: str) -> None:
        """Show a guest's configuration on another host from now on, wherever the guest is."""
        self.trouble.moved[guest] = host

    def restart(self) -> None:
        """Restart the daemon, which forgets how guests came to be off."""
        self._world.restart_daemon(self._endpoint)
        for guest in self._guests():
            if guest.power is PowerState.STOPPED:
                guest.passage = None

    def recover(self) -> None:
        """Answer truthfully and at once again."""
        self.trouble = Trouble()

    def _guests(self) -> list[Guest]:
        return [guest for guest in self._world.guests.values() if guest.endpoint == self._endpoint]

    def _find(self, ref: GuestRef) -> Guest:
        for guest in self._guests():
            if guest.ref.key == ref.key and guest.name not in self.trouble.missing:
                return guest
        raise GuestNotFound(f"{self._endpoint}: knows no guest with UUID {ref.uuid}")

    def _powered(self, ref: GuestRef, what: str, incarnation: str | None, not_after: Deadline) -> Guest:
        self._answer()
        if self.trouble.power_denied:
            raise HypervisorDenied(f"{self._endpoint}: we may not {what} {ref.name}")
        self._stand_still()
        found = self._find(ref)
        if found.power is PowerState.ABSENT:
            raise GuestNotFound(f"{self._endpoint}: knows no guest with UUID {ref.uuid}")
        if found.host in self._world.silent_hosts:
            raise HypervisorUnreachable(f"{self._endpoint}: {found.host} does not answer")
        if incarnation is not None and str(found.starts) != incarnation:
            now = f"it is in run {found.starts} now"
            raise GuestChanged(f"{ref}: run {incarnation} was meant, {now}; nothing was sent")
        not_after.refuse_if_over(f"{what} {ref}")
        return found

    def _stand_still(self) -> None:
        """Let time pass while the process that calls is frozen."""
        frozen_s, self.trouble.freeze_s = self.trouble.freeze_s, 0.0
        tell = self._world.timeline.tell
        if frozen_s:
            tell("world", None, "agent-freezes", "fencer's machine is suspended, its order not yet sent")
        self._world.clock.advance(frozen_s)
        if frozen_s:
            tell("world", None, "agent-goes-on", "fencer's machine goes on, and fencer with that order")

    def _answer(self) -> None:
        if math.isinf(self.trouble.delay_s):
            raise HypervisorUnreachable(f"{self._endpoint}: no answer")
        if self.trouble.unreachable:
            raise HypervisorUnreachable(f"{self._endpoint}: connection refused")
        if self.trouble.denied:
            raise HypervisorDenied(f"{self._endpoint}: our credentials were refused")
        if not self.trouble.quorate:
            raise HypervisorUnreachable(
                f"{self._endpoint}: the host that answers has no quorum; what it says may be outdated"
            )

    def _evidence(self, guest: Guest, source: str, *, conclusive: bool = True) -> Evidence:
        told, host = self._told(guest), self.trouble.moved.get(guest.name, guest.host)
        settled = told.settled and guest.name not in self.trouble.unsettled
        if told.state is PowerState.STOPPED and settled and conclusive and host == guest.host:
            self._rested[guest.name] = guest.starts
        return Evidence(
            guest=replace(guest.ref, host=host),
            power_state=told.state,
            settled=settled,
            incarnation=str(guest.starts),
            cold_start=self._cold_start(guest),
            raw=told.words,
            source=source,
            observed_at_s=self._world.clock.now_s(),
            conclusive=conclusive,
            end_recorded=guest.ended,
            io_error=guest.io_error,
            moved_from=guest.came_from if host == guest.host else (),
            host_silent=told.state is PowerState.UNKNOWN and host in self._world.silent_hosts,
            proof=Proof.HA_RECOVERY if guest.recovered else Proof.POWER,
            witness=f"simulation:{self._endpoint}",
            away=told.away,
            filed=told.filed,
            hibernated=told.hibernated,
            powered_off=told.powered_off and settled,
            stuck=f"`qm stop {guest.name}` on {host}" if told.powered_off and settled else "",
            groups=self._groups,
        )

    def _cold_start(self, guest: Guest) -> bool | None:
        if not self._tells_cold:
            return None
        if guest.woken_run == guest.starts:
            return True if guest.seems_booted else None
        return guest.cold

    def _told(self, guest: Guest) -> Passage:
        """Return what is said of a guest's power, in which words, and whether that is settled."""
        if guest.name in self.trouble.moved:
            return Passage(PowerState.STOPPED, "stopped (never started here)", settled=True)
        if guest.host in self._world.silent_hosts:
            # Locks outlive the host: of a migration, or of memory on disk.
            at_rest = (guest.passage is None or guest.passage.idle) and guest.power is not PowerState.SAVED
            return Passage(PowerState.UNKNOWN, f"{guest.host} is offline", settled=at_rest)
        if guest.forgotten:
            return Passage(PowerState.STOPPED, "shut off (unknown)", settled=True)
        lie = self.trouble.lies.get(guest.name)
        if lie is not None:
            return Passage(lie, f"{lie}", settled=True)
        if guest.passage is not None and guest.passage.idle and self._rested.get(guest.name) == guest.starts:
            words = f"{guest.passage.words}, a process that never ran: it was off before"
            return Passage(PowerState.STOPPED, words, settled=True)
        return guest.passage or _at_rest(guest)

    def _notify(self, guest: Guest) -> None:
        if guest.endpoint == self._endpoint:
            for wake in self._wakes:
                self._world.clock.after(EVENT_S, wake)


def _at_rest(guest: Guest) -> Passage:
    if guest.writes and guest.dozing and not guest.seems_booted:
        words = "running (booted), after it hibernated"
        return Passage(PowerState.RUNNING, words, settled=True, hibernated=True)
    if guest.power is PowerState.SAVED and guest.hibernated:
        return Passage(PowerState.UNKNOWN, "shut off (shutdown), after it hibernated", hibernated=True)
    if guest.power is PowerState.SAVED and guest.to_file:
        return Passage(PowerState.UNKNOWN, "shut off (saved), to a file", filed=True)
    return Passage(guest.power, f"{guest.power} ({guest.why})", settled=True)
