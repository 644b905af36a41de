"""Messages to send, and receivers in memory: quick, dead, slow and hostile ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from queue import Queue
from threading import Event
from typing import Any

from fencer.errors import ReceiverError
from fencer.notify.message import Message
from fencer.notify.receiver import Manner
from fencer.wording.occasions import Occasion

BEGAN = datetime(2026, 11, 26, 20, 0, tzinfo=UTC)
WITHIN_S = 30.0
"""So long a test waits for a thread: a machine that is busy with other things is no failure."""
SEVERAL = Manner(replaces=True, several=True)


def message(about: str = "k8s-2", number: int = 1, **other: Any) -> Message:
    """Return a message of the incident of a node."""
    said: dict[str, Any] = {
        "key": f"{about}-1",
        "occasion": Occasion.FENCED,
        "about": about,
        "title": f"{about} is fenced",
        "text": "its guest is off",
        "reason": "FENCED",
        "guest": f"home/{about}",
        "began": BEGAN,
        "at": BEGAN + timedelta(seconds=number),
        "number": number,
    }
    return Message(**{**said, **other})


def over(about: str = "k8s-2", number: int = 2, **other: Any) -> Message:
    """Return the last message of that incident."""
    said = {"title": f"{about} is back after 3m00s", **other}
    return message(about, number, over=True, **said)


class Box:
    """A receiver in memory.

    Args:
        name: Its name.
        manner: What it is like.
        fails: What it raises, one a call, before it works; None in between: that call works.
    """

    def __init__(
        self, name: str = "box", manner: Manner | None = None, fails: Sequence[Exception | None] = ()
    ) -> None:
        self.name, self.manner = name, manner or Manner()
        self.fails = deque(fails)
        self.dead: Exception | None = None
        """What it raises for ever."""
        self.refuses = ""
        """About whom it takes no message, although it works."""
        self.tried: Queue[tuple[Message, ...]] = Queue()
        self.got: Queue[tuple[Message, ...]] = Queue()
        self.opened = Event()
        """Until it is set, calls hang."""
        self.opened.set()

    def send(self, messages: Sequence[Message]) -> None:
        """Take messages, or what one may call it."""
        self.tried.put(tuple(messages))
        assert self.opened.wait(WITHIN_S)
        if self.dead is not None:
            raise self.dead
        if any(one.about == self.refuses for one in messages):
            raise ReceiverError("answered 400", works=True)
        error = self.fails.popleft() if self.fails else None
        if error is not None:
            raise error
        self.got.put(tuple(messages))

    def next(self) -> list[tuple[str, int, bool]]:
        """Return what it got next: whom it was about, the number, and whether it was over."""
        return [(one.about, one.number, one.over) for one in self.got.get(timeout=WITHIN_S)]
