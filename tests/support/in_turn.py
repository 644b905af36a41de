"""One after the other: for askers of tests and benchmarks that have no threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext


class InTurn:
    """The part of an `Asker` that is about several runs."""

    def turn(self) -> AbstractContextManager[None]:
        """There is nobody else."""
        return nullcontext()

    def alone(self, _what: str) -> AbstractContextManager[None]:
        """There is nobody else."""
        return nullcontext()

    def side_by_side(self, runs: Sequence[Callable[[], None]], _patience_s: float) -> None:
        """Run each to its end."""
        for run in runs:
            run()
