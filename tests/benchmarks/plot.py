"""Pictures of lines and bars over axes by powers of ten."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.pictures.paper import svg, words

WIDTH, HEIGHT = 224, 296
"""Of one panel."""
LEFT, RIGHT, TOP, BOTTOM = 44, 18, 42, 60
FONT_PX = 14
TONES = ("blue", "yellow", "magenta")


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        name: What it is; empty: the panel says it.
        points: From left to right; all numbers are above 0.
    """

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture.

    Attributes:
        title: What its lines show, with the unit.
        lines: At least one with a point.
        goals: Points that lines are to stay below.
    """

    title: str
    lines: Sequence[Line]
    goals: Sequence[tuple[float, float]] = ()


def lines(name: tuple[str, str], across: str, panels: Sequence[Panel]) -> str:
    """Draw panels side by side.

    Args:
        name: Title, and what is to be seen, for those who do not see it.
        across: What all their horizontal axes show.
        panels: From left to right.
    """
    drawn = [
        part
        for number, panel in enumerate(panels)
        for part in (f'<g transform="translate({number * WIDTH} 0)">', *_panel(across, panel), "</g>")
    ]
    return svg(name, (WIDTH * len(panels), HEIGHT), drawn, font_px=FONT_PX)


def _panel(across: str, panel: Panel) -> Iterator[str]:
    points = [*panel.goals, *(point for line in panel.lines for point in line.points)]
    xs, ys = (_decades([point[axis] for point in points]) for axis in (0, 1))
    yield words(panel.title, WIDTH / 2, 24, text_anchor="middle", font_weight=600)
    yield words(across, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "muted", text_anchor="middle")
    yield from _grid(xs, ys)
    for number, line in enumerate(panel.lines):
        yield from _line(line, TONES[number % len(TONES)], xs, ys)
    for x, y in panel.goals:
        yield f'<path class="green" d="M{_x(x, xs):g} {_y(y, ys):.1f} l-5 -9 h10 z"/>'
    if panel.goals:
        x, y = max(panel.goals)
        yield words("goal", _x(x, xs) - 10, round(_y(y, ys), 1), "green", text_anchor="end")


def _decades(values: Sequence[float]) -> range:
    """Return the powers of ten that values lie between."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return range(low, max(high, low + 1) + 1)


def _x(value: float, xs: range) -> float:
    return round(LEFT + (math.log10(value) - xs[0]) / (xs[-1] - xs[0]) * (WIDTH - LEFT - RIGHT), 1)


def _y(value: float, ys: range) -> float:
    return HEIGHT - BOTTOM - (math.log10(value) - ys[0]) / (ys[-1] - ys[0]) * (HEIGHT - TOP - BOTTOM)


def _grid(xs: range, ys: range) -> Iterator[str]:
    for power in xs:
        x = _x(10.0**power, xs)
        yield f'<path class="line-line" d="M{x:g} {TOP} V{HEIGHT - BOTTOM}"/>'
        yield words(_short(power), x, HEIGHT - BOTTOM + 23, "muted", text_anchor="middle")
    for power in ys:
        y = _y(10.0**power, ys)
        yield f'<path class="line-line" d="M{LEFT} {y:.1f} H{WIDTH - RIGHT}"/>'
        yield words(_short(power), LEFT - 6, round(y + 5, 1), "muted", text_anchor="end")


def _short(power: int) -> str:
    """Write a power of ten: 0.1, 1, 10, 100, 1k, 10k and so on."""
    return f"{10.0**power:g}" if power < _THOUSAND else f"{10.0 ** (power - _THOUSAND):g}k"


_THOUSAND = 3


def _line(line: Line, tone: str, xs: range, ys: range) -> Iterator[str]:
    places = [(_x(x, xs), _y(y, ys)) for x, y in line.points]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline class="line-{tone}" points="{corners}" fill="none" stroke-width="2.5"/>'
    yield from (f'<circle class="{tone}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in places)
    if line.name:
        x, y = places[len(places) // 2]
        yield words(line.name, x - 6, round(y - 8, 1), tone, text_anchor="end")


BAR_LEFT, BAR_WIDTH, BAR_HEIGHT, BAR_TOP = 20, 560, 46, 44
"""Of a picture of bars: room on the left and for the axis, height of a row, room for the legend."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a picture of bars.

    Attributes:
        name: Above it.
        ends: Where the bar ends, and where the line after it; None: it has no end.
        dots: Marks on it, in the order of the legend; None: there is none.
        endless: What is said of a bar without an end.
    """

    name: str
    ends: tuple[float, float] | None
    dots: Sequence[float | None]
    endless: str = ""


def bars(name: tuple[str, str], across: str, legend: Sequence[str], rows: Sequence[Bar]) -> str:
    """Draw horizontal bars below each other, on one axis by powers of ten.

    Args:
        name: Title, and what is to be seen, for those who do not see it.
        across: What the axis shows.
        legend: What the dots are.
        rows: From top to bottom.
    """
    ends = [end for row in rows for end in (row.ends or ())]
    xs = _decades([*ends, *(dot for row in rows for dot in row.dots if dot is not None)])
    width, bottom = BAR_LEFT + BAR_WIDTH + 60, BAR_TOP + BAR_HEIGHT * len(rows) + 6

    def x(value: float) -> float:
        return round(BAR_LEFT + (math.log10(value) - xs[0]) / (xs[-1] - xs[0]) * BAR_WIDTH, 1)

    drawn = [*_legend(legend), *_bar_axis(across, [(power, x(10.0**power)) for power in xs], bottom)]
    for number, row in enumerate(rows):
        drawn += _bar(row, BAR_TOP + BAR_HEIGHT * number, x)
    return svg(name, (width, bottom + 54), drawn, font_px=FONT_PX)


def _bar(row: Bar, top: float, x: Callable[[float], float]) -> Iterator[str]:
    y = top + 32
    yield words(row.name, BAR_LEFT + 4, top + 19)
    if row.ends is None:
        yield words(row.endless, BAR_LEFT + 4, y + 8, "red", font_weight=600)
    else:
        half, most = x(row.ends[0]), x(row.ends[1])
        size = f'width="{half - BAR_LEFT:.1f}" height="14"'
        yield f'<rect class="soft" x="{BAR_LEFT}" y="{y - 7}" {size} rx="2"/>'
        yield f'<path class="line-muted" stroke-width="1.5" fill="none" d="M{half} {y} H{most} m0 -5 v10"/>'
        yield words(f"{row.ends[0]:.1f} s", most + 8, y + 5, font_weight=600)
    for tone, dot in zip(TONES, row.dots, strict=False):
        if dot is not None:
            yield f'<circle class="{tone} line-page" cx="{x(dot)}" cy="{y}" r="5"/>'


def _legend(legend: Sequence[str]) -> Iterator[str]:
    x = BAR_LEFT + 4
    for tone, name in zip(TONES, legend, strict=False):
        yield f'<circle class="{tone}" cx="{x + 5}" cy="22" r="5"/>'
        yield words(name, x + 16, 27)
        x += 16 + 9 * len(name) + 24


def _bar_axis(across: str, ticks: Sequence[tuple[int, float]], bottom: float) -> Iterator[str]:
    for power, x in ticks:
        yield f'<path class="line-line" d="M{x} {BAR_TOP} V{bottom}"/>'
        yield words(_short(power), x, bottom + 18, "muted", text_anchor="middle")
    yield words(across, BAR_LEFT + BAR_WIDTH / 2, bottom + 42, "muted", text_anchor="middle")
