"""The progress of a verb by hand: a line for each step, as it happens."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

import click

from fencer.cli.render import BAD, FAINT, Cell, clean, say, table
from fencer.core.done import Done, PodsCleared
from fencer.core.model import (
    Alarm,
    Decision,
    Deed,
    NodeView,
    Outcome,
    Reason,
    Verdict,
)
from fencer.core.text import age, of_limit
from fencer.guest.streams import OutputLost
from fencer.wording.reasons import TEXTS
from fencer.wording.steps import ACTIONS, STEPS, WIDTH
from fencer.wording.verdicts import adjective_of

TIMED = {
    Reason.SILENCE_TOO_SHORT: "silence",
    Reason.PAUSE_TOO_SHORT: "a longer pause",
    Reason.NOT_HELD: "more readings",
}
"""What is waited for where it is known how long that takes."""
NOTES = 3
"""How many pods that could not be cleared at once are shown in a step; they are tried again."""


def zone_of(at: datetime) -> str:
    """Return the name of a time's zone: ``CET``, or ``UTC-03`` where it has none of letters."""
    name = f"{at:%Z}"
    return f"UTC{name}" if name[:1] in {"+", "-"} else name or "local"


class Progress:
    """A `Reporter` that shows one node's way, a line a step.

    Args:
        wall: Tells the time of day.
    """

    def __init__(self, wall: Callable[[], datetime]) -> None:
        self.done: list[Deed] = []
        """What was carried out."""
        self._wall = wall
        self._failed = ""

    def introduce(self, who: Mapping[str, str]) -> None:
        """Name nodes and their guests; the first line says once in which zone the times are.

        Args:
            who: Node → its guest and that one's state.
        """
        zone = f"; times are {zone_of(self._wall())}"
        for node, guest in who.items():
            say(click.style(f"{clean(node)} ({clean(guest)})", bold=True) + zone)
            zone = ""

    def decided(self, _node: NodeView, decision: Decision) -> None:
        """Show a step on the way. The caller reports the ending."""
        if decision.verdict is Verdict.REFUSE or decision.reason is Reason.CLOSER_LOOK:
            return
        what, detail = STEPS.get(
            decision.reason, (adjective_of(decision.verdict), TEXTS[decision.reason].says)
        )
        text = detail if isinstance(detail, str) else _seen(decision, detail)
        if decision.reason is Reason.SILENCE_TOO_SHORT and decision.recheck_s is not None:
            text = f"{age(math.ceil(decision.recheck_s))} more of silence, as counted here: {text}"
        self.line(what, text)

    def acted(self, _node: NodeView, action: Deed, done: Done) -> None:
        """Show an action."""
        if done.ok:
            self.done.append(action)
        what, needless = ACTIONS[type(action)]
        if isinstance(action, Alarm):
            self.line(what, str(done), colour=BAD)
        elif not done.ok:
            if str(done) != self._failed:  # it is tried again and again
                self.line("failed", str(done), colour=BAD)
            self._failed = str(done)
        elif isinstance(done, PodsCleared):
            self.line(what, done.cleared)
            for note in done.notes[:NOTES]:
                self.line("not yet", note)
        else:
            self.line(what, str(done).removeprefix(needless))

    def said(self, text: str, *, warning: bool) -> None:
        """Show a trouble."""
        self.line("trouble" if warning else "note", text, colour=BAD if warning else None)

    def line(self, what: str, detail: str, colour: str | None = None) -> None:
        """Show a step. The demo tells it as a line of its story instead."""
        time = Cell(f"{self._wall():%H:%M:%S}", FAINT)
        with suppress(OutputLost):  # what was begun is brought to its end, whoever reads of it
            for line in table([[time, Cell(what.ljust(WIDTH), colour), clean(detail)]], indent=2, gap=2):
                say(line)


class Waiting:
    """Shows on the living line what is waited for: ``waits for silence: 9 of 15 s``.

    Args:
        show: Shows a text there.
        now_s: The clock's time, in seconds.
        limit_s: How long the verb may wait in all, in seconds.
    """

    def __init__(self, show: Callable[[str], None], now_s: Callable[[], float], limit_s: float) -> None:
        self._show, self._now_s, self._limit_s = show, now_s, limit_s
        self._began_s = self._since_s = now_s()
        self._reason: Reason | None = None

    def __call__(self, decision: Decision) -> None:
        """Show what this decision waits for."""
        now_s = self._now_s()
        if decision.reason is not self._reason:
            self._reason, self._since_s = decision.reason, now_s
        what, spent_s = TIMED.get(decision.reason), now_s - self._since_s
        if what and decision.recheck_s is not None:
            self._show(f"waits for {what}: {of_limit(spent_s, round(spent_s + decision.recheck_s))}")
        else:
            self._show(f"{TEXTS[decision.reason].says}; {of_limit(now_s - self._began_s, self._limit_s)}")


def _seen(decision: Decision, names: tuple[str, ...]) -> str:
    """Return what those checks saw."""
    asked = (check for check in decision.checks if check.outcome is not Outcome.NOT_ASKED)
    return "; ".join(check.seen for check in asked if check.name in names)
