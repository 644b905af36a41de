"""One wording for log, journal and Events: what to say about a decision or an action, and how loudly.

Names in it come from outside: the code that writes it escapes it for its place.
"""

from __future__ import annotations

from fencer.core.model import Alarm, Decision, Deed, Verdict
from fencer.wording.reasons import change, says

LOUD = frozenset({Verdict.REFUSE, Verdict.STOP_FIRST, Verdict.FENCE})
"""Verdicts that a person should look at: something is wrong, or about to be done."""


def decision_text(decision: Decision) -> str:
    """Return the text of a decision: why, what was seen and, for a refusal, what would change it."""
    text = says(decision)
    if decision.verdict is Verdict.REFUSE:
        text += f"; what would change this: {change(decision)}"
    return text


def is_loud(decision: Decision) -> bool:
    """Whether a decision is a warning."""
    return decision.verdict in LOUD


def is_alarming(action: Deed, *, ok: bool) -> bool:
    """Whether an action is a warning: it failed, or it is an alarm itself."""
    return not ok or isinstance(action, Alarm)


def action_word(action: Deed, *, ok: bool) -> str:
    """Return an action as Kubernetes writes reasons: ``TaintNode``, ``TaintNodeFailed``."""
    return type(action).__name__ + ("" if ok else "Failed")
