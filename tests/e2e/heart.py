"""The heart of guests that are not QEMU's: it has each beat for as long as a lab stands."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

_BEAT_S = 0.1


class Beating(Protocol):
    """A guest that beats, if it runs, when it is told to."""

    def beat(self) -> None:
        """Beat once."""
        ...


@contextmanager
def beating(guests: Mapping[str, Beating]) -> Iterator[None]:
    """Have guests beat, those too that are defined meanwhile."""
    over = threading.Event()

    def live() -> None:
        while not over.wait(_BEAT_S):
            for guest in tuple(guests.values()):
                guest.beat()

    heart = threading.Thread(target=live, name="heart", daemon=True)
    heart.start()
    try:
        yield
    finally:
        over.set()
        heart.join()
