"""Takes the hookscript off guests of a Proxmox cluster, and says what still names it.

A guest cannot start if its script is missing. So the script file itself stays, and everything that still
names it is reported, snapshots too.

A running guest loses it at once.

Source: qemu-server 9.2.6, QemuServer.pm, vmconfig_hotplug_pending: what is in `$fast_plug_option` is deleted
while the guest runs; pve-cluster, pmxcfs: every host has the configurations of all, also of those offline.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import ConfigError, HypervisorError, HypervisorProtocol
from fencer.setup import tools
from fencer.setup.copies import NAME
from fencer.setup.guests import Guest, read_guest, refuse_locked
from fencer.setup.hosts import ETC_PVE, read_hosts

_CONFIGS = "nodes/*/qemu-server/*.conf"
_KEY = "hookscript"
_VOLUME = f":snippets/{NAME}"


@dataclass(frozen=True, slots=True)
class Unhooking:
    """The changes to make, after everything was checked.

    Attributes:
        guests: Those that lose it.
        left: What still names it: other guests, and snapshots, which bring it back.
    """

    guests: tuple[Guest, ...]
    left: tuple[str, ...]

    @property
    def volumes(self) -> tuple[str, ...]:
        """Return these guests' names for the script."""
        return tuple(sorted({guest.hookscript for guest in self.guests}))

    def lines(self) -> Iterator[str]:
        """Return the plan as a person would type it."""
        yield "# As root on this host; pasted line by line, or piped into `sh -e`, which stops at a failure."
        for guest in self.guests:
            yield shlex.join(_taking(guest))


def plan_unhooking(vmids: Sequence[int], etc_pve: Path = ETC_PVE) -> Unhooking:
    """Look at guests and hosts, and change nothing.

    Args:
        vmids: The guests; none: all that have the script.
        etc_pve: The cluster's file system.

    Raises:
        ConfigError: a guest cannot be changed now, or this is no Proxmox host.
        HypervisorError: something could not be read.
    """
    hosts = read_hosts(etc_pve)
    named = dict(_named(etc_pve))
    places = {vmid: host for (vmid, section), host in named.items() if not section}
    wanted = {vmid: host for vmid, host in places.items() if vmid in (vmids or places)}
    away = [
        f"{vmid} is on {host}" for vmid, host in wanted.items() if host not in hosts or not hosts[host].online
    ]
    if away:
        raise ConfigError(
            f"{', '.join(away)}, which is offline. Nothing was changed. Run this again once it is back, or "
            "leave out what is there: --vmid names the others"
        )
    guests = tuple(read_guest(vmid, host) for vmid, host in sorted(wanted.items()))
    having = tuple(guest for guest in guests if guest.hookscript.endswith(_VOLUME))
    refuse_locked(having)
    return Unhooking(having, tuple(_left(named, wanted)))


def carry_out(plan: Unhooking) -> Iterator[str]:
    """Take the script off the guests, and check that they have none.

    Yields:
        What was done, when it was done.

    Raises:
        HypervisorError: a guest kept it; those named before have none.
    """
    for guest in plan.guests:
        try:
            tools.run(*_taking(guest))
            seen = read_guest(guest.vmid, guest.host).hookscript
        except HypervisorError as error:
            raise HypervisorProtocol(
                f"{guest.vmid}: {error}\nRun the same command again to go on from there"
            ) from error
        if seen:
            raise HypervisorProtocol(
                f"{guest.vmid}: its {_KEY} reads {printable(seen)!r} after it was deleted"
            )
        yield f"{guest.vmid}: has no hookscript any more"


def _taking(guest: Guest) -> tuple[str, ...]:
    return ("pvesh", "set", guest.path, "--delete", _KEY)


def _left(named: Mapping[tuple[int, str], str], wanted: Mapping[int, str]) -> Iterator[str]:
    for vmid, section in sorted(named):
        if section:
            yield f"{vmid}, snapshot {printable(section)}"
        elif vmid not in wanted:
            yield str(vmid)


def _named(etc_pve: Path) -> Iterator[tuple[tuple[int, str], str]]:
    """Return the places that name fencer's script: guest, section of its configuration, and host.

    Raises:
        ConfigError: the configurations cannot be read.
    """
    for file in sorted(etc_pve.glob(_CONFIGS)):
        if not file.stem.isdecimal():
            continue
        try:
            lines = file.read_text(errors="replace").splitlines()
        except FileNotFoundError:  # it moved, or was deleted, just now
            continue
        except OSError as error:
            raise ConfigError(f"{file}: cannot be read: {error.strerror}. Are you root?") from error
        section = ""
        for line in lines:
            if line.startswith("["):
                section = line.strip("[] ")
            elif line.startswith(f"{_KEY}:") and line.rstrip().endswith(_VOLUME):
                yield (int(file.stem), section), file.parts[-3]
