"""The pictures of benchmarks, drawn from the numbers that the documentation publishes of real runs.

So a table and its picture cannot differ. `./dev bench` draws the same pictures from runs of one's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import failover, idle_scale
from tests.benchmarks.plot import Bar
from tests.pictures.paper import ROOT

PAGE = ROOT / "docs" / "performance.md"
IDLE, FAILOVER = "## Watching a cluster in which nothing happens", "## Failover"
"""Headings of the tables."""

_NUMBER = re.compile(r"[\d,.]*\d")
_ENDS = re.compile(r"([\d.]+) / ([\d.]+)")

Row = Mapping[str, str]
"""The cells of a row of a table, by the words above them."""


@dataclass(frozen=True, slots=True)
class Published:
    """What is published of one size; see `tests.benchmarks.idle_scale.Idle`."""

    nodes: int
    cpu: float
    received: float
    resident_mib: float


def table(text: str, heading: str) -> Sequence[Row]:
    """Return the first table below a heading.

    Args:
        text: Of the page.
        heading: As it stands there, with its signs.
    """
    below = text.partition(f"\n{heading}\n")[2].split("\n## ")[0]
    lines = below.partition("\n\n|")[2].partition("\n\n")[0].splitlines()
    if len(lines) < len(("head", "rule", "row")):
        raise ValueError(f"{PAGE.name}: no table below {heading!r}")
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(head, row, strict=False)) for row in rows]


def growth() -> str:
    """Return the picture of what fencer costs by the number of nodes."""
    rows = table(PAGE.read_text("utf-8"), IDLE)
    return idle_scale.plot(
        [
            Published(
                nodes=round(_number(row["nodes"])),
                cpu=_number(row["CPU"]) / 100,
                received=_number(row["received"]) * idle_scale.KB,
                resident_mib=_number(row["memory (peak)"]),
            )
            for row in rows
        ]
    )


def slow_and_quick(page: Path = PAGE) -> str:
    """Return the picture of how long a node's death keeps pods away."""
    rows = table(page.read_text("utf-8"), FAILOVER)
    return failover.picture([_bar(row) for row in rows])


def _bar(row: Row) -> Bar:
    ready = row[failover.COLUMNS["ready_s"]]
    ends = _ENDS.fullmatch(ready)
    dots = [_ENDS.fullmatch(row[failover.COLUMNS[name]]) for name in failover.DOTS]
    return Bar(
        row[""].replace("`", ""),
        (float(ends[1]), float(ends[2])) if ends else None,
        [float(found[1]) if found else None for found in dots],
        "" if ends else ready,
    )


def _number(cell: str) -> float:
    found = _NUMBER.search(cell)
    if found is None:
        raise ValueError(f"{PAGE.name}: no number in {cell!r}")
    return float(found[0].replace(",", ""))
