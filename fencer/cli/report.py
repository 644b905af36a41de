"""``fencer report``: one incident as a page for people, or as Markdown for a ticket."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from fencer.cli.looking_back import incident_of, journal_of, rows
from fencer.cli.options import config_option
from fencer.cli.render import clean, complain, say
from fencer.cli.wire import Wiring
from fencer.errors import ConfigError, FencerError
from fencer.report.story import Report, around
from fencer.report.story import report as told_of

STDOUT = "-"
MODE = 0o644


@click.command(
    short_help="Explain one incident: a page for people, or Markdown for a ticket.",
    epilog="\b\nExamples:\n  fencer report 5a5ca47e --html incident.html\n  fencer report --last --md",
)
@click.argument("incident", required=False, metavar="[INCIDENT]")
@click.option("--last", is_flag=True, help="The newest incident.")
@click.option(
    "--html", "page", metavar="FILE", help="Write one HTML file that needs no network; -: to stdout."
)
@click.option(
    "--md",
    "text",
    is_flag=False,
    flag_value=STDOUT,
    metavar="[FILE]",
    help="Write Markdown, to stdout without a FILE.",
)
@config_option
@click.pass_obj
def report(
    wiring: Wiring, incident: str | None, page: str | None, text: str | None, path: Path, *, last: bool
) -> None:
    """Explain one incident, out of the journal; it asks nobody.

    INCIDENT is an id of `fencer history`, the beginning of one, or `last`. The report tells what happened in
    a few sentences; kubelet, guest, fencer, pods and volumes side by side; where the time went; for how long
    each workload was down at least; and every decision with its evidence. A FILE that exists is written anew.
    """
    if page is None and text is None:
        raise click.UsageError("say in which form: --html FILE, or --md")
    if (incident is None) is not last:
        hint = f"; or is {clean(text)} one? Then put it before --md" if text not in {None, STDOUT} else ""
        raise click.UsageError(f"name one incident, or give --last{hint}")
    told = _told(wiring, path, incident or "last")
    if page is not None:
        _write(page, lambda: _as_page(told))
    if text is not None:
        _write(text, lambda: _as_markdown(told))


@contextmanager
def reported(wiring: Wiring, path: Path, file: Path | None) -> Iterator[list[str]]:
    """Write the page of an incident in the end: after the journal of what goes on inside is closed.

    Args:
        wiring: Builds the parts.
        path: The configuration.
        file: Where to; None: no page is wanted.

    Yields:
        A list that takes the id of the incident. Without one nothing is written.
    """
    incidents: list[str] = []
    try:
        yield incidents
    finally:
        try:
            if file is not None and incidents:
                _write(str(file), lambda: _as_page(_told(wiring, path, incidents[-1])))
        except FencerError as error:  # how the rest has ended counts
            complain(f"no report: {error}")


def _told(wiring: Wiring, path: Path, incident: str) -> Report:
    file = journal_of(wiring, path)
    found = incident_of(file, incident)
    return told_of(found, wiring.wall(), around(found, rows(file)))


def _as_page(told: Report) -> str:
    from fencer.report.html import page  # noqa: PLC0415 - Jinja2

    return page(told)


def _as_markdown(told: Report) -> str:
    from fencer.report.markdown import markdown  # noqa: PLC0415 - with its patterns

    return markdown(told)


def _write(where: str, made: Callable[[], str]) -> None:
    if where == STDOUT:
        click.echo(made().encode(), nl=False)
        return
    write_whole(Path(where), made())
    say(f"written: {clean(where)}")


def write_whole(path: Path, text: str) -> None:
    """Write a file completely or not at all, for everybody to read. A pipe or a device gets it as it is.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        whole = path.resolve()  # what a link leads to is written, and not the link
        descriptor, draft = tempfile.mkstemp(dir=whole.parent, prefix=f".{whole.name[:40]}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                os.fchmod(file.fileno(), MODE)
            os.replace(draft, whole)  # noqa: PTH105 - both are names, and one of them is mkstemp's
        except OSError:
            os.unlink(draft)  # noqa: PTH108 - the same
            raise
    except OSError as error:
        raise ConfigError(f"{clean(path)}: cannot be written: {error.strerror or error}") from error
