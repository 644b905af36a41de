"""The guests that should get the hookscript, as Proxmox has them now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fencer.core.text import printable
from fencer.errors import ConfigError
from fencer.setup import tools
from fencer.setup.hosts import Host


@dataclass(frozen=True, slots=True)
class Guest:
    """One guest, with what matters to its hookscript.

    Attributes:
        vmid: Its number.
        host: Where it is.
        hookscript: The volume of the one that it has; empty: none.
        lock: What Proxmox is doing to it now; empty: nothing.
    """

    vmid: int
    host: str
    hookscript: str
    lock: str

    @property
    def path(self) -> str:
        """The API path of its configuration."""
        return _path(self.vmid, self.host)


def find_guests(vmids: Sequence[int], hosts: Mapping[str, Host]) -> Mapping[int, str]:
    """Return on which host each guest is.

    Raises:
        ConfigError: one is none, or cannot be changed because its host is offline.
        HypervisorError: they cannot be read.
    """
    places = dict(_places(vmids))
    online = {name for name, host in hosts.items() if host.online}
    if away := [f"{vmid} is on {printable(host)}" for vmid, host in places.items() if host not in online]:
        raise ConfigError(
            f"{', '.join(away)}, which is offline. Nothing was changed. Run this again once it is back, or "
            "leave out what is there"
        )
    return places


def read_guest(vmid: int, host: str) -> Guest:
    """Read one guest on its host as it is now, not as it would be after its next start.

    Raises:
        HypervisorError: it cannot be read, or is not there any more.
    """
    config = tools.read_object(_path(vmid, host), "--current", "1")
    return Guest(vmid, host, str(config.get("hookscript") or ""), str(config.get("lock") or ""))


def refuse_locked(guests: Iterable[Guest]) -> None:
    """Make sure that Proxmox would accept a change.

    Raises:
        ConfigError: some guest is locked.
    """
    if locked := [f"{guest.vmid} is locked ({printable(guest.lock)})" for guest in guests if guest.lock]:
        raise ConfigError(
            f"{', '.join(locked)}: Proxmox accepts no change until that is over. Nothing was changed"
        )


def refuse_others(guests: Iterable[Guest]) -> None:
    """Make sure that none loses another hookscript.

    Raises:
        ConfigError: one would.
    """
    if others := [f"{guest.vmid} has {printable(guest.hookscript)}" for guest in guests if guest.hookscript]:
        raise ConfigError(f"another hookscript is in the way: {', '.join(others)}. --replace replaces it")


def _places(vmids: Sequence[int]) -> Iterator[tuple[int, str]]:
    rows = tools.read_rows("/cluster/resources", "--type", "vm")
    kinds = {str(row.get("vmid")): (str(row.get("type", "")), str(row.get("node"))) for row in rows}
    for vmid in dict.fromkeys(vmids):
        kind, host = kinds.get(str(vmid), ("", ""))
        if not kind:
            raise ConfigError(f"{vmid}: no such guest. `qm list` lists those of a host")
        if kind != "qemu":
            raise ConfigError(f"{vmid}: is a container: fencer handles only virtual machines")
        yield vmid, host


def _path(vmid: int, host: str) -> str:
    return f"/nodes/{host}/qemu/{vmid}/config"
