"""What fencer tells the stage, as lines of the story."""

from __future__ import annotations

from copy import copy

from fencer.core.done import Done
from fencer.core.model import Alarm, Decision, Deed, NodeView, Reason, Verdict
from fencer.core.wire import name_of
from fencer.simulation.timeline import Timeline
from fencer.wording.reasons import says
from fencer.wording.verdicts import VERDICT_WORDS, key_of

KEPT = frozenset({Reason.OLD_MEMORY, Reason.GUEST_REPLACED})
"""Why a fence that was set is not lifted."""


class StageReporter:
    """The `Reporter` of the stage: what fencer says becomes lines of the story.

    Args:
        timeline: Where they go.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.who: dict[str, str] = {}
        """Which of several agents it speaks for."""
        self._healthy: set[str] = set()
        self._refused: dict[str, dict[Reason, float]] = {}
        self._since: dict[str, tuple[Reason, float] | None] = {}

    def of(self, agent: str) -> StageReporter:
        """Return the same for one of several agents: its lines tell which."""
        one = copy(self)
        one.who = {"by": agent}
        return one

    def of_command(self, name: str) -> StageReporter:
        """Return the same for a command: its lines tell which."""
        one = copy(self)
        one.who = {**self.who, "command": name}
        return one

    def refused(self, node: str, *, fenced: bool) -> Reason | None:
        """Say why fencer refused for the longest time to fence a node; of a fenced one, to lift the fence."""
        self._close(node)
        reasons = self._refused.get(node, {})
        among = {reason: held_s for reason, held_s in reasons.items() if not fenced or reason in KEPT}
        return max(among, key=among.__getitem__, default=None)

    def decided(self, node: NodeView, decision: Decision) -> None:
        """Tell a changed decision; that a sound node is sound is no news."""
        self._note(node.name, decision)
        quiet = decision.verdict is Verdict.HEALTHY and node.name not in self._healthy
        (self._healthy.discard if decision.verdict is Verdict.HEALTHY else self._healthy.add)(node.name)
        if not quiet:
            self._timeline.tell(
                "fencer",
                node.name,
                "decided",
                f"{VERDICT_WORDS[decision.verdict].verb}: {says(decision)}",
                verdict=key_of(decision.verdict),
                reason=decision.reason.value,
                **self.who,
            )

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """Tell an action."""
        text = f"ALARM: {done}" if isinstance(action, Alarm) else str(done)
        data = {"action": name_of(type(action)), "ok": done.ok, **self.who}
        self._timeline.tell("fencer", node.name, "acted", text, **data)

    def said(self, text: str, *, warning: bool) -> None:
        """Tell what concerns no single node."""
        self._timeline.tell("fencer", None, "said", text, warning=warning, **self.who)

    def step(self, node: str, what: str, detail: str) -> None:
        """Tell a step of a command, as whoever typed it sees it."""
        text = what if what == detail else f"{what}: {detail}"
        self._timeline.tell("fencer", node, "step", text, step=what, **self.who)

    def _note(self, node: str, decision: Decision) -> None:
        self._close(node)
        came_back = decision.verdict is Verdict.RECOVERING and decision.reason is Reason.AWAITING_BOOT
        if decision.verdict is Verdict.REFUSE or decision.reason in KEPT or came_back:
            self._since[node] = (decision.reason, self._timeline.now_s())

    def _close(self, node: str) -> None:
        """Add up how long the present reason has held."""
        reason, since_s = self._since.get(node) or (None, 0.0)
        if reason is not None:
            now_s = self._timeline.now_s()
            reasons = self._refused.setdefault(node, {})
            reasons[reason] = reasons.get(reason, 0.0) + now_s - since_s
            self._since[node] = None
