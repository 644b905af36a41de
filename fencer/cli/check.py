"""``fencer check``: is everything there that fencer needs, before it is armed."""

from __future__ import annotations

from pathlib import Path

import click

from fencer.cli.asking import asking
from fencer.cli.options import config_option, output_option
from fencer.cli.output import emit
from fencer.cli.render import BAD, DOUBTFUL, FAINT, GOOD, Cell, clean, complain, say, table
from fencer.cli.wire import Quiet, Wiring, is_missing, log_plainly
from fencer.errors import ConfigError
from fencer.preflight.collect import collect
from fencer.preflight.files import refuse_config
from fencer.preflight.finding import Level
from fencer.preflight.judge import judge
from fencer.preflight.report import Report
from fencer.runtime.world import API

COLOURS = {Level.OK: GOOD, Level.NOTE: FAINT, Level.WARN: DOUBTFUL, Level.FAIL: BAD}


@click.command(
    short_help="Check that everything fencer needs is there.",
    epilog="\b\nExamples:\n  fencer check\n  fencer check -c ./fencer.yaml -o json",
)
@config_option
@output_option("table", "json", "yaml")
@click.pass_obj
def check(wiring: Wiring, path: Path, form: str) -> None:
    """Check everything that fencer needs before it is armed: configuration, rights, hypervisors, identity.

    It changes nothing. Exit code 0: ready; 1: something fails; 2: the configuration itself is wrong.
    """
    if not checked(wiring, path, form):
        raise click.exceptions.Exit(1)


def checked(wiring: Wiring, path: Path, form: str) -> bool:
    """Check everything, and show what was found; return whether nothing fails.

    Args:
        wiring: Builds what is asked.
        path: The configuration.
        form: ``table``, ``json`` or ``yaml``.

    Raises:
        click.exceptions.Exit: the configuration itself is wrong, as was shown.
    """
    try:
        config = wiring.load(path)
    except ConfigError as error:
        wrong = str(error).splitlines()
        why = "see below" if form == "table" and len(wrong) > 1 else "; ".join(wrong)
        why = why.removeprefix(f"{path}: ")
        refused = refuse_config(path, why, missing=is_missing(path))
        show(Report(path, None, (refused,)), form)
        complain(str(error))
        raise click.exceptions.Exit(error.exit_code) from error
    log_plainly()
    with asking((API, *(endpoint.name for endpoint in config.endpoints)), wiring.clock().now_s):
        facts = collect(path, config, wiring, Quiet())
    report = Report(path, config.policy.mode, tuple(judge(facts)))
    show(report, form)
    return not report.failed


def show(report: Report, form: str) -> None:
    """Write the result of a check.

    Args:
        report: It.
        form: ``table``, ``json`` or ``yaml``.
    """
    if form != "table":
        emit(report.data(), form)
        return
    rows: list[list[Cell | str]] = []
    for one in report.findings:
        level = Cell(one.level.value, COLOURS[one.level])
        rows.append([clean(one.what), clean(one.about), level, clean(one.note)])
        rows.extend(["", "", "", clean(text)] for text in one.points)
        rows.extend(["", "", "", f"try: {clean(text)}"] for text in one.tries)
    for line in table(rows):
        say(line)
    say(click.style(report.verdict, bold=True))
