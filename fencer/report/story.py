"""One incident as a person is told it: every part of the report as a value. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

from fencer.core.model import Outcome
from fencer.core.text import age, count
from fencer.journal.headline import headline
from fencer.journal.incidents import Incident, seconds_between
from fencer.journal.rows import Entry, Kind
from fencer.report.lanes import Lanes, lanes, verdict_word
from fencer.report.lanes import began as began_at
from fencer.report.phases import Phase, phases
from fencer.report.sentences import sentences
from fencer.report.sights import Sight, sights, watches
from fencer.report.troubles import Trouble, troubles
from fencer.report.workloads import Replacement, Workload, workloads
from fencer.wording.steps import ACTIONS

DEEDS: dict[str, tuple[str, str]] = {deed.__name__: words for deed, words in ACTIONS.items()}
"""An action's name in the journal → what it is called, and the words of its text that this makes needless."""

LONGEST = 40_000
"""Characters of one raw observation; of 500 pods there may be hundreds of thousands."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One check of a decision, as the journal has it."""

    name: str
    outcome: str
    seen: str
    needs: str


@dataclass(frozen=True, slots=True)
class Step:
    """Something that was concluded, done, asked for or told.

    Attributes:
        at: When.
        by: Who.
        kind: What sort of row it is.
        what: A word or two.
        text: A sentence.
        loud: A person should look at it.
        checks: The ladder of a decision.
        evidence: What was known, in lines: a name and what was read.
        raw: All that was known, as JSON; empty: nothing is kept of it.
    """

    at: datetime
    by: str
    kind: Kind
    what: str
    text: str
    loud: bool = False
    checks: tuple[Proof, ...] = ()
    evidence: tuple[tuple[str, str], ...] = ()
    raw: str = ""


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


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a report tells.

    Attributes:
        id: Of the incident.
        node: Whose.
        guest: Its guest; empty: not known.
        headline: The incident as `fencer history` tells it.
        zone: In which times are told.
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
        steps: What was concluded and done, in order.
        asked: What people asked for.
        troubles: What went wrong.
        rows: Every row as it is in the journal: its number, when, its kind, and the rest as JSON.
    """

    id: str
    node: str
    guest: str
    headline: str
    zone: tzinfo
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
    steps: tuple[Step, ...]
    asked: tuple[Asked, ...]
    troubles: tuple[Trouble, ...]
    rows: tuple[tuple[int, datetime, str, str], ...]


def report(
    incident: Incident, zone: tzinfo, journal: Sequence[Entry] = (), now: Sequence[Replacement] = ()
) -> Report:
    """Return the report of an incident.

    Args:
        incident: The incident.
        zone: In which times are told.
        journal: The rows `around` it: who looked when, and how it was before.
        now: The cluster's pods as they are now; none: nobody has asked.
    """
    rows, entries = sights(incident.entries), incident.entries
    sessions = {entry.session for entry in entries}
    began = [one for one in journal if one.kind is Kind.SESSION and one.session in sessions]
    before = [one for one in journal if one.packed is not None and one.number < entries[0].number]
    looked, taken = watches(journal or entries, incident.last), workloads(rows, now)
    return Report(
        id=incident.id,
        node=incident.node,
        guest=incident.guest,
        headline=headline(incident, lambda at: f"{at.astimezone(zone):%H:%M}"),
        zone=zone,
        over=incident.over,
        begin=incident.began,
        end=incident.last,
        by=tuple(dict.fromkeys(entry.by for entry in entries)),
        fencer=tuple(dict.fromkeys(map(_version, began))),
        sentences=sentences(incident, rows, lambda at: f"{at.astimezone(zone):%H:%M:%S}"),
        figures=tuple(_figures(incident, rows, taken)),
        lanes=lanes(rows, looked, sights(_last_told(before, sessions))),
        phases=phases(rows),
        workloads=taken,
        steps=tuple(step for one in rows for step in _step(one)),
        asked=tuple(_asked(entry, entries) for entry in incident.commands),
        troubles=troubles(incident, rows),
        rows=tuple((one.number, one.at, one.kind.value, _json(one.body)) for one in entries),
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
    longest = max((one.downtime_s for one in taken if one.downtime_s is not None), default=None)
    if longest is not None:
        yield Figure(age(longest), "its pods were down at least")
    if tainted is not None and incident.lifted is not None:
        yield Figure(age(seconds_between(tainted, incident.lifted)), "from the fence until it was lifted")


def around(incident: Incident, journal: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the rows up to an incident's end; of those about other nodes not what was known, which is much."""
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
    return f"{entry.by}: fencer {body.get('fencer', '?')}, {body.get('what', '?')}, mode {body.get('mode', '?')}"


