"""Node Events of a drain, a planned stop or a start: that it has begun, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fencer.core.done import Done
from fencer.core.model import Alarm, Decision, Deed, DiscardSaved, NodeView, StopGuest
from fencer.reporting.events import EventReporter
from fencer.wording.events import DRAINED, Milestones

WRONG = (StopGuest, DiscardSaved, Alarm)
"""These are told as in an incident; what was only a step on the way is not, and the ending sums it up."""


class PlannedEvents:
    """`Reporter` of a change that a person asked for: told with its first action, and once it has ended.

    What goes wrong on the way is told as ever.

    Args:
        events: Writes them.
        milestones: The change.
        by: Who asked for it.

    Of a node to which nothing was done, nothing is told.
    """

    def __init__(self, events: EventReporter, milestones: Milestones, by: str) -> None:
        self._done: dict[str, list[type[Deed]]] = {}
        self._events = events
        self._milestones = milestones
        self._by = by

    def begins(self, node: NodeView, action: type[Deed]) -> None:
        """Tell that it begins, before its first action is done: for one whose end nobody may be left to tell.

        Args:
            node: The node.
            action: The first.
        """
        if self._milestones.begun is not None:
            self._done[node.uid] = []
            self._events.tell(node, self._milestones.begun, self._milestones.beginning(action, self._by))

    def decided(self, node: NodeView, decision: Decision) -> None:
        """See `fencer.ports.Reporter.decided`."""
        self._events.remember(node, decision)

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """See `fencer.ports.Reporter.acted`."""
        if not done.ok or isinstance(action, WRONG):
            self._events.acted(node, action, done)
            return
        if node.uid not in self._done and self._milestones.begun is not None:
            self._events.tell(
                node, self._milestones.begun, self._milestones.beginning(type(action), self._by)
            )
        self._done.setdefault(node.uid, []).append(type(action))

    def said(self, text: str, *, warning: bool) -> None:
        """Do nothing: without a node there is no Event."""

    def went_well(self, node: NodeView, says: Callable[[Collection[type[Deed]]], str]) -> None:
        """Tell that it is done.

        Args:
            node: The node.
            says: Puts what was done to it into words.
        """
        if node.uid in self._done:
            self._events.tell(node, self._milestones.done, says(self._done[node.uid]))

    def failed(self, node: NodeView, text: str) -> None:
        """Tell that it has failed or was broken off, and how the node stands now."""
        if node.uid in self._done:
            self._events.tell(node, self._milestones.failed, text)

    def drained(self, node: NodeView, failed: str) -> None:
        """Tell how a drain has ended: with why it failed, or well."""
        if failed:
            self.failed(node, f"not drained: {failed}")
        else:
            self.went_well(node, lambda _done: DRAINED)
