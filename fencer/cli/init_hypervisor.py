"""The hypervisor's side of ``fencer init``: which one it is, its keys, and fencer's account there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fencer.cli.asked import Person
from fencer.cli.render import clean
from fencer.config.texts import is_endpoint_name
from fencer.core.text import listing, printable
from fencer.errors import ConfigError
from fencer.setup import pve, surroundings
from fencer.setup.files import write_private
from fencer.setup.proxmox import Account

TYPES = ("proxmox", "libvirt", "virtualbox")
TOKEN_ID = "fencer@pve!agent"  # noqa: S105 - a name
HERE = "qemu:///system"


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
    """

    type: str | None = None
    uri: str | None = None
    pve: str | None = None
    vboxmanage: str | None = None
    name: str | None = None
    pool: str | None = None
    power: bool = True


@dataclass(frozen=True, slots=True)
class Chosen:
    """The hypervisor that is set up.

    Attributes:
        type: As in the configuration.
        name: What fencer calls it.
        about: What it is, for people.
        keys: Its keys in the configuration.
        files: What is put beside the configuration for it: names.
        prepare: Makes its account and these files, if they are not there; returns what was done, in lines.
        remarks: What a person has to see to.
    """

    type: str
    name: str
    about: str
    keys: Mapping[str, object]
    files: tuple[str, ...] = ()
    prepare: Callable[[], tuple[str, ...]] = tuple
    remarks: tuple[str, ...] = ()


def chosen(person: Person, wish: Wish, path: Path) -> Chosen:
    """Find out which hypervisor is meant, and what it is.

    Args:
        person: Is asked where there are several, or none.
        wish: What was said already.
        path: The configuration.

    Raises:
        ConfigError: there is none, or what was said does not fit.
        HypervisorError: Proxmox could not be asked.
    """
    kind = wish.type or _implied(wish) or _found(person)
    _refuse_strange(kind, wish)
    if wish.name is not None and not is_endpoint_name(wish.name):
        raise ConfigError(f"--name: {printable(wish.name)!r}: take lower-case letters, digits, dashes")
    if kind == "proxmox":
        return _proxmox(wish, path)
    if kind == "virtualbox":
        words = shlex.split(wish.vboxmanage or "VBoxManage")
        return Chosen(
            kind,
            wish.name or "box",
            f"VirtualBox, by {clean(shlex.join(words))}",
            {"type": kind, "command": words},
        )
    uri = wish.uri or HERE
    return Chosen(kind, wish.name or "lab", f"libvirt, {clean(uri)}", {"type": kind, "uri": uri})


def _implied(wish: Wish) -> str | None:
    """Return what the options can only be about."""
    options = {"libvirt": wish.uri, "proxmox": wish.pve or wish.pool, "virtualbox": wish.vboxmanage}
    implied = [kind for kind, value in options.items() if value]
    if len(implied) > 1:
        raise ConfigError(f"these options are for {listing(implied)}: one hypervisor is set up at a time")
    return implied[0] if implied else None


def _found(person: Person) -> str:
    found = {one.type: one.shown_by for one in surroundings.hypervisors()}
    if found:
        shown = "; ".join(f"{kind}: {why}" for kind, why in found.items())
        return person.chooses(
            f"Which hypervisor runs the nodes ({shown})?", tuple(found), "--hypervisor TYPE"
        )
    raise ConfigError(
        "no hypervisor is on this machine. Say where it is: --pve root@HOST for Proxmox VE, "
        "--uri qemu+ssh://USER@HOST/system for libvirt, --vboxmanage 'ssh USER@HOST VBoxManage' for "
        "VirtualBox"
    )


def _refuse_strange(kind: str, wish: Wish) -> None:
    """Refuse options that are for another hypervisor."""
    for option, value, of in (
        ("--uri", wish.uri, "libvirt"),
        ("--pve", wish.pve, "proxmox"),
        ("--pool", wish.pool, "proxmox"),
        ("--vboxmanage", wish.vboxmanage, "virtualbox"),
    ):
        if value is not None and kind != of:
            raise ConfigError(f"{option} is for {of}, not for {kind}")
    if wish.pve is not None and wish.pve.startswith("-"):
        raise ConfigError(f"--pve: {printable(wish.pve)!r} is no USER@HOST")
    if wish.pool is not None and not wish.power:
        raise ConfigError("--pool is for power over its guests: without --no-power")


def _proxmox(wish: Wish, path: Path) -> Chosen:
    way = pve.Way(wish.pve)
    cluster = pve.read(way)
    token, ca = path.parent / "proxmox-token", path.parent / "pve-root-ca.pem"
    account = Account(TOKEN_ID, token, power=wish.power, pool=wish.pool, version=cluster.version)

    def prepare() -> tuple[str, ...]:
        new = pve.make_account(way, account)
        told = "made" if new else "is there already; its rights are set anew"
        lines = [f"{way}: user, roles and token {TOKEN_ID}: {told}"]
        if not ca.exists() or ca.read_text(encoding="utf-8", errors="replace") != cluster.ca_pem:
            write_private(ca, cluster.ca_pem)
            ca.chmod(0o644)  # a certificate is no secret
            lines.append(f"{printable(str(ca))}: written")
        return tuple(lines)

    keys: dict[str, object] = {
        "type": "proxmox",
        "servers": list(cluster.servers),
        "cluster": cluster.cluster or "standalone",
        **({"quorum_device": True} if cluster.quorum_device else {}),
        "token_id": TOKEN_ID,
        "token_file": str(token),
        "ca_file": str(ca),
    }
    what = f"cluster {cluster.cluster}" if cluster.cluster else "a standalone host"
    about = f"Proxmox VE {cluster.version}, {what}: {listing(tuple(cluster.hosts))}"
    return Chosen(
        "proxmox",
        wish.name or _endpoint_name(cluster.cluster or "pve"),
        clean(about),
        keys,
        (token.name, ca.name),
        prepare,
        _remarks(cluster),
    )


def _remarks(cluster: pve.Pve) -> tuple[str, ...]:
    if not cluster.other_certificates:
        return ()
    hosts = listing(cluster.other_certificates)
    return (
        f"{hosts}: shows a certificate that was put there (pveproxy-ssl.pem). In the configuration, name its "
        "CA as ca_file (none, if a public CA signed it), and as servers the names in it",
    )


def _endpoint_name(text: str) -> str:
    name = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")
    return name if is_endpoint_name(name) else "pve"
