"""Several reporters as one."""

from __future__ import annotations

from fencer.core.done import Done
from fencer.core.model import Decision, Deed, NodeView
from fencer.ports import Reporter


class SeveralReporters:
    """`Reporter` that passes everything on to others, in order.

    Args:
        reporters: The others; put the slow ones last.
    """

    def __init__(self, *reporters: Reporter) -> None:
        self._reporters = reporters

    def decided(self, node: NodeView, decision: Decision) -> None:
        """See `fencer.ports.Reporter.decided`."""
        for reporter in self._reporters:
            reporter.decided(node, decision)

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """See `fencer.ports.Reporter.acted`."""
        for reporter in self._reporters:
            reporter.acted(node, action, done)

    def said(self, text: str, *, warning: bool) -> None:
        """See `fencer.ports.Reporter.said`."""
        for reporter in self._reporters:
            reporter.said(text, warning=warning)
