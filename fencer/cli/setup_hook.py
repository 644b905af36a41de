"""``fencer setup hook``: the hookscript for guests of a Proxmox host or cluster."""

from __future__ import annotations

import re

import click

from fencer.cli.render import clean, say
from fencer.errors import ConfigError


@click.command(
    short_help="Install the Proxmox hookscript for some guests.",
    epilog="\b\nExamples:\n  fencer setup hook --vmid 101,102 --storage cephfs --print\n"
    "  fencer setup hook --vmid 101,102 --storage cephfs",
)
@click.option("--vmid", "vmids", required=True, metavar="VMID,…", help="The guests that are nodes.")
@click.option("--storage", required=True, metavar="NAME", help="Where the script goes: a shared one, best.")
@click.option("--replace", is_flag=True, help="Take another hookscript away from these guests.")
@click.option(
    "--print", "only_print", is_flag=True, help="Look at everything, say what would be done, do nothing."
)
def hook(*, vmids: str, storage: str, replace: bool, only_print: bool) -> None:
    """Install the hookscript, by which fencer hears at once that a guest ended. As root, on a Proxmox host.

    Not without the script on every host: a guest cannot start, migrate or be recovered where it is missing.
    So the storage must be shared, or the file be there already, executable, on each of the other hosts. It
    tells the fencers that run on the guest's own host, and waits for nobody.
    """
    from fencer.setup.hook import carry_out, make_plan  # noqa: PLC0415 - as others are

    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", storage):
        raise ConfigError(f"--storage: {storage!r} cannot be the name of a storage")
    plan = make_plan(_numbers(vmids), storage, replace=replace)
    for wish in plan.wishes:
        if wish.before:
            say(f"{wish.vmid}: loses its hookscript {clean(wish.before)}")
    if only_print:
        for line in plan.lines():
            say(clean(line))
        return
    carry_out(plan)
    say(f"{clean(plan.file)}: installed")
    for wish in plan.wishes:
        say(f"{wish.vmid}: has it")
    if not plan.wishes:
        say("the guests had it already")
    say("it tells the fencers of its own host: one has to run on every host where these guests may run")


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"--vmid: {text!r} is not like 101,102")
    return [int(part) for part in parts]
