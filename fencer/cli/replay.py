"""``fencer replay INCIDENT``: what was seen then, judged by the rules of today."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from fencer import DISTRIBUTION
from fencer.cli import completing
from fencer.cli.looking_back import day_of, incident_of, journal_of, journal_option, rows, utc
from fencer.cli.options import config_option, output_option
from fencer.cli.output import emit
from fencer.cli.render import BAD, FAINT, GOOD, Cell, clean, say, table, tell
from fencer.cli.wire import Wiring
from fencer.core.text import count
from fencer.journal.again import Again, again, outcome, policies
from fencer.wording.reports import decision_text
from fencer.wording.verdicts import key_of, recorded_adjective, recorded_key


@click.command(
    short_help="Judge a recorded incident again, by today's rules.",
    epilog="\b\nExamples:\n  fencer replay 5a5ca47e\n  fencer replay last -o json",
)
@click.argument("incident", shell_complete=completing.incidents)
@config_option
@journal_option
@output_option("table", "json", "yaml")
@click.pass_obj
def replay(wiring: Wiring, incident: str, path: Path, journal: Path | None, form: str) -> None:
    """Judge what was seen in an incident again, by the rules of this fencer and the policy of that time.

    It asks nobody and does nothing. It ends with 1 if a verdict, a reason or an action is another one, or a
    decision cannot be made again.
    """
    file, zone = journal_of(wiring, path, journal), wiring.looking_back()
    found = incident_of(file, incident)
    careful = policies(rows(file))
    made = [again(one, careful.get(one.session)) for one in found.decisions]
    if form == "table":
        say(click.style(day_of(found.began.astimezone(zone.tzinfo)), fg=FAINT))
        for line in table(list(_rows(made, zone)), gap=2):
            say(line)
        tell(_told(made, found.id))
    else:
        emit(
            {"id": found.id, "fencer": version(DISTRIBUTION), "decisions": [_data(one) for one in made]}, form
        )
    if not all(one.same for one in made):
        raise click.exceptions.Exit(1)


def _rows(made: list[Again], zone: datetime) -> Iterator[list[Cell | str]]:
    for one in made:
        at, then = f"{one.entry.at.astimezone(zone.tzinfo):%H:%M:%S}", clean(one.entry.body.get("text"))
        node = clean(one.entry.node)
        if one.same:
            yield [at, node, Cell("the same", GOOD), then]
        elif one.now is None:
            yield [at, node, Cell("not made", BAD), f"{clean(one.why_not)}. Then: {then}"]
        else:
            now = clean(decision_text(one.now))
            yield [at, node, Cell("ANOTHER", BAD), f"then {_word(one.entry.body)}: {then}"]
            yield ["", "", "", f"now {_word(outcome(one.now))}: {now}"]


def _word(body: Any) -> str:
    actions = ", ".join(map(str, body.get("actions") or ())) or "nothing to do"
    return clean(f"{recorded_adjective(str(body.get('verdict')))} ({body.get('reason')}; {actions})")


def _told(made: list[Again], name: str) -> str:
    others = sum(not one.same and one.now is not None for one in made)
    unmade = sum(one.now is None for one in made)
    parts = [
        f"{count(len(made), 'decision')} of {clean(name)} by the rules of fencer {version(DISTRIBUTION)}"
    ]
    if others:
        parts.append(f"{others} {'is' if others == 1 else 'are'} another one")
    if unmade:
        parts.append(f"{unmade} cannot be made again")
    return f"{parts[0]}: {', '.join(parts[1:]) or 'all the same'}."


def _data(one: Again) -> dict[str, Any]:
    then = {key: one.entry.body.get(key) for key in ("verdict", "reason", "actions", "text")}
    then["verdict"] = recorded_key(str(then["verdict"]))
    now = None
    if one.now is not None:
        now = {**outcome(one.now), "verdict": key_of(one.now.verdict), "text": decision_text(one.now)}
    return {
        "at": utc(one.entry.at),
        "node": one.entry.node,
        "same": one.same,
        "then": then,
        "now": now,
        "why_not": one.why_not or None,
    }
