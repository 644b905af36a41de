"""The lanes as they are drawn: places in percent, and which words have room at which width of the page. Pure.

Nothing is scaled: bars follow the width of the page, and letters keep their size, on a phone, too. So a word
is shown only where the page is wide enough for it; all of them are in the table below the picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fencer.core.text import age
from fencer.report.axis import Axis
from fencer.report.lanes import Lane, Lanes
from fencer.report.phases import Phase
from fencer.report.spans import Span
from fencer.report.words import Clock

WIDTHS_PX = (380, 560, 760, 960, 1112)
"""Pages for which the style sheet has a class, ``from380`` and so on. None is wider than the last."""
BESIDE_PX = 44
"""Of that, so much is margin."""
LETTER_PX = 7.2
"""A letter of the picture, by a wide font."""
PADDING_PX = 14
NEVER = "never"
PINS_FROM_PX = 760
TOGETHER = {f"from{PINS_FROM_PX}": 4.0, "fewer": 10.0}
"""Pins that are nearer than so many percent are one; on narrower pages there are fewer."""
SIDE = 12.0
"""A label so near to a side, in percent, begins or ends there."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar.

    Attributes:
        x: Where it begins, in percent.
        width: How long it is.
        tone: How it is painted.
        says: What was so.
        told: The same with times, to be shown when it is pointed at.
        room: The class of pages on which its words fit.
    """

    x: float
    width: float
    tone: str
    says: str
    told: str
    room: str


@dataclass(frozen=True, slots=True)
class Dot:
    """Something that was done: where, what, and whether it failed."""

    x: float
    told: str
    ok: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A lane, drawn."""

    name: str
    about: str
    bars: tuple[Bar, ...]
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """Words at a place: a pin, a time, or how long a stretch is that was cut short.

    Attributes:
        x: Where, in percent.
        text: The words.
        room: The class of pages on which they fit.
        anchor: Which end of them is there, as SVG has it.
    """

    x: float
    text: str
    room: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is drawn.

    Attributes:
        rows: The lanes.
        pins: The phases' numbers, where each begins.
        times: Times of day there.
        cuts: Where long stretches are drawn shorter than they were.
        shares: Each phase's part of the longest one, as drawn, in percent.
    """

    rows: tuple[Row, ...]
    pins: tuple[Label, ...]
    times: tuple[Label, ...]
    cuts: tuple[Label, ...]
    shares: tuple[float, ...]


def picture(lanes: Lanes, phases: Sequence[Phase], clock: Clock) -> Picture:
    """Return what to draw.

    Args:
        lanes: The lanes.
        phases: The phases, whose numbers become pins.
        clock: Writes times.
    """
    axis = Axis(lanes.knots)

    def drawn(lane: Lane) -> Row:
        bars = tuple(_bar(axis, span, f"{clock(span.begin)} to {clock(span.end)}") for span in lane.spans)
        dots = tuple(
            Dot(axis.place(mark.at), f"{clock(mark.at)} {mark.says}{'' if mark.ok else ': failed'}", mark.ok)
            for mark in lane.marks
        )
        return Row(lane.name, lane.about, bars, dots)

    places = [axis.place(one.begin) for one in phases]
    pins = [
        _pin(group, places[group[0]], pages)
        for pages, together in TOGETHER.items()
        for group in _groups(places, together)
    ]
    groups = _groups(places, min(TOGETHER.values()))
    told = [(places[group[0]], clock(phases[group[0]].begin)) for group in groups]
    told += [(axis.place(one.end), clock(one.end)) for one in phases[-1:]]
    longest = max((axis.place(one.end) - axis.place(one.begin) for one in phases), default=0.0) or 1.0
    return Picture(
        tuple(map(drawn, lanes.lanes)),
        tuple(pins),
        tuple(_times(told)),
        tuple(Label(cut.place, f"{age(cut.seconds)}, drawn short", "from560", "middle") for cut in axis.cuts),
        tuple(100 * (axis.place(one.end) - axis.place(one.begin)) / longest for one in phases),
    )


def room(text: str, share: float) -> str:
    """Return the class of pages on which a text has room in such a share of the width."""
    need_px = LETTER_PX * len(text) + PADDING_PX
    wide = (width for width in WIDTHS_PX if (width - BESIDE_PX) * share >= need_px)
    return next((f"from{width}" for width in wide), NEVER)


def _bar(axis: Axis, span: Span, when: str) -> Bar:
    x, end = axis.place(span.begin), axis.place(span.end)
    told = f"{when}: {span.says}"
    return Bar(x, end - x, span.tone.value, span.says, told, room(span.says, (end - x) / 100))


def _groups(places: Sequence[float], together: float) -> list[list[int]]:
    """Return which phases share a pin, by their numbers from 0."""
    groups: list[list[int]] = []
    for number, x in enumerate(places):
        if groups and x - places[groups[-1][0]] < together:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _pin(group: Sequence[int], x: float, pages: str) -> Label:
    first, last = group[0] + 1, group[-1] + 1
    text = str(first) if first == last else f"{first}–{last}"  # noqa: RUF001 - from … to
    return Label(x, text, pages, "middle")


def _times(places: Sequence[tuple[float, str]]) -> Iterator[Label]:
    """Give the times that have room beside those before them: both ends first."""
    taken: list[tuple[float, str, int]] = []
    for x, text in (*places[:1], *places[-1:], *places[1:-1]):
        wide = (
            width
            for width in WIDTHS_PX
            if not any(_touch((x, text), (other, words), max(width, of)) for other, words, of in taken)
        )
        fits = next(wide, None)
        if fits is not None:
            yield Label(x, text, f"from{fits}", _anchor(x))
            taken.append((x, text, fits))


def _anchor(x: float) -> str:
    return "start" if x < SIDE else "end" if x > 100 - SIDE else "middle"


def _touch(one: tuple[float, str], other: tuple[float, str], width_px: int) -> bool:
    """Whether two labels touch each other on a page of this width."""
    (begin, end), (other_begin, other_end) = (_extent(*label, width_px) for label in (one, other))
    return begin < other_end and other_begin < end


def _extent(x: float, text: str, width_px: int) -> tuple[float, float]:
    at_px, long_px = x / 100 * (width_px - BESIDE_PX), LETTER_PX * len(text)
    begin_px = at_px - {"start": 0.0, "middle": 0.5, "end": 1.0}[_anchor(x)] * long_px
    return begin_px, begin_px + long_px
