"""What went wrong on the way: failures, refusals, warnings, and what is missing in the journal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from fencer.core.text import count
from fencer.journal.incidents import Incident
from fencer.journal.rows import Entry, Kind
from fencer.report.sights import Sight


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
    entry, body = row.entry, row.entry.body
    text = str(body.get("text", ""))
    match entry.kind:
        case Kind.ACTION if not body.get("ok"):
            yield Trouble(entry.at, f"{body.get('action')} failed: {text}")
        case Kind.ACTION if body.get("action") in {"Alarm", "RecordDoubts"}:
            yield Trouble(entry.at, text)
        case Kind.ACTION:
            done = body.get("done") if isinstance(body.get("done"), dict) else {}
            for why in ("held", "failed"):
                for pod, told in dict(done.get(why) or {}).items():
                    yield Trouble(entry.at, f"{pod}: {told}")
        case Kind.DECISION if body.get("verdict") == "refuse":
            yield Trouble(entry.at, f"not fenced: {text}")
        case Kind.NOTICE if body.get("warning"):
            yield Trouble(entry.at, text)
        case Kind.ENDED if body.get("code"):
            yield Trouble(entry.at, f"the command of {entry.by} ended with exit code {body.get('code')}")
        case Kind.LOST:
            lost = count(int(body.get("rows") or 0), "row")
            yield Trouble(entry.at, f"{lost} could not be written: what they told is not in this report")
        case _:
            pass
    if row.unread:
        yield Trouble(entry.at, f"what was known at row {entry.number} cannot be read: {row.unread}")


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
