"""What people type in a simulated story: the code behind the commands, told as lines of the story."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from fencer.cli import stage_by_hand as by_hand
from fencer.cli import stage_planned as planned
from fencer.cli.stage_typed import Command, StepTeller
from fencer.simulation.crew import Obeyed

__all__ = ["TOLD_BY_DECISIONS", "VERBS", "Command", "StepTeller"]

VERBS: Mapping[str, Callable[[Command], Obeyed]] = {
    "fence": by_hand.fence,
    "unfence": by_hand.unfence,
    "trust": by_hand.trust,
    "approve": by_hand.approve,
    "pause": by_hand.pause,
    "resume": by_hand.resume,
    "plan": planned.plan,
    "drain": partial(planned.obeyed, planned.drain),
    "shutdown": partial(planned.obeyed, planned.shutdown),
    "start": partial(planned.obeyed, planned.start),
    "drill": partial(planned.obeyed, planned.drill),
}
"""What can be typed in a story."""
TOLD_BY_DECISIONS = frozenset({"fence", "unfence"})
"""These show their decisions, as agents do; the others show their steps."""
