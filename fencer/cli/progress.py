"""The progress of a verb by hand: a line for each step, as it happens."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime

from fencer.cli.render import BAD, FAINT, Cell, clean, say, table
from fencer.core.done import Done, PodsCleared
from fencer.core.model import (
    Alarm,
    CordonNode,
    Decision,
    Deed,
    DiscardSaved,
    EvictPods,
    NodeView,
    Outcome,
    Reason,
    RecordDoubts,
    ShutdownGuest,
    StartGuest,
    StopGuest,
    TaintNode,
    Uncordon,
    UntaintNode,
    Verdict,
)
from fencer.core.reasons import TEXTS
from fencer.core.text import age

STEPS: dict[Reason, tuple[str, tuple[str, ...] | str]] = {
    Reason.SILENCE_TOO_SHORT: ("waiting", ("silent",)),
    Reason.NODE_READY: ("waiting", ("silent",)),
    Reason.BINDING_UNPROVEN: ("waiting", ("proven",)),
    Reason.NOT_HELD: ("reads off", ("off", "held")),
    Reason.PROVEN_OFF: ("proven off", ("held", "in place")),
    Reason.CLEARING_PODS: ("still off", ("looked closely",)),
    Reason.RELEASING_VOLUMES: ("waiting", "for its volumes to be released"),
    Reason.PODS_CLEARED: ("all clear", "no pod and no volume is left on it"),
    Reason.PAUSE_TOO_SHORT: ("paused", ("paused",)),
    Reason.GUEST_PAUSED: ("to be stopped", ("paused",)),
    Reason.GUEST_SAVED: ("to be discarded", ("saved",)),
    Reason.GUEST_UNRESPONSIVE: ("to be stopped", ("unresponsive",)),
    Reason.AWAITING_BOOT: ("not booted yet", ("running", "booted anew", "not started", "reported")),
    Reason.AWAITING_RENEWALS: ("booted anew", ("booted anew", "renewed")),
    Reason.OLD_MEMORY: ("old memory", ("running", "booted anew")),
    Reason.PODS_REMAIN: ("waiting", ("pods gone",)),
    Reason.VOLUMES_REMAIN: ("waiting", ("volumes gone",)),
    Reason.SHUTDOWN_DUE: ("runs", ("running",)),
    Reason.SHUTTING_DOWN: ("waiting", "for it to shut down"),
    Reason.SHUTDOWN_HANGS: ("hangs", ("hanging",)),
    Reason.SHUT_DOWN: ("proven off", ("held", "in place")),
    Reason.START_DUE: ("off", ("startable",)),
    Reason.AWAITING_READY: ("waiting", ("reported",)),
    Reason.SETTLING: ("waiting", "until caches have settled"),
    Reason.SETTLED: ("back", ("reported", "rested")),
    Reason.STARTED: ("ready", ("reported",)),
    Reason.BOOTED_ANEW: ("clean", ("renewed", "pods gone", "volumes gone")),
}
"""What a decision on the way is called, and either what it means or the checks that say so."""

ACTIONS: dict[type[Deed], tuple[str, str]] = {
    TaintNode: ("tainted", "tainted "),
    StopGuest: ("power cut", ""),
    UntaintNode: ("untainted", "out-of-service taint taken off; "),
    CordonNode: ("cordoned", "cordoned, "),
    EvictPods: ("evicted", ""),
    Uncordon: ("uncordoned", "uncordoned: "),
    ShutdownGuest: ("asked", "asked "),
    StartGuest: ("powered on", "started "),
    DiscardSaved: ("discarded", ""),
    RecordDoubts: ("noted", "noted on the Node: "),
}
"""What an action is called, and which words of its text that makes needless."""

WIDTH = 14
NOTES = 3
"""How many pods that could not be cleared at once are shown in a step; they are tried again."""


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

    def decided(self, _node: NodeView, decision: Decision) -> None:
        """Show a step on the way. An ending is told by whoever asked for it."""
        if decision.verdict is Verdict.REFUSE or decision.reason is Reason.CLOSER_LOOK:
            return
        what, detail = STEPS.get(decision.reason, (decision.verdict.value, TEXTS[decision.reason].says))
        text = detail if isinstance(detail, str) else _seen(decision, detail)
        if decision.reason is Reason.SILENCE_TOO_SHORT and decision.recheck_s is not None:
            text = f"{age(math.ceil(decision.recheck_s))} more of silence, as counted here: {text}"
        self._line(what, text)

    def acted(self, _node: NodeView, action: Deed, done: Done) -> None:
        """Show an action."""
        if done.ok:
            self.done.append(action)
        if isinstance(action, Alarm):
            self._line("ALARM", str(done), colour=BAD)
        elif not done.ok:
            if str(done) != self._failed:  # it is tried again and again
                self._line("failed", str(done), colour=BAD)
            self._failed = str(done)
        elif isinstance(done, PodsCleared):
            self._line("pods cleared", done.cleared)
            for note in done.notes[:NOTES]:
                self._line("not yet", note)
        else:
            what, needless = ACTIONS.get(type(action), ("done", ""))
            self._line(what, str(done).removeprefix(needless))

    def said(self, text: str, *, warning: bool) -> None:
        """Show a trouble."""
        self._line("trouble" if warning else "note", text, colour=BAD if warning else None)

    def _line(self, what: str, detail: str, colour: str | None = None) -> None:
        time = Cell(f"{self._wall():%H:%M:%S}", FAINT)
        for line in table([[time, Cell(what.ljust(WIDTH), colour), clean(detail)]], indent=2, gap=2):
            say(line)


def _seen(decision: Decision, names: tuple[str, ...]) -> str:
    """Return what those checks saw."""
    asked = (check for check in decision.checks if check.outcome is not Outcome.NOT_ASKED)
    return "; ".join(check.seen for check in asked if check.name in names)
