"""An answer without an end, line by line: each line is what a watch tells of one change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fencer.bounded import Bounds

_PIECE_BYTES = 1 << 16


def lines(response: Any, bounds: Bounds) -> Iterator[bytes]:
    """Yield the lines of an answer as they come, without empty ones; end where it ends.

    A line that the end of the answer cuts off is left out: what it was about is told again.

    Args:
        response: Of urllib3, whose body was not read.
        bounds: Of the answer: for one line, and what comes before it.

    Raises:
        urllib3.exceptions.HTTPError: no whole line came in time, or the connection broke.
        Unbounded: a line is too large.
    """
    rest = bytearray()
    while piece := response.read1(_PIECE_BYTES):
        for part in piece.splitlines(keepends=True):
            rest += part
            if not part.endswith(b"\n"):
                continue
            if line := rest.strip():
                yield bytes(line)
                bounds.renew()
            rest.clear()
