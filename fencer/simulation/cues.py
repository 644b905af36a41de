"""Faults of a script that wait for a deed of an agent: they happen when it is done, or right before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fencer.core.model import (
    ClearPods,
    Deed,
    DeleteAttachments,
    DiscardSaved,
    StopGuest,
    TaintNode,
    UntaintNode,
)
from fencer.simulation.faults import Cue, Fault

BEFORE: dict[type[Deed], Cue] = {
    TaintNode: Cue.BEFORE_TAINT,
    StopGuest: Cue.BEFORE_STOP,
    DiscardSaved: Cue.BEFORE_STOP,
    ClearPods: Cue.BEFORE_CLEAR,
    DeleteAttachments: Cue.BEFORE_CLEAR,
    UntaintNode: Cue.BEFORE_LIFT,
}
"""What is heard right before each deed."""


class Cues:
    """The faults of a script that wait for a cue: each happens once.

    Args:
        script: What happens in the story.
    """

    def __init__(self, script: Sequence[Fault]) -> None:
        self._waiting = [fault for fault in script if fault.cue is not None]

    def due(self, cue: Cue | None, is_hit: Callable[[str], bool]) -> list[Fault]:
        """Return what has waited for a cue: it waits no more.

        Args:
            cue: Which; None: none at all.
            is_hit: Whether the cue is about a target.
        """
        due = [fault for fault in self._waiting if fault.cue is cue and is_hit(fault.target)]
        self._waiting = [fault for fault in self._waiting if fault not in due]
        return due
