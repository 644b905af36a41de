"""Installs the hookscript on a Proxmox cluster, so that no guest is ever left without it.

If a guest's hookscript is missing or not executable on a host, the guest cannot start there, migrate there,
or be recovered there. So everything is checked before anything is changed, and no guest gets the script
before it runs on every host.

It works at once for a running guest: Proxmox applies a hookscript without a restart, and reads the
configuration again whenever it runs one.

Source: pve-guest-common, GuestHelpers::check_hookscript; qemu-server, QemuServer.pm, `$fast_plug_option` and
phase pre-start; pve-manager, PVE/CLI/pvesh.pm, proxy_handler: pvesh asks another host by Proxmox' own ssh.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencer.core.text import printable
from fencer.errors import ConfigError, HypervisorError, HypervisorProtocol, HypervisorUnreachable
from fencer.setup import tools
from fencer.setup.copies import NAME, Script
from fencer.setup.files import HOOK, place_of
from fencer.setup.guests import Guest, find_guests, read_guest, refuse_locked, refuse_others
from fencer.setup.hosts import ETC_PVE, Host, read_hosts
from fencer.setup.tools import NOTHING

_AGAIN = "Run the same command again to go on from there"


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes to make, after everything was checked. In this order, and none after a failure.

    Attributes:
        volume: What guests call the script: ``STORAGE:snippets/fencer-hook``.
        script: The script and its place.
        puts: Hosts where it is put in place.
        sharers: The other hosts that share the storage. The script has to be seen running there, too.
        guests: Those that do not have it yet.
        exposed: Places where users other than root could replace the script, by host.
    """

    volume: str
    script: Script
    puts: tuple[Host, ...]
    sharers: tuple[Host, ...]
    guests: tuple[Guest, ...]
    exposed: tuple[str, ...] = ()

    @property
    def looks(self) -> tuple[Host, ...]:
        """Return the sharers that can be asked."""
        return tuple(host for host in self.sharers if host.online)

    @property
    def unseen(self) -> tuple[Host, ...]:
        """Return the sharers that cannot be asked: only the storage says that they see the script."""
        return tuple(host for host in self.sharers if not host.online)

    def giving(self, guest: Guest) -> tuple[str, ...]:
        """Return the command that gives a guest the script; only root may, no token."""
        return ("pvesh", "set", guest.path, "--hookscript", self.volume)

    def lines(self) -> Iterator[str]:
        """Return the plan as a person would type it."""
        yield "# As root on this host; pasted line by line, or piped into `sh -e`, which stops at a failure."
        for host in self.puts:
            yield _typed(host.command(self.script.put()), self.script.source)
        for host in self.looks:
            yield _typed(host.command(self.script.look()), NOTHING)
        for guest in self.guests:
            yield _typed(self.giving(guest), NOTHING)


def make_plan(
    vmids: Sequence[int],
    storage: str,
    *,
    replace: bool = False,
    copy: bool = False,
    etc_pve: Path = ETC_PVE,
) -> Plan:
    """Look at storage, guests and hosts, and change nothing.

    Args:
        vmids: The guests.
        storage: The storage's name.
        replace: Guests may lose another hookscript.
        copy: On a storage that is not shared, the script may be put on other hosts, too.
        etc_pve: The cluster's file system.

    Raises:
        ConfigError: it would not be safe, or not what was meant; the text says what would help.
        HypervisorError: something could not be read, or a host does not let root in.
    """
    config = tools.read_object(f"/storage/{storage}")
    source = place_of(HOOK)
    script = Script(source, hashlib.sha256(source.read_bytes()).hexdigest(), _folder(storage, config))
    hosts = read_hosts(etc_pve)
    _refuse_unserved(storage, config, hosts)
    places = find_guests(vmids, hosts)
    puts = [host for host in hosts.values() if host.here and host.run(script.look())]
    neighbours = [host for host in hosts.values() if not host.here]
    shared = str(config.get("shared", "0")) == "1"
    if shared:
        _refuse_unmounted(storage, script, neighbours)
    else:
        puts += _lacking(storage, script, neighbours, copy=copy)
    volume = f"{storage}:snippets/{NAME}"
    guests = [read_guest(vmid, host) for vmid, host in places.items()]
    wanting = tuple(guest for guest in guests if guest.hookscript != volume)
    refuse_locked(wanting)
    if not replace:
        refuse_others(wanting)
    online = [host for host in hosts.values() if host.online]
    exposed = tuple(f"{host}: {places}" for host, places in _ask(online, script.look_exposed()).items())
    return Plan(volume, script, tuple(puts), tuple(neighbours) if shared else (), wanting, exposed)


