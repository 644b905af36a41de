"""A picture of a few lines over both axes by powers of ten, as SVG, with nothing but the standard library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 50
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df", "#9a6700")


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        name: What it shows, with its unit.
        points: From left to right; all numbers are above 0.
    """

    name: str
    points: Sequence[tuple[float, float]]


def svg(title: str, across: str, lines: Sequence[Line]) -> str:
    """Draw lines.

    Args:
        title: Above all.
        across: What the horizontal axis shows.
        lines: At least one, each of one point at least.
    """
    xs = _decades([x for line in lines for x, _ in line.points])
    ys = _decades([y for line in lines for _, y in line.points])
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
            *_grid(xs, ys),
            f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(across)}'
            "</text>",
            *(text for number, line in enumerate(lines) for text in _drawn(line, number, xs, ys)),
            "</svg>\n",
        ]
    )


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
        x = _x(10**power, xs)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10**power:,g}</text>'
    for power in ys:
        y = _y(10**power, ys)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10**power:,g}</text>'


def _drawn(line: Line, number: int, xs: range, ys: range) -> Iterator[str]:
    colour = COLOURS[number % len(COLOURS)]
    places = [(_x(x, xs), _y(y, ys)) for x, y in line.points]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2"/>'
    yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places)
    x, y = places[-1]
    yield f'<text x="{x + 8:.1f}" y="{y + 4:.1f}" fill="{colour}">{escape(line.name)}</text>'
