"""What actions amount to, in words: for an agent that only observes, and for a command that looks once."""

from __future__ import annotations

from collections.abc import Sequence

from fencer.core.fence import left_to_clear
from fencer.core.model import (
    Action,
    ClearPods,
    DeleteAttachments,
    DiscardSaved,
    Observation,
    StartGuest,
    StopGuest,
    TaintNode,
    Uncordon,
    UntaintNode,
)
from fencer.core.text import count


def deed(seen: Observation, actions: Sequence[Action], when: str) -> str:
    """Return what follows "would" or "will" in a sentence about these actions; empty: nothing but notes.

    Args:
        seen: What they are about, read live.
        actions: As a ladder ends in them.
        when: Put behind the verb: `` now``, or ``, once its guest has been off for 5 s``.
    """
    return next(filter(None, (_told(seen, action, when) for action in actions)), "")


def _told(seen: Observation, action: Action, when: str) -> str:
    left = left_to_clear(seen).seen
    match action:
        case TaintNode():
            return f"fence{when}: {left}"
        case StopGuest() if seen.node.fenced:
            return f"stop its guest{when}: it came back with its old memory"
        case StopGuest():
            return f"stop its guest{when}, then fence: {left}"
        case DiscardSaved():
            return f"throw its guest's saved memory away{when}, then fence: {left}"
        case _:
            return _told_of_fenced(seen, action, when)


def _told_of_fenced(seen: Observation, action: Action, when: str) -> str:
    match action:
        case ClearPods():
            return f"clear its pods{when}: {left_to_clear(seen).seen}"
        case DeleteAttachments(attachments):
            return f"release what the deleted node left{when}: {count(len(attachments), 'volume')} attached"
        case StartGuest():
            return f"start its guest again{when}"
        case UntaintNode():
            return f"lift the fence{when}"
        case Uncordon() if seen.node.unschedulable:
            return f"uncordon it{when}"
        case _:
            return ""
