"""One incident as a person is told it: every part of the report as a value. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from fencer.core.text import age, count
from fencer.journal.headline import headline, moment_of
from fencer.journal.incidents import Incident, seconds_between
from fencer.journal.rows import Entry, Kind
from fencer.report.lanes import Lanes, lanes
from fencer.report.lanes import began as began_at
from fencer.report.phases import Phase, phases
from fencer.report.sentences import sentences
from fencer.report.sights import Sight, sights, watches
from fencer.report.steps import Step, as_json, step_of
from fencer.report.troubles import Trouble, troubles
from fencer.report.words import Clock
from fencer.report.workloads import Replacement, Workload, workloads


@dataclass(frozen=True, slots=True)
class Asked:
    """A command of a person.

    Attributes:
        at: When.
        by: Who.
        words: What was typed.
        why: Their words for what is recorded, by option.
        code: The exit code; None: no end of it is in the journal.
    """

    at: datetime
    by: str
    words: str
    why: tuple[tuple[str, str], ...]
    code: int | None


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that people look for first.

    Attributes:
        value: The number, with its unit.
        about: What it is.
    """

    value: str
    about: str


MOST_ROWS = 1000
"""So many rows are shown as they are kept: an incident has some 40."""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a report tells.

    Attributes:
        id: Of the incident.
        node: Whose.
        guest: Its guest; empty: not known.
        headline: The incident as `fencer history` tells it.
        written: When it is written; times are told in its zone.
        over: It is over.
        begin: When it began.
        end: When its last row was written.
        by: Who wrote rows.
        fencer: Versions and modes of those, as far as the journal has them.
        sentences: What happened.
        figures: The numbers that people look for first.
        lanes: The picture.
        phases: Where the time went.
        workloads: What became of each pod.
        evicted: Pods that were asked to leave.
        steps: What was concluded and done, in order.
        asked: What people asked for.
        troubles: What went wrong.
        rows: Its rows as they are in the journal: number, when, kind, and the rest as JSON.
        more_rows: So many older ones are left out.
    """

    id: str
    node: str
    guest: str
    headline: str
    written: datetime
    over: bool
    begin: datetime
    end: datetime
    by: tuple[str, ...]
    fencer: tuple[str, ...]
    sentences: tuple[str, ...]
    figures: tuple[Figure, ...]
    lanes: Lanes
    phases: tuple[Phase, ...]
    workloads: tuple[Workload, ...]
    evicted: tuple[str, ...]
    steps: tuple[Step, ...]
    asked: tuple[Asked, ...]
    troubles: tuple[Trouble, ...]
    rows: tuple[tuple[int, datetime, str, str], ...]
    more_rows: int = 0


def report(
    incident: Incident,
    written: datetime,
    journal: Sequence[Entry] = (),
    now: Sequence[Replacement] = (),
) -> Report:
    """Return the report of an incident.

    Args:
        incident: The incident.
        written: When it is written; times are told in its zone.
        journal: The rows `around` it: who looked when, and how it was before.
        now: The cluster's pods as they are now; none: nobody has asked.
    """
    rows, entries, zone = sights(incident.entries), incident.entries, written.tzinfo or UTC
    sessions = {entry.session for entry in entries}
    began = [one for one in journal if one.kind is Kind.SESSION and one.session in sessions]
    before = [one for one in journal if one.packed is not None and one.number < entries[0].number]
    looked, taken = watches(journal or entries, entries[-1], written), workloads(rows, now)
    return Report(
        id=incident.id,
        node=incident.node,
        guest=incident.guest,
        headline=headline(incident, moment_of(incident, zone)),
        written=written,
        over=incident.over,
        begin=incident.began,
        end=incident.last,
        by=tuple(dict.fromkeys(entry.by for entry in entries)),
        fencer=tuple(dict.fromkeys(map(_version, began))),
        sentences=sentences(incident, rows, Clock(incident.began, zone)),
        figures=tuple(_figures(incident, rows, taken)),
        lanes=lanes(rows, looked, written, sights(_last_told(before, sessions))),
        phases=phases(rows, over=incident.over),
        workloads=taken,
        evicted=tuple(pod for pod in incident.pods if pod not in {one.pod for one in taken}),
        steps=tuple(step for one in rows for step in step_of(one)),
        asked=tuple(_asked(entry, entries) for entry in incident.commands),
        troubles=troubles(incident, rows),
        rows=tuple((one.number, one.at, one.kind.value, as_json(one.body)) for one in entries[-MOST_ROWS:]),
        more_rows=max(0, len(entries) - MOST_ROWS),
    )


def _figures(incident: Incident, rows: Sequence[Sight], taken: Sequence[Workload]) -> Iterator[Figure]:
    tainted, cleared = incident.tainted, incident.cleared
    if tainted is not None:
        yield Figure(
            age((tainted.at - began_at(rows)).total_seconds()), "from its last sign of life to the fence"
        )
    if tainted is not None and cleared is not None:
        what = f"until {count(len(incident.pods), 'pod')} and {count(incident.volumes, 'volume')} were free"
        yield Figure(age(seconds_between(tainted, cleared)), what)
    shortest = min((one.downtime_s for one in taken if one.downtime_s is not None), default=None)
    if shortest is not None:
        yield Figure(age(shortest), "its pods were down at least")
    if tainted is None and incident.healthy is not None:
        yield Figure(age((incident.last - began_at(rows)).total_seconds()), "until all was well again")
    if tainted is not None and incident.lifted is not None:
        yield Figure(age(seconds_between(tainted, incident.lifted)), "from the fence until it was lifted")


def around(incident: Incident, journal: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the rows up to an incident's end; what was known of other nodes is left out: it is much."""
    uids, last = {entry.uid for entry in incident.entries if entry.uid}, incident.entries[-1].number
    return tuple(
        one if one.uid in uids else replace(one, packed=None) for one in journal if one.number <= last
    )


def _last_told(before: Sequence[Entry], sessions: set[str]) -> list[Entry]:
    """Return the last row that tells how the node was before, of those who wrote the incident."""
    told = [one for one in before if one.kind is Kind.DECISION and one.session in sessions]
    return told[-1:]


def _version(entry: Entry) -> str:
    body = entry.body
    return (
        f"{entry.by}: fencer {body.get('fencer', '?')}, {body.get('what', '?')}, mode {body.get('mode', '?')}"
    )


def _asked(entry: Entry, entries: Sequence[Entry]) -> Asked:
    ends = (one for one in entries if one.kind is Kind.ENDED and one.session == entry.session)
    code = next((one.body.get("code") for one in ends), None)
    why = tuple((str(option), str(words)) for option, words in dict(entry.body.get("why") or {}).items())
    return Asked(entry.at, entry.by, f"fencer {entry.body.get('words', '')}", why, code)
