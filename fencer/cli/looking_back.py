"""What `history`, `report` and `replay` share: the journal of a configuration, and one incident of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from fencer.cli.options import READ_LATER, Decorator
from fencer.cli.render import complain
from fencer.cli.wire import Wiring, is_missing
from fencer.core.text import count, near, printable
from fencer.errors import ConfigError, JournalError
from fencer.journal.folding import incidents
from fencer.journal.incidents import Incident
from fencer.journal.reading import entries
from fencer.journal.rows import Entry
from fencer.report.words import Clock

_SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhdw])")
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
LATELY = 5
"""So many incidents are named where the one that was asked for is not there."""


class Since(click.ParamType[timedelta]):
    """A span like ``12h``, ``7d`` or ``2w``, or a day like ``2026-11-20``; as time before now."""

    name = "since"

    def convert(
        self, value: str | timedelta, param: click.Parameter | None, context: click.Context | None
    ) -> timedelta:
        """Read what was typed; see `click.ParamType.convert`."""
        if not isinstance(value, str):
            return value
        span = _SPAN.fullmatch(value)
        try:
            if span is not None:
                return timedelta(seconds=float(span[1]) * _UNITS_S[span[2]])
            wiring = context.obj if context is not None else None
            now = wiring.looking_back() if isinstance(wiring, Wiring) else datetime.now().astimezone()
            day = datetime.fromisoformat(value)
            day = day if day.tzinfo is not None else day.replace(tzinfo=now.tzinfo)
            return now.astimezone(UTC) - day.astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is no time: a span such as 12h, 7d or 2w, or a day such as 2026-11-20",
                param,
                context,
            )


journal_option: Decorator = click.option(
    "--journal",
    "journal",
    type=READ_LATER,
    metavar="FILE",
    help="Read this journal, and no configuration: a copy, or one that was set aside.",
)


def journal_of(wiring: Wiring, path: Path, named: Path | None = None) -> Path:
    """Return where the journal is that is to be read.

    Args:
        wiring: Reads the configuration.
        path: Where that is.
        named: A journal that was named instead.

    Raises:
        ConfigError: it is not right, or says that no journal is kept.
        JournalError: there is none yet.
    """
    if named is not None:
        if is_missing(named):
            raise JournalError(f"{printable(str(named))}: no such file")
        return named
    settings = wiring.load(path).journal
    if settings is None:
        raise ConfigError(f"{printable(str(path))}: no journal is kept: journal.enabled is false")
    if is_missing(settings.file):
        raise JournalError(
            f"{printable(str(settings.file))}: no journal yet. `fencer watch` begins one, and so does any "
            "command that acts"
        )
    return settings.file


def rows(file: Path) -> Iterator[Entry]:
    """Give the rows of a journal, oldest first. What cannot be read is left out, and said in the end.

    Raises:
        JournalError: it cannot be read at all; the text says who may.
    """
    damaged: list[JournalError] = []
    with saying_who_may():
        yield from entries(file, damaged=damaged.append)
    if damaged:
        number = f"{count(len(damaged), 'row')} {'is' if len(damaged) == 1 else 'are'}"
        complain(f"{damaged[0]}; {number} left out. `fencer journal verify` says more")


@contextmanager
def saying_who_may() -> Iterator[None]:
    """Say who may read a journal, where this user may not.

    Raises:
        JournalError: it cannot be read; the text says who may.
    """
    try:
        yield
    except JournalError as error:
        shut = isinstance(error.__cause__, PermissionError)
        if shut or any(one in str(error) for one in ("unable to open", "readonly database")):
            raise JournalError(f"{error}. Only fencer and root may read it: try it with sudo") from error
        raise


def incident_of(file: Path, wanted: str) -> Incident:
    """Return one incident.

    Args:
        file: The journal.
        wanted: Its id, or enough of the beginning; ``last``: the newest worth telling.

    Raises:
        ConfigError: there is none of that id, or more than one; the text names the newest.
        JournalError: the journal cannot be read.
    """
    known = incidents(rows(file))
    if wanted == "last":
        found = [one for one in known if one.worth_telling][-1:]
    else:
        exact = [one for one in known if one.id == wanted]
        found = exact or [one for one in known if wanted and one.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"{printable(wanted)}: {len(found)} incidents begin so: {_named(found)}")
    newest = _named([one for one in known if one.worth_telling])
    meant = near(wanted, [one.id for one in known])
    raise ConfigError(
        f"{printable(wanted)}: no such incident in {printable(str(file))}{meant or '.'} "
        + (f"The newest: {newest}" if newest else "There is none yet")
    )


def _named(found: Sequence[Incident]) -> str:
    return ", ".join(f"{printable(one.id)} ({printable(one.node)})" for one in found[-LATELY:])


def as_data(incident: Incident, told: str) -> dict[str, Any]:
    """Return an incident for programs: times in UTC.

    Args:
        incident: The incident.
        told: Its sentence.
    """
    moments = {"fenced_at": incident.fence, "cleared_at": incident.cleared, "lifted_at": incident.lifted}
    return {
        "id": incident.id,
        "node": incident.node,
        "guest": incident.guest or None,
        "began_at": utc(incident.began),
        "last_at": utc(incident.last),
        "over": incident.over,
        "cause": incident.cause if incident.decisions else None,
        "told": told,
        **{name: utc(one.at) if one is not None else None for name, one in moments.items()},
        "fenced_by": incident.fenced_by or None,
        "fenced_in_s": round(incident.seconds(incident.tainted), 1) if incident.tainted else None,
        "cleared_in_s": round(incident.seconds(incident.cleared), 1) if incident.cleared else None,
        "pods": list(incident.pods),
        "volumes": incident.volumes,
        "refused": incident.refusal.body.get("reason") if incident.refusal else None,
        "alarms": [
            {"at": utc(one.entry.at), "by": one.entry.by, "text": one.text, "checks": list(one.grounds)}
            for one in incident.alarms
        ],
        "commands": [
            {"at": utc(one.at), "by": one.by, "words": one.body.get("words"), "why": one.body.get("why")}
            for one in incident.commands
        ],
        "code": incident.code,
    }


def row_data(one: Entry) -> dict[str, Any]:
    """Return a row for programs, without all that was known."""
    return {
        "number": one.number,
        "at": utc(one.at),
        "by": one.by,
        "session": one.session,
        "kind": one.kind.value,
        "node": one.node,
        "uid": one.uid,
        "incident": one.incident,
        "body": one.body,
        "digest": one.digest,
    }


def utc(when: datetime) -> str:
    """Return a time for programs."""
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def day_of(when: datetime) -> str:
    """Return a day, and in which zone times are told: ``Thursday, 2026-11-26, times in CET (UTC+01:00)``.

    Args:
        when: Some time of that day, in that zone.
    """
    told = Clock(when, when.tzinfo)
    return f"{told.day}, times in {told.zone}"
