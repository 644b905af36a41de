"""Shown every pass: what people have to be told goes to the outbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from fencer.core.election import Seat, Tenure
from fencer.notify.book import Book
from fencer.notify.cases import Look, look_at, without_api
from fencer.notify.message import Message
from fencer.notify.settings import REMIND_S
from fencer.notify.speaker import Say, says, tenure_of
from fencer.ports.runtime import Sight


@dataclass(frozen=True, slots=True)
class Others:
    """The other agents that may tell people the same.

    Attributes:
        tenure: Tells what this agent is to a hypervisor, by its name; None: no other agent is thought of.
        endpoints: All hypervisors of this agent.
        told: Takes a message that another agent has told, and that agent's name; returns at once.
    """

    tenure: Callable[[str], Tenure] | None = None
    endpoints: Sequence[str] = ()
    told: Callable[[Message, str], None] = field(default=lambda _message, _holder: None)


class Teller:
    """`Viewer` that tells people what there is.

    Args:
        put: Takes a message; returns at once.
        path: Where the configuration is, for what people may type.
        now_s: A monotonic clock.
        wall: The time of day.
        standing: The newest message of each incident that people were told of by an agent before this one.
        remind_s: While somebody does not answer, people are told again so often.
        others: The other agents that may tell the same.
    """

    def __init__(
        self,
        put: Callable[[Message], None],
        path: str,
        now_s: Callable[[], float],
        wall: Callable[[], datetime],
        standing: Sequence[Message] = (),
        remind_s: float = REMIND_S,
        others: Others | None = None,
    ) -> None:
        self._put, self._path, self._now_s, self._wall = put, path, now_s, wall
        self._book = Book(standing, remind_s)
        self._others = others or Others()
        self._kept: dict[str, list[tuple[Message, float]]] = {}
        """By incident: what another agent may tell, each with when it was made; oldest first."""
        self._theirs: dict[str, Message] = {}
        """By incident that goes on: the newest message that another agent has told."""

    def passed(self, seen: Sight) -> None:
        """See `fencer.ports.Viewer.passed`."""
        self._look(look_at(seen, self._path))

    def failed(self, why: str) -> None:
        """See `fencer.ports.Viewer.failed`."""
        self._look(without_api(why))

    def _look(self, found: Look) -> None:
        now_s = self._now_s()
        self._take_over()
        for message in self._book.look(found, now_s, self._wall()):
            self._kept.setdefault(message.key, []).append((message, now_s))
        self._kept = {key: left for key, kept in self._kept.items() if (left := self._settle(kept, now_s))}

    def _settle(self, kept: Sequence[tuple[Message, float]], now_s: float) -> list[tuple[Message, float]]:
        """Tell what is to be told of one incident, in order; return what is kept on."""
        left, tenure = [], self._tenure(kept[-1][0])
        for message, made_s in kept:
            say = says(tenure, made_s, now_s)
            if say is Say.TELL:
                self._theirs.pop(message.key, None)
                self._put(message)
            elif say is Say.KEEP:
                left.append((message, made_s))
            else:
                self._others.told(message, tenure.holder if tenure else "")
                self._theirs[message.key] = message
                if message.over:
                    del self._theirs[message.key]
        return left

    def _take_over(self) -> None:
        """Go on with what another agent told: quietly, for receivers that replace a message or renew it."""
        for key, message in tuple(self._theirs.items()):
            tenure = self._tenure(message)
            if tenure is None or tenure.seat is Seat.HOLDER:
                self._put(replace(self._theirs.pop(key), loud=False))

    def _tenure(self, message: Message) -> Tenure | None:
        tenure = self._others.tenure
        return tenure_of(message, self._others.endpoints, tenure) if tenure else None
