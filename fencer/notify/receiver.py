"""Where messages go: what each receiver does, and what it is like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fencer.notify.message import Message


@dataclass(frozen=True, slots=True)
class Manner:
    """What a receiver is like.

    Attributes:
        replaces: A later message of an incident takes the place of the earlier one, so that details that are
            new disturb nobody.
        several: It takes any number of messages at once; otherwise one.
        each: A program reads it, and wants each message. For a person, of many that wait one summary is made.
        renew_s: What is not over has to be sent again so often; None: once is enough.
    """

    replaces: bool = False
    several: bool = False
    each: bool = False
    renew_s: float | None = None


class Receiver(Protocol):
    """Sends messages somewhere. Used by one thread; a call ends within `DEADLINE_S`, whatever is answered.

    Attributes:
        name: As the configuration calls it.
        manner: What it is like.
    """

    name: str
    manner: Manner

    def send(self, messages: Sequence[Message]) -> None:
        """Send messages: one at least, and only one if it does not take several.

        Raises:
            ReceiverError: they did not get there, or nobody knows.
        """
        ...


DEADLINE_S = 15.0
"""How long sending may take, in seconds, all in all."""
