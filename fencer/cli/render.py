"""How fencer writes to people: plain words first, colour and signs only where they can be shown.

Everything that comes from outside passes `clean` where it is laid out, and `say` again at the border: no
node's name and no server's words can drive a terminal.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

import click

from fencer.cli import living
from fencer.core.model import Outcome
from fencer.core.text import printable
from fencer.errors import ConfigError

GOOD, BAD, DOUBTFUL, FAINT = "green", "red", "yellow", "bright_black"
"""Colours by what they repeat."""

SIGNS = {Outcome.PASSED: "✓", Outcome.FAILED: "✗", Outcome.NOT_ASKED: "·", Outcome.ALARM: "!"}
PLAIN_SIGNS = {Outcome.PASSED: "ok", Outcome.FAILED: "NO", Outcome.NOT_ASKED: "-", Outcome.ALARM: "!"}
PLAIN = str.maketrans({"✓": "ok", "✗": "NO", "·": "-", "\N{EN DASH}": "-", "…": "...", "─": "-", "→": "->"})
"""For terminals that cannot show the left side."""

PAGE = 100
"""Columns for paragraphs in files and pipes."""

NARROWEST = 24
"""Columns that the last cell of a table needs; with fewer it goes below the others."""
_COLOUR = re.compile(r"(\x1b\[(?:0|1|3[0-7]|9[0-7])m)")
"""What click makes of bold, and of its colours."""
BELOW = 6
"""How far it is indented there."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A word in a table, with the colour that repeats what it says."""

    text: str
    colour: str | None = None


def clean(text: object) -> str:
    """Return a text from outside, fit for a terminal."""
    return printable(str(text))


def say(text: str = "", *, err: bool = False) -> None:
    """Write a line; characters that the stream cannot show are replaced.

    Of control characters only our own colours pass, which say nothing that words do not.
    """
    text = "".join(part if number % 2 else printable(part) for number, part in enumerate(_COLOUR.split(text)))
    living.clear()
    stream = sys.stderr if err else sys.stdout
    click.echo(text if _shows(text, stream) else _fit(text, stream), err=err)


def say_file(text: str) -> None:
    """Write the lines of a file that a person, or a program, takes from here."""
    for line in text.rstrip("\n").split("\n"):
        say(line)


def say_script(lines: Iterable[str]) -> None:
    """Write lines for a shell; none, if one of them has characters that a reader cannot see.

    A newline in a name ends its line, even in quotes or a comment, and root would run what follows.

    Raises:
        ConfigError: one does.
    """
    script = tuple(lines)
    for line in script:
        refuse_unprintable("nothing is printed for a shell", line)
    for line in script:
        say(line)


def refuse_unprintable(what: str, text: str) -> None:
    """Refuse a text with control characters, direction marks, or bytes that are not UTF-8.

    Args:
        what: What it is, for people.
        text: It.

    Raises:
        ConfigError: it has some.
    """
    if not text.isprintable():
        raise ConfigError(f"{what}: it has control characters, or other invisible ones: {printable(text)}")


def complain(text: str) -> None:
    """Write an error to stderr, each line as ``fencer: …``."""
    for line in text.splitlines():
        say(f"fencer: {clean(line)}", err=True)


def sign(outcome: Outcome) -> str:
    """Return the sign of a check's outcome, as stdout can show it."""
    wanted = SIGNS[outcome]
    return wanted if _shows("✓✗·", sys.stdout) else PLAIN_SIGNS[outcome]


def table(
    rows: Sequence[Sequence[Cell | str]], *, indent: int = 0, gap: int = 3, page: int | None = None
) -> Iterable[str]:
    """Lay out rows in columns; on a terminal the last column is wrapped, and nothing is ever cut off.

    Args:
        rows: Cells; rows may be of different length.
        indent: Spaces before each line.
        gap: Spaces between columns.
        page: Columns where there is no terminal; None: as many as it takes.
    """
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    columns = max((len(row) for row in cells), default=0)
    widths = [max((len(row[i].text) for row in cells if i < len(row) - 1), default=0) for i in range(columns)]
    for row in cells:
        *front, last = row
        begun = " " * indent + "".join(
            _painted(cell, width) + " " * gap for cell, width in zip(front, widths, strict=False)
        )
        hang = indent + sum(widths[: len(front)]) + gap * len(front)
        yield from _last_cell(begun, last, hang, indent, width(page))


def _last_cell(begun: str, last: Cell, hang: int, indent: int, width: int | None) -> Iterator[str]:
    """Finish a row: behind the others, wrapped there, or below them where a terminal leaves no room."""
    if width is None or len(last.text) <= width - hang:
        parts = [last.text]
    elif width - hang >= NARROWEST:
        parts = _wrapped(last.text, width - hang)
    else:
        if begun.strip():
            yield begun.rstrip()
        hang = indent + BELOW
        begun, parts = " " * hang, _wrapped(last.text, width - hang)
    for number, part in enumerate(parts):
        yield ((begun if number == 0 else " " * hang) + _painted(Cell(part, last.colour), 0)).rstrip()


def paragraph(text: str, *, indent: int = 0, page: int = PAGE) -> Iterable[str]:
    """Wrap a paragraph to the terminal, or to `page` columns where there is none."""
    for part in _wrapped(text, (width() or page) - indent):
        yield " " * indent + part


def tell(text: str, *, bold: bool = False, page: int = PAGE) -> None:
    """Say a paragraph."""
    for part in paragraph(text, page=page):
        say(click.style(part, bold=True) if bold else part)


def _painted(cell: Cell, width: int) -> str:
    padding = " " * (width - len(cell.text))
    return (click.style(cell.text, fg=cell.colour) if cell.colour and cell.text else cell.text) + padding


def width(page: int | None = None) -> int | None:
    """Return the width of the terminal; where stdout is none, that of the page, if there is one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else page


def _wrapped(text: str, room: int) -> list[str]:
    return textwrap.wrap(text, max(NARROWEST, room), break_long_words=False, break_on_hyphens=False) or [""]


def _shows(text: str, stream: TextIO) -> bool:
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _fit(text: str, stream: TextIO) -> str:
    encoding = stream.encoding or "utf-8"
    return text.translate(PLAIN).encode(encoding, "backslashreplace").decode(encoding)
