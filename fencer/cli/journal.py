"""``fencer journal``: is it as it was written, and all of it for other programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click

from fencer.cli.looking_back import journal_of, journal_option, row_data, rows, saying_who_may
from fencer.cli.options import config_option
from fencer.cli.render import clean, say, tell
from fencer.cli.wire import Wiring
from fencer.core.text import count
from fencer.errors import JournalError
from fencer.journal.codec import unpacked
from fencer.journal.reading import verify

DIGEST = re.compile("[0-9a-f]{64}")


@click.group(short_help="Verify or export the journal.", epilog="\b\nExample:\n  fencer journal verify")
def journal() -> None:
    """Verify the journal, or write all of it for other programs. `fencer history` shows it to people."""


@journal.command(
    "verify",
    short_help="Make sure that no row was changed, left out or put in between.",
    epilog="\b\nExamples:\n  fencer journal verify\n  fencer journal verify --digest $(cat noted-digest)",
)
@config_option
@journal_option
@click.option("--digest", metavar="DIGEST", help="That was noted before: some row has to have it still.")
@click.pass_obj
def verify_file(wiring: Wiring, path: Path, journal: Path | None, digest: str | None) -> None:
    """Make sure that no row was changed, left out or put in between; it ends with 1 if one was.

    Each row carries a digest of itself and of all rows before it. Who may write the file could write all
    digests anew. So note the one that is printed somewhere else, and give it with --digest later.
    """
    noted = None if digest is None else digest.strip().lower()
    if noted is not None and not DIGEST.fullmatch(noted):
        raise click.UsageError(
            f"--digest {clean(digest)}: no digest: 64 digits, as `fencer journal verify` prints"
        )
    file, zone = journal_of(wiring, path, journal), wiring.looking_back()
    with saying_who_may():
        found = verify(file)
    if noted is not None and not any(one.digest == noted for one in rows(file)):
        tell(
            f"{clean(file)}: no row has the digest {noted}: rows were cut off at its end, or it was written "
            "anew, or it is another journal, or that row is older than what is kept."
        )
        raise click.exceptions.Exit(1)
    since = f", since {found.first.astimezone(zone.tzinfo):%Y-%m-%d %H:%M:%S %Z}" if found.first else ""
    dropped = (
        f"; {count(found.dropped, 'older row')} dropped, as journal.keep_days and max_mb say"
        if found.dropped
        else ""
    )
    tell(f"{clean(file)}: {count(found.rows, 'row')}{since}, each as it was written{dropped}.")
    say(f"digest: {found.digest or 'none yet'}")


@journal.command(
    "export",
    short_help="Write all rows as JSON, one a line.",
    epilog="\b\nExample:\n  fencer journal export | jq 'select(.kind == \"action\")'",
)
@config_option
@journal_option
@click.option("--observations", is_flag=True, help="Also all that was known: much.")
@click.pass_obj
def export(wiring: Wiring, path: Path, journal: Path | None, *, observations: bool) -> None:
    """Write all rows to stdout as JSON, one a line, the oldest first."""
    for one in rows(journal_of(wiring, path, journal)):
        told = row_data(one)
        if observations and one.packed is not None:
            told["seen"] = _seen(one.number, one.packed)
        click.echo(json.dumps(told))


def _seen(number: int, packed: bytes) -> Any:
    """Return what was known, as it is kept.

    Raises:
        JournalError: it is damaged.
    """
    try:
        return json.loads(unpacked(packed))["value"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise JournalError(f"row {number}: an observation cannot be read: {error}") from error
