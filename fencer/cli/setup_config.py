"""``fencer setup config``: a configuration to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from fencer.cli import completing
from fencer.cli.render import clean, say, say_file, table


@click.command(
    short_help="Print a configuration to begin with.",
    epilog="\b\nExamples:\n  fencer setup config --list\n  fencer setup config --example proxmox-cluster\n"
    "  fencer setup config --example proxmox-cluster --write /etc/fencer/config.yaml\n"
    "  fencer setup config | less",
)
@click.option("--list", "listed", is_flag=True, help="List the examples.")
@click.option(
    "--example",
    metavar="NAME",
    shell_complete=completing.examples,
    help="A short one for one situation, instead of the whole one, which explains every key.",
)
@click.option(
    "--write",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it to a new file instead of stdout. A file that is there is left alone.",
)
def config(*, listed: bool, example: str | None, write: Path | None) -> None:
    """Print a configuration: the whole one with every key, or a short example. What to change is marked.

    All of them only observe: `mode: armed` is for when `fencer check` finds nothing to object to.
    """
    from fencer.setup import configs  # noqa: PLC0415 - as others are

    if listed:
        if example is not None or write is not None:
            raise click.UsageError("--list goes with no other option.")
        for line in table([[name, configs.about(name)] for name in configs.names()]):
            say(line)
        return
    text = configs.text(example)
    if write is None:
        say_file(text)
        return
    configs.write_new(write, text)
    say(f"{clean(write)}: written. Edit it, then: fencer check -c {clean(write)}")
