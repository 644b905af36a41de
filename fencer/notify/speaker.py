"""Which of several agents tells people something: the rule. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from fencer.core.election import DURATION_S, Seat, Tenure
from fencer.notify.message import Message

KEEP_S = 2 * DURATION_S
"""So long one that is not the holder keeps a message. A holder that ends just before it tells is replaced
within `DURATION_S` and a look; and whoever was heard in the last `DURATION_S` of this lived on for long
enough after the message was made to tell it, too."""


class Say(Enum):
    """What becomes of a message."""

    TELL = 1
    """This agent sends it."""
    KEEP = 2
    """It is not clear yet whether another one does."""
    TOLD = 3
    """Another one has told it."""


def says(tenure: Tenure | None, made_s: float, now_s: float) -> Say:
    """Return what becomes of a message now.

    Args:
        tenure: What this agent is to whom the message is about; None: no other agent is thought of.
        made_s: When the message was made, by the own clock.
        now_s: The own clock.
    """
    if tenure is None or tenure.seat in {Seat.HOLDER, Seat.UNFILLED}:
        return Say.TELL
    if now_s - made_s < KEEP_S:
        return Say.KEEP
    heard = tenure.seat is Seat.STANDBY and now_s - tenure.heard_s < DURATION_S
    return Say.TOLD if heard else Say.TELL


def tenure_of(message: Message, endpoints: Sequence[str], tenure: Callable[[str], Tenure]) -> Tenure | None:
    """Return what this agent is to whom a message is about.

    That is the hypervisor of the node's guest, or the one that does not answer. For all else the Lease counts
    whose name comes first: of agents with different hypervisors at least one then is its holder.

    Args:
        message: The message.
        endpoints: All hypervisors of this agent.
        tenure: Tells what it is to one of them.
    """
    about = message.guest.partition("/")[0] or message.about
    if about in endpoints:
        return tenure(about)
    settled = [one for one in map(tenure, endpoints) if one.lease]
    unsettled = Tenure(Seat.UNSETTLED) if endpoints else None
    return min(settled, key=lambda one: one.lease) if settled else unsettled
