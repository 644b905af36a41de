"""A node, what was decided about it and done to it, and ports that remember what they were told."""

from fencer.core.done import Happened
from fencer.core.model import (
    Alarm,
    Check,
    ClearPods,
    Decision,
    FenceMark,
    GuestRef,
    NodeView,
    Outcome,
    PodView,
    Reason,
    TaintNode,
    Verdict,
)

EVIL = 'x\n2026 level=error \x1b[2J "text=y\\" \u202e \ud800'
"""A name that would like to be a line of its own, and to drive a terminal."""
UUID = "6f1c8c1e-0000-4000-8000-0000000000e2"
GUEST = GuestRef("lab", UUID, UUID, "k8s-4")
NODE = NodeView("k8s-4", "uid-4", UUID, "boot-1", ready=None, version="41")
HEALTHY = Decision(Verdict.HEALTHY, Reason.NODE_HEALTHY)
REFUSED = Decision(
    Verdict.REFUSE,
    Reason.GUEST_RUNNING,
    checks=(
        Check("silent", Outcome.PASSED, "lease 52 s old", "40 s"),
        Check("off", Outcome.FAILED, "running (state 1)", "stopped"),
    ),
    guest=GUEST,
)
REFUSED_TEXT = "its guest runs (running (state 1)); what would change this: stopped"
TAINT = TaintNode(FenceMark("inc-1", "2026-11-20T10:00:00Z", "boot-1", GUEST, "fencer"))
FENCE = Decision(Verdict.FENCE, Reason.PROVEN_OFF, actions=(TAINT,), guest=GUEST)
CLEAR = ClearPods((PodView("db", "db-1", "pod-1", "7", "Running"),))
ALARM = Alarm("old memory is back")


class Remembering:
    """A `Reporter` that remembers what it was told."""

    def __init__(self):
        self.told = []

    def decided(self, node, decision):
        self.told.append(("decided", node, decision))

    def acted(self, node, action, done):
        self.told.append(("acted", node, action, done))

    def said(self, text, *, warning):
        self.told.append(("said", text, warning))


def tell_everything(reporter):
    """Use each of a reporter's methods once."""
    reporter.decided(NODE, REFUSED)
    reporter.acted(NODE, TAINT, Happened("tainted"))
    reporter.said("lab: lost", warning=True)
