"""``fencer report``: one incident as a page for people, or as Markdown for a ticket."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from fencer.cli import completing
from fencer.cli.looking_back import incident_of, journal_of, journal_option, rows
from fencer.cli.options import config_option
from fencer.cli.planned import SURVEY_S
from fencer.cli.render import clean, complain, say
from fencer.cli.wire import Wiring, connected
from fencer.errors import ClusterDenied, ConfigError, FencerError
from fencer.report.story import Report, around
from fencer.report.story import report as told_of
from fencer.report.workloads import Replacement
from fencer.runtime.world import API
from fencer.setup.files import require_folder_of

STDOUT = "-"
MODE = 0o644
DISKS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})
"""What a disk says that does not take a file, whatever its name."""


class Unwritten(ConfigError):
    """The file that was named cannot be written."""


class Untaken(Unwritten):
    """The disk does not take it, whatever its name."""

    exit_code = 1


@click.command(
    short_help="Explain one incident: a page for people, or Markdown for a ticket.",
    epilog="\b\nExamples:\n  fencer report 5a5ca47e --html incident.html\n  fencer report --last --md",
)
@click.argument("incident", required=False, metavar="[INCIDENT]", shell_complete=completing.incidents)
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
@click.option(
    "--replacements",
    is_flag=True,
    help="Also ask the cluster which pods took the places of those that were cleared.",
)
@config_option
@journal_option
@click.pass_obj
def report(
    wiring: Wiring,
    incident: str | None,
    page: str | None,
    text: str | None,
    path: Path,
    journal: Path | None,
    *,
    last: bool,
    replacements: bool,
) -> None:
    """Explain one incident, out of the journal; without --replacements it asks nobody.

    INCIDENT is an id of `fencer history`, the beginning of one, or `last`. The report tells what happened in
    a few sentences; kubelet, guest, fencer, pods and volumes side by side; where the time went; for how long
    each workload was down at least; and every decision with its evidence. A FILE that exists is written anew.
    """
    if page is None and text is None:
        raise click.UsageError("say in which form: --html FILE, or --md")
    if (incident is None) is not last:
        hint = f"; or is {clean(text)} one? Then put it before --md" if text not in {None, STDOUT} else ""
        raise click.UsageError(f"name one incident, or give --last{hint}")
    now = _pods_now(wiring, path) if replacements else ()
    told = _told(wiring, journal_of(wiring, path, journal), incident or "last", now)
    if page is not None:
        write(page, lambda: as_page(told))
    if text is not None:
        write(text, lambda: _as_markdown(told))


def require_report(wiring: Wiring, path: Path, file: Path) -> None:
    """Make sure, before anything is done, that a report of it could be written.

    Raises:
        ConfigError: no journal is kept, or there is no such folder, or it cannot be written there.
    """
    if wiring.load(path).journal is None:
        raise ConfigError(f"{clean(file)}: no report without a journal: journal.enabled is false")
    require_writable(file)


def require_writable(file: Path) -> None:
    """Make sure, before anything is done, that a page could be written there.

    Raises:
        ConfigError: there is no such folder, or it cannot be written there.
    """
    try:
        require_folder_of(file)
        writable = not file.is_dir() and os.access(file if file.exists() else file.parent, os.W_OK)
    except OSError as error:  # no such name can be
        raise Unwritten(f"{clean(file)}: cannot be written: {error.strerror}") from error
    if not writable:
        raise Unwritten(f"{clean(file)}: cannot be written")


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
                write(str(file), lambda: as_page(_told(wiring, journal_of(wiring, path), incidents[-1])))
        except FencerError as error:  # how the rest has ended counts
            later = f". Later: fencer report {clean(incidents[-1])} --html FILE"
            complain(f"no report: {error}{later if isinstance(error, Unwritten) else ''}")


def _told(wiring: Wiring, file: Path, incident: str, now: Sequence[Replacement] = ()) -> Report:
    found = incident_of(file, incident)
    return told_of(found, wiring.looking_back(), around(found, rows(file)), now)


def _pods_now(wiring: Wiring, path: Path) -> tuple[Replacement, ...]:
    """Return the cluster's pods as they are now.

    Raises:
        ClusterError: they could not be listed.
    """
    with connected(wiring, path) as parts, parts.asking():
        surveyor = wiring.surveyor(parts.config)
        seen = parts.asker.ask(API, surveyor.survey, SURVEY_S).pods
    if seen.why_not:
        raise ClusterDenied(f"the pods of the cluster could not be listed: {seen.why_not}")
    pods = ((one.pod, one.node) for one in seen.items)
    return tuple(
        Replacement(str(pod), pod.controller, node, pod.created_utc, pod.ready) for pod, node in pods
    )


def as_page(told: Report) -> str:
    """Return a report as one page of HTML."""
    from fencer.report.html import page  # noqa: PLC0415 - Jinja2

    return page(told)


def _as_markdown(told: Report) -> str:
    from fencer.report.markdown import markdown  # noqa: PLC0415 - with its patterns

    return markdown(told)


def write(where: str, made: Callable[[], str], *, quietly: bool = False) -> None:
    """Write a report to a file, whole or not at all, or to stdout.

    Args:
        where: The file; ``-``: stdout.
        made: Makes it.
        quietly: Stdout is for something else: say on stderr that it is written.

    Raises:
        Unwritten: it cannot be written.
    """
    if where == STDOUT:
        click.echo(made().encode(), nl=False)
        return
    write_whole(Path(where), made())
    say(f"written: {clean(where)}", err=quietly)


def write_whole(path: Path, text: str) -> None:
    """Write a file completely or not at all, for everybody to read. A pipe or a device gets it as it is.

    Raises:
        Unwritten: it cannot be written.
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
        kind = Untaken if error.errno in DISKS else Unwritten
        raise kind(f"{clean(path)}: cannot be written: {error.strerror or error}") from error
