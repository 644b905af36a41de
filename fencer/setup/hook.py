"""Installs the hookscript on a Proxmox cluster, so that no guest is ever left without it.

A guest whose hookscript is missing, or not executable, on the host where it is to run cannot be started
there, nor migrate there, nor be recovered there. So everything is looked at before anything is changed.

Source: facts of pve-guest-common, GuestHelpers::check_hookscript; qemu-server, phase pre-start.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencer.core.text import printable
from fencer.errors import ConfigError, HypervisorDenied, HypervisorProtocol
from fencer.setup import tools
from fencer.setup.files import HOOK, packaged

NAME = "fencer-hook"
_MODE = 0o755


@dataclass(frozen=True, slots=True)
class Wish:
    """One guest that is to have the hookscript.

    Attributes:
        vmid: Its number.
        host: Where it is.
        here: That is this host.
        before: The hookscript that it has; empty: none.
    """

    vmid: int
    host: str
    here: bool
    before: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done, after everything was looked at.

    Attributes:
        volume: What guests call the script: ``STORAGE:snippets/fencer-hook``.
        file: Where it lies.
        shared: Every host sees that file.
        wishes: Guests that do not have it yet.
        script: What is to lie there.
    """

    volume: str
    file: Path
    shared: bool
    wishes: tuple[Wish, ...]
    script: bytes

    def commands(self) -> Iterator[tuple[str, ...]]:
        """Return what gives the guests their script."""
        for wish in self.wishes:
            words = ("qm", "set", str(wish.vmid), "--hookscript", self.volume)
            yield words if wish.here else tools.on(wish.host, *words)

    def lines(self) -> Iterator[str]:
        """Return the plan as a person would type it."""
        yield f"install the hookscript of this fencer, mode 0755, as {shlex.quote(str(self.file))}"
        for words in self.commands():
            yield shlex.join(words)


def make_plan(vmids: Sequence[int], storage: str, *, replace: bool) -> Plan:
    """Look at storage, hosts and guests, and change nothing.

    Args:
        vmids: The guests.
        storage: The storage's name.
        replace: Guests may lose another hookscript.

    Raises:
        ConfigError: it would not be safe, or not what was meant; with what would make it so.
        HypervisorError: something could not be read.
    """
    config = _object(tools.read(f"/storage/{storage}"), f"/storage/{storage}")
    hosts = _hosts()
    file = _file(storage, config)
    shared = str(config.get("shared", "0")) == "1"
    _refuse_where_missing(storage, config, hosts, file, shared=shared)
    volume = f"{storage}:snippets/{NAME}"
    wishes = [_wish(vmid, place, hosts) for vmid, place in _places(vmids)]
    others = [wish for wish in wishes if wish.before not in {"", volume}]
    if others and not replace:
        listed = ", ".join(f"{wish.vmid} has {printable(wish.before)}" for wish in others)
        raise ConfigError(f"another hookscript is in the way: {listed}. --replace takes it away from them")
    wanting = tuple(wish for wish in wishes if wish.before != volume)
    return Plan(volume, file, shared, wanting, packaged(HOOK))


def carry_out(plan: Plan) -> None:
    """Install the file, give it to the guests, and read back that they have it.

    Raises:
        ConfigError: the file cannot be made executable there.
        HypervisorError: a guest did not take it.
    """
    _install(plan.file, plan.script)
    for wish, words in zip(plan.wishes, plan.commands(), strict=True):
        tools.run(*words)
        seen = _hookscript(wish.vmid, wish.host)
        if seen != plan.volume:
            raise HypervisorProtocol(
                f"{wish.vmid}: its hookscript reads {printable(seen)!r} after it was set"
            )


def _hosts() -> Mapping[str, bool]:
    """Return all hosts by name, with whether it is this one."""
    rows = tools.read("/cluster/status")
    if not isinstance(rows, list):
        raise HypervisorProtocol("/cluster/status: no list")
    nodes = [_object(row, "/cluster/status") for row in rows]
    hosts = {
        str(row["name"]): str(row.get("local", "0")) == "1" for row in nodes if row.get("type") == "node"
    }
    if sum(hosts.values()) != 1:
        raise HypervisorProtocol("/cluster/status: does not say which host this is")
    return hosts


