"""What a controller is told that has asked for a node: it is done, it never will be, or it is not known yet.

Final answers have consequences at once: NodeHealthCheck goes on to its next remedy after a no, and a machine
may be deleted. So a no is only said for what no time brings, and only once it has stood for a while.

Source: medik8s' contract for external remediators, conditions ``Processing`` and ``Succeeded``
(github.com/medik8s/node-healthcheck-operator, on how to implement a remediator).
"""

from __future__ import annotations

from fencer.core.cordon import cordoned_after_fence
from fencer.core.election import Seat
from fencer.core.model import Binding, Judged, NodeView, Reason
from fencer.core.requests import Progress, Request

FINAL = frozenset(
    {
        *(Reason.NODE_HEALTHY, Reason.BLIND, Reason.NOTHING_TO_CLEAR),
        *(Reason.NO_GUEST, Reason.GUEST_AMBIGUOUS, Reason.GUEST_TAKEN, Reason.BINDING_UNPROVEN),
        Reason.GUEST_REPLACED,
        *(Reason.GUEST_RUNNING, Reason.GUEST_SAVED, Reason.GUEST_LEFT, Reason.GUEST_PAUSED),
        *(Reason.ABSENCE_UNPROVEN, Reason.HOST_CHANGED),
        *(Reason.WITNESS_CONTRADICTED, Reason.DOUBTS_UNREADABLE),
        *(Reason.NODE_EXCLUDED, Reason.HANDED_OVER, Reason.GIVEN_UP, Reason.NO_POWER_RIGHTS),
        *(Reason.FOREIGN_TAINT, Reason.TAINT_TAKEN_OFF),
    }
)
"""What no time brings, but a person, another remedy, or the node itself.

All else is waited for: silence, a hypervisor or host that may answer again, HA's recovery, a brake, a
pause by a person, a fence of which fencer's own mark cannot be read. Whoever asked sets the limit for that.
"""

STANDS_S = 10.0
"""A reason stands for so long before it is a no: two readings, and longer than a restart or a hand-over shows
a state that is none."""

DONE = Reason.PODS_CLEARED
"""Fenced, its pods cleared, its volumes released."""


def answer(request: Request, judged: Judged | None, stood_s: float) -> Progress | None:
    """Return what to tell whoever asked; None: as it was told before, or nothing yet.

    Args:
        request: What is asked.
        judged: The node as it was last judged; None: there is no such node.
        stood_s: For how long that has been so, for this very reason.

    Returns:
        Without its message.
    """
    if request.deleting or (request.told is not None and request.told.final):
        return None
    told = _answer(request, judged, stood_s)
    return None if told == request.told else told


def _answer(request: Request, judged: Judged | None, stood_s: float) -> Progress:
    stands = stood_s >= STANDS_S
    if request.given_up:
        return Progress(succeeded=False, reason=_word(Reason.GIVEN_UP))
    if request.problem:
        return Progress(None if request.waits or not stands else False, "Unclear")
    if judged is None:
        return Progress(False if stands else None, "NoSuchNode")
    reason = judged.decision.reason
    if reason is DONE:
        return Progress(succeeded=True, reason=_word(reason))
    return Progress(False if stands and reason in FINAL else None, _word(reason))


def answers(judged: Judged | None) -> bool:
    """Whether this agent, of several, is the one who answers: the one that gives the guest's orders, if any.

    Another one sees the same, but may put it in other words, and may know less. Least of all does one that
    knows no guest of a node that is bound to one.
    """
    if judged is None:
        return True
    seen, tenure = judged.observation, judged.observation.tenure
    elsewhere = not seen.candidates and isinstance(seen.node.binding, Binding)
    return not elsewhere and (tenure is None or tenure.seat is not Seat.STANDBY)


def may_go(request: Request, node: NodeView | None) -> bool:
    """Whether a deleted request may go: nothing that was done for it is left.

    Args:
        request: A deleted one.
        node: The node that it was about; None: there is no such node.
    """
    if node is None or not request.node:
        return True
    settles = cordoned_after_fence(node) and node.ready is True
    return not (node.fenced or settles)


def _word(reason: Reason) -> str:
    """Return a reason as conditions have it: ``GuestRunning``."""
    return "".join(part.capitalize() for part in reason.value.split("_"))
