"""Hooks of a hypervisor on this machine, for ``fencer init``: they only wake the agent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from fencer.cli.asked import Person
from fencer.cli.init_wish import HERE, Chosen
from fencer.cli.render import clean, say
from fencer.core.model import GuestRef
from fencer.errors import ConfigError, FencerError
from fencer.setup import tools


def hooks(
    person: Person, hypervisor: Chosen, guests: Sequence[GuestRef], storage: str | None
) -> Iterator[str]:
    """Install the hook of the hypervisor, where it is on this machine; yield what is left to do.

    Args:
        person: Is asked.
        hypervisor: It.
        guests: Those that are nodes.
        storage: Of Proxmox: where the script goes; None: look for one.
    """
    if hypervisor.type == "libvirt" and hypervisor.keys["uri"] == HERE:
        yield from _libvirt(person)
    elif hypervisor.type == "proxmox" and guests:
        yield from _proxmox(person, [guest.id for guest in guests], storage)


def _libvirt(person: Person) -> Iterator[str]:
    from fencer.setup.libvirt_hook import install, is_there  # noqa: PLC0415 - only where it runs

    wakes = "wakes fencer the moment a guest ends"
    allowed = os.geteuid() == 0 and (is_there() or person.agrees(f"Install libvirt's hook, which {wakes}?"))
    if not allowed:
        yield f"fencer setup libvirt --install   {wakes}; without it, a look finds that within seconds"
        return
    for line in install():
        if not line.endswith("is there already"):
            say(line)


def _proxmox(person: Person, vmids: Sequence[str], storage: str | None) -> Iterator[str]:
    from fencer.cli.setup_hook import install_hook  # noqa: PLC0415 - only where it runs
    from fencer.setup.hook import make_plan  # noqa: PLC0415 - only where it runs

    listed = ",".join(sorted(vmids, key=int))
    command = f"fencer setup hook --vmid {listed} --storage {storage or 'NAME'}"
    hint = f"{command}   on a Proxmox host, as root: wakes fencer the moment a guest ends"
    try:
        storage = storage or _storage(person)
    except FencerError as error:
        yield f"{hint} ({error})"
        return
    if storage is None:
        yield hint
        return
    if not person.agrees(
        f"Give the guests {listed} the hookscript on {storage}, which wakes fencer the moment one ends?"
    ):
        yield hint
        return
    try:
        plan = make_plan([int(one) for one in vmids], storage)
        if plan.exposed:
            raise ConfigError(f"others than root can write there: {'; '.join(plan.exposed)}")
        install_hook(plan, only_print=False)
    except FencerError as error:
        say(clean(error), err=True)
        yield hint


def _storage(person: Person) -> str | None:
    """Return a storage that can hold the script, shared ones first; None: none can.

    Raises:
        FencerError: this is no Proxmox host, or it cannot be asked.
    """
    rows = [
        row for row in tools.read_rows("/storage") if "snippets" in str(row.get("content", "")).split(",")
    ]
    rows.sort(key=lambda row: str(row.get("shared", "0")) != "1")
    names = tuple(str(row.get("storage")) for row in rows)
    if not names:
        raise ConfigError("no storage here holds snippets: `pvesm set NAME --content …,snippets` lets one")
    return person.chooses("Which storage holds the hookscript?", names, "--storage NAME")
