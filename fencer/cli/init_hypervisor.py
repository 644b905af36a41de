"""The hypervisor's side of ``fencer init``: which one it is, its keys, and fencer's account there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencer.cli.asked import Person
from fencer.cli.render import clean
from fencer.cli.wire import Wiring
from fencer.config.settings import Config, Endpoint, LibvirtEndpoint, ProxmoxEndpoint, VirtualBoxEndpoint
from fencer.core.policy import Policy
from fencer.core.text import listing, printable
from fencer.errors import ConfigError
from fencer.setup import pve, surroundings
from fencer.setup.files import write_private
from fencer.setup.proxmox import Account

TYPES = ("proxmox", "libvirt", "virtualbox")
_TYPES: Mapping[type, str] = {
    LibvirtEndpoint: "libvirt",
    ProxmoxEndpoint: "proxmox",
    VirtualBoxEndpoint: "virtualbox",
}
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
        may_power: Which guests fencer may power off and on, for people.
        pool: It is this pool's, and no others.
        powers: There are any.
        files: What is written for it.
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

    def power(self, uuids: Mapping[str, str]) -> dict[str, Any]:
        """Return what a `Start` has to say of power.

        Args:
            uuids: UUID → node, of the guests that are nodes.
        """
        if not self.powers:
            return {}
        return {"power": {"pool": self.pool}} if self.pool else {"uuids": uuids}


def chosen(wiring: Wiring, person: Person, wish: Wish, path: Path, config: Config | None) -> Chosen:
    """Find out which hypervisor is meant, and what it is; a new one has to answer.

    Args:
        wiring: Builds the way to it.
        person: Is asked where there are several, or none.
        wish: What was said already.
        path: The configuration.
        config: What it says already; None: it is to be written.

    Raises:
        ConfigError: there is none, or what was said does not fit.
        HypervisorError: it does not answer.
    """
    from fencer.config.texts import is_endpoint_name  # noqa: PLC0415 - pydantic

    if wish.name is not None and not is_endpoint_name(wish.name):
        raise ConfigError(f"--name: {printable(wish.name)!r}: take lower-case letters, digits, dashes")
    known = _known(wish, path, config)
    kind = _TYPES[type(known)] if known else wish.type or _implied(wish) or _found(person)
    _refuse_strange(kind, wish)
    if kind == "proxmox":
        return _proxmox(wish, path, known if isinstance(known, ProxmoxEndpoint) else None)
    endpoint = known if isinstance(known, LibvirtEndpoint | VirtualBoxEndpoint) else _new(kind, wish)
    if known is None:
        _require_answer(wiring, endpoint)
    keys: dict[str, object] = {"type": kind}
    keys |= (
        {"uri": endpoint.uri} if isinstance(endpoint, LibvirtEndpoint) else {"command": [*endpoint.command]}
    )
    label = {"libvirt": "libvirt", "virtualbox": "VirtualBox, by"}[kind]
    about = f"{label} {clean(endpoint.where)}"
    may = _may_power(wish, known)
    return Chosen(kind, endpoint.name, about, keys, may, powers=wish.power)


def _require_answer(wiring: Wiring, endpoint: LibvirtEndpoint | VirtualBoxEndpoint) -> None:
    clock, deadline_s = wiring.clock(), Policy().call_deadline_s
    with closing(wiring.hypervisor(endpoint, clock)) as hypervisor:
        wiring.asker(clock, deadline_s).ask(endpoint.name, hypervisor.describe, deadline_s)


def _new(kind: str, wish: Wish) -> LibvirtEndpoint | VirtualBoxEndpoint:
    if kind == "virtualbox":
        return VirtualBoxEndpoint(wish.name or "box", tuple(_words(wish)))
    return LibvirtEndpoint(wish.name or "lab", wish.uri or HERE)


def _known(wish: Wish, path: Path, config: Config | None) -> Endpoint | None:
    """Return the hypervisor of a configuration that is there already; None: it is to be written.

    Raises:
        ConfigError: it names none like that, or several.
    """
    if config is None:
        return None
    kind = wish.type or _implied(wish)
    fitting = [
        one
        for one in config.endpoints
        if wish.name in {None, one.name} and kind in {None, _TYPES.get(type(one))} and type(one) in _TYPES
    ]
    if len(fitting) == 1:
        return fitting[0]
    there = listing([one.name for one in config.endpoints])
    which = (
        f"{wish.name or 'one'} of type {kind}" if kind else wish.name or "one that is set up by this command"
    )
    if not fitting:
        raise ConfigError(
            f"{path}: is there, and names no hypervisor {which}, but {there}. Add it by hand, as "
            "`fencer setup config` shows, and run this again; or name another file with -c"
        )
    raise ConfigError(f"{path}: names several hypervisors: {there}. Say which with --name")


def _words(wish: Wish) -> list[str]:
    try:
        return shlex.split(wish.vboxmanage or "VBoxManage")
    except ValueError as error:
        raise ConfigError(f"--vboxmanage: {printable(wish.vboxmanage or '')}: {error}") from error


def _may_power(wish: Wish, known: Endpoint | None) -> str:
    """Say which guests fencer may power off and on."""
    if known is not None:
        return "as the configuration says"
    if not wish.power:
        return "no guest: paused ones are left alone"
    return f"the guests of {f'pool {clean(wish.pool)}' if wish.pool else 'these nodes'}, once it is armed"


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


def _proxmox(wish: Wish, path: Path, known: ProxmoxEndpoint | None) -> Chosen:
    way = pve.Way(wish.pve)
    cluster = pve.read(way)
    if known is not None:
        _refuse_another(cluster, known, path)
    token = known.token_file if known else path.parent / "proxmox-token"
    ca = path.parent / "pve-root-ca.pem"
    token_id = known.token_id if known else TOKEN_ID
    account = Account(token_id, token, version=cluster.version, **_rights(wish, known))

    def prepare() -> tuple[str, ...]:
        new = pve.make_account(way, account)
        told = "made" if new else "is there already; its rights are set anew"
        lines = [f"{way}: user, roles and token {token_id}: {told}"]
        if known is None and _differs(ca, cluster.ca_pem):
            write_private(ca, cluster.ca_pem)
            ca.chmod(0o644)  # a certificate is no secret
            lines.append(f"{printable(str(ca))}: written")
        return tuple(lines)

    keys: dict[str, object] = {
        "type": "proxmox",
        "servers": list(cluster.servers),
        "cluster": cluster.cluster or "standalone",
        **({"quorum_device": True} if cluster.quorum_device else {}),
        "token_id": token_id,
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
        _may_power(wish, known),
        wish.pool,
        wish.power,
        (token,) if known else (token, ca),
        prepare,
        () if known else _remarks(cluster),
    )


def _refuse_another(cluster: pve.Pve, known: ProxmoxEndpoint, path: Path) -> None:
    """Refuse a cluster other than the configuration's: its token would take the place of the right one."""
    same_ca = known.ca_file is None or not _differs(known.ca_file, cluster.ca_pem)
    if cluster.cluster != known.cluster or not same_ca:
        found = f"the cluster {cluster.cluster}" if cluster.cluster else "a standalone host"
        meant = f"the cluster {known.cluster}" if known.cluster else "a standalone host"
        raise ConfigError(
            f"{path}: its {known.name} is {meant}, and this is {clean(found)}"
            f"{'' if same_ca else f', whose CA is not in {known.ca_file}'}. --pve root@HOST names a host "
            "of it; or name another configuration with -c"
        )


def _rights(wish: Wish, known: ProxmoxEndpoint | None) -> dict[str, Any]:
    """Return what the token may do with power: what the configuration says, or what was wished."""
    if known is None:
        return {"power": wish.power, "pool": wish.pool}
    admitted = known.power
    pools = [word.partition(":")[2] for word in admitted.groups if word.startswith("pool:")]
    alone = len(admitted.groups) == len(pools) == 1 and not admitted.uuids and not admitted.mapped
    return {"power": not admitted.nobody, "pool": pools[0] if alone else None}


def _differs(file: Path, text: str) -> bool:
    try:
        return file.read_text(encoding="ascii") != text
    except (OSError, ValueError):
        return True


def _remarks(cluster: pve.Pve) -> tuple[str, ...]:
    if not cluster.other_certificates:
        return ()
    hosts = listing(cluster.other_certificates)
    return (
        f"{hosts}: shows a certificate that was put there (pveproxy-ssl.pem). In the configuration, name its "
        "CA as ca_file (none, if a public CA signed it), and as servers the names in it",
    )


def _endpoint_name(text: str) -> str:
    from fencer.config.texts import is_endpoint_name  # noqa: PLC0415 - pydantic

    name = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")
    return name if is_endpoint_name(name) else "pve"
