"""`LibvirtHypervisor`: the port `Hypervisor` over one libvirt URI.

Reading goes over one read-only connection with an event subscription, one call at a time; it is made again at
the next call when it was lost, or when a call hangs in it. Each power action has its own read-write
connection, so that a hang there does not touch the reading. Only calls that libvirtd answers from its own
memory are used to read: a call to a frozen QEMU's monitor blocks for ever.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from fencer.core.model import Evidence, GuestRef, Proof
from fencer.errors import (
    GuestChanged,
    GuestNotFound,
    HypervisorDenied,
    HypervisorError,
    HypervisorProtocol,
)
from fencer.hypervisors.libvirt.connection import Connector
from fencer.hypervisors.libvirt.errors import INVALID_ARGUMENT, NO_IMAGE, OLD_IMAGE
from fencer.hypervisors.libvirt.events import HIBERNATED_WORDS, MOVED_WORDS, Left
from fencer.hypervisors.libvirt.link import Link, LinkKeeper
from fencer.hypervisors.libvirt.parse import SAVED, Saved, read_power
from fencer.hypervisors.libvirt.settings import LibvirtSettings
from fencer.ports import Deadline, EndpointInfo, StopSettings

_OFF = -1
_NO_NUMBER = -1  # in no table: reads UNKNOWN
_PRETENCE = (
    "libvirt's test driver only pretends: there is no machine behind its guests, and its off proves nothing"
)
_NO_DOMAIN = "no such domain (error 42)"
_OF_SESSION = (
    "A session daemon needs `loginctl enable-linger USER`{there}, or it loses sight of its guests at a "
    "logout, and reports them off while they still run; better use {system}"
)


class LibvirtHypervisor:
    """One libvirt URI as an endpoint. Implements `fencer.ports.Hypervisor`; safe from any thread.

    Every call may hang, because opening a connection has no time limit in libvirt: have an `Asker` run them.
    An abandoned call does not harm later ones.

    Args:
        settings: Of the endpoint.
        now_s: The agent's monotonic clock.

    Raises:
        ConfigError: libvirt's binding is not installed.
    """

    def __init__(self, settings: LibvirtSettings, now_s: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._connector = Connector(settings)
        self._links = LinkKeeper(self._connector)
        self._now_s = now_s
        # Which of several libvirtds on one host; each guest names the host itself.
        self._witness = f"libvirt:{urlsplit(settings.uri).path}"

    @property
    def endpoint(self) -> str:
        """The endpoint's name in the configuration."""
        return self._settings.name

    def describe(self) -> EndpointInfo:
        """Ask libvirt for its versions, and whether a connection with full rights opens.

        Where fine-grained access control is on, such a connection opens and may still be refused the power
        action itself.

        Raises:
            As the port.
        """
        with self._links.link() as link, self._connector.translated("cannot ask for its version"):
            connection, host = link.connection, link.host
            driver, version = connection.getType(), _dotted(connection.getVersion())
            library = _dotted(connection.getLibVersion())
            identity = self._identity(driver, link)
        can_power, remarks = self._try_power()
        return EndpointInfo(
            kind="libvirt",
            version=f"{driver} {version}, libvirt {library}",
            detail=f"{self._settings.uri} on {host}",
            can_power=can_power,
            remarks=(*remarks, *self._remarks(driver)),
            identity=identity,
        )

    def _identity(self, driver: str, link: Link) -> str:
        """Name the libvirtd, whatever way leads to it: its host, its driver, and whose it is on that host.

        A host's own UUID is the same over every URI; the path of a user's own libvirtd is ``/session``.
        """
        parts = urlsplit(self._settings.uri)
        host = link.host_uuid or f"host {link.host}"
        user = f" of {parts.username or _user()}" if self._settings.of_session else ""
        return f"libvirt:{driver}:{host}{parts.path}{user}"

    def sweep(self) -> Sequence[Evidence]:
        """Read all guests: two calls, for any number of guests, and none that asks a QEMU.

        The images are read again if a guest was saved without one: it may have been saved in between.

        Raises:
            As the port.
        """
        libvirt = self._connector.libvirt
        with self._look() as look, self._connector.translated("cannot list its guests"):
            connection = look.link.connection
            # Images before states: a guest that is saved in between reads as saved either way.
            images = self._images(connection)
            records = connection.getAllDomainStats(
                libvirt.VIR_DOMAIN_STATS_STATE, libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
            )
            if any(_saved(stats) and domain.UUIDString() not in images for domain, stats in records):
                images |= self._images(connection)
            return [
                look.evidence(domain, stats, has_saved_image=domain.UUIDString() in images)
                for domain, stats in records
            ]

    def read(self, guest: GuestRef) -> Evidence:
        """Read one guest by its UUID.

        Raises:
            As the port.
        """
        with self._look() as look:
            try:
                return self._read(look, guest)
            except GuestNotFound:
                absent = look.absent(guest)
                if absent is None:
                    raise
                return absent

    def stop_settings(self, _guest: GuestRef) -> StopSettings | None:
        """Return None: libvirt itself never stops a guest; libvirt-guests does, with its own file."""
        return None

    def shutdown(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Press the ACPI power button. An agent inside is not asked: libvirt waits for one that hangs.

        Raises:
            As the port.
        """
        libvirt = self._connector.libvirt
        with self._power(guest, "shut down", incarnation, not_after) as domain:
            try:
                domain.shutdownFlags(libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
            except libvirt.libvirtError as error:
                if error.get_error_code() != INVALID_ARGUMENT:
                    raise
                domain.shutdown()  # a driver that knows one way only

    def stop(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Cut the power: SIGTERM to QEMU, 10 s later SIGKILL. An error does not say that it failed.

        The window between the last look and the call is one exchange with libvirtd: milliseconds. If libvirtd
        hangs just then, the window lasts as long as the hang: it carries the request out when it goes on.

        Raises:
            As the port.
        """
        with self._power(guest, "stop", incarnation, not_after) as domain:
            domain.destroy()

    def discard(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Remove the managed save image. What `virsh save FILE` wrote is unknown to libvirt, and stays.

        Raises:
            HypervisorProtocol: there is no such image, or not of the run that was saved; besides as the port.
        """
        doing = "discard the saved memory of"
        # Before the last look at run and clock: a hang in between would carry the order out late.
        with self._look() as look, self._connector.translated(f"cannot {doing} {guest}", guest=guest.uuid):
            if not look.link.connection.lookupByUUIDString(guest.uuid).hasManagedSaveImage():
                raise HypervisorProtocol(f"{self.endpoint} ({self._settings.uri}): {guest} {NO_IMAGE}")
            if look.link.chronicle.image_is_old(guest.uuid.lower()):
                raise HypervisorProtocol(f"{self.endpoint} ({self._settings.uri}): {guest} {OLD_IMAGE}")
        with self._power(guest, doing, incarnation, not_after) as domain:
            domain.managedSaveRemove()

    def start(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Power on. A guest with a saved image comes back with its old memory.

        Raises:
            As the port.
        """
        with self._power(guest, "start", incarnation, not_after) as domain:
            domain.create()

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called at lifecycle events and at the loss of the connection, once there is one."""
        self._links.subscribe(wake)

    def nudge(self, guest: str) -> None:
        """Do nothing: every sweep reads every guest live."""

    def attend(self, guests: Collection[GuestRef]) -> None:
        """Do nothing, for the same reason."""

    def close(self) -> None:
        """Close the connection; one that hangs is left alone. Later calls read unreachable."""
        self._links.close()

    def _images(self, connection: Any) -> set[str]:
        found = connection.listAllDomains(self._connector.libvirt.VIR_CONNECT_LIST_DOMAINS_MANAGEDSAVE)
        return {domain.UUIDString() for domain in found}

    @contextmanager
    def _look(self) -> Iterator[_Look]:
        with self._links.link() as link:
            yield _Look(self.endpoint, self._witness, link, self._now_s(), link.chronicle.moment())

    def _read(self, look: _Look, guest: GuestRef) -> Evidence:
        libvirt, connection = self._connector.libvirt, look.link.connection
        with self._connector.translated(f"cannot read {guest}", guest=guest.uuid):
            domain = connection.lookupByUUIDString(guest.uuid)
            has_saved_image = bool(domain.hasManagedSaveImage())
            # Id and state of the same instant: the id in the handle is as old as the handle.
            records = connection.domainListGetStats(
                [domain], libvirt.VIR_DOMAIN_STATS_STATE, libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
            )
            if not records:
                raise GuestNotFound(
                    f"{self.endpoint} ({self._settings.uri}): {guest} vanished while it was read"
                )
            fresh, stats = records[0]
            if _saved(stats) and not has_saved_image:  # it may have been saved in between
                has_saved_image = bool(domain.hasManagedSaveImage())
            evidence = look.evidence(fresh, stats, has_saved_image=has_saved_image)
            return replace(evidence, fleeting=not domain.isPersistent())

    @contextmanager
    def _power(
        self, guest: GuestRef, verb: str, incarnation: str | None, not_after: Deadline
    ) -> Iterator[Any]:
        """Give the guest's domain over a connection with full rights that serves this one action.

        The connection may have hung while it was opened. So this same connection is used to check that the
        guest is still in the intended run, and then that it is not too late.
        """
        self._links.refuse_if_closed()
        connection = self._connector.open(read_only=False)
        try:
            with self._connector.translated(f"cannot {verb} {guest}", guest=guest.uuid):
                domain = connection.lookupByUUIDString(guest.uuid)
                self._refuse_another_run(guest, domain.ID(), incarnation)
                not_after.refuse_if_over(f"{verb} {guest}")
                yield domain
        finally:
            self._connector.retire(connection)

    def _refuse_another_run(self, guest: GuestRef, domain_id: int, incarnation: str | None) -> None:
        """Refuse if the domain has another id, or, if it is off, was started meanwhile.

        Only events tell that an off guest was started meanwhile, and libvirtd sends them from another thread
        than its answers: a guest that was started and cut off milliseconds ago may count as untouched.

        Raises:
            GuestChanged: it is another run.
        """
        with self._links.link() as link:
            chronicle = link.chronicle
            now = chronicle.incarnation(guest.uuid.lower(), domain_id, chronicle.moment())
        if incarnation is not None and now != incarnation:
            raise GuestChanged(f"{guest}: {incarnation!r} was meant, it is {now!r} now; nothing was sent")

    def _remarks(self, driver: str) -> Iterator[str]:
        if driver == "TEST":
            yield _PRETENCE
        if self._settings.of_session:
            yield _of_session(self._settings.uri)

    def _try_power(self) -> tuple[bool | None, tuple[str, ...]]:
        try:
            self._connector.retire(self._connector.open(read_only=False))
        except HypervisorDenied as error:
            return False, (f"No power actions: {error}",)
        except HypervisorError as error:
            return None, (f"Power actions could not be tried: {error}",)
        return True, ()


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at an endpoint: when it began, over which link, and how its answers become evidence."""

    endpoint: str
    witness: str
    link: Link
    began_s: float
    moment: int

    def evidence(self, domain: Any, stats: dict[str, Any], *, has_saved_image: bool) -> Evidence:
        """Turn one domain's state into evidence, and into a line of the chronicle."""
        uuid, domain_id, name = domain.UUIDString().lower(), domain.ID(), domain.name()
        state, reason = stats.get("state.state", _NO_NUMBER), stats.get("state.reason", _NO_NUMBER)
        reading = read_power(state, reason, has_saved_image=has_saved_image)
        chronicle = self.link.chronicle
        reading = chronicle.read(uuid, domain_id, reading, self.moment)
        restored = chronicle.began_with_old_memory(uuid, domain_id)
        return Evidence(
            guest=GuestRef(
                self.endpoint,
                id=uuid,
                uuid=uuid,
                name=name,
                host=self.link.host,
                host_uuid=self.link.host_uuid,
            ),
            power_state=reading.power_state,
            settled=reading.settled,
            incarnation=chronicle.incarnation(uuid, domain_id, self.moment),
            cold_start=False if restored else reading.cold_start,
            raw=reading.raw,
            source="domain state",
            observed_at_s=self.began_s,
            io_error=reading.io_error,
            witness=self.witness,
            away=reading.away,
            filed=reading.saved is Saved.FILE,
            hibernated=reading.saved is Saved.DISK,
        )

    def absent(self, guest: GuestRef) -> Evidence | None:
        """Turn "no such domain" into evidence, if the chronicle knows more; None otherwise.

        It may know the guest's end, that the guest went elsewhere before, or that it hibernated.
        """
        uuid, chronicle = guest.uuid.lower(), self.link.chronicle
        end, left = chronicle.end_of(uuid), chronicle.left(uuid)
        if left is Left.HIBERNATED:
            raw = f"{_NO_DOMAIN}{HIBERNATED_WORDS}"
            unknown = Evidence.unknown(guest, raw, "domain lookup", self.began_s)
            return replace(unknown, hibernated=True, witness=self.witness)
        away = left is Left.MOVED
        if end is None and not away:
            return None
        before = f"; before that it was {end}" if end else MOVED_WORDS
        raw = f"{_NO_DOMAIN}{before}"
        incarnation = chronicle.incarnation(uuid, _OFF, self.moment)
        absent = Evidence.absent(guest, raw, "domain lookup", self.began_s, incarnation)
        recorded = end is not None
        return replace(absent, away=away, end_recorded=recorded, proof=Proof.ABSENCE, witness=self.witness)


def _saved(stats: dict[str, Any]) -> bool:
    return (stats.get("state.state"), stats.get("state.reason")) == SAVED


def _of_session(uri: str) -> str:
    """Say what a session daemon needs, and what to use instead, on its host."""
    scheme, _, rest = uri.partition("://")
    host = rest.partition("/")[0]
    there = " on that host" if host else ""
    return _OF_SESSION.format(there=there, system=f"{scheme}://{host}/system")


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # it has a number alone
        return str(os.getuid())


def _dotted(version: int) -> str:
    """Write a version number of libvirt (major * 1000000 + minor * 1000 + release) the usual way."""
    return f"{version // 1_000_000}.{version // 1_000 % 1_000}.{version % 1_000}"
