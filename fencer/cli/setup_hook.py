"""``fencer setup hook``: the hookscript for guests of a Proxmox host or cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fencer.cli.options import config_option
from fencer.cli.removal import nothing_stands_option, refuse_what_stands
from fencer.cli.render import clean, say, say_script
from fencer.cli.wire import Wiring
from fencer.core.standing import hooked
from fencer.core.text import listing
from fencer.errors import ConfigError

if TYPE_CHECKING:
    from fencer.setup.hook import Plan


@click.command(
    short_help="Install the Proxmox hookscript for some guests.",
    epilog="\b\nExamples:\n  fencer setup hook --vmid 101,102 --storage cephfs --print\n"
    "  fencer setup hook --vmid 101,102 --storage cephfs\n  fencer setup hook --remove",
)
@click.option("--vmid", "vmids", metavar="VMID,…", help="The guests that are nodes.")
@click.option("--storage", metavar="NAME", help="Storage for the script; best a shared one.")
@click.option("--replace", is_flag=True, help="Replace another hookscript that these guests have.")
@click.option(
    "--copy", is_flag=True, help="If the storage is not shared: put the script on the other hosts, over ssh."
)
@click.option(
    "--print", "only_print", is_flag=True, help="Look at everything, print what would be done, do nothing."
)
@click.option(
    "--etc-pve", type=click.Path(path_type=Path), default=Path("/etc/pve"), hidden=True, metavar="FOLDER"
)
@click.option("--remove", is_flag=True, help="Take the hookscript off these guests, or off all that have it.")
@nothing_stands_option
@config_option
@click.pass_obj
def hook(  # noqa: PLR0913 - one for each option
    wiring: Wiring,
    *,
    vmids: str | None,
    storage: str | None,
    replace: bool,
    copy: bool,
    only_print: bool,
    etc_pve: Path,
    remove: bool,
    nothing_stands: str | None,
    path: Path,
) -> None:
    """Install the hookscript that tells fencer at once when a guest ends.

    Run this as root, on a Proxmox host. A guest cannot start, migrate or be recovered where its script is
    missing. So no guest gets it before the same script was seen running on every host, and everything is
    checked before anything is changed. Other hosts are asked over ssh as root, as Proxmox itself does.

    It works at once for running guests, too. It tells each fencer that runs on the guest's own host.

    With --remove nothing is done while a cordon that the hookscript asked for is left in the cluster that the
    configuration names. The script file stays: a guest that names it cannot start without it.
    """
    if remove:
        if storage is not None or replace or copy:
            raise click.UsageError("--remove takes no storage, and puts nothing anywhere.")
        numbers = [] if vmids is None else _numbers(vmids)
        looked = refuse_what_stands(wiring, lambda: wiring.load(path), nothing_stands, hooked)
        _remove(numbers, etc_pve, looked, only_print=only_print)
        return
    if vmids is None or storage is None:
        raise click.UsageError("Name the guests with --vmid, and with --storage where the script goes.")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", storage):
        raise ConfigError(f"--storage: {storage!r} cannot be the name of a storage")
    from fencer.setup.hook import make_plan  # noqa: PLC0415 - as others are

    plan = make_plan(_numbers(vmids), storage, replace=replace, copy=copy, etc_pve=etc_pve)
    install_hook(plan, only_print=only_print)


def install_hook(plan: Plan, *, only_print: bool) -> None:
    """Carry a plan out, or print it; say what is done."""
    from fencer.setup.hook import carry_out  # noqa: PLC0415 - as others are

    # To stderr: stdout may be piped into a shell.
    for guest in plan.guests:
        if guest.hookscript:
            say(f"{guest.vmid}: loses its hookscript {clean(guest.hookscript)}", err=only_print)
    for host in plan.unseen:
        say(f"{host}: is offline and cannot be looked at; the storage is shared with it", err=only_print)
    for place in plan.exposed:
        say(
            f"warning: {place} can be written by others than root: what they write runs as root on every "
            "host, at the next start or stop of a guest. Run `chmod go-w` and `chown root` there, or name "
            "another storage",
            err=True,
        )
    if only_print:
        say_script(plan.lines())
        return
    for done in carry_out(plan):
        say(clean(done))
    if not plan.guests:
        say("the guests had it already")
    say("it tells only the fencers on its own host: one has to run on every host where these guests may run")


def _remove(vmids: Sequence[int], etc_pve: Path, looked: str, *, only_print: bool) -> None:
    from fencer.setup.unhook import carry_out, plan_unhooking  # noqa: PLC0415 - as others are

    plan = plan_unhooking(vmids, etc_pve)
    if only_print:
        say_script((f"# {looked}", *plan.lines()))
    else:
        for done in carry_out(plan):
            say(clean(done))
        if not plan.guests:
            say("none of these guests has it" if vmids else "no guest has it")
    if plan.left:
        say(
            f"still named by {listing(plan.left)}: none of them can start where the script is missing",
            err=only_print,
        )
    elif plan.guests:
        say(f"no guest names it any more; backups may. {listing(plan.volumes)} may go", err=only_print)


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"--vmid: {text!r} is not like 101,102")
    return [int(part) for part in parts]
