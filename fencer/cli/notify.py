"""``fencer notify``: who is told what, what they know, and whether a message gets to each."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

import click

from fencer.cli.options import config_option, output_option
from fencer.cli.output import emit
from fencer.cli.render import BAD, FAINT, GOOD, Cell, clean, say, sign, table
from fencer.cli.wire import Wiring
from fencer.config.settings import usual_source
from fencer.core.model import Outcome
from fencer.core.text import age, near
from fencer.errors import ConfigError, ReceiverError, ToldError
from fencer.notify.settings import AlertmanagerSettings, ReceiverSettings
from fencer.wording.occasions import Occasion

if TYPE_CHECKING:
    from fencer.notify.message import Message
    from fencer.notify.past import Past
    from fencer.notify.receiver import Receiver

SLACK_S = 5.0
"""So much longer than its own deadlines a receiver is waited for."""
LASTED = timedelta(seconds=9)
"""So long the made-up incident has lasted."""


@click.command(
    short_help="Show who is told what, or send each a test.",
    epilog="\b\nExamples:\n  fencer notify\n  fencer notify --test\n  fencer notify --test --receiver phone",
)
@config_option
@click.option("--test", "tries", is_flag=True, help="Send a made-up incident, which is over at once.")
@click.option("--receiver", "name", metavar="NAME", help="Only this receiver.")
@output_option("table", "json", "yaml")
@click.pass_obj
def notify(wiring: Wiring, path: Path, name: str | None, form: str, *, tries: bool) -> None:
    """Show who is told what without asking, and what they know; with --test, send each a made-up incident.

    It needs no cluster, no hypervisor and no agent. Exit code of --test: 0 each took it; 1 one did not.
    """
    config = wiring.load(path)
    settings = config.notify
    receivers = _chosen(settings.receivers, name)
    if not tries:
        _show(receivers, _past(settings.told_file), wiring.wall(), form)
        return
    if not receivers:
        raise ConfigError(f"{path}: nobody is to be told. {HOW}")
    source = settings.source or usual_source(path, wiring.host())
    built = [wiring.receiver(one, source, settings.page_url) for one in receivers]
    tried = _try_all(built, _made_up(source, wiring.wall()))
    _show_tried(receivers, tried, form)
    if any(one.why for one in tried):
        raise click.exceptions.Exit(1)


AFTERWARDS: dict[type[ReceiverSettings], str] = {
    AlertmanagerSettings: "; it tells people after its group_wait, and ends it within 5 minutes"
}
"""What follows from a test."""

HOW = (
    "To have a phone told by ntfy, choose a topic that nobody guesses: "
    "`notify: {receivers: [{name: phone, type: ntfy, server: 'https://ntfy.sh', topic: TOPIC}]}`"
)


def _chosen(receivers: Sequence[ReceiverSettings], name: str | None) -> tuple[ReceiverSettings, ...]:
    """Return the receivers that are meant.

    Raises:
        ConfigError: there is none of that name.
    """
    if name is None:
        return tuple(receivers)
    names = [one.name for one in receivers]
    if name not in names:
        there = f" There is {', '.join(names)}." if names else f" {HOW}"
        raise ConfigError(f"{clean(name)}: no receiver has this name{near(name, names) or '.'}{there}")
    return tuple(one for one in receivers if one.name == name)


# -- A test ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tried:
    """What came of a test.

    Attributes:
        why: Why it did not get there; empty: it did.
        took_s: How long it took.
    """

    why: str
    took_s: float


def _made_up(source: str, now: datetime) -> tuple[Message, Message]:
    """Return an incident that nobody can take for a real one: its beginning, and its end."""
    from fencer.notify.message import Message  # noqa: PLC0415 - only for tests

    begins = Message(
        key=f"test-{secrets.token_hex(8)}",
        occasion=Occasion.FENCED,
        about="test",
        title="Test: nothing has happened",
        text=f"This is a test, sent by hand from fencer at {clean(source)}. No node is fenced.",
        reason="",
        guest="",
        began=now - LASTED,
        at=now - LASTED,
        number=1,
    )
    ends = Message(
        key=begins.key,
        occasion=begins.occasion,
        about=begins.about,
        title="Test: over, and nothing had happened",
        text=f"This is the end of a test, sent by hand from fencer at {clean(source)}.",
        reason="",
        guest="",
        began=begins.began,
        at=now,
        number=2,
        over=True,
    )
    return begins, ends


def _try_all(receivers: Sequence[Receiver], messages: Sequence[Message]) -> list[_Tried]:
    """Send them to each receiver, to all at once, each within its deadlines; return what came of it."""
    from fencer.notify.receiver import DEADLINE_S  # noqa: PLC0415 - only for tests

    until_s = time.monotonic() + DEADLINE_S * len(messages) + SLACK_S
    answers: list[Queue[_Tried]] = [Queue() for _ in receivers]
    for receiver, answer in zip(receivers, answers, strict=True):
        Thread(target=lambda to=receiver, put=answer.put: put(_try(to, messages)), daemon=True).start()
    return [_awaited(answer, until_s) for answer in answers]


def _try(receiver: Receiver, messages: Sequence[Message]) -> _Tried:
    began_s, why = time.monotonic(), ""
    ends_by_itself = receiver.manner.renew_s is not None  # minutes later, so that people are told before
    try:
        for message in messages:
            if not (message.over and ends_by_itself):
                receiver.send((message,))
    except ReceiverError as error:
        why = str(error)
    except Exception as error:  # noqa: BLE001 - as the outbox: a bug in one receiver is no other's trouble
        why = f"a bug in fencer: {type(error).__name__}: {error}"
    return _Tried(why, time.monotonic() - began_s)


def _awaited(answer: Queue[_Tried], until_s: float) -> _Tried:
    try:
        return answer.get(timeout=max(0.0, until_s - time.monotonic()))
    except Empty:
        return _Tried("no end of it within its deadlines: a bug in fencer", 0.0)


def _show_tried(receivers: Sequence[ReceiverSettings], tried: Sequence[_Tried], form: str) -> None:
    pairs = list(zip(receivers, tried, strict=True))
    if form != "table":
        emit(
            [
                {
                    "name": one.name,
                    "where": one.where,
                    "ok": not came.why,
                    "took_s": round(came.took_s, 3),
                    "why": came.why,
                }
                for one, came in pairs
            ],
            form,
        )
        return
    rows: list[list[Cell | str]] = []
    for one, came in pairs:
        outcome = Outcome.FAILED if came.why else Outcome.PASSED
        said = came.why or f"took it in {age(came.took_s)}{AFTERWARDS.get(type(one), '')}"
        rows.append(
            [
                Cell(sign(outcome), BAD if came.why else GOOD),
                one.name,
                clean(one.where),
                clean(said),
            ]
        )
    for line in table(rows, gap=2):
        say(line)


# -- Who knows what ----------------------------------------------------------------------------------------


def _past(file: Path | None) -> Past | str:
    """Return what was told, or why that is not known."""
    from fencer.notify.past import Past  # noqa: PLC0415 - as below
    from fencer.notify.told_file import read  # noqa: PLC0415 - not every command asks

    try:
        return Past() if file is None else read(file)
    except ToldError as error:
        return str(error)


def _show(receivers: Sequence[ReceiverSettings], past: Past | str, now: datetime, form: str) -> None:
    incidents = [] if isinstance(past, str) else [_incident(one, past) for one in past.incidents.values()]
    if form != "table":
        listed = [
            {"name": one.name, "where": one.where, "on": [it.value for it in Occasion if it in one.on]}
            for one in receivers
        ]
        emit(
            {"receivers": listed, "incidents": incidents, "unknown": past if isinstance(past, str) else ""},
            form,
        )
        return
    if not receivers:
        say(f"nobody is told. {HOW}")
    rows = [
        [one.name, clean(one.where), ", ".join(it for it in Occasion if it in one.on)] for one in receivers
    ]
    for line in table(rows):
        say(line)
    if isinstance(past, str):
        say(f"what was told is not known: {clean(past)}")
    names = {one.name for one in receivers}
    for one in incidents:
        _show_incident(one, names, now)


def _incident(message: Message, past: Past) -> dict[str, Any]:
    waits = [name for name, known in past.receivers.items() if message.key in known.waiting]
    told = [
        name
        for name, known in past.receivers.items()
        if name not in waits
        and (last := known.told.get(message.key)) is not None
        and last.occasion is message.occasion
    ]
    return {
        "key": message.key,
        "about": message.about,
        "title": message.title,
        "occasion": message.occasion.value,
        "over": message.over,
        "began": message.began.isoformat(),
        "at": message.at.isoformat(),
        "told": told,
        "waiting": waits,
        "told_by": past.others.get(message.key, ""),
    }


def _show_incident(one: dict[str, Any], names: set[str], now: datetime) -> None:
    since = age(max(0.0, (now - datetime.fromisoformat(one["began"])).total_seconds()))
    told = [name for name in one["told"] if name in names]
    waits = [name for name in one["waiting"] if name in names]
    known = f"; {', '.join(told)} {'know' if len(told) > 1 else 'knows'}" if told else ""
    waiting = f"; not told yet: {', '.join(waits)}" if waits else ""
    other = f"; kept: {clean(one['told_by'])} tells" if one["told_by"] else ""
    text = f"{clean(one['title'])}, began {since} ago{clean(known)}{clean(waiting)}{other}"
    for line in table([["", Cell(text, BAD if waits else FAINT)]], gap=2):
        say(line)
