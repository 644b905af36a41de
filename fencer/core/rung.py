"""What a rung of a guard ladder looks at, and what it answers. The ladders are in `fencer.core.ladders`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from fencer.core.model import (
    Action,
    Candidate,
    Evidence,
    FenceMark,
    GuestHistory,
    GuestRef,
    NodeView,
    Observation,
    PowerState,
    Reason,
    Verdict,
    Via,
)
from fencer.core.policy import Policy


@dataclass(frozen=True, slots=True)
class Passed:
    """The rung holds."""

    seen: str
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Objection:
    """The rung does not hold, and this follows.

    Attributes:
        verdict: What the decision is.
        reason: Why, from the closed list.
        seen: What was seen.
        needs: What it would take.
        recheck_s: When to look again, at the latest.
        actions: What to do now.
    """

    verdict: Verdict
    reason: Reason
    seen: str
    needs: str = ""
    recheck_s: float | None = None
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """A node whose guest is known, with that guest's last reading.

    Attributes:
        candidate: The guest.
        evidence: Its newest reading; if there is none, one that says nothing.
        seen_alive: The guest was seen running while the node's lease advanced: by this agent, or by one that
            wrote it on the Node.
        seen: All else that was observed.
    """

    candidate: Candidate
    evidence: Evidence
    seen_alive: bool
    seen: Observation

    @property
    def proven(self) -> bool:
        """Whether it is certain that this guest is the node: seen, or written into the configuration."""
        return self.seen_alive or self.candidate.via is Via.MAP

    @property
    def mark(self) -> FenceMark:
        """The fence on the node; without one, an empty fence."""
        mark = self.seen.node.mark
        return mark if isinstance(mark, FenceMark) else FenceMark("", "", "", self.guest, "")

    @property
    def guest(self) -> GuestRef:
        """The guest."""
        return self.candidate.guest

    @property
    def node(self) -> NodeView:
        """The node."""
        return self.seen.node

    @property
    def history(self) -> GuestHistory:
        """What went before."""
        return self.seen.history

    @property
    def power_state(self) -> PowerState:
        """What the newest reading says."""
        return self.evidence.power_state


@dataclass(frozen=True, slots=True)
class Ending:
    """What follows when every rung holds."""

    verdict: Verdict
    reason: Reason
    actions: tuple[Action, ...] = ()
    recheck_s: float | None = None


Answer: TypeAlias = Passed | Objection
Rung: TypeAlias = Callable[[Subject, Policy], Answer]
EndOfLadder: TypeAlias = Callable[[Subject, Policy], Ending]
Rungs: TypeAlias = tuple[tuple[str, Rung], ...]
"""Name and question of each, in the order in which they are asked."""
