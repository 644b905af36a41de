"""The reading connection of an endpoint with its event subscription, and its renewal when it is lost."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from fencer.errors import HypervisorError, HypervisorUnreachable
from fencer.hypervisors.libvirt.connection import Connector
from fencer.hypervisors.libvirt.events import HIBERNATED, Chronicle
from fencer.hypervisors.libvirt.parse import host_uuid

_TURN_S = 5.0
"""How long a call waits for the one before it. Long for a libvirtd that is only slow, as a new connection
knows nothing of the guests' past; half of what a call usually has, for one that hangs for ever."""


class Link:
    """A read-only connection, subscribed to lifecycle events before anything is read over it.

    Args:
        connector: Opens it; may hang for ever.
        epoch: Names this attempt, unlike any other of any process.
        wake: Called after each event and when the connection is lost, from libvirt's thread.
        alive: As `Chronicle` has it.

    Attributes:
        connection: libvirt's connection; to be used between `begin` and `end`.
        chronicle: What its events and readings have shown so far.
        host: The host's name, as it tells it itself.
        host_uuid: The host's own UUID; None: it has none that means anything, or that is known to last.

    Raises:
        HypervisorUnreachable, HypervisorDenied, HypervisorProtocol.
    """

    def __init__(
        self, connector: Connector, epoch: str, wake: Callable[[], None], alive: set[str] | None
    ) -> None:
        self.chronicle = Chronicle(epoch, alive)
        self._connector = connector
        self._wake = wake
        self._broken = threading.Event()
        self._turn = threading.Lock()
        self._retired = self._closed = False
        self._goodbyes: list[Callable[[], object]] = []
        self.connection = connector.open(read_only=True)
        try:
            with connector.translated("cannot subscribe to its events", opening=True):
                self._subscribe(connector.libvirt)
                self.host = str(self.connection.getHostname())
                self.host_uuid = host_uuid(self.connection.getCapabilities(), self._sysinfo())
        except HypervisorError:
            self.retire()
            raise

    @property
    def lost(self) -> bool:
        """Whether the connection is broken, as far as this side knows, without asking the other."""
        return self._broken.is_set() or self.connection.isAlive() != 1

    def begin(self) -> bool:
        """Take the turn for a call: one at a time, and none any more once the connection is to be closed.

        Two threads that wait on one connection, which then dies by keepalive, make libvirt's client call back
        into the stack of the first (seen with 9.0.0: a SIGSEGV as soon as the hung libvirtd goes on).

        Returns:
            Whether the turn was given; `end` gives it back. False: the link is lost, or given up now because
            another call hangs in it.
        """
        if self._turn.acquire(timeout=_TURN_S):
            if not self.lost:
                return True
            self.end()
        self._broken.set()
        return False

    def end(self) -> None:
        """Give the turn back."""
        self._turn.release()
        self._close_if_over()

    def retire(self) -> None:
        """Give it back, once nobody uses it any more. Never blocks."""
        self._retired = True
        self._broken.set()
        self._close_if_over()

    def _close_if_over(self) -> None:
        if not self._retired or not self._turn.acquire(blocking=False):
            return  # the thread that has the turn comes by here with it
        if not self._closed:
            self._closed = True
            self._connector.retire(self.connection, *self._goodbyes)
        self._turn.release()

    def _subscribe(self, libvirt: Any) -> None:
        connection = self.connection
        connection.registerCloseCallback(self._on_close, None)
        self._goodbyes.append(connection.unregisterCloseCallback)
        for kind, callback in (
            (libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._on_event),
            (libvirt.VIR_DOMAIN_EVENT_ID_PMSUSPEND_DISK, self._on_hibernation),
        ):
            subscription = connection.domainEventRegisterAny(None, kind, callback, None)
            # A subscription keeps its connection open: it goes first.
            self._goodbyes.insert(0, partial(connection.domainEventDeregisterAny, subscription))

    def _sysinfo(self) -> str:
        """Return the host's SMBIOS table; empty where libvirtd has none: without root's rights it cannot."""
        libvirt = self._connector.libvirt
        try:
            return str(self.connection.getSysinfo())
        except libvirt.libvirtError as error:
            if error.get_error_code() in {libvirt.VIR_ERR_CONFIG_UNSUPPORTED, libvirt.VIR_ERR_NO_SUPPORT}:
                return ""
            raise

    def _on_event(self, _connection: Any, domain: Any, event: int, detail: int, _: object) -> None:
        self.chronicle.heard(domain.UUIDString().lower(), domain.ID(), event, detail)
        self._wake()

    def _on_hibernation(self, connection: Any, domain: Any, _reason: int, _: object) -> None:
        """Take it as the lifecycle event: libvirt sends that only of a guest that it calls running (M3)."""
        self._on_event(connection, domain, *HIBERNATED, None)

    def _on_close(self, _connection: Any, _reason: int, _: object) -> None:
        self._broken.set()
        self._wake()


class LinkKeeper:
    """Lends the endpoint's link, and makes a new one when there is none or it is lost.

    Safe from any thread. No lock is held while a link is made, and each attempt has its own, so that a thread
    that hangs in one blocks no other; the first to come back installs its link.

    Args:
        connector: Of the endpoint.
    """

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._alive = set[str]() if connector.settings.of_session else None
        self._wakes: tuple[Callable[[], None], ...] = ()
        self._closed = False

    @contextmanager
    def link(self) -> Iterator[Link]:
        """Lend a link that is not known to be lost, to one caller at a time. May hang for ever.

        Where another call hangs in the present link, a new one takes its place.

        Raises:
            HypervisorUnreachable, HypervisorDenied, HypervisorProtocol.
        """
        for _ in range(2):
            link = self._present() or self._renewed()
            if link.begin():
                break
        else:
            endpoint = self._connector.settings.name
            raise HypervisorUnreachable(f"{endpoint}: the connection was lost just now, ask again")
        try:
            yield link
        finally:
            link.end()

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called by all links, current and future."""
        with self._lock:
            self._wakes = (*self._wakes, wake)

    def close(self) -> None:
        """Close the link; from now on there is none. Never blocks."""
        with self._lock:
            self._closed = True
            link, self._link = self._link, None
        if link is not None:
            link.retire()

    def refuse_if_closed(self) -> None:
        """Refuse to go on after `close`.

        Raises:
            HypervisorUnreachable: It was closed.
        """
        if self._closed:
            endpoint = self._connector.settings.name
            raise HypervisorUnreachable(f"{endpoint}: its connections were given back, fencer is closing")

    def _present(self) -> Link | None:
        with self._lock:
            self.refuse_if_closed()
            return None if self._link is None or self._link.lost else self._link

    def _renewed(self) -> Link:
        fresh = Link(self._connector, secrets.token_hex(4), self._wake_all, self._alive)
        with self._lock:
            present = self._link
            if self._closed or (present is not None and not present.lost):
                superfluous: Link | None = fresh
            else:
                self._link, superfluous = fresh, present
            chosen = self._link
        if superfluous is not None:
            superfluous.retire()
        return chosen or fresh  # fresh and retired where all was closed meanwhile: it refuses to be used

    def _wake_all(self) -> None:
        for wake in self._wakes:
            wake()
