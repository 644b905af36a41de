"""Shown every pass: what people have to be told goes to the outbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from fencer.notify.book import Book
from fencer.notify.cases import Look, look_at, without_api
from fencer.notify.message import Message
from fencer.notify.settings import REMIND_S
from fencer.ports.runtime import Sight


class Teller:
    """`Viewer` that tells people what there is.

    Args:
        put: Takes a message; returns at once.
        path: Where the configuration is, for what people may type.
        now_s: A monotonic clock.
        wall: The time of day.
        standing: The newest message of each incident that people were told of by an agent before this one.
        remind_s: While somebody does not answer, people are told again so often.
    """

    def __init__(
        self,
        put: Callable[[Message], None],
        path: str,
        now_s: Callable[[], float],
        wall: Callable[[], datetime],
        standing: Sequence[Message] = (),
        remind_s: float = REMIND_S,
    ) -> None:
        self._put, self._path, self._now_s, self._wall = put, path, now_s, wall
        self._book = Book(standing, remind_s)

    def passed(self, seen: Sight) -> None:
        """See `fencer.ports.Viewer.passed`."""
        self._look(look_at(seen, self._path))

    def failed(self, why: str) -> None:
        """See `fencer.ports.Viewer.failed`."""
        self._look(without_api(why))

    def _look(self, found: Look) -> None:
        for message in self._book.look(found, self._now_s(), self._wall()):
            self._put(message)
