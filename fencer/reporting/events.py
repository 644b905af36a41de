"""Node Events: what ``kubectl describe node`` shows of fencer's actions."""

from __future__ import annotations

import logging

from fencer.core.done import Done, Happened
from fencer.core.model import Alarm, ClearPods, Decision, Deed, NodeView, Reason, TaintNode
from fencer.core.text import alike, printable
from fencer.errors import FencerError
from fencer.ports import Asker, Cluster
from fencer.wording.events import ACTIONS, EventReason, needs_a_person
from fencer.wording.reports import decision_text

log = logging.getLogger(__name__)


class EventReporter:
    """`Reporter` that leaves an Event for what changes something, or needs a person. Not for observe mode.

    An Event that cannot be written is lost; the first loss in a row is logged.

    Args:
        cluster: Takes the Events.
        asker: Runs the calls, on their own worker, so that a lost Event costs no other call its worker.
        deadline_s: How long one Event may take, in seconds; the pass waits that long at most.
    """

    WORKER = "events"

    def __init__(self, cluster: Cluster, asker: Asker, deadline_s: float = 2.0) -> None:
        self._cluster = cluster
        self._asker = asker
        self._deadline_s = deadline_s
        self._lost_count = 0
        self._why: dict[str, str] = {}
        self._clearing: set[str] = set()
        self._failed: dict[tuple[str, type[Deed]], str] = {}

    def decided(self, node: NodeView, decision: Decision) -> None:
        """See `fencer.ports.Reporter.decided`. Most decisions are only the why of an action that follows."""
        self.remember(node, decision)
        if needs_a_person(decision):
            self.tell(node, EventReason.REFUSED, decision_text(decision))
        elif decision.reason is Reason.PODS_CLEARED and node.uid in self._clearing:
            self._clearing.discard(node.uid)  # no news to an agent that only finds it so
            self.tell(node, EventReason.PODS_CLEARED, decision_text(decision))

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """See `fencer.ports.Reporter.acted`."""
        reason, would = ACTIONS[type(action)]
        if not done.ok:
            self._tell_failure(node, action, f"could not {would}: {done}", done)
            return
        self._failed.pop((node.uid, type(action)), None)
        if isinstance(action, TaintNode | ClearPods):
            self._clearing.add(node.uid)
        if reason is not None:
            why = "" if isinstance(action, Alarm) else self._why.get(node.uid, "")
            self.tell(node, reason, f"{why}: {done}" if why else str(done))

    def said(self, text: str, *, warning: bool) -> None:
        """Do nothing: without a node there is no Event."""

    def remember(self, node: NodeView, decision: Decision) -> None:
        """Take note of why the next action on this node is taken."""
        self._why[node.uid] = decision_text(decision)

    def tell(self, node: NodeView, reason: EventReason, text: str) -> None:
        """Leave an Event."""
        try:
            self._asker.ask(
                self.WORKER,
                lambda: self._cluster.record_event(node, reason.value, printable(text), warning=reason.loud),
                self._deadline_s,
            )
        except FencerError as error:
            if not self._lost_count:
                log.warning("Events cannot be written: %s", error)
            self._lost_count += 1
            return
        if self._lost_count:
            log.info("Events are written again; %d were lost", self._lost_count)
            self._lost_count = 0

    def _tell_failure(self, node: NodeView, action: Deed, text: str, done: Done) -> None:
        """Tell of a failure once, however often it is tried; what only another's change caused is none."""
        changed = isinstance(done, Happened) and done.changed
        known = alike(text)  # with other numbers it is the same
        if not changed and self._failed.get((node.uid, type(action))) != known:
            self._failed[node.uid, type(action)] = known
            self.tell(node, EventReason.FAILED, text)
