"""What `fencer init` is asked for, and what comes of that: plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fencer.cli.options import DEFAULT_CONFIG
from fencer.cli.render import clean
from fencer.config.settings import Endpoint
from fencer.core.text import printable
from fencer.errors import ConfigError

TYPES = ("proxmox", "libvirt", "virtualbox")
HERE = "qemu:///system"
"""libvirt's URI for guests of this machine."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What was said on the command line about the hypervisor.

    Attributes:
        type: Its type; None: look for it.
        uri: libvirt's URI.
        pve: A Proxmox host, as ssh takes it.
        vboxmanage: How VBoxManage is run.
        name: What fencer calls it.
        pool: Of Proxmox: power over its guests alone.
        power: fencer may power guests off and on.
        new_token: Of Proxmox: make another token in place of one whose secret is lost.
    """

    type: str | None = None
    uri: str | None = None
    pve: str | None = None
    vboxmanage: str | None = None
    name: str | None = None
    pool: str | None = None
    power: bool = True
    new_token: bool = False


def beside(path: Path, name: str) -> Path:
    """Return the place of a file for a configuration: several of them may share a folder."""
    return path.with_name(name if path.stem == DEFAULT_CONFIG.stem else f"{path.stem}.{name}")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The hypervisor that is set up.

    Attributes:
        type: As in the configuration.
        name: What fencer calls it.
        about: What it is, for people.
        keys: Its keys in the configuration.
        may_power: Which guests fencer may power off and on, for people.
        pool: It is this pool's, and no others.
        powers: There are any.
        files: What is written for it.
        makes: What is made there, for people; empty: nothing.
        names: A guest's id → its name in the records of whoever made it, where that is another one there.
        prepare: Makes its account and these files, if they are not there; returns what was done, in lines.
        remarks: What a person has to see to.
    """

    type: str
    name: str
    about: str
    keys: Mapping[str, object]
    may_power: str
    pool: str | None = None
    powers: bool = True
    files: tuple[Path, ...] = ()
    prepare: Callable[[], tuple[str, ...]] = tuple
    remarks: tuple[str, ...] = ()
    makes: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    def power(self, uuids: Mapping[str, str]) -> dict[str, Any]:
        """Return what a `Start` has to say of power.

        Args:
            uuids: UUID → node, of the guests that are nodes.
        """
        if not self.powers:
            return {}
        return {"power": {"pool": self.pool}} if self.pool else {"uuids": uuids}


def may_power(wish: Wish, known: Endpoint | None) -> str:
    """Say which guests fencer may power off and on."""
    if known is not None:
        return "as the configuration says"
    if not wish.power:
        return "no VM: paused ones are left alone"
    of = f"pool {clean(wish.pool)}" if wish.pool else "these nodes"
    return f"the VMs of {of} that you approve, once it is armed"


@dataclass(frozen=True, slots=True)
class Asked:
    """What was said on the command line about the cluster.

    Attributes:
        kubeconfig: An administrator's; None: look for one.
        node: The control-plane node to read it from, as ssh takes it.
        context: Which of its contexts.
        servers: URLs for fencer; empty: ask the cluster.
    """

    kubeconfig: Path | None = None
    node: str | None = None
    context: str | None = None
    servers: tuple[str, ...] = ()


def refuse_servers(servers: Sequence[str]) -> None:
    """Refuse what cannot be the URL of an API server.

    Raises:
        ConfigError: one cannot.
    """
    for server in servers:
        if not server.startswith("https://"):
            raise ConfigError(f"--server: {printable(server)!r} must begin with https://: a token goes there")
        try:
            urlsplit(server).port  # noqa: B018 - it raises
        except ValueError as error:
            raise ConfigError(f"--server: {printable(server)!r}: {error}") from error
