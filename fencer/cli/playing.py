"""Plays a story for somebody who may press Ctrl-C at any moment."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from fencer.simulation.stage import Stage
from fencer.simulation.timeline import StageEvent


def events(stage: Stage) -> Iterator[StageEvent]:
    """Play a stage; Ctrl-C ends it between two events.

    Raises:
        KeyboardInterrupt: somebody pressed it.
    """
    told = stage.play()
    try:
        while True:
            with _unbroken():
                event = next(told, None)
            if event is None:
                return
            yield event
    finally:
        with _unbroken():
            told.close()


@contextmanager
def _unbroken() -> Iterator[None]:
    """Let Ctrl-C wait for the end of this: of the strands of a world only one may run, and each hands on."""
    pressed = False

    def press(*_: object) -> None:
        nonlocal pressed
        pressed = True

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
