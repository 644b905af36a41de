"""The log of an incident as a story: what a person needs to know, and one line when a fence is complete.

What only links the steps of a fence is there for whoever asks for it: at the level DEBUG.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from fencer.core.done import Done, Happened, Tainted
from fencer.core.model import Decision, Deed, NodeView, Reason, Verdict
from fencer.reporting.repeats import Repeats
from fencer.wording.conditions import AT_EASE
from fencer.wording.reports import (
    action_word,
    back_unheeded,
    fell_unheeded,
    fenced_text,
    is_alarming,
    is_link,
    is_loud,
    links,
    told_action,
    told_decision,
)
from fencer.wording.verdicts import key_of


class LogReporter:
    """`Reporter` that logs a line per changed decision and per action.

    Args:
        logger: The logger.
        now_s: The agent's monotonic clock, to tell how long a fence took.
    """

    def __init__(self, logger: logging.Logger, now_s: Callable[[], float]) -> None:
        self._logger = logger
        self._now_s = now_s
        self._fences: dict[str, tuple[Tainted, float]] = {}
        """By the UID of the node: fences that this agent began, and when; until they are complete."""
        self._failures, self._troubles = Repeats(now_s), Repeats(now_s)
        """Of actions, and of what is said besides."""
        self._in_trouble: set[str] = set()
        """UIDs of nodes of which people were told that something is wrong."""
        self._complete: set[str] = set()
        """UIDs of nodes of which people were told that their fence is complete."""
        self._fallen: set[str] = set()
        """UIDs of nodes of which people were told that they fell while fencing is paused."""

    def decided(self, node: NodeView, decision: Decision) -> None:
        """See `fencer.ports.Reporter.decided`."""
        facts: dict[str, Any] = {
            "node": node.name,
            "verdict": key_of(decision.verdict),
            "reason": decision.reason.value,
        }
        if decision.guest is not None:
            facts["guest"] = str(decision.guest)
        text, level = told_decision(decision, node), self._level(node, decision)
        if decision.reason is Reason.PODS_CLEARED:
            self._complete.add(node.uid)
            if node.uid in self._fences:
                tainted, at_s = self._fences.pop(node.uid)
                text, level = fenced_text(tainted, self._now_s() - at_s), logging.WARNING
        if fell_unheeded(decision, node):
            self._fallen.add(node.uid)
        elif node.uid in self._fallen:
            self._fallen.discard(node.uid)
            if decision.reason in AT_EASE:
                self._in_trouble.discard(node.uid)
                text, level = back_unheeded(decision, node), logging.INFO
        self._log(text, level, facts)

    def _level(self, node: NodeView, decision: Decision) -> int:
        """Say how loudly a decision is told; that a node is healthy only if it was told that it was not."""
        if decision.verdict is Verdict.HEALTHY:
            self._fences.pop(node.uid, None)
            self._complete.discard(node.uid)
            told = node.uid in self._in_trouble
            self._in_trouble.discard(node.uid)
            return logging.INFO if told else logging.DEBUG
        unheard = decision.reason is Reason.NODE_READY and node.uid not in self._in_trouble
        if is_link(decision, node) or unheard:  # its guest runs, as far as was told: that may pass by itself
            return logging.DEBUG
        if decision.reason is Reason.PODS_CLEARED and node.uid in self._complete:
            return logging.DEBUG
        self._in_trouble.add(node.uid)
        return logging.WARNING if is_loud(decision) else logging.INFO

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """See `fencer.ports.Reporter.acted`."""
        if isinstance(done, Tainted):
            self._fences[node.uid] = done, self._now_s()
            self._in_trouble.add(node.uid)
        facts = {"node": node.name, "action": action_word(action, ok=True), "ok": done.ok}
        text = told_action(action, done)
        if isinstance(done, Happened) and done.changed:
            self._log(text, logging.DEBUG, facts)  # somebody was quicker, and the next look is due
        elif not done.ok:
            self._warn(self._failures, node.name, text, facts)
        elif isinstance(done, Tainted) or is_alarming(action):
            self._log(text, logging.WARNING, facts)
        else:
            self._log(text, logging.DEBUG if links(action, done) else logging.INFO, facts)

    def said(self, text: str, *, warning: bool) -> None:
        """See `fencer.ports.Reporter.said`."""
        if warning:
            self._warn(self._troubles, text.partition(": ")[0], text, {})
        else:  # something is over: if it begins again, nobody may still believe that
            self._troubles.forget()
            self._log(text, logging.INFO, {})

    def _warn(self, repeats: Repeats, who: str, text: str, facts: Mapping[str, Any]) -> None:
        """Warn of what goes wrong, but not each time that it is tried again in vain."""
        told = repeats.told(who, text)
        self._log(told or text, logging.WARNING if told else logging.DEBUG, facts)

    def _log(self, text: str, level: int, facts: Mapping[str, Any]) -> None:
        self._logger.log(level, "%s", text, extra={"facts": facts})
