"""``fencer setup systemd``: the agent as a service."""

from __future__ import annotations

from pathlib import Path

import click

from fencer.cli.options import root_option
from fencer.cli.render import clean, complain, say, say_file


@click.command(
    short_help="Print or install the units of the agent.",
    epilog="\b\nExamples:\n  fencer setup systemd\n  fencer setup systemd --install\n"
    "  fencer setup systemd --install --program /usr/local/bin/fencer\n  fencer setup systemd --remove",
)
@click.option(
    "--install",
    is_flag=True,
    help="As root: make the user, /etc/fencer and /var/lib/fencer, and put the units in place.",
)
@click.option("--remove", is_flag=True, help="As root: stop the agents and take the units away.")
@click.option("--instances", is_flag=True, help="Print fencer@.service, for several clusters on one machine.")
@click.option(
    "--program",
    type=click.Path(path_type=Path),
    show_default="this one",
    metavar="FILE",
    help="The fencer that the units start.",
)
@root_option
def systemd(*, install: bool, remove: bool, instances: bool, program: Path | None, root: Path) -> None:
    """Print the unit of the agent, with the path of the fencer that runs; with --install put it in place.

    The agent has a user of its own, and sees no home folders. So the program must be where everybody may
    run it: what `uv tool install` or `pipx` put into a home folder is refused, with what to type instead.

    Run it again after an update. Nothing is started: that is `systemctl enable --now fencer`, once there is a
    configuration. Units that a package brought are left alone.
    """
    from fencer.setup import systemd as units  # noqa: PLC0415 - as others are
    from fencer.setup.program import own_program, parts, refuse_unreachable, unreachable  # noqa: PLC0415 - as above

    if remove:
        if install or instances or program is not None:
            raise click.UsageError("--remove takes all units away, and goes with no other option.")
        for done in units.remove(root):
            say(clean(done))
        if left := units.left(root):
            say("left, because people and agents wrote there; to remove it as well:")
            for line in left:
                say(f"  {line}")
        return
    started = program or own_program()
    if install:
        if instances:
            raise click.UsageError("--install puts both units in place: leave out --instances.")
        refuse_unreachable(started)
        for done in units.install(started, root):
            say(clean(done))
        say("once /etc/fencer/config.yaml is there: systemctl enable --now fencer")
        return
    say_file(units.unit(started, instances=instances))
    if why := unreachable(parts(started)):
        complain(
            f"{started}: a service cannot run it: {why}. `fencer setup systemd --install` says what to do"
        )
