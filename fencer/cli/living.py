"""The living line: what is waited for now, in the last line of a terminal, written anew in place.

There is one per process, as there is one terminal. In a pipe, a file or a dumb terminal there is none: what
changes is told there in ordinary lines. Whoever writes an ordinary line clears it first; `render.say` does.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from fencer.core.text import printable

WIPE = "\r\x1b[K"
"""To the beginning of the line, and nothing is left behind it."""
DUMB = frozenset({"", "dumb"})

_shown = ""
_turns = False
"""Whether the spinner of `fencer.cli.asking` stands on stderr."""


def lives() -> bool:
    """Whether stdout is a terminal that can write a line anew."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in DUMB


@contextmanager
def line() -> Iterator[Callable[[str], None]]:
    """Give what shows a text on the living line, and take the line off in the end."""
    try:
        yield show
    finally:
        clear()


def show(text: str) -> None:
    """Say what is waited for now, instead of what the living line said before; nowhere else than there.

    Args:
        text: One line. It is indented like the steps above it, and cut off where the terminal ends, since a
            wrapped one could not be taken back.
    """
    global _shown  # noqa: PLW0603 - one terminal
    shown = f"  {printable(text)}"[: max(0, shutil.get_terminal_size().columns - 1)]
    if shown != _shown and lives():
        _shown = shown
        _write(f"{WIPE}{shown}")


def clear() -> None:
    """Take the living line off, if there is one, and the spinner, which comes again by itself."""
    global _shown  # noqa: PLW0603 - one terminal
    if _shown:
        _shown = ""
        _write(WIPE)
    if _turns:
        turn("")


def turn(text: str) -> None:
    """Write the spinner's line on stderr, or take it off if it is empty."""
    global _turns  # noqa: PLW0603 - one terminal
    _turns = bool(text)
    _write(f"{WIPE}{text}", sys.stderr)


def _write(text: str, stream: TextIO | None = None) -> None:
    stream = stream or sys.stdout
    encoding = stream.encoding or "utf-8"
    with suppress(OSError):  # nobody has to look
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()


class LogHandler(logging.StreamHandler):  # type: ignore[type-arg]  # of whatever stderr is
    """Logs to stderr, and takes the living line off before each record."""

    def emit(self, record: logging.LogRecord) -> None:
        """Clear, and write the record."""
        clear()
        super().emit(record)
