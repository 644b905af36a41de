"""Node Events: what ``kubectl describe node`` shows of fencer's actions."""

from __future__ import annotations

import logging

from fencer.core.done import Done
from fencer.core.model import Decision, Deed, NodeView
from fencer.core.text import printable
from fencer.errors import FencerError
from fencer.ports import Asker, Cluster
from fencer.wording.reports import action_word, decision_text, is_alarming, is_loud, reason_word

log = logging.getLogger(__name__)


class EventReporter:
    """`Reporter` that leaves an Event per changed decision and per action. Not for observe mode: it writes.

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

    def decided(self, node: NodeView, decision: Decision) -> None:
        """See `fencer.ports.Reporter.decided`."""
        self._record(node, reason_word(decision.reason), decision_text(decision), warning=is_loud(decision))

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """See `fencer.ports.Reporter.acted`."""
        warning = is_alarming(action, ok=done.ok)
        self._record(node, action_word(action, ok=done.ok), str(done), warning=warning)

    def said(self, text: str, *, warning: bool) -> None:
        """Do nothing: without a node there is no Event."""

    def _record(self, node: NodeView, reason: str, text: str, *, warning: bool) -> None:
        try:
            self._asker.ask(
                self.WORKER,
                lambda: self._cluster.record_event(node, reason, printable(text), warning=warning),
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
