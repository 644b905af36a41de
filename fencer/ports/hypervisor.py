"""Hypervisors, and the witnesses of their hosts' power."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from fencer.core.model import (
    Evidence,
    GuestRef,
)
from fencer.errors import HypervisorUnreachable


@dataclass(frozen=True, slots=True)
class EndpointInfo:
    """How an endpoint describes itself.

    Attributes:
        kind: ``libvirt``, ``proxmox``, ``virtualbox`` or ``simulation``.
        version: The hypervisor's version, for people.
        detail: One line for people: URI, hosts, quorum.
        can_power: Our rights are enough for power actions. None: not known in advance.
        problems: What keeps it from being relied on, one sentence each. Empty: nothing.
        remarks: What should still be mended, one sentence each.
        power_only: The ids of the guests that `can_power` is about; None: all.
        identity: The hypervisor's own name for itself, the same for everybody who asks it, whatever their
            configuration calls it, and no other hypervisor's. Agents agree by it on who gives it orders.
            Empty: it has none, and the endpoint's name in the configuration stands for it. None: it could
            not be told now.
    """

    kind: str
    version: str
    detail: str
    can_power: bool | None
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    power_only: frozenset[str] | None = None
    identity: str | None = ""

    def may_power(self, guest: str) -> bool:
        """Whether our rights are enough to power the guest with this id, as far as is known."""
        return self.can_power is not False and (self.power_only is None or guest in self.power_only)


@dataclass(frozen=True, slots=True)
class StopSettings:
    """A guest's settings for stops, in its hypervisor.

    Attributes:
        shutdown_s: How long its own shutdown may take when its host goes down, before it is stopped hard.
        set_by: What says so, for people.
        settable: It can be set for this guest.
        hook: The script that is run when it stops; empty: none.
    """

    shutdown_s: float
    set_by: str
    settable: bool = True
    hook: str = ""


class Deadline:
    """Until when something that cannot be undone may begin.

    A late call is given up, not interrupted: its thread may go on much later, as may the whole agent after
    its machine was suspended. So code that is about to do something that cannot be undone asks here again.

    Args:
        at_s: On the agent's monotonic clock, which has to count suspension.
        now_s: That clock.
        may: Whether it may begin at all as things are now; None: nothing else can forbid it.
    """

    def __init__(
        self, at_s: float, now_s: Callable[[], float], may: Callable[[], bool] | None = None
    ) -> None:
        self._at_s = at_s
        self._now_s = now_s
        self._may = may
        self._given_up = threading.Event()

    def give_up(self) -> None:
        """Let nothing begin any more: nobody waits for it. Call it from any thread."""
        self._given_up.set()

    @property
    def over(self) -> bool:
        """Whether it is too late, was given up, or may not be."""
        late = self._given_up.is_set() or self._now_s() > self._at_s
        return late or (self._may is not None and not self._may())

    def refuse_if_over(self, what: str) -> None:
        """Refuse to begin an action too late.

        Args:
            what: The action that is refused, for people.

        Raises:
            HypervisorUnreachable: it is over.
        """
        if self.over:
            raise HypervisorUnreachable(f"{what}: too late, it was given up before it could be done")


class Hypervisor(Protocol):
    """One endpoint: a libvirt URI, a Proxmox cluster or host, a VirtualBox user on a host.

    Readings are statements of the hypervisor and nothing more: every word that is not in the adapter's table
    reads UNKNOWN. Power methods return once the request was *sent*; whatever they return or raise, the state
    has to be read again (libvirt's destroy may raise and yet have killed; ACPI's 0 is no consent).

    A power method looks once more, over the connection that it then uses, right before it sends: whether the
    guest is still in the incarnation that is meant, and whether it is not too late. Each adapter states what
    can happen in the remaining window, and how long that is.
    """

    @property
    def endpoint(self) -> str:
        """The endpoint's name in the configuration."""
        ...

    def describe(self) -> EndpointInfo:
        """Ask the endpoint who it is and what we may do there.

        Raises:
            HypervisorUnreachable: no answer.
            HypervisorDenied: credentials or rights refused.
        """
        ...

    def sweep(self) -> Sequence[Evidence]:
        """Read all guests of the endpoint in one cheap call.

        Returns:
            One Evidence per guest, in any order. A guest whose reply cannot be read is UNKNOWN, not missing.

        Raises:
            HypervisorUnreachable, HypervisorDenied, HypervisorProtocol: nothing is known of any guest.
        """
        ...

    def read(self, guest: GuestRef) -> Evidence:
        """Read one guest, by UUID, well enough to act upon.

        Returns:
            Its Evidence, conclusive. ``ABSENT`` only when this adapter holds a record of its end.

        Raises:
            GuestNotFound: the endpoint knows no such guest, and that is all that is known.
            HypervisorUnreachable, HypervisorDenied, HypervisorProtocol: nothing is known.
        """
        ...

    def stop_settings(self, guest: GuestRef) -> StopSettings | None:
        """Read a guest's settings for stops. None: this hypervisor has none.

        Raises:
            As `read`.
        """
        ...

    def shutdown(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Ask the guest to shut down (ACPI or agent). Says nothing about whether it will.

        Args:
            guest: The guest.
            incarnation: Its run, see `Evidence.incarnation`; None: the hypervisor does not name runs.
            not_after: Until when.

        Raises:
            GuestChanged: it is in another run now; nothing was sent.
            GuestNotFound, HypervisorUnreachable, HypervisorDenied, HypervisorProtocol.
        """
        ...

    def stop(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Cut the guest's power. May take 12 s and more.

        Args and raises:
            As `shutdown`.
        """
        ...

    def discard(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Throw the guest's saved memory away, so that it can only start cold.

        Args and raises:
            As `shutdown`.
        """
        ...

    def start(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Power the guest on.

        Args and raises:
            As `shutdown`.
        """
        ...

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Call `wake`, from any thread, whenever something happened there: a hint, never a proof."""
        ...

    def nudge(self, guest: str) -> None:
        """Take a hook's hint that something happened to a guest: the next sweep has to read that one live.

        Args:
            guest: Its id, as the hook knows it. Any other text does no harm.
        """
        ...

    def attend(self, guests: Collection[GuestRef]) -> None:
        """Take which guests are nodes: the next sweeps have to tell promptly when one of these ends.

        For adapters whose sweeps repeat what is a few seconds old; where they are live anyway, it does
        nothing. It replaces what was said before, and asks nobody.

        Args:
            guests: All of them; those of other endpoints, and any that are not there, do no harm.
        """
        ...

    def close(self) -> None:
        """Close connections and end threads. Never raises, never blocks."""
        ...


class HostPower(Protocol):
    """A witness of a host's power: status only, raw reading, never an action."""

    @property
    def host(self) -> str:
        """The host it watches, as the hypervisor's endpoint names it."""
        ...

    def is_off(self) -> bool | None:
        """Read the power of the host: True only for raw Off/S5 on every outlet. None: could not be told.

        Raises:
            HypervisorUnreachable, HypervisorDenied, HypervisorProtocol.
        """
        ...
