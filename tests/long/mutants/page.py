"""The table of mutants in `docs/safety.md`: one row for each module that the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "safety.md"
SHOWN = ("core", "evicting")
"""The parts that the page shows."""

_BEGIN, _END = "<!-- mutants: written by ./dev mutants, see below -->", "<!-- end of mutants -->"
_HEAD = (
    "| module | faults | found | explained | neither | tried on |",
    "| --- | ---: | ---: | ---: | ---: | --- |",
)
_ROW = re.compile(r"^\| `([^`]+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| ([0-9-]{10}) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """What the last trial of a module showed.

    Attributes:
        path: The module's file, from the checkout.
        tried: How many faults were tried.
        explained: How many of them no test found, for a reason that `explained.toml` names.
        neither: How many no test found without such a reason.
        on: The day of the trial.
    """

    path: str
    tried: int
    explained: int
    neither: int
    on: str

    @property
    def found(self) -> int:
        """How many a test found."""
        return self.tried - self.explained - self.neither


def rows_of(text: str) -> dict[str, Row]:
    """Return the rows of a page, by module.

    Raises:
        ValueError: The numbers of a row do not add up.
    """
    rows = {}
    for path, tried, found, explained, neither, on in _ROW.findall(_part(text)):
        rows[path] = row = Row(path, int(tried), int(explained), int(neither), on)
        if row.found != int(found):
            raise ValueError(f"{path}: {tried} faults are not {found} + {explained} + {neither}")
    return rows


def with_rows(text: str, modules: Sequence[str], new: Iterable[Row]) -> str:
    """Return the page with new rows in its table; other modules keep theirs.

    Args:
        text: The page.
        modules: All modules that the page shows, in their order: others lose their rows.
        new: The new rows.
    """
    rows: Mapping[str, Row] = {**rows_of(text), **{row.path: row for row in new}}
    before, _, rest = text.partition(_BEGIN)
    made = "\n".join(table([rows[path] for path in modules if path in rows]))
    return f"{before}{_BEGIN}\n\n{made}\n\n{_END}{rest.partition(_END)[2]}"


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the table, with the sums of each part and of all."""
    lines = list(_HEAD)
    lines += [f"| `{row.path}` | {_numbers([row])} | {row.on} |" for row in rows]
    for part in SHOWN:
        if of_part := [row for row in rows if row.path.startswith(f"fencer/{part}/")]:
            lines.append(f"| all of `fencer/{part}` | {_numbers(of_part)} | |")
    return lines


def _numbers(rows: Sequence[Row]) -> str:
    columns = [[row.tried, row.found, row.explained, row.neither] for row in rows]
    return " | ".join(str(sum(column)) for column in zip(*columns, strict=True))


def _part(text: str) -> str:
    return text.partition(_BEGIN)[2].partition(_END)[0]
