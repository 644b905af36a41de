"""What a command writes to a terminal, and that terminal as a picture that plays it.

The picture needs no script: each line is hidden until its moment, and the page rolls up by steps. Without
animation, or for readers who asked for less motion, it is the last screen at once.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from operator import itemgetter

from tests.pictures.paper import MONOSPACE, ROOT, shown, svg

COLUMNS = 80
"""Of the terminal: lines that are longer are the command's to wrap."""
ROWS = 26
"""Of the screen in the picture."""
LETTER, LINE, MARGIN, BAR = 8.43, 18, 16, 32
"""A letter is so wide and a line so high; around the screen; the bar above it. A letter of 14 px has 8.43."""
FONT_PX = 14

_SGR = re.compile(r"\x1b\[([0-9;]*)m")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TONES = {39: "ink", 90: "muted", 31: "red", 32: "green", 33: "yellow", 34: "blue", 35: "magenta", 36: "cyan"}
_BOLD = 1
_PART = re.compile(r"\S+(?: \S+)*")
"""Words with one space between them."""


@dataclass(frozen=True, slots=True)
class Look:
    """How letters look: their colour, of `tests.pictures.paper.TONES`, and whether they are bold."""

    tone: str
    bold: bool


@dataclass(frozen=True, slots=True)
class Run:
    """Letters of one look, and the column where they begin."""

    column: int
    text: str
    look: Look


def typed(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run a command in a terminal, and return what it writes there, colours and all.

    Args:
        words: The command.
        environment: Beside what it inherits; nothing that chooses colours is inherited.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS"}}
    whole = {**inherited, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **environment}
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=whole, cwd=ROOT) as process:
        os.close(theirs)
        text = b"".join(_read(ours)).decode()
    os.close(ours)
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}:\n{text}")
    return text.replace("\r\n", "\n")


def _read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # so Linux says that nobody writes any more
            return
        if not part:
            return
        yield part


def python(code: str) -> list[str]:
    """Return the command that runs Python code with the Python of this process."""
    return [sys.executable, "-c", code]


def lines(text: str) -> list[list[Run]]:
    """Return the lines of what was written, as runs of one look; longer ones are broken as a terminal does.

    Raises:
        ValueError: It has a sequence or a colour that the picture does not know.
    """
    found: list[list[Run]] = []
    look = Look("ink", bold=False)
    for line in text.rstrip("\n").split("\n"):
        letters: list[tuple[str, Look]] = []
        for number, part in enumerate(_SGR.split(line)):
            if number % 2:
                look = _look(part, look)
            elif _CONTROL.search(part):
                raise ValueError(f"not known to the picture: {part!r}")
            else:
                letters += [(letter, look) for letter in part]
        found += [
            _runs(letters[begin : begin + COLUMNS]) for begin in range(0, max(1, len(letters)), COLUMNS)
        ]
    return found


def _look(codes: str, look: Look) -> Look:
    for code in (int(one or 0) for one in codes.split(";")):
        if code == 0:
            look = Look("ink", bold=False)
        elif code == _BOLD:
            look = replace(look, bold=True)
        elif code in _TONES:
            look = replace(look, tone=_TONES[code])
        else:
            raise ValueError(f"not known to the picture: the look {code}")
    return look


def _runs(letters: Sequence[tuple[str, Look]]) -> list[Run]:
    """Put letters of one look together; cut at wider gaps, columns stay columns with any font."""
    runs: list[Run] = []
    column = 0
    for look, group in groupby(letters, itemgetter(1)):
        text = "".join(letter for letter, _ in group)
        runs += [Run(column + part.start(), part.group(), look) for part in _PART.finditer(text)]
        column += len(text)
    return runs


@dataclass(frozen=True, slots=True)
class Played:
    """A story on a terminal.

    Attributes:
        title: Of the window.
        about: What is to be seen, for those who do not see it.
        lines: All of them.
        waits_s: Seconds before each; 0: it comes with the line before it.
    """

    title: str
    about: str
    lines: Sequence[Sequence[Run]]
    waits_s: Sequence[float]


