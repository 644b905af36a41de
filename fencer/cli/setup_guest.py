"""``fencer setup guest``: the program that drains a node from inside, as one file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fencer.cli.render import clean, say

STDOUT = "-"


@click.command(
    short_help="Write fencer-guest, which drains a node from inside.",
    epilog="\b\nExamples:\n  fencer setup guest --write fencer-guest\n"
    "  fencer setup guest --write - | ssh root@k8s-1 'cat > fencer-guest && python3 fencer-guest install'",
)
@click.option(
    "--write",
    metavar="FILE",
    help="Where to write it, to be run; -: to stdout. One that is the same is left alone.",
)
@click.option("--replace", is_flag=True, help="Replace another file, such as that of an older fencer.")
def guest(*, write: str | None, replace: bool) -> None:
    """Write fencer-guest: one file without dependencies, for the nodes themselves.

    In a node it evicts the pods before a shutdown, and lifts the cordon after the boot. It runs on Python 3.8
    or newer. Copy it there, then, as root: `./fencer-guest install`; `./fencer-guest check` says what is
    missing.
    """
    from fencer.guest.build import build  # noqa: PLC0415 - reads all of its sources
    from fencer.setup.machine import put, refuse_other  # noqa: PLC0415 - as others are

    if write is None:
        raise click.UsageError("Name a file with --write, or - for stdout: it is a program, and no text.")
    program = build()
    if write == STDOUT:
        if sys.stdout.isatty():
            raise click.UsageError("Stdout is a terminal, and fencer-guest is no text: name a file.")
        sys.stdout.buffer.write(program)
        return
    path = Path(write)
    if not replace:
        refuse_other(path, program)
    say(clean(put(path, program, 0o755)))
    say(f"copy it to each node, and there, as root: ./{clean(path.name)} install")
