"""``fencer history [ID]``: what happened, from the journal; and one incident, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from fencer.cli import completing
from fencer.cli.looking_back import (
    Since,
    as_data,
    day_of,
    incident_of,
    journal_of,
    journal_option,
    row_data,
    rows,
)
from fencer.cli.options import config_option, output_option
from fencer.cli.output import emit
from fencer.cli.render import BAD, DOUBTFUL, FAINT, GOOD, Cell, clean, say, sign, table, tell
from fencer.cli.wire import Wiring
from fencer.core.model import Intent, Outcome
from fencer.core.text import age, count
from fencer.journal.folding import incidents
from fencer.journal.headline import headline, moment_of
from fencer.journal.incidents import ALARM, NOTES, PROVED, Incident, RaisedAlarm, raises_alarm, ready_unheeded
from fencer.journal.rows import BY_HAND, Entry, Kind
from fencer.wording.reports import NOT_READY, lead_of

MOST = 40
"""So many incidents are listed, unless --all says otherwise."""

FENCING = frozenset({Intent.WATCH.value, Intent.FENCE.value, Intent.UNFENCE.value})


@click.command(
    short_help="Show what happened: each incident in a line, or one step by step.",
    epilog="\b\nExamples:\n  fencer history\n  fencer history 5a5ca47e\n"
    "  fencer history --since 7d --node k8s-2",
)
@click.argument("incident", required=False, metavar="[INCIDENT]", shell_complete=completing.incidents)
@config_option
@journal_option
@click.option("--since", type=Since(), metavar="TIME", help="Only what went on since: 12h, 7d, or a day.")
@click.option("--node", metavar="NODE", shell_complete=completing.nodes, help="Only of this node.")
@click.option("--all", "everything", is_flag=True, help="Also what passed by itself, and all that is kept.")
@output_option("table", "json", "yaml")
@click.pass_obj
def history(
    wiring: Wiring,
    incident: str | None,
    path: Path,
    journal: Path | None,
    since: timedelta | None,
    node: str | None,
    *,
    everything: bool,
    form: str,
) -> None:
    """Show what fencer saw and did, out of its journal; it asks nobody.

    Without INCIDENT: a line for each incident, the newest last. With one (its id, the beginning of it, or
    `last`): what was seen, meant and done, with the proof before everything that cannot be taken back.
    """
    file, zone = journal_of(wiring, path, journal), wiring.looking_back()
    if incident is not None:
        if since is not None or node is not None:
            raise click.UsageError("--since and --node choose from all incidents: leave INCIDENT out")
        show_one(incident_of(file, incident), zone, form)
        return
    oldest = None if since is None else zone.astimezone(UTC) - since
    known = [one for one in incidents(rows(file)) if _is_wanted(one, oldest, node, everything=everything)]
    if form != "table":
        emit([as_data(one, headline(one, moment_of(one, UTC))) for one in known], form)
        return
    shown = known if everything else known[-MOST:]
    if not shown:
        say(
            "nothing has happened, as far as the journal goes back."
            if oldest is None
            else "nothing has happened since then."
        )
        return
    if len(known) > len(shown):
        say(f"{count(len(known) - len(shown), 'older incident')}; --all shows them")
    show_list(shown, zone)


def _is_wanted(one: Incident, oldest: datetime | None, node: str | None, *, everything: bool) -> bool:
    young = oldest is None or one.last >= oldest
    about = node is None or node in one.node.split(", ")
    return young and about and (everything or one.worth_telling)


def show_list(shown: Sequence[Incident], zone: datetime) -> None:
    """Write a line for each incident, below a line for each day.

    Args:
        shown: The incidents.
        zone: Has the time zone of people.
    """
    day = ""
    for one in shown:
        began = one.began.astimezone(zone.tzinfo)
        if day_of(began) != day:
            day = day_of(began)
            say(click.style(day, fg=FAINT))
        told = headline(one, moment_of(one, zone.tzinfo))
        words = (f"{began:%H:%M}", clean(one.node), clean(told), f"({clean(one.id)})")
        text = " ".join(filter(None, words))
        looks = one.refusal is not None or one.alarms
        colour = BAD if one.fence is None and looks else None
        for line in table([["", Cell(text, colour)]], gap=2):
            say(line)


def show_one(incident: Incident, zone: datetime, form: str) -> None:
    """Write one incident, step by step.

    Args:
        incident: The incident.
        zone: Has the time zone of people.
        form: ``table``, ``json`` or ``yaml``.
    """
    if form != "table":
        told = headline(incident, moment_of(incident, UTC))
        emit({**as_data(incident, told), "rows": [row_data(one) for one in incident.entries]}, form)
        return
    told = headline(incident, moment_of(incident, zone.tzinfo))
    began = incident.began.astimezone(zone.tzinfo)
    who = f"{clean(incident.node)} ({clean(incident.guest)})" if incident.guest else clean(incident.node)
    tell(": ".join(filter(None, (clean(incident.id), who, clean(told)))), bold=True)
    say(click.style(f"  {day_of(began)}", fg=FAINT))
    say()
    for line in table(list(_timeline(incident, zone)), indent=2, gap=2):
        say(line)


def _timeline(incident: Incident, zone: datetime) -> Iterator[list[Cell | str]]:
    """Give a row for each step; below it the proof, if it cannot be undone, or what an alarm rests on."""
    first, day, told, stands = incident.entries[0], "", "", False
    alarms = {one.entry.number: one for one in incident.alarms}
    for number, one in enumerate(incident.entries):
        word, text, colour = _step(one, incident.entries[number + 1 :], fenced=incident.is_fenced_at(one))
        proves = one.kind is Kind.DECISION and bool(PROVED & set(one.body.get("actions") or ()))
        says = f"{_readiness(one)}{one.body.get('text', '')}" if one.kind is Kind.DECISION else ""
        ends = one.kind is Kind.DECISION and stands and not raises_alarm(one)
        stands = raises_alarm(one) if one.kind is Kind.DECISION else stands
        if not word or (says and says == told and not (proves or ends)):
            continue  # agent and command, side by side, see the same
        told = says or told
        at = one.at.astimezone(zone.tzinfo)
        new = (
            ""
            if f"{at:%Y-%m-%d}" in {day, f"{first.at.astimezone(zone.tzinfo):%Y-%m-%d}"}
            else f"{at:%Y-%m-%d} "
        )
        day = f"{at:%Y-%m-%d}"
        yield [
            f"{new}{at:%H:%M:%S}",
            Cell(f"+{age(incident.seconds(one))}", FAINT),
            Cell(word, colour),
            clean(text + _person(one)),
        ]
        if proves:
            yield from _proof(one)
        if one.number in alarms:
            yield from _alarm_checks(alarms[one.number])


def _person(one: Entry) -> str:
    by_hand = one.kind is Kind.ACTION and one.by.endswith(BY_HAND)
    return f" (by {one.by.removesuffix(BY_HAND)})" if by_hand else ""


def _step(  # noqa: PLR0911 - one a kind
    one: Entry, later: Sequence[Entry], *, fenced: bool
) -> tuple[str, str, str | None]:
    """Return a step: a word, the rest, and the colour that repeats the word. Empty: it is not told."""
    body = one.body
    text = str(body.get("text", ""))
    match one.kind:
        case Kind.DECISION:
            verdict = str(body.get("verdict"))
            fencing = body.get("intent") in FENCING
            lead = lead_of(verdict, str(body.get("reason")), fenced=fenced) if fencing else ""
            return "seen", _readiness(one) + lead + text, BAD if verdict == "refuse" else None
        case Kind.INTENT if not _is_answered(one, later):
            return (
                "meant",
                f"{body.get('action')}: what came of it is not known: whoever did it has ended",
                BAD,
            )
        case Kind.ACTION:
            return _deed(body, text)
        case Kind.COMMAND:
            return "asked", f"{one.by}: fencer {body.get('words')}", None
        case Kind.ENDED:
            code = body.get("code")
            return "ended", "done" if code == 0 else f"with code {code}", None if code == 0 else DOUBTFUL
        case Kind.NOTICE:
            return "notice", text, DOUBTFUL if body.get("warning") else None
        case Kind.LOST:
            return "lost", f"{count(int(body.get('rows', 0)), 'row')} of the journal, before this one", BAD
    return "", "", None


def _readiness(one: Entry) -> str:
    """Return whether a node is Ready, where nothing else tells it: while fencing is paused."""
    ready = ready_unheeded(one)
    return "" if ready is None else "Ready; " if ready else NOT_READY


def _deed(body: Mapping[str, Any], text: str) -> tuple[str, str, str | None]:
    """Return what was done: a word, the rest, and the colour that repeats the word."""
    action = body.get("action")
    if action == ALARM:
        return "ALARM", text, BAD
    if (body.get("done") or {}).get("changed"):
        return "again", f"{action}: changed meanwhile by somebody else, looked at again", None
    if not body.get("ok"):
        return "failed", f"{action}: {text}", BAD
    text = f"evicted {text}" if action == "EvictPods" else text
    return "did", text, None if action in NOTES else GOOD


def _is_answered(intent: Entry, later: Sequence[Entry]) -> bool:
    """Whether it is told what came of an intent, or that it goes on: then it is the newest row of all."""
    action = intent.body.get("action")
    answers = (
        one.kind is Kind.ACTION and one.uid == intent.uid and one.body.get("action") == action
        for one in later
    )
    return not later or any(answers)


def _proof(one: Entry) -> Iterator[list[Cell | str]]:
    for check in one.body.get("checks") or ():
        if check.get("outcome") == Outcome.PASSED.value:
            text = f"{sign(Outcome.PASSED)} {clean(check.get('name'))}: {clean(check.get('seen'))}"
            yield ["", "", "", Cell(text, FAINT)]


def _alarm_checks(alarm: RaisedAlarm) -> Iterator[list[Cell | str]]:
    """Give the checks that an alarm rests on."""
    for check in alarm.grounds:
        mark = sign(Outcome.ALARM if check.get("outcome") == Outcome.ALARM.value else Outcome.FAILED)
        needs = f"; needs: {clean(check.get('needs'))}" if check.get("needs") else ""
        yield [
            "",
            "",
            "",
            Cell(f"{mark} {clean(check.get('name'))}: {clean(check.get('seen'))}{needs}", FAINT),
        ]