def _file(storage: str, config: Mapping[str, Any]) -> Path:
    """Return where the script is to lie on that storage."""
    content = str(config.get("content", "")).split(",")
    if "snippets" not in content:
        wanted = ",".join([*filter(None, content), "snippets"])
        raise ConfigError(
            f"{storage}: holds no snippets, but {', '.join(filter(None, content)) or 'nothing'}. "
            f"`pvesm set {storage} --content {wanted}` lets it"
        )
    if str(config.get("disable", "0")) == "1":
        raise ConfigError(f"{storage}: is disabled. `pvesm set {storage} --disable 0` enables it")
    if "snippets" in str(config.get("content-dirs", "")):
        raise ConfigError(f"{storage}: has its snippets elsewhere (content-dirs): name another storage")
    if not config.get("path"):
        raise ConfigError(f"{storage}: is of type {config.get('type')}, without files. Name one with a path")
    return Path(str(config["path"])) / "snippets" / NAME


def _refuse_where_missing(
    storage: str, config: Mapping[str, Any], hosts: Mapping[str, bool], file: Path, *, shared: bool
) -> None:
    """Make sure that every host has the storage, and the script on it."""
    served = set(str(config.get("nodes") or ",".join(hosts)).split(","))
    if unserved := sorted(hosts.keys() - served):
        raise ConfigError(
            f"{storage}: does not exist on {', '.join(unserved)}: guests could not start there any more. "
            f"`pvesm set {storage} --delete nodes` lets every host have it"
        )
    if shared:
        return
    others = [host for host, here in hosts.items() if not here]
    # Without arguments it does nothing and succeeds, if it is there, may be executed, and finds its Python.
    if missing := [host for host in others if not tools.succeeds(*tools.on(host, str(file)))]:
        raise ConfigError(
            f"{storage} is not shared, and {file} cannot be executed on {', '.join(missing)} (tried by ssh "
            "as root): guests could not start there any more. Copy it there first, executable, or name a "
            "shared storage"
        )


def _places(vmids: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Return on which host each guest is."""
    rows = tools.read("/cluster/resources", "--type", "vm")
    if not isinstance(rows, list):
        raise HypervisorProtocol("/cluster/resources: no list")
    guests = [_object(row, "/cluster/resources") for row in rows]
    kinds = {str(row.get("vmid")): (str(row.get("type", "")), str(row.get("node"))) for row in guests}
    for vmid in dict.fromkeys(vmids):
        kind, host = kinds.get(str(vmid), ("", ""))
        if not kind:
            raise ConfigError(f"{vmid}: no such guest. `qm list` lists those of a host")
        if kind != "qemu":
            raise ConfigError(f"{vmid}: is a container: fencer looks after virtual machines")
        yield vmid, host


def _wish(vmid: int, host: str, hosts: Mapping[str, bool]) -> Wish:
    return Wish(vmid, host, hosts.get(host, False), _hookscript(vmid, host))


def _hookscript(vmid: int, host: str) -> str:
    path = f"/nodes/{host}/qemu/{vmid}/config"
    return str(_object(tools.read(path), path).get("hookscript", ""))


def _install(file: Path, script: bytes) -> None:
    """Put the script in place as a whole: a guest may be starting at this moment."""
    try:
        file.parent.mkdir(exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{NAME}.")
        try:
            with os.fdopen(descriptor, "wb") as written:
                written.write(script)
            Path(draft).chmod(_MODE)
            _refuse_unless_it_runs(draft, file.parent)
            Path(draft).replace(file)
        finally:
            Path(draft).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written: {error.strerror}") from error


def _refuse_unless_it_runs(draft: str, folder: Path) -> None:
    """Start it as Proxmox would, without anything to do: mounted noexec, or without its Python, it cannot."""
    try:
        runs = tools.succeeds(draft)
    except (ConfigError, HypervisorDenied):
        runs = False
    if not runs:
        raise ConfigError(
            f"{folder}: what lies there cannot be executed, or its Python is missing here (named in the "
            "script's first line). No guest could start with such a hookscript"
        )


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise HypervisorProtocol(f"{place}: no object, but {printable(repr(value)[:80])}")
    return value
