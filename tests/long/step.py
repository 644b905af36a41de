"""What a step of the long run is, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tests.long.site import Site


class Outcome(Enum):
    """How a step ended, as the table says it."""

    PASSED = "passed"
    FAILED = "failed"
    LEFT_OUT = "left out"
    INTERRUPTED = "interrupted"


class StepFailed(Exception):
    """Something that the step shows is not so; the message says what was seen."""


class LeftOut(Exception):
    """This machine cannot run the step; the message says why, and what a person can do about it."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the long run.

    Attributes:
        name: What to call it on the command line.
        what: What it shows, in a line.
        run: Does it, and returns what was seen. Raises `StepFailed` or `LeftOut`.
    """

    name: str
    what: str
    run: Callable[[Site], str]


@dataclass(frozen=True, slots=True)
class Ended:
    """A step that has ended.

    Attributes:
        name: The step's.
        outcome: How.
        note: What was seen, or why it was left out.
        minutes: What it took.
    """

    name: str
    outcome: Outcome
    note: str
    minutes: float


def table(steps: list[Ended]) -> str:
    """Return a line for each step: its name, minutes, and how it ended."""
    width = max(len(step.name) for step in steps)
    rows = [f"{'step':<{width}}  minutes  outcome"]
    for step in steps:
        told = f"{step.outcome.value}: {step.note}" if step.note else step.outcome.value
        rows.append(f"{step.name:<{width}}  {step.minutes:>7.1f}  {told}")
    return "\n".join(rows)
