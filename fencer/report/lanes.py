"""The five lanes: kubelet, guest, fencer, pods and volumes, side by side on one axis of time. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from fencer.core.model import FenceMark, Observation, PodView, PowerState, Verdict
from fencer.core.pods import clearable, pods_from_before, to_release
from fencer.core.text import count
from fencer.core.wire import name_of
from fencer.journal.incidents import NOTES
from fencer.journal.rows import Entry, Kind
from fencer.report.sights import Sight, Watch
from fencer.report.spans import Span, Tone, laid
from fencer.wording.steps import ACTIONS
from fencer.wording.verdicts import recorded_adjective

RENEWED_S = 15.0
"""A lease is renewed every 10 s, and so old before a look may still be news on its way.

Source: kubernetes pkg/kubelet/kubelet.go: a quarter of nodeLeaseDurationSeconds, which is 40.
"""
ASIDE = 0.08
"""So much of the whole is shown of what was before and after."""
ASIDE_S = (5.0, 15.0)
"""No less and no more than this."""

POWER: dict[PowerState, tuple[Tone, str]] = {
    PowerState.RUNNING: (Tone.GOOD, "running"),
    PowerState.PAUSED: (Tone.WAITS, "paused"),
    PowerState.SAVED: (Tone.WAITS, "saved to disk"),
    PowerState.STOPPING: (Tone.WAITS, "changing"),
    PowerState.STOPPED: (Tone.OFF, "stopped"),
    PowerState.ABSENT: (Tone.OFF, "not found"),
    PowerState.UNKNOWN: (Tone.UNKNOWN, "unknown"),
}

TONES: dict[Verdict, Tone] = {
    Verdict.HEALTHY: Tone.GOOD,
    Verdict.WAIT: Tone.WAITS,
    Verdict.REFUSE: Tone.BAD,
    Verdict.STOP_FIRST: Tone.ACTS,
    Verdict.DISCARD_FIRST: Tone.ACTS,
    Verdict.ASK: Tone.ACTS,
    Verdict.START: Tone.ACTS,
    Verdict.FENCE: Tone.ACTS,
    Verdict.FENCED: Tone.ACTS,
    Verdict.RECOVERING: Tone.WAITS,
    Verdict.UNFENCE: Tone.ACTS,
    Verdict.OFF: Tone.OFF,
}


DEEDS: dict[str, tuple[str, str]] = {name_of(deed): words for deed, words in ACTIONS.items()}
"""An action's name in the journal → what it is called, and the words of its text that this makes needless."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that was done.

    Attributes:
        at: When.
        says: What.
        ok: It was done; otherwise it failed.
    """

    at: datetime
    says: str
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane.

    Attributes:
        name: Whose.
        about: What its bars tell.
        spans: The bars, one after the other; between two that do not touch nothing is known.
        marks: What was done.
    """

    name: str
    about: str
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Lanes:
    """All of them.

    Attributes:
        begin: Where the axis begins.
        end: Where it ends.
        lanes: From top to bottom.
    """

    begin: datetime
    end: datetime
    lanes: tuple[Lane, ...]

    @property
    def knots(self) -> tuple[datetime, ...]:
        """Every moment at which something changed, and both ends."""
        edges = [edge for lane in self.lanes for span in lane.spans for edge in (span.begin, span.end)]
        marks = [mark.at for lane in self.lanes for mark in lane.marks]
        return tuple(sorted({self.begin, self.end, *edges, *marks}))


def lanes(
    rows: Sequence[Sight], watched: Sequence[Watch], until: datetime, earlier: Sequence[Sight] = ()
) -> Lanes:
    """Return the lanes of an incident.

    Args:
        rows: Its rows, oldest first; at least one.
        watched: When somebody looked.
        until: When the report is written.
        earlier: The same node's rows before that: how it was at the beginning.
    """
    first, last = min(began(rows), rows[0].entry.at), rows[-1].entry.at
    aside = timedelta(seconds=min(max(ASIDE * (last - first).total_seconds(), ASIDE_S[0]), ASIDE_S[1]))
    begin, end = first - aside, max(last, min(last + aside, until))
    calm = next((max(begin, one.begin) for one in watched if one.begin < first <= one.end), None)
    looks = [one for one in (*earlier, *rows) if one.seen is not None]

    def lane(name: str, about: str, facts: Iterable[Span], calm: Sequence[Span] = ()) -> Lane:
        return Lane(name, about, laid((*calm, *facts), watched, begin, end))

    def before(says: str) -> tuple[Span, ...]:  # or there would be a row of it
        return (Span(calm, calm, Tone.GOOD, says),) if calm is not None and not earlier else ()

    verdicts = _each(_verdict, (*earlier, *rows))
    every = (
        lane("Kubelet", "is the node heard, and Ready", _each(_kubelet, looks), before("heard")),
        lane("Guest", "its power state, as its hypervisor says", _guest(looks, calm)),
        replace(
            lane("fencer", "what it concluded and did", verdicts, before("healthy")),
            marks=tuple(_marks(rows)),
        ),
        lane("Pods", "on the node, to be cleared by a fence", _each(_pods, looks)),
        lane("Volumes", "attached to the node", _each(_volumes, looks)),
    )
    return Lanes(begin, end, every)


