"""Places on the axis of time, in percent: long stretches without a change are cut short, and marked. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, pairwise

SHARE = 0.35
"""So much of the axis one stretch without any change takes at most."""
UNCUT_S = 60.0
"""What is no longer than this is never cut short."""
ROUNDS = 64
"""The share converges long before."""
CUT = 0.9
"""A stretch is marked as cut short where less than this is left of it."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A stretch that is drawn shorter than it was.

    Attributes:
        place: Its middle, in percent.
        seconds: How long it was.
    """

    place: float
    seconds: float


class Axis:
    """Where on the axis a moment is.

    Args:
        knots: All moments at which anything changed, in order; at least one.
    """

    def __init__(self, knots: Sequence[datetime]) -> None:
        self._knots = knots
        lengths = [(after - before).total_seconds() for before, after in pairwise(knots)]
        widths = _shortened(lengths)
        self._whole = sum(widths) or 1.0
        self._starts = [0.0, *accumulate(widths)]
        self.cuts = tuple(
            Cut(100 * (start + width / 2) / self._whole, length)
            for start, width, length in zip(self._starts, widths, lengths, strict=False)
            if width < CUT * length
        )

    def place(self, at: datetime) -> float:
        """Return where a moment is, in percent."""
        if at <= self._knots[0]:
            return 0.0
        if at >= self._knots[-1]:
            return 100.0
        number = bisect_right(self._knots, at) - 1
        before, after = self._knots[number], self._knots[number + 1]
        part = (at - before) / (after - before)
        start, end = self._starts[number], self._starts[number + 1]
        return 100 * (start + part * (end - start)) / self._whole


def _shortened(lengths: Sequence[float]) -> list[float]:
    widths = list(lengths)
    for _ in range(ROUNDS):
        most = max(UNCUT_S, SHARE * sum(widths))
        if max(widths, default=0.0) <= most * 1.001:
            break
        widths = [min(width, most) for width in widths]
    return widths