def carry_out(plan: Plan) -> Iterator[str]:
    """Put the script in place everywhere, then give it to the guests, and check that they have it.

    Yields:
        What was done, when it was done.

    Raises:
        ConfigError: the script is not in place somewhere; no guest was given it.
        HypervisorError: a host does not let root in; or a guest did not get it; the text says which have it.
    """
    for host in plan.puts:
        _insist(plan, host, plan.script.put(), plan.script.source)
        yield f"{host}: {plan.script.file} installed"
    for host in plan.looks:
        _insist(plan, host, plan.script.look(), NOTHING)
    for guest in plan.guests:
        try:
            _give(plan, guest)
        except HypervisorError as error:
            raise HypervisorProtocol(f"{guest.vmid}: {error}\n{_standing(plan)}. {_AGAIN}") from error
        yield f"{guest.vmid}: has it"


def _folder(storage: str, config: Mapping[str, Any]) -> Path:
    """Return the storage's folder, if it can hold hookscripts."""
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
    return Path(str(config["path"]))


def _refuse_unserved(storage: str, config: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
    """Make sure that every host has the storage."""
    served = set(str(config.get("nodes") or ",".join(hosts)).split(","))
    if unserved := sorted(hosts.keys() - served):
        raise ConfigError(
            f"{storage}: does not exist on {', '.join(unserved)}: guests could not start there any more. "
            f"`pvesm set {storage} --delete nodes` lets every host have it"
        )


def _refuse_unmounted(storage: str, script: Script, hosts: Iterable[Host]) -> None:
    """Make sure that what is put here can be looked at on the hosts that share it."""
    absent = _ask([host for host in hosts if host.online], script.reach())
    if absent:
        listed = ", ".join(map(str, absent))
        raise ConfigError(f"{storage}: is shared, but {listed} has no {script.folder}. Mount it there first")


def _lacking(storage: str, script: Script, hosts: Sequence[Host], *, copy: bool) -> list[Host]:
    """Return where the script has to be put first, if that is wanted."""
    if offline := [host.name for host in hosts if not host.online]:
        raise ConfigError(
            f"{storage} is not shared, and {', '.join(offline)} cannot be checked while offline: without "
            "the script no guest could start there. Run this again once it is back, or name a shared storage"
        )
    lacking = _ask(hosts, script.look())
    if lacking and not copy:
        found = "\n".join(f"{host}: {script.file} {why}" for host, why in lacking.items())
        raise ConfigError(
            f"{storage} is not shared, and this fencer's script does not run on every host: guests could not "
            f"start there any more. Nothing was changed\n{found}\n--copy puts it there, over ssh as root; or "
            "name a shared storage"
        )
    return list(lacking)


def _ask(hosts: Iterable[Host], question: str) -> dict[Host, str]:
    """Return which hosts say no, and why; all of them have to answer."""
    noes, silent = {}, []
    for host in hosts:
        try:
            if why := host.run(question):
                noes[host] = why
        except HypervisorUnreachable as error:
            silent.append(str(error))
    if silent:
        raise HypervisorUnreachable("\n".join([*silent, "nothing was changed"]))
    return noes


def _insist(plan: Plan, host: Host, script: str, stdin: Path) -> None:
    """Run it there, and stop if it fails."""
    try:
        why = host.run(script, stdin=stdin)
    except HypervisorUnreachable as error:
        raise HypervisorUnreachable(f"{error}\nNo guest was given the script. {_AGAIN}") from error
    if why:
        raise ConfigError(
            f"{host}: {plan.script.file} {why}. With it no guest could start there, so no guest was given "
            f"it. {_AGAIN}"
        )


def _give(plan: Plan, guest: Guest) -> None:
    tools.run(*plan.giving(guest))
    seen = read_guest(guest.vmid, guest.host).hookscript
    if seen != plan.volume:
        raise HypervisorProtocol(f"its hookscript reads {printable(seen)!r} after it was set")


def _standing(plan: Plan) -> str:
    """Read every guest again, and say which has the script: a failed order may have been carried out."""
    said = []
    for guest in plan.guests:
        try:
            has = read_guest(guest.vmid, guest.host).hookscript == plan.volume
            said.append(f"{guest.vmid} {'has it' if has else 'does not have it'}")
        except HypervisorError:
            said.append(f"{guest.vmid} cannot be read on {printable(guest.host)}")
    return ", ".join(said)


def _typed(words: Sequence[str], stdin: Path) -> str:
    return f"{shlex.join(words)} < {shlex.quote(str(stdin))}"
