"""Turns: of several threads of one agent, one goes on at a time, until it asks somebody or waits.

So what an agent knows does not change under its hands between two calls, and nothing else has to be locked.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


class Turns:
    """Whose turn it is. A thread that never takes a turn is none of its business."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._here = threading.local()
        self._at: dict[str, threading.Lock] = {}

    @contextmanager
    def mine(self) -> Iterator[None]:
        """Wait for one's turn, and keep it but while it is given away."""
        self._turn.acquire()
        self._here.mine = True
        try:
            yield
        finally:
            self._here.mine = False
            self._turn.release()

    @contextmanager
    def given_away(self) -> Iterator[None]:
        """Let others go on while this thread waits for something."""
        if not getattr(self._here, "mine", False):
            yield
            return
        self._here.mine = False
        self._turn.release()
        try:
            yield
        finally:
            self._turn.acquire()
            self._here.mine = True

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Wait until nobody else is at this, and be the only one."""
        lock = self._at.setdefault(what, threading.Lock())
        with self.given_away():
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def begin(self, run: Callable[[], None], name: str) -> threading.Thread:
        """Let something go on in a thread of its own, in its turns."""

        def go_on() -> None:
            with self.mine():
                try:
                    run()
                except Exception:
                    log.exception("a bug in fencer ends %s; all else goes on", name)

        thread = threading.Thread(target=go_on, name=name, daemon=True)
        thread.start()
        return thread
