"""One sentence for one incident: how it began, what was done, how it ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo

from fencer.core.model import Reason
from fencer.core.text import age, count
from fencer.journal.incidents import Incident, seconds_between
from fencer.journal.rows import BY_HAND, Entry
from fencer.wording.reasons import TEXTS
from fencer.wording.reports import lead_of
from fencer.wording.verdicts import OF_REASON


def headline(incident: Incident, clock: Callable[[datetime], str]) -> str:
    """Return the sentence, without time, node and id: ``paused → fenced in 65 s, 8 pods cleared``.

    Args:
        incident: The incident.
        clock: Writes a time of day for people.
    """
    if incident.tainted is not None:
        parts = (_fenced(incident), *_what_moved(incident), *_alarms(incident, clock))
        return ", ".join((*parts, *_afterwards(incident, clock)))
    if incident.found is not None:
        return ", ".join((_found(incident), *_alarms(incident, clock), *_afterwards(incident, clock)))
    if incident.commands:
        return ", ".join((_command(incident), *_alarms(incident, clock)))
    return ", ".join((_unfenced(incident), *_afterwards(incident, clock)))


def moment_of(incident: Incident, zone: tzinfo | None) -> Callable[[datetime], str]:
    """Return what writes times of day; with the day, where it is another one than at the beginning.

    Args:
        incident: The incident.
        zone: In which times are told.
    """
    first = incident.began.astimezone(zone).date()

    def moment(when: datetime) -> str:
        local = when.astimezone(zone)
        return f"{local:%H:%M}" if local.date() == first else f"{local:%Y-%m-%d %H:%M}"

    return moment


def _fenced(incident: Incident) -> str:
    tainted, cleared = incident.tainted, incident.cleared
    assert tainted is not None  # noqa: S101 - the caller has looked
    took_s = incident.seconds(cleared or tainted)
    done = "fenced" if cleared is not None else "tainted, not cleared yet"
    by = drill = ""
    drilled = [asked for asked in incident.commands if str(asked.body.get("words", "")).startswith("drill ")]
    if drilled:
        drill = f"drill by {drilled[0].by.removesuffix(BY_HAND)}: "
    elif tainted.by.endswith(BY_HAND):  # a command may also only have lifted the agent's fence
        by = f" by {tainted.by.removesuffix(BY_HAND)}"
    return f"{drill}{incident.cause} → {done}{by} in {age(took_s)}"


def _found(incident: Incident) -> str:
    """Tell of a fence that somebody else set: when, and all that was cleared, is in their journal."""
    pods = f", {count(len(incident.pods), 'pod')} cleared here" if incident.pods else ""
    return f"{incident.cause} → fenced by {incident.fenced_by or 'another agent'}{pods}"


def _alarms(incident: Incident, clock: Callable[[datetime], str]) -> tuple[str, ...]:
    """Return that there were alarms, and when the first was raised: `history ID` shows what each rests on."""
    if not incident.alarms:
        return ()
    return (f"{count(len(incident.alarms), 'ALARM')} from {clock(incident.alarms[0].entry.at)}",)


def _what_moved(incident: Incident) -> tuple[str, ...]:
    pods = f"{count(len(incident.pods), 'pod')} cleared"
    volumes = (count(incident.volumes, "volume"),) if incident.volumes else ()
    return (pods, *volumes)


def _afterwards(incident: Incident, clock: Callable[[datetime], str]) -> tuple[str, ...]:
    if incident.lifted is not None:
        return (f"lifted {clock(incident.lifted.at)}",)
    if incident.healthy is not None:
        return (f"healthy again {clock(incident.healthy.at)}",)
    if incident.fence is not None:
        if not incident.stands:
            return ("lifted by somebody else",)
        old = bool(incident.decisions) and incident.decisions[-1].body.get("reason") == Reason.OLD_MEMORY
        alarm = (f"{OF_REASON[Reason.OLD_MEMORY]}: {TEXTS[Reason.OLD_MEMORY].says}",) if old else ()
        return ("still fenced", *alarm)
    if incident.back is not None:
        return (f"Ready again {clock(incident.back.at)}",)
    return () if incident.over else ("goes on",)


def _command(incident: Incident) -> str:
    asked = incident.commands[0]
    words, by = asked.body.get("words", ""), asked.by.removesuffix(BY_HAND)
    pods = (f"{count(len(incident.pods), 'pod')} evicted",) if incident.pods else ()
    return ", ".join((f"{by}: {words} → {_ending(incident, asked)}", *pods))


def _ending(incident: Incident, asked: Entry) -> str:
    took = age(seconds_between(asked, incident.entries[-1]))
    if incident.code is None:
        return "not ended, as far as is known"
    return f"done in {took}" if incident.code == 0 else f"ended with code {incident.code} after {took}"


def _unfenced(incident: Incident) -> str:
    if incident.refusal is None and incident.alarms:
        return f"alarm: {_clause(incident.alarms[0].text)}"
    if incident.refusal is None and (incident.over or not incident.decisions):
        return f"{incident.cause} → {'nothing had to be done' if incident.over else 'not fenced so far'}"
    body = (incident.refusal or incident.decisions[-1]).body
    lead = lead_of(str(body.get("verdict")), str(body.get("reason")), fenced=False)
    return f"{incident.cause} → {lead}{_short(str(body.get('text', '')))}"


def _clause(text: str) -> str:
    return text.partition("; ")[0].partition(". ")[0].rstrip(".")


def _short(text: str) -> str:
    return text.partition("; what would change this")[0].partition(" (")[0]
