"""What is waited for, once that takes long: on a terminal's stderr, and gone before the answer."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle

from fencer.cli import living
from fencer.core.text import listing

PATIENCE_S = 1.0
"""Whoever is answered sooner need not be told."""
TURN_S = 0.2
"""How long each sign stands."""
SIGNS = "|/-\\"


@contextmanager
def asking(whom: Sequence[str], now_s: Callable[[], float]) -> Iterator[None]:
    """Tell people who is asked and for how long, while this is entered. In a pipe or in CI nobody is told.

    Args:
        whom: The API and endpoints, by their names.
        now_s: The clock that commands wait by.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM", "") in living.DUMB or os.environ.get("CI"):
        yield
        return
    over = threading.Event()
    spinner = threading.Thread(target=spin, args=(whom, now_s, over.wait), name="asking", daemon=True)
    spinner.start()
    try:
        yield
    finally:
        over.set()
        spinner.join()


def spin(whom: Sequence[str], now_s: Callable[[], float], over: Callable[[float], bool]) -> None:
    """Turn until it is over, and leave nothing behind.

    Args:
        whom: Who is asked.
        now_s: The clock.
        over: Waits so many seconds, or until it is over; tells whether it is.
    """
    began_s = now_s()
    if over(PATIENCE_S):
        return
    for sign in cycle(SIGNS):
        living.turn(f"{sign} asking {listing(whom, 5)}: {now_s() - began_s:.0f} s")
        if over(TURN_S):
            break
    living.turn("")
