"""Bars on a lane: what was so from when to when, laid out of single looks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from fencer.report.sights import Watch


class Tone(StrEnum):
    """How a bar is painted: this only repeats what its words say."""

    GOOD = "good"
    WAITS = "waits"
    BAD = "bad"
    OFF = "off"
    ACTS = "acts"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Span:
    """What was so for a while.

    Attributes:
        begin: From then.
        end: Until then.
        tone: How it is painted.
        says: What was so, in a few words.
    """

    begin: datetime
    end: datetime
    tone: Tone
    says: str


def laid(facts: Iterable[Span], watched: Sequence[Watch], begin: datetime, end: datetime) -> tuple[Span, ...]:
    """Return bars that follow one another.

    Each lasts until the next one, but only while somebody looked: where nobody did, there is no bar.

    Args:
        facts: What is known of some while for certain, in the order in which it was found out. What was found
            out later counts, where two differ.
        watched: When somebody looked.
        begin: What was before that is left out.
        end: What was after that is left out.
    """
    known: list[Span] = []
    for fact in facts:
        while known and known[-1].begin >= fact.begin:
            known.pop()
        if known:  # those before it end where it begins, at the latest
            known[-1] = _until(known[-1], fact.begin)
        known.append(fact)
    nexts = [*(one.begin for one in known[1:]), end]
    held = (_until(_held(one, watched, least), least) for one, least in zip(known, nexts, strict=False))
    inside = (
        replace(one, begin=max(one.begin, begin), end=min(one.end, end))
        for one in held
        if one.end >= begin and one.begin <= end
    )
    return tuple(_joined(inside))


def _until(one: Span, end: datetime) -> Span:
    return replace(one, end=min(one.end, end))


def _held(one: Span, watched: Sequence[Watch], until: datetime) -> Span:
    """Let a bar last as long as whoever saw it went on looking."""
    looked = [watch.end for watch in watched if watch.begin <= one.end <= watch.end]
    return replace(one, end=max(one.end, min(until, max(looked, default=one.end))))


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for one in spans:
        before = joined[-1] if joined else None
        if before is not None and (before.tone, before.says, before.end) == (one.tone, one.says, one.begin):
            joined[-1] = replace(before, end=one.end)
        else:
            joined.append(one)
    return joined
