"""Incidents to be told: out of the simulated lab, by hand, and with names that nobody should have chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

from fencer.journal.codec import pack
from fencer.journal.folding import incidents
from fencer.journal.incidents import Incident
from fencer.journal.reading import entries
from fencer.journal.rows import Entry, Kind
from fencer.report.sights import Sight
from fencer.report.story import Report, around, report
from fencer.simulation.faults import What
from tests.cli.lab import Lab
from tests.core.build import NOW_S, observation
from tests.journal.build import BEGAN, Told

BERLIN = ZoneInfo("Europe/Berlin")


@cache
def crashed() -> tuple[Entry, ...]:
    """The journal of an agent that saw a guest crash, fenced its node, and lifted the fence."""

    def breaks(lab: Lab) -> None:
        lab.breaks(What.CRASH, "k8s-2", in_s=60)
        lab.breaks(What.START, "k8s-2", in_s=180)
        lab.passes(400, watched=True)

    return journal_of(breaks)


@cache
def cut_off() -> tuple[Entry, ...]:
    """The journal of an agent that saw a node cut off, and left it alone."""

    def breaks(lab: Lab) -> None:
        lab.breaks(What.NIC_OFF, "k8s-2", in_s=60)
        lab.breaks(What.NIC_ON, "k8s-2", in_s=300)
        lab.passes(500, watched=True)

    return journal_of(breaks)


@cache
def by_hand() -> tuple[Entry, ...]:
    """The journal of an agent that has ended, and of a person who fenced a node and did not see it back."""

    def breaks(lab: Lab) -> None:
        lab.passes(60, watched=True)
        lab.breaks(What.CRASH, "k8s-2")
        lab.passes(75)
        lab.run("fence", "k8s-2", "-y", "--over-brake", "the rack is gone")

    return journal_of(breaks)


def journal_of(breaks: Callable[[Lab], None]) -> tuple[Entry, ...]:
    """Return what is kept of what happens in a lab."""
    with TemporaryDirectory() as folder:
        lab = Lab()
        lab.journal = Path(folder) / "journal.db"
        breaks(lab)
        return tuple(entries(lab.journal))


def newest(journal: Sequence[Entry]) -> Incident:
    """Return the newest incident that is worth telling."""
    return [one for one in incidents(journal) if one.worth_telling][-1]


def told(journal: Sequence[Entry], **facts) -> Report:
    """Return the report of the newest incident, written a minute later in Berlin."""
    incident = newest(journal)
    return report(incident, later(incident), around(incident, journal), **facts)


def later(incident: Incident) -> datetime:
    """Return a time after it."""
    return (incident.last + timedelta(seconds=60)).astimezone(BERLIN)


def look(seconds: float, kind=Kind.DECISION, body=None, **facts) -> Sight:
    """Return a row of a decision, with all that was known; by default a node that is to be fenced."""
    seen = observation(**{"now_s": NOW_S} | facts)
    [entry] = Told().tell(kind, seconds, node="k8s-2", uid="u2", incident="inc-1", **(body or {})).entries
    return Sight(replace(entry, at_s=NOW_S), seen)


def at(seconds: float) -> datetime:
    """Return a time of the rows of `Told`."""
    return BEGAN + timedelta(seconds=seconds)


HOSTILE = (
    "<script>window.owned=1</script><img src=x onerror='window.owned=1'>\"'{{7*7}}{% raw %}]]></style>"
    "</title><!--&amp;\u202egnp.\u2066\x1b[31m\n# |~|"
)
LONG = "n" * 253
CODES = frozenset(
    {"verdict", "reason", "outcome", "action", "actions", "intent", "type", "proof", "mode", "what"}
)
"""What is no name, but one of fencer's own words."""


def spoiled(journal: Sequence[Entry], with_: str) -> tuple[Entry, ...]:
    """Return a journal in which this is in every name and every word that comes from outside."""
    return tuple(
        replace(
            entry,
            by=entry.by + with_,
            node=entry.node and entry.node + with_,
            body=_spoiled(dict(entry.body), with_),
            packed=_spoiled_seen(entry, with_),
        )
        for entry in journal
    )


def _spoiled(value, with_: str):
    if isinstance(value, dict):
        return {key: one if key in CODES else _spoiled(one, with_) for key, one in value.items()}
    if isinstance(value, list):
        return [_spoiled(one, with_) for one in value]
    return value + with_ if isinstance(value, str) else value


def _spoiled_seen(entry: Entry, with_: str) -> bytes | None:
    seen = entry.seen
    if seen is None:
        return None
    evidence = seen.evidence and replace(seen.evidence, raw=seen.evidence.raw + with_)
    pods = seen.pods and tuple(
        replace(pod, name=pod.name + with_, controller=pod.controller + with_) for pod in seen.pods
    )
    volumes = seen.attachments and tuple(replace(one, volume=one.volume + with_) for one in seen.attachments)
    node = replace(seen.node, boot_id=seen.node.boot_id + with_)
    return pack(replace(seen, evidence=evidence, pods=pods, attachments=volumes, node=node))