def picture(played: Played, *, still: bool = False) -> str:
    """Return the picture that plays a story once, and stays on its last screen.

    Args:
        played: The story.
        still: All of it at once instead, on a screen that is high enough.
    """
    rows = len(played.lines) if still else ROWS
    width, height = round(COLUMNS * LETTER) + 2 * MARGIN, BAR + rows * LINE + 2 * MARGIN
    drawn = [*_window(played.title, width, height)]
    if still:
        drawn.append(f'<g transform="translate(0 {BAR + MARGIN})">')
        drawn += [text for at, runs in enumerate(played.lines) for text in _line(runs, at)]
        style = MONOSPACED
    else:
        drawn.append(f'<svg y="{BAR + MARGIN}" width="{width}" height="{rows * LINE}">')
        drawn.append(f'<g class="roll" transform="translate(0 {-_rolled(len(played.lines))})">')
        drawn += _later(played)
        drawn.append("</g>")
        style = _style([*accumulate(played.waits_s)])
    drawn.append("</g>" if still else "</svg>")
    return svg((played.title, played.about), (width, height), drawn, font_px=FONT_PX, style=style)


def _later(played: Played) -> Iterator[str]:
    """Draw all lines; those that come together are hidden until their moment."""
    for moment_s, group in groupby(enumerate(accumulate(played.waits_s)), itemgetter(1)):
        yield f'<g class="later" style="animation-delay:{moment_s:.2f}s">' if moment_s else "<g>"
        for at, _ in group:
            yield from _line(played.lines[at], at)
        yield "</g>"


MONOSPACED = f"text {{ font-family: {MONOSPACE} }}"


def _window(title: str, width: float, height: float) -> Iterator[str]:
    size = f'width="{width - 1}" height="{height - 1}"'
    yield f'<rect class="line-line" fill="none" x="0.5" y="0.5" {size} rx="8"/>'
    yield f'<path class="panel" d="M0 {BAR} V8 a8 8 0 0 1 8 -8 H{width - 8} a8 8 0 0 1 8 8 V{BAR} z"/>'
    for number in range(3):
        yield f'<circle class="hatch" cx="{20 + 18 * number}" cy="{BAR / 2:g}" r="6"/>'
    at = f'x="{width / 2:g}" y="{BAR / 2 + 5:g}" text-anchor="middle"'
    yield f'<text class="muted" {at}>{shown(title)}</text>'


def _line(runs: Sequence[Run], at: int) -> Iterator[str]:
    if not runs:
        return
    spans = []
    for run in runs:
        bold = ' font-weight="700"' if run.look.bold else ""
        long = f' textLength="{len(run.text) * LETTER:.1f}" lengthAdjust="spacingAndGlyphs"'
        tone = "" if run.look.tone == "ink" else f' class="{run.look.tone}"'
        spans.append(
            f'<tspan{tone} x="{MARGIN + run.column * LETTER:.1f}"{long}{bold}>{shown(run.text)}</tspan>'
        )
    yield f'<text class="ink" y="{LINE * at + LINE - 4}">{"".join(spans)}</text>'


def _rolled(number: int) -> int:
    """Return how far the page has rolled up when so many lines are there."""
    return max(0, number - ROWS) * LINE


def _style(times_s: Sequence[float]) -> str:
    whole_s = times_s[-1]
    shares: dict[int, float] = {}  # by how far it is rolled up; the first moment counts
    for number, time_s in enumerate(times_s, 1):
        there = sum(one <= time_s for one in times_s[number:]) + number  # lines that come together
        shares.setdefault(_rolled(there), round(100 * time_s / whole_s, 2))
    steps = {share: up for up, share in shares.items()}
    frames = " ".join(f"{share:g}%{{transform:translateY({-up}px)}}" for share, up in steps.items())
    return "\n".join(
        (
            MONOSPACED,
            "@media (prefers-reduced-motion: no-preference) {",
            ".later { animation: come 1ms step-end backwards }",
            f".roll {{ animation: roll {whole_s:.2f}s step-end both }}",
            "}",
            "@keyframes come { from { visibility: hidden } }",
            f"@keyframes roll {{ {frames} }}",
        )
    )
