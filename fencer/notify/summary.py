"""One message made of many that wait: a rack that dies is one notification, not forty. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from fencer.core.text import count, listing, natural
from fencer.notify.message import Message
from fencer.wording.occasions import Occasion

MATTERS = (Occasion.ALARM, Occasion.REFUSED, Occasion.BLIND, Occasion.FENCED, Occasion.BACK)
"""What matters most comes first: where a person has to do something."""
NAMED = 8
"""So many names of each kind; the rest is counted."""


def summary(messages: Sequence[Message]) -> Message:
    """Return one message that says what all of these say, in short.

    Args:
        messages: Two at least, each of an incident of its own.
    """
    kinds = {kind: [one for one in messages if one.told_as is kind] for kind in MATTERS}
    some = {kind: found for kind, found in kinds.items() if found}
    first = next(iter(some.values()))[0]
    names = sorted({one.about for one in messages}, key=natural)
    tally = ", ".join(f"{len(found)} {kind}" for kind, found in some.items())
    lines = [f"{kind}: {_names(found)}" for kind, found in some.items()]
    digest = sha256("\n".join(sorted(f"{one.key}/{one.number}" for one in messages)).encode()).hexdigest()
    return Message(
        key=f"several-{digest[:16]}",
        occasion=first.occasion,
        about=listing(names, 1),
        title=f"{count(len(messages), 'incident')}: {tally}",
        text="\n".join([*lines, "`fencer status` tells more of each."]),
        reason="",
        guest="",
        began=min(one.began for one in messages),
        at=max(one.at for one in messages),
        number=1,
        over=all(one.over for one in messages),
        loud=any(one.loud for one in messages),
    )


def _names(found: Sequence[Message]) -> str:
    names = sorted((one.about for one in found), key=natural)
    return listing(names, NAMED)
