"""The steps of a planned stop or start, as a person sees them: a line each."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from fencer.cli.progress import Progress
from fencer.cli.render import BAD, FAINT, Cell, clean, say, table
from fencer.cli.wire import Wiring
from fencer.core.done import Done
from fencer.core.model import Decision, Deed, NodeView
from fencer.wording.reasons import TEXTS
from fencer.wording.steps import ACTIONS, WIDTH

TROUBLES = frozenset({"trouble", "failed", "in the way"})


class Steps:
    """Shows the steps of several nodes, a line each, and takes in what is reported on it.

    Args:
        wiring: Tells the time of day.
        several: More than one node: each line names its own.
    """

    def __init__(self, wiring: Wiring, *, several: bool) -> None:
        self._wiring = wiring
        self._several = several
        self._progress = Progress(wiring.wall)

    def introduce(self, who: Mapping[str, str]) -> None:
        """Name the nodes and their guests."""
        self._progress.introduce(who)

    def show(self, node: str, what: str, detail: str) -> None:
        """Show a step."""
        cells: list[Cell | str] = [Cell(f"{self._wiring.wall():%H:%M:%S}", FAINT)]
        if self._several:
            cells.append(clean(node))
        cells += [Cell(what.ljust(WIDTH), BAD if what in TROUBLES else None), clean(detail)]
        with suppress(OSError):  # nobody has to listen: what was begun is finished
            for line in table([cells], indent=2, gap=2):
                say(line)

    def decided(self, node: NodeView, decision: Decision) -> None:
        """See `Reporter.decided`."""
        if self._several:
            self.show(node.name, "now", TEXTS[decision.reason].says)
        else:
            with suppress(OSError):
                self._progress.decided(node, decision)

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """See `Reporter.acted`."""
        if self._several:
            what, needless = ACTIONS[type(action)]
            self.show(node.name, what if done.ok else "failed", str(done).removeprefix(needless))
        else:
            with suppress(OSError):
                self._progress.acted(node, action, done)

    def said(self, text: str, *, warning: bool) -> None:
        """See `Reporter.said`."""
        with suppress(OSError):
            self._progress.said(text, warning=warning)
