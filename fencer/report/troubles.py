"""What went wrong on the way: failures, refusals, warnings, and what is missing in the journal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from fencer.core.model import Verdict
from fencer.core.text import count
from fencer.journal.incidents import Incident
from fencer.journal.rows import Entry, Kind
from fencer.report.sights import Sight, done_of, left_of
from fencer.wording.events import NO_CASE
from fencer.wording.verdicts import recorded_adjective

WARNINGS = frozenset({"Alarm", "RecordDoubts"})
"""What is done to warn people."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that went wrong.

    Attributes:
        at: When.
        text: What, in a sentence.
    """

    at: datetime
    text: str


def troubles(incident: Incident, rows: Sequence[Sight]) -> tuple[Trouble, ...]:
    """Return what went wrong in an incident, in order."""
    told = [trouble for one in rows for trouble in _trouble(one)]
    told += [
        Trouble(one.at, f"{one.body.get('action')} was about to be done, and how that ended is not kept")
        for one in _unfinished(incident.entries)
    ]
    return tuple(sorted(told, key=lambda one: one.at))


def _trouble(row: Sight) -> Iterator[Trouble]:
    entry = row.entry
    yield from (Trouble(entry.at, text) for text in _told(entry, str(entry.body.get("text", ""))))
    if row.unread:
        yield Trouble(entry.at, f"what was known at row {entry.number} cannot be read: {row.unread}")


def _told(entry: Entry, text: str) -> Iterator[str]:
    body = entry.body
    match entry.kind:
        case Kind.ACTION if done_of(entry).get("changed"):
            pass  # somebody was quicker, and it was looked at again
        case Kind.ACTION if not body.get("ok"):
            yield f"{body.get('action')} failed: {text}"
        case Kind.ACTION if body.get("action") in WARNINGS:
            yield text
        case Kind.ACTION:
            yield from (f"{pod}: {why}" for pod, why in left_of(entry).items())
        case Kind.DECISION if body.get("verdict") == "refuse" and body.get("reason") not in NO_CASE:
            yield f"{recorded_adjective(Verdict.REFUSE, str(body.get('reason')))}: {text}"
        case Kind.NOTICE if body.get("warning"):
            yield text
        case Kind.ENDED if body.get("code"):
            yield f"the command of {entry.by} ended with exit code {body.get('code')}"
        case Kind.LOST:
            lost = count(int(body.get("rows") or 0), "row")
            yield f"{lost} could not be written: what they told is not in this report"
        case _:
            pass


def _unfinished(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Give what was meant, and neither done nor failed, as far as is kept."""
    for place, one in enumerate(entries):
        if one.kind is not Kind.INTENT:
            continue
        later = (
            other
            for other in entries[place + 1 :]
            if other.session == one.session and other.kind is Kind.ACTION and other.uid == one.uid
        )
        if not any(other.body.get("action") == one.body.get("action") for other in later):
            yield one