def _step(row: Sight) -> Iterator[Step]:
    entry, body = row.entry, row.entry.body
    match entry.kind:
        case Kind.DECISION:
            yield Step(
                *(entry.at, entry.by, entry.kind),
                what=verdict_word(str(body.get("verdict"))),
                text=str(body.get("text", "")),
                loud=body.get("verdict") == "refuse",
                checks=tuple(map(_proof, body.get("checks") or ())),
                evidence=evidence(row),
                raw=_raw(row),
            )
        case Kind.ACTION:
            ok = bool(body.get("ok"))
            what, needless = DEEDS.get(str(body.get("action")), (str(body.get("action")), ""))
            text = str(body.get("text", "")).removeprefix(needless)
            yield Step(entry.at, entry.by, entry.kind, what if ok else f"{what}: failed", text, loud=not ok)
        case Kind.COMMAND:
            yield Step(entry.at, entry.by, entry.kind, "command", f"fencer {body.get('words', '')}")
        case Kind.ENDED:
            code = body.get("code")
            yield Step(entry.at, entry.by, entry.kind, "ended", f"exit code {code}", loud=code != 0)
        case Kind.NOTICE:
            loud = bool(body.get("warning"))
            yield Step(entry.at, entry.by, entry.kind, "notice", str(body.get("text", "")), loud=loud)
        case Kind.LOST:
            text = f"{count(int(body.get('rows') or 0), 'row')} could not be written"
            yield Step(entry.at, entry.by, entry.kind, "lost", text, loud=True)
        case _:  # an intent is told with what came of it, and a session at the top
            return


def _proof(check: dict[str, Any]) -> Proof:
    outcomes = {Outcome.PASSED.value: "passed", Outcome.FAILED.value: "failed"}
    told = outcomes.get(str(check.get("outcome")), "not asked")
    return Proof(str(check.get("name")), told, str(check.get("seen") or ""), str(check.get("needs") or ""))


def evidence(row: Sight) -> tuple[tuple[str, str], ...]:
    """Return what a decision rests on, in lines."""
    if row.seen is None:
        return (("observation", row.unread or "nothing new was seen since the row before"),)
    seen, node, run = row.seen, row.seen.node, row.seen.history.run
    lines = {"guest": "no guest is known", "node": _node(row)}
    if seen.evidence is not None:
        reading = seen.evidence
        ago_s = max(0.0, seen.now_s - reading.observed_at_s)
        lines["guest"] = f"{reading.raw} ({reading.source}, {age(ago_s)} before)"
    elif seen.evidence_error:
        lines["guest"] = seen.evidence_error
    if run is not None:
        lasted = f"{count(run.readings, 'time')} over {age(max(0.0, run.last_s - run.since_s))}"
        lines["readings"] = f"{run.power_state} {lasted}, run {run.incarnation or 'not named'}"
    if seen.pods is not None:
        lines["pods"] = ", ".join(map(str, seen.pods)) or "none"
    if seen.attachments is not None:
        lines["volumes"] = ", ".join(one.volume for one in seen.attachments) or "none"
    fleet = seen.fleet
    lines["other nodes"] = (
        f"{count(fleet.nodes, 'node')}, {fleet.silent} silent, {fleet.young_fences} fenced in the last hour"
    )
    if node.taints:
        lines["taints"] = ", ".join(f"{one.key}={one.value}:{one.effect}" for one in node.taints)
    return tuple(lines.items())


def _node(row: Sight) -> str:
    assert row.seen is not None  # noqa: S101 - its caller has looked
    node = row.seen.node
    ready = {True: "True", False: "False", None: "Unknown"}[node.ready]
    lease = "no lease seen" if node.lease_age_s is None else f"lease renewed {age(node.lease_age_s)} before"
    return f"Ready={ready}; {lease}; boot id {node.boot_id}"


def _asked(entry: Entry, entries: Sequence[Entry]) -> Asked:
    ends = (one for one in entries if one.kind is Kind.ENDED and one.session == entry.session)
    code = next((one.body.get("code") for one in ends), None)
    why = tuple((str(option), str(words)) for option, words in dict(entry.body.get("why") or {}).items())
    return Asked(entry.at, entry.by, f"fencer {entry.body.get('words', '')}", why, code)


def _raw(row: Sight) -> str:
    if row.seen is None:
        return ""
    text = _json(asdict(row.seen))
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST]}\n… {left} more characters are in the journal"


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else str(value)
