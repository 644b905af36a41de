"""``fencer setup hook``: the hookscript for guests of a Proxmox host or cluster."""

from __future__ import annotations

import re
from pathlib import Path

import click

from fencer.cli.render import clean, say
from fencer.errors import ConfigError


@click.command(
    short_help="Install the Proxmox hookscript for some guests.",
    epilog="\b\nExamples:\n  fencer setup hook --vmid 101,102 --storage cephfs --print\n"
    "  fencer setup hook --vmid 101,102 --storage cephfs",
)
@click.option("--vmid", "vmids", required=True, metavar="VMID,…", help="The guests that are nodes.")
@click.option("--storage", required=True, metavar="NAME", help="Where the script goes; best a shared one.")
@click.option("--replace", is_flag=True, help="Take another hookscript away from these guests.")
@click.option(
    "--copy", is_flag=True, help="Where the storage is not shared: put the script on the other hosts, by ssh."
)
@click.option(
    "--print", "only_print", is_flag=True, help="Look at everything, print what would be done, do nothing."
)
@click.option(
    "--etc-pve", type=click.Path(path_type=Path), default=Path("/etc/pve"), hidden=True, metavar="FOLDER"
)
def hook(*, vmids: str, storage: str, replace: bool, copy: bool, only_print: bool, etc_pve: Path) -> None:
    """Install the hookscript, by which fencer hears at once that a guest ended. As root, on a Proxmox host.

    A guest cannot start, migrate or be recovered on a host where its script is missing. So none is given it
    before the same script was seen running on every host, and everything is looked at before anything is
    changed. Other hosts are asked as Proxmox itself does, by ssh as root.

    A running guest has it at once. It tells the fencers that run on the guest's own host.
    """
    from fencer.setup.hook import carry_out, make_plan  # noqa: PLC0415 - as others are

    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", storage):
        raise ConfigError(f"--storage: {storage!r} cannot be the name of a storage")
    plan = make_plan(_numbers(vmids), storage, replace=replace, copy=copy, etc_pve=etc_pve)
    # Beside the lines that may be piped into a shell.
    for guest in plan.guests:
        if guest.hookscript:
            say(f"{guest.vmid}: loses its hookscript {clean(guest.hookscript)}", err=only_print)
    for host in plan.unseen:
        say(f"{host}: is offline and cannot be looked at; the storage is shared with it", err=only_print)
    if only_print:
        for line in plan.lines():
            say(clean(line))
        return
    for done in carry_out(plan):
        say(clean(done))
    if not plan.guests:
        say("the guests had it already")
    say("it tells the fencers of its own host: one has to run on every host where these guests may run")


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"--vmid: {text!r} is not like 101,102")
    return [int(part) for part in parts]
