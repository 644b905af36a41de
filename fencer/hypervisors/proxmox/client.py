"""`ProxmoxHypervisor`: the port `Hypervisor` over the API of one Proxmox cluster, or of one host."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from fencer.core.model import Evidence, GuestRef, PowerState
from fencer.errors import HypervisorDenied, HypervisorError
from fencer.hypervisors.proxmox import fields
from fencer.hypervisors.proxmox.api import Api
from fencer.hypervisors.proxmox.errors import shown
from fencer.hypervisors.proxmox.find import find_guest
from fencer.hypervisors.proxmox.groups import hidden_pools
from fencer.hypervisors.proxmox.identity import identity
from fencer.hypervisors.proxmox.look import Look, has_device, look_around
from fencer.hypervisors.proxmox.memory import Memory
from fencer.hypervisors.proxmox.parse import Members, read_members, read_rights
from fencer.hypervisors.proxmox.power import PowerSwitch
from fencer.hypervisors.proxmox.proof import Prover
from fencer.hypervisors.proxmox.quorum import make_sure_it_hears
from fencer.hypervisors.proxmox.rights import Comparison, compare
from fencer.hypervisors.proxmox.servers import Servers
from fencer.hypervisors.proxmox.settings import ProxmoxSettings
from fencer.hypervisors.proxmox.sweep import Sweeper
from fencer.ports import Deadline, EndpointInfo, StopSettings

SHUTDOWN_S = 180.0
"""What a host that goes down gives each guest. Source: pve-manager PVE/API2/Nodes.pm, stopall."""
HA_SHUTDOWN_S = 60.0
"""What HA gives a guest of its own. Source: pve-ha-manager src/PVE/HA/Resources/PVEVM.pm, shutdown."""


class ProxmoxHypervisor:
    """One Proxmox cluster, or one standalone host, as `fencer.ports.Hypervisor`. Safe from any thread.

    Any call may take as long as `ProxmoxSettings` allows, a server after the other: have an `Asker` run them.

    Args:
        settings: Of the endpoint.
        now_s: The agent's monotonic clock.
        rest: Waits so many of its seconds.

    Raises:
        ConfigError: the token's file cannot be read.
    """

    def __init__(
        self,
        settings: ProxmoxSettings,
        now_s: Callable[[], float] = time.monotonic,
        rest: Callable[[float], object] = time.sleep,
    ) -> None:
        self._settings = settings
        self._memory = Memory()
        self._servers = Servers(settings, self._memory.servers, now_s)
        self._now_s = now_s
        self._prover = Prover(settings, self._memory)
        self._sweeper = Sweeper(self._prover)
        self._power = PowerSwitch(settings, self._servers, self._prover, now_s, rest)
        self._wakes: list[Callable[[], None]] = []

    @property
    def endpoint(self) -> str:
        """The endpoint's name in the configuration."""
        return self._settings.name

    def describe(self) -> EndpointInfo:
        """Ask for version, members and quorum, and read the token's rights back.

        Raises:
            As the port.
        """
        return self._servers.work(self._describe)

    def sweep(self) -> Sequence[Evidence]:
        """Read all guests, most of them from the cluster's cache; see `fencer.hypervisors.proxmox.sweep`.

        Raises:
            As the port.
        """
        return self._servers.work(self._sweep)

    def read(self, guest: GuestRef) -> Evidence:
        """Read one guest by number and UUID; see `fencer.hypervisors.proxmox.proof`.

        Raises:
            As the port.
        """
        return self._servers.work(lambda api: self._read(api, guest))

    def stop_settings(self, guest: GuestRef) -> StopSettings:
        """Read the guest's configuration; under HA the host's local manager has a time of its own.

        Raises:
            As the port.
        """
        return self._servers.work(lambda api: self._stop_settings(api, guest))

    def shutdown(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Ask the guest's agent, or press the ACPI power button; never by force. Under HA, HA forces it.

        Raises:
            As the port.
        """
        self._power.order(guest, "shutdown", incarnation, not_after)

    def stop(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Cut the power: SIGTERM to QEMU, 10 s later SIGKILL. Under HA the wish is queued, and kept.

        The window that is left after the last look has no end: pveproxy may take the request, and pvedaemon
        carry it out whenever it goes on.

        Raises:
            As the port.
        """
        self._power.order(guest, "stop", incarnation, not_after)

    def discard(self, guest: GuestRef, _incarnation: str | None, _not_after: Deadline) -> None:
        """Refuse: Proxmox lets no token take the lock off a hibernated guest.

        Raises:
            HypervisorDenied: always.
        """
        raise HypervisorDenied(
            f"{self.endpoint}: no token may discard the saved memory of {guest.name}; only root can take its "
            f"lock off: `qm unlock {guest.id}` on {guest.host or 'its host'}"
        )

    def start(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Power on. A hibernated guest comes back with its old memory.

        Raises:
            As the port.
        """
        self._power.order(guest, "start", incarnation, not_after)

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called when somebody nudges; Proxmox itself tells nobody anything."""
        self._wakes.append(wake)

    def nudge(self, guest: str) -> None:
        """Take a hint that something happened to a guest: the next sweep reads it live.

        Args:
            guest: Its number; any other text only wakes.
        """
        if guest.isascii() and guest.isdigit():
            with self._memory.lock:
                if int(guest) in self._memory.guests:
                    self._memory.of(int(guest)).nudged = True
        for wake in tuple(self._wakes):
            wake()

    def attend(self, guests: Collection[GuestRef]) -> None:
        """Have sweeps look at the process tables of the hosts that run these guests."""
        ids = [guest.id for guest in guests if guest.endpoint == self.endpoint]
        self._memory.attended = frozenset(int(vmid) for vmid in ids if vmid.isascii() and vmid.isdigit())

    def close(self) -> None:
        """Close idle connections."""
        self._servers.close()

    def _sweep(self, api: Api) -> Sequence[Evidence]:
        look = look_around(api, self._settings, self._now_s())
        return [_in_groups(look, evidence) for evidence in self._sweeper.sweep(look)]

    def _read(self, api: Api, guest: GuestRef) -> Evidence:
        look = look_around(api, self._settings, self._now_s())
        return _in_groups(look, self._prover.prove(look, guest))

    def _about_quorum(self, api: Api) -> tuple[str, ...]:
        """Say what the death of a host proves here.

        Raises:
            HypervisorError: nothing does at present.
        """
        look = look_around(api, self._settings, self._now_s())
        make_sure_it_hears(look, self._memory)
        if look.outvoted:
            why = f"{look.outvoted[0].upper()}{look.outvoted[1:]}"
            return (f"{why}. Neither HA nor a silent host proves anything meanwhile.",)
        pair = len(look.members.online) == 2  # noqa: PLR2004 - where one is half
        if pair and not self._settings.quorum_device and not has_device(api):
            return (
                "Two hosts and no quorum device: when one of them dies, HA cannot prove its guests off. "
                "`pvecm qdevice setup` adds one (if there is one, write quorum_device: true), or use a "
                "power witness for each host (host_power).",
            )
        return ()

    def _stop_settings(self, api: Api, guest: GuestRef) -> StopSettings:
        row, config = find_guest(look_around(api, self._settings, self._now_s()), guest)
        if row.hastate is not None:
            return StopSettings(HA_SHUTDOWN_S, "by HA, for every guest", settable=False, hook=config.hook)
        if config.down_s is None:
            return StopSettings(SHUTDOWN_S, "by default", hook=config.hook)
        return StopSettings(config.down_s, "set at the guest", hook=config.hook)

    def _describe(self, api: Api) -> EndpointInfo:
        version = fields.text(fields.record(api.get("version").data, "version"), "version", "version")
        granted = read_rights(api.get("access", "permissions").data)
        rights = compare(granted)
        detail, problems = f"asked at {api.where}", list(rights.missing)
        remarks = _about(rights, power=not self._settings.power.nobody)
        remarks += _blind(hidden_pools(granted, self._settings.power.groups))
        who: str | None = None
        with suppress(HypervisorDenied):  # then a right is missing, and named above
            members = read_members(api.get("cluster", "status").data)
            try:
                who = identity(api, members.here)
            except HypervisorError as error:
                problems.append(f"It cannot be told which Proxmox VE this is: {error}.".replace("?.", "?"))
            detail = _detail(api, members)
            remarks += _offline(members)
            try:
                remarks += self._about_quorum(api)
            except HypervisorError as error:
                problems.append(f"{error}.".replace("?.", "?"))
        return EndpointInfo(
            kind="proxmox",
            version=f"Proxmox VE {shown(version)}",
            detail=detail,
            can_power=rights.can_power,
            power_only=rights.power_only,
            problems=tuple(problems),
            remarks=remarks,
            identity=who,
        )


def _in_groups(look: Look, evidence: Evidence) -> Evidence:
    """Add what the guest is counted among by now; one that is gone may have left its number to another."""
    row = look.listing.rows.get(int(evidence.guest.id))
    if row is None or row.groups == evidence.groups or evidence.power_state is PowerState.ABSENT:
        return evidence
    return replace(evidence, groups=row.groups)


def _blind(pools: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        f"The configuration admits power actions on the pool {pool}, but the token lacks Pool.Audit on "
        f"/pool/{pool} and sees no guest in it."
        for pool in pools
    )


def _about(rights: Comparison, *, power: bool) -> tuple[str, ...]:
    """Say what the token may do too much, and how it gets exactly what it needs."""
    said = []
    if rights.excess:
        said.append(f"The token may do more than fencer needs: {', '.join(rights.excess)}.")
    if rights.excess or rights.missing:
        said.append("`fencer setup proxmox` prints the lines that grant what fencer needs, and no more.")
    if rights.can_power and not power:
        said.append(
            "The token may power guests (VM.PowerMgmt), and the configuration admits none: name them in a "
            "`power:` here, or run the lines of `fencer setup proxmox` again, without --power."
        )
    return tuple(said)


def _offline(members: Members) -> tuple[str, ...]:
    names = [shown(name) for name, online in members.online.items() if not online]
    if not names or not members.quorate:
        return ()
    return (f"Offline: {', '.join(names)}. Guests there cannot be read, nor found by their UUID.",)


def _detail(api: Api, members: Members) -> str:
    online = sum(members.online.values())
    if members.name is None:
        told = f"standalone host {', '.join(members.online)}"
    else:
        quorum = "quorate" if members.quorate else "no quorum"
        told = f"cluster {members.name}, {quorum}, {online} of {len(members.online)} hosts"
    return shown(f"{told}, asked at {api.where}")
