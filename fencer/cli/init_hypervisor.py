"""The hypervisor's side of ``fencer init``: which one it is, its keys, and fencer's account there."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from fencer.cli.asked import Person
from fencer.cli.init_proxmox import proxmox
from fencer.cli.init_wish import HERE, Chosen, Wish, may_power
from fencer.cli.render import clean
from fencer.cli.wire import Wiring
from fencer.config.settings import Config, Endpoint, LibvirtEndpoint, ProxmoxEndpoint, VirtualBoxEndpoint
from fencer.core.policy import Policy
from fencer.core.text import listing, printable
from fencer.errors import ConfigError
from fencer.setup import surroundings, vagrant_index

_TYPES: Mapping[type, str] = {
    LibvirtEndpoint: "libvirt",
    ProxmoxEndpoint: "proxmox",
    VirtualBoxEndpoint: "virtualbox",
}


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
        return proxmox(wish, path, known if isinstance(known, ProxmoxEndpoint) else None)
    endpoint = known if isinstance(known, LibvirtEndpoint | VirtualBoxEndpoint) else _new(kind, wish)
    if known is None:
        _require_answer(wiring, endpoint)
    keys: dict[str, object] = {"type": kind}
    keys |= (
        {"uri": endpoint.uri} if isinstance(endpoint, LibvirtEndpoint) else {"command": [*endpoint.command]}
    )
    label = {"libvirt": "libvirt", "virtualbox": "VirtualBox, by"}[kind]
    about = f"{label} {clean(endpoint.where)}"
    may = may_power(wish, known)
    powers = wish.power if known is None else not known.power.nobody
    return Chosen(kind, endpoint.name, about, keys, may, powers=powers, names=_names(endpoint))


def _names(endpoint: LibvirtEndpoint | VirtualBoxEndpoint) -> dict[str, str]:
    """Return how Vagrant calls the machines of whoever types: VirtualBox has longer names for them."""
    if not isinstance(endpoint, VirtualBoxEndpoint) or len(endpoint.command) > 1:  # another's, or elsewhere
        return {}
    return vagrant_index.names(os.environ, Path.home())


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
        _refuse_otherwise(fitting[0], wish, path)
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


def _refuse_otherwise(known: Endpoint, wish: Wish, path: Path) -> None:
    """Refuse options that say other than a configuration that is there: it is never changed."""
    groups = {f"pool:{wish.pool}"} if wish.pool else set()
    for option, given, differs in (
        ("--uri", wish.uri, isinstance(known, LibvirtEndpoint) and wish.uri != known.uri),
        (
            "--vboxmanage",
            wish.vboxmanage,
            isinstance(known, VirtualBoxEndpoint) and _words(wish) != [*known.command],
        ),
        ("--pool", wish.pool, groups != known.power.groups),
        ("--no-power", not wish.power, not known.power.nobody),
    ):
        if given and differs:
            raise ConfigError(f"{option}: {path} is there and says otherwise. Change it there, or omit this")


def _words(wish: Wish) -> list[str]:
    try:
        return shlex.split(wish.vboxmanage or surroundings.vboxmanage())
    except ValueError as error:
        raise ConfigError(f"--vboxmanage: {printable(wish.vboxmanage or '')}: {error}") from error


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
