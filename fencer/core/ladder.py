"""The mechanism of the guard ladder: rungs are asked in order, and the first objection decides.

The rungs themselves, which are the rules, are in `fencer.core.decide` and `fencer.core.recover`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from fencer.core.identity import resolve
from fencer.core.model import Action, Check, Decision, Observation, Outcome, Reason, Verdict
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


Rung: TypeAlias = Callable[[Observation, Policy], Passed | Objection]


@dataclass(frozen=True, slots=True)
class Ending:
    """What follows when every rung holds."""

    verdict: Verdict
    reason: Reason
    actions: tuple[Action, ...] = ()
    recheck_s: float | None = None


def climb(
    rungs: Sequence[tuple[str, Rung]],
    ending: Callable[[Observation, Policy], Ending],
    observation: Observation,
    policy: Policy,
) -> Decision:
    """Ask the rungs in order, and stop at the first objection.

    Args:
        rungs: Name and question of each rung.
        ending: What follows when all hold.
        observation: What is known.
        policy: How careful to be.
    """
    candidate = resolve(observation).candidate
    guest = candidate.guest if candidate else None
    checks: list[Check] = []
    for index, (name, rung) in enumerate(rungs):
        answer = rung(observation, policy)
        if isinstance(answer, Objection):
            checks.append(Check(name, Outcome.FAILED, answer.seen, answer.needs))
            checks.extend(_not_asked(later) for later, _ in rungs[index + 1 :])
            return Decision(
                answer.verdict, answer.reason, tuple(checks), answer.actions, answer.recheck_s, guest
            )
        checks.append(Check(name, Outcome.PASSED, answer.seen, answer.needs))
    end = ending(observation, policy)
    return Decision(end.verdict, end.reason, tuple(checks), end.actions, end.recheck_s, guest)


@cache
def _not_asked(name: str) -> Check:
    """One object for all nodes: most checks of a big fleet are these."""
    return Check(name, Outcome.NOT_ASKED)
