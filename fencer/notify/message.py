"""What is sent: one message for an incident, which later ones bring up to date, and one when it is over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from fencer.wording.occasions import Occasion


@dataclass(frozen=True, slots=True)
class Message:
    """One message. All texts are printable, and plain: receivers escape them for their own markup.

    Attributes:
        key: Of the incident: letters, digits, ``-`` and ``_``, 64 at most. All its messages have it, also
            those of an agent that was started again.
        occasion: Why somebody is told: never `BACK`, which is `over`.
        about: The node, or whoever does not answer.
        title: One line: ``k8s-2 is fenced``.
        text: What was seen, and what would change it; lines of their own where there are several.
        reason: The decision's reason, as docs/reasons.md lists it; empty: there was no decision.
        guest: The node's guest; empty: none, or not known.
        began: When the incident began.
        at: When this was true.
        number: Counts the messages of the incident, from 1.
        done: All has been done about it that fencer does by itself: what follows is its end.
        over: It is over; the last message of the incident.
        loud: Worth somebody's attention: it begins, it is something else now, it still goes on, it is over.
            Otherwise only details are new, and only a receiver that can replace a message gets it.
        parts: Of a summary the keys and numbers of what it is made of; otherwise empty.
    """

    key: str
    occasion: Occasion
    about: str
    title: str
    text: str
    reason: str
    guest: str
    began: datetime
    at: datetime
    number: int
    done: bool = False
    over: bool = False
    loud: bool = True
    parts: tuple[tuple[str, int], ...] = ()

    @property
    def told_as(self) -> Occasion:
        """The occasion as people choose it: what is over is `BACK`."""
        return Occasion.BACK if self.over else self.occasion
