"""What a person is sent of many messages: a rack that dies is one notification, not forty. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from fencer.core.text import count, listing, natural
from fencer.notify.message import Message
from fencer.wording.occasions import Occasion

MATTERS = (Occasion.ALARM, Occasion.BLIND, Occasion.REFUSED, Occasion.FENCED, Occasion.BACK)
"""What matters most comes first: where a person has to do something."""
AT_ONCE = 5
"""Of more that wait one summary is made."""
NAMED = 8
"""So many names of each kind; the rest is counted."""


def matters(message: Message) -> tuple[bool, bool, int]:
    """Return how little a message matters: the smaller, the more. Of details only an alarm's matter."""
    kind = message.told_as
    return kind is not Occasion.ALARM, not message.loud, MATTERS.index(kind)


def portions(messages: Sequence[Message]) -> list[list[Message]]:
    """Split messages into what is to be one notification each; what matters most comes first.

    An alarm is in none with anything else: nobody must have to look for it.

    Args:
        messages: In the order in which those go that matter as much.
    """
    ordered = sorted(messages, key=matters)
    if len(ordered) <= AT_ONCE:
        return [[one] for one in ordered]
    alarms = [one for one in ordered if one.told_as is Occasion.ALARM]
    others = ordered[len(alarms) :]
    return portions(alarms) + portions(others) if alarms and others else [ordered]


def summary(messages: Sequence[Message], lost: int = 0) -> Message:
    """Return one message that says what all of these say, in short.

    Args:
        messages: Two at least, each of an incident of its own.
        lost: So many more were not kept.
    """
    kinds = {kind: [one for one in messages if one.told_as is kind] for kind in MATTERS}
    some = {kind: found for kind, found in kinds.items() if found}
    first = next(iter(some.values()))[0]
    names = sorted({one.about for one in messages}, key=natural)
    tally = ", ".join(f"{len(found)} {kind}" for kind, found in some.items())
    lines = [f"{kind}: {_names(found)}" for kind, found in some.items()]
    more = f", and {lost:,} more that {'was' if lost == 1 else 'were'} not kept" if lost else ""
    parts = tuple(sorted((one.key, one.number) for one in messages))
    digest = sha256("\n".join(f"{key}/{number}" for key, number in parts).encode()).hexdigest()
    return Message(
        key=f"several-{digest[:16]}",
        occasion=first.occasion,
        about=listing(names, 1),
        title=f"{count(len(messages), 'incident')}: {tally}{more}",
        text="\n".join([*lines, "`fencer status` tells more of each."]),
        reason="",
        guest="",
        began=min(one.began for one in messages),
        at=max(one.at for one in messages),
        number=1,
        over=all(one.over for one in messages),
        loud=any(one.loud for one in messages),
        parts=parts,
    )


def _names(found: Sequence[Message]) -> str:
    names = sorted((one.about for one in found), key=natural)
    return listing(names, NAMED)
