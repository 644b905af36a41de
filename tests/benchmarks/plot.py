"""Pictures of lines and bars over axes by powers of ten, as SVG, with nothing but the standard library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 320, 300
"""Of one panel."""
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 36, 46
COLOURS = ("#1f6feb", "#9a6700", "#8250df")


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


def svg(across: str, panels: Sequence[Panel]) -> str:
    """Draw panels side by side.

    Args:
        across: What all their horizontal axes show.
        panels: From left to right.
    """
    drawn = [
        part
        for number, panel in enumerate(panels)
        for part in (f'<g transform="translate({number * WIDTH} 0)">', *_panel(across, panel), "</g>")
    ]
    return _picture(WIDTH * len(panels), HEIGHT, drawn)


def _panel(across: str, panel: Panel) -> Iterator[str]:
    points = [*panel.goals, *(point for line in panel.lines for point in line.points)]
    xs, ys = (_decades([point[axis] for point in points]) for axis in (0, 1))
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle}" y="20" text-anchor="middle" font-size="13">{escape(panel.title)}</text>'
    yield f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(across)}</text>'
    yield from _grid(xs, ys)
    for number, line in enumerate(panel.lines):
        yield from _line(line, COLOURS[number % len(COLOURS)], xs, ys)
    for x, y in panel.goals:
        at = f'x="{_x(x, xs):.1f}" y="{_y(y, ys):.1f}"'
        yield f'<text {at} text-anchor="middle" fill="#1a7f37">▾ goal</text>'


def _decades(values: Sequence[float]) -> range:
    """Return the powers of ten that values lie between."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return range(low, max(high, low + 1) + 1)


def _x(value: float, xs: range) -> float:
    return LEFT + (math.log10(value) - xs[0]) / (xs[-1] - xs[0]) * (WIDTH - LEFT - RIGHT)


def _y(value: float, ys: range) -> float:
    return HEIGHT - BOTTOM - (math.log10(value) - ys[0]) / (ys[-1] - ys[0]) * (HEIGHT - TOP - BOTTOM)


def _grid(xs: range, ys: range) -> Iterator[str]:
    for power in xs:
        x = _x(10.0**power, xs)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{10.0**power:,.9g}</text>'
    for power in ys:
        y = _y(10.0**power, ys)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:,.9g}</text>'


def _line(line: Line, colour: str, xs: range, ys: range) -> Iterator[str]:
    places = [(_x(x, xs), _y(y, ys)) for x, y in line.points]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2"/>'
    yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places)
    x, y = places[len(places) // 2]
    at = f'x="{x - 6:.1f}" y="{y - 8:.1f}"'
    yield f'<text {at} text-anchor="end" fill="{colour}">{escape(line.name)}</text>'


BAR_LEFT, BAR_WIDTH, BAR_HEIGHT, BAR_TOP = 330, 560, 26, 46
"""Of a picture of bars: room for names and for the axis, height of a row, room for the legend."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a picture of bars.

    Attributes:
        name: On its left.
        ends: Where the bar ends, and where the line after it; None: it has no end.
        dots: Marks on it, in the order of the legend; None: there is none.
        endless: What is said of a bar without an end.
    """

    name: str
    ends: tuple[float, float] | None
    dots: Sequence[float | None]
    endless: str = ""


def bars(across: str, legend: Sequence[str], rows: Sequence[Bar]) -> str:
    """Draw horizontal bars below each other, on one axis by powers of ten.

    Args:
        across: What the axis shows.
        legend: What the dots are.
        rows: From top to bottom.
    """
    ends = [end for row in rows for end in (row.ends or ())]
    xs = _decades([*ends, *(dot for row in rows for dot in row.dots if dot is not None)])
    width, bottom = BAR_LEFT + BAR_WIDTH + 60, BAR_TOP + BAR_HEIGHT * len(rows)

    def x(value: float) -> float:
        return BAR_LEFT + (math.log10(value) - xs[0]) / (xs[-1] - xs[0]) * BAR_WIDTH

    drawn = [*_legend(legend), *_bar_axis(across, [(10.0**power, x(10.0**power)) for power in xs], bottom)]
    for number, row in enumerate(rows):
        y = BAR_TOP + BAR_HEIGHT * number + BAR_HEIGHT / 2
        drawn.append(f'<text x="{BAR_LEFT - 8}" y="{y + 4}" text-anchor="end">{escape(row.name)}</text>')
        if row.ends is None:
            drawn.append(f'<text x="{BAR_LEFT + 8}" y="{y + 4}" fill="#cf222e">{escape(row.endless)}</text>')
        else:
            half, most = x(row.ends[0]), x(row.ends[1])
            size = f'width="{half - BAR_LEFT:.1f}" height="14"'
            drawn.append(f'<rect x="{BAR_LEFT}" y="{y - 7}" {size} fill="#b6d4fe"/>')
            drawn.append(f'<line x1="{half:.1f}" x2="{most:.1f}" y1="{y}" y2="{y}" stroke="#57606a"/>')
            drawn.append(
                f'<line x1="{most:.1f}" x2="{most:.1f}" y1="{y - 5}" y2="{y + 5}" stroke="#57606a"/>'
            )
            drawn.append(f'<text x="{most + 6:.1f}" y="{y + 4}">{row.ends[0]:.1f}</text>')
        drawn += [
            f'<circle cx="{x(dot):.1f}" cy="{y}" r="4" fill="{COLOURS[index]}"/>'
            for index, dot in enumerate(row.dots)
            if dot is not None
        ]
    return _picture(width, bottom + 44, drawn)


def _legend(legend: Sequence[str]) -> Iterator[str]:
    for index, name in enumerate(legend):
        x = BAR_LEFT + index * 150
        yield f'<circle cx="{x + 5}" cy="20" r="4" fill="{COLOURS[index]}"/>'
        yield f'<text x="{x + 14}" y="24">{escape(name)}</text>'


def _bar_axis(across: str, ticks: Sequence[tuple[float, float]], bottom: float) -> Iterator[str]:
    for value, x in ticks:
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{BAR_TOP}" y2="{bottom}" stroke="#ddd"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{value:,.9g}</text>'
    middle = BAR_LEFT + BAR_WIDTH / 2
    yield f'<text x="{middle}" y="{bottom + 36}" text-anchor="middle">{escape(across)}</text>'


def _picture(width: float, height: float, drawn: Sequence[str]) -> str:
    """Return the whole SVG; its ground is white, so that it can be read on dark pages as well."""
    size = f'viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *drawn, "</svg>", ""])