def began(rows: Sequence[Sight]) -> datetime:
    """Return when the node was last heard before it was noticed, or else when it was noticed."""
    heard = next((one.heard() for one in rows if one.seen is not None), None)
    return rows[0].entry.at if heard is None else heard


def _each(read: Callable[[Sight], Iterator[Span]], looks: Iterable[Sight]) -> Iterator[Span]:
    for one in looks:
        yield from read(one)


def _kubelet(look: Sight) -> Iterator[Span]:
    assert look.seen is not None  # noqa: S101 - only looks come here
    node, at = look.seen.node, look.ago(0)
    ready = "" if node.ready else ", not Ready"
    heard = look.heard() if node.asked else at  # nothing depends on it where it is not asked for
    if heard is None:
        yield Span(at, at, Tone.UNKNOWN, f"no lease seen{ready}")
    elif (at - heard).total_seconds() < RENEWED_S:
        yield Span(heard, at, Tone.WAITS if ready else Tone.GOOD, f"heard{ready}")
    else:
        turned = max(heard, at if node.not_ready_s is None else look.ago(node.not_ready_s))
        if heard < turned:
            yield Span(heard, turned, Tone.WAITS, "silent")
        if turned < at or ready:
            yield Span(turned, at, Tone.BAD, "silent, not Ready")


def _guest(looks: Sequence[Sight], calm: datetime | None) -> Iterator[Span]:
    for place, look in enumerate(looks):
        assert look.seen is not None  # noqa: S101 - only looks come here
        run, evidence = look.seen.history.run, look.seen.evidence
        if run is not None:
            since = look.when(run.since_s)
            if not place and calm is not None and look.seen.history.running_seen:
                yield Span(calm, max(calm, since), *POWER[PowerState.RUNNING])
            yield Span(since, look.when(run.last_s), *POWER[run.power_state])
        if (
            evidence is not None
            and evidence.read
            and (run is None or evidence.power_state != run.power_state)
        ):
            at = look.when(evidence.observed_at_s)
            yield Span(at, at, *POWER[evidence.power_state])
        elif evidence is None:
            yield Span(look.ago(0), look.ago(0), *POWER[PowerState.UNKNOWN])


def _verdict(row: Sight) -> Iterator[Span]:
    if row.entry.kind is not Kind.DECISION:
        return
    body, at = row.entry.body, row.entry.at
    verdict, reason = str(body.get("verdict")), str(body.get("reason"))
    known = TONES[Verdict(verdict)] if verdict in set(Verdict) else Tone.UNKNOWN  # of a newer fencer
    yield Span(at, at, known, recorded_adjective(verdict, reason))


def _marks(rows: Iterable[Sight]) -> Iterator[Mark]:
    for row in rows:
        if row.entry.kind is Kind.ACTION and row.entry.body.get("action") not in NOTES:
            yield Mark(row.entry.at, deed_word(row.entry), bool(row.entry.body.get("ok")))


def deed_word(entry: Entry) -> str:
    """Return what an action, as its row has it, is called here."""
    return DEEDS.get(str(entry.body.get("action")), (str(entry.body.get("action")), ""))[0]


def _pods(look: Sight) -> Iterator[Span]:
    if look.seen is None or look.seen.pods is None:
        return
    left = len(to_clear(look.seen))
    yield Span(look.ago(0), look.ago(0), _left(look, left), count(left, "pod") if left else "none left")


def to_clear(seen: Observation) -> tuple[PodView, ...]:
    """Return the pods that a fence clears, or has to clear yet."""
    mark = seen.node.mark
    if isinstance(mark, FenceMark) and seen.node.fenced:
        return pods_from_before(seen, mark)
    return clearable(seen.pods or ())


def _volumes(look: Sight) -> Iterator[Span]:
    if look.seen is None or look.seen.attachments is None:
        return
    left = len(to_release(look.seen))
    yield Span(look.ago(0), look.ago(0), _left(look, left), f"{left} attached" if left else "none attached")


def _left(look: Sight, left: int) -> Tone:
    """Return how it is painted that so many are left: pods on a node that is well are no trouble."""
    body, fenced = look.entry.body, look.seen is not None and look.seen.node.fenced
    noted = look.entry.kind is Kind.INTENT and body.get("action") in NOTES
    well = noted or (body.get("verdict") in {"healthy", "recovering"} and not fenced)
    return Tone.GOOD if well or not left else Tone.WAITS
