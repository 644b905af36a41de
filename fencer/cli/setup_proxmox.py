"""``fencer setup proxmox``: the lines that make fencer's user and token on Proxmox VE."""

from __future__ import annotations

from pathlib import Path

import click

from fencer.cli.options import config_option
from fencer.cli.removal import nothing_stands_option, refuse_what_stands
from fencer.cli.render import refuse_unprintable, say_script
from fencer.cli.wire import Wiring
from fencer.errors import ConfigError


@click.command(
    short_help="Print pveum lines for fencer's own user and token.",
    epilog="\b\nExamples:\n  fencer setup proxmox\n  fencer setup proxmox --power --pool k8s\n"
    "  fencer setup proxmox --pve 8 | ssh root@pve1 sh -e\n"
    "  fencer setup proxmox --power --new-token | sh -e\n"
    "  fencer setup proxmox --remove | ssh root@pve1 sh -e",
)
@click.option("--power", is_flag=True, help="The token may also stop and start guests.")
@click.option(
    "--pool",
    metavar="NAME",
    help="With --power: only guests of this pool. The token can still see all others.",
)
@click.option(
    "--pve",
    type=click.Choice(["8", "9"]),
    default="9",
    show_default=True,
    help="Major version of Proxmox VE.",
)
@click.option(
    "--token-id",
    default="fencer@pve!agent",
    show_default=True,
    metavar="USER@REALM!ID",
    help="Token to create.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    default=Path("/etc/fencer/proxmox-token"),
    show_default=True,
    metavar="FILE",
    help="File for the token's secret.",
)
@click.option(
    "--new-token",
    is_flag=True,
    help="Delete the token, and make it again: its secret was lost, or somebody else knows it. Agents with "
    "the old one are blind until they have the new file.",
)
@click.option("--remove", is_flag=True, help="Print the lines that take all of it back.")
@nothing_stands_option
@config_option
@click.pass_obj
def proxmox(  # noqa: PLR0913 - one for each option
    wiring: Wiring,
    *,
    power: bool,
    pool: str | None,
    pve: str,
    token_id: str,
    token_file: Path,
    new_token: bool,
    remove: bool,
    nothing_stands: str | None,
    path: Path,
) -> None:
    """Print the `pveum` lines that make a user, a token and roles with exactly the rights that fencer needs.

    The lines may be run again, as often as one likes: rights become those that are asked for, and the secret
    is kept. Without --power the token can only look. It must see every guest: a guest that it may not see
    looks like a deleted one. `fencer check` reads the rights back, and names what is missing or too much.

    With --remove nothing is printed while one of fencer's fences or cordons is left in the cluster that the
    configuration names: without the token nobody would lift it. Rights to power are always taken back as
    well.
    """
    from fencer.setup.proxmox import Account, parts_of, pveum_lines, removal_lines  # noqa: PLC0415 - as others

    refuse_unprintable("--token-file", str(token_file))
    if not token_file.is_absolute():
        shown = repr(str(token_file))
        raise ConfigError(f"--token-file: {shown} is not an absolute path: root will be in another folder")
    account = Account(token_id, token_file, power=power, pool=pool, version=int(pve), new_token=new_token)
    if remove and new_token:
        raise click.UsageError("Use --remove or --new-token, not both.")
    if remove:
        parts_of(token_id)  # a wrong name is reported before anybody is asked
        looked = refuse_what_stands(wiring, lambda: wiring.load(path), nothing_stands)
        say_script(removal_lines(account, looked))
        return
    if pool is not None and not power:
        raise ConfigError("--pool needs --power: without it, fencer only looks at guests")
    say_script(pveum_lines(account))
