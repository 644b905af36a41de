"""What a controller is told that has asked for a node: it is done, it never will be, or it is not known yet.

Final answers have consequences at once: NodeHealthCheck goes on to its next remedy after a no, and a machine
may be deleted. So a no is only said for what no time brings, and only once it has stood for a while.

Source: medik8s' contract for external remediators, conditions ``Processing`` and ``Succeeded``
(github.com/medik8s/node-healthcheck-operator, on how to implement a remediator).
"""

from __future__ import annotations

from fencer.core.cordon import cordoned_after_fence
from fencer.core.election import Seat
from fencer.core.model import Binding, Judged, NodeView, Reason, Unreadable, Verdict
from fencer.core.pods import to_clear, to_release
from fencer.core.requests import Progress, Request

FINAL = frozenset(
    {
        *(Reason.NODE_HEALTHY, Reason.BLIND, Reason.CORDON_UNRECORDED),
        *(Reason.NO_GUEST, Reason.GUEST_AMBIGUOUS, Reason.GUEST_TAKEN, Reason.BINDING_UNPROVEN),
        Reason.GUEST_REPLACED,
        *(Reason.GUEST_RUNNING, Reason.GUEST_SAVED, Reason.GUEST_LEFT, Reason.GUEST_PAUSED),
        *(Reason.ABSENCE_UNPROVEN, Reason.HOST_CHANGED),
        *(Reason.WITNESS_CONTRADICTED, Reason.DOUBTS_UNREADABLE),
        *(Reason.NODE_EXCLUDED, Reason.HANDED_OVER, Reason.NO_POWER_RIGHTS, Reason.POWER_UNAPPROVED),
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

OWN_VIEW = frozenset({Reason.NO_GUEST, Reason.NO_POWER_RIGHTS, Reason.POWER_UNAPPROVED})
"""What another agent may see otherwise, by another configuration …"""

HANDED_OVER_S = 60.0
"""… and so this has to stand for longer: an agent that is of no use as holder of a Lease leaves it after 30 s
(`fencer.core.fitness`), and the next one takes it within seconds."""

DONE = Reason.PODS_CLEARED
"""Fenced, its pods cleared, its volumes released."""


def answer(
    request: Request, judged: Judged | None, stood_s: float, *, cleared: bool = False
) -> Progress | None:
    """Return what to tell whoever asked; None: as it was told before, or nothing yet.

    Args:
        request: What is asked.
        judged: The node as it was last judged; None: there is no such node.
        stood_s: For how long that has been so, for this very reason.
        cleared: Nothing was left on it at some time since it was fenced.

    Returns:
        Without its message.
    """
    if request.deleting or (request.told is not None and request.told.final):
        return None
    told = _answer(request, judged, stood_s, cleared=cleared)
    return None if told == request.told else told


def _answer(request: Request, judged: Judged | None, stood_s: float, *, cleared: bool) -> Progress:
    stands = stood_s >= STANDS_S
    if request.given_up:
        return Progress(succeeded=False, reason=_word(Reason.GIVEN_UP))
    if request.problem:
        return Progress(None if request.waits or not stands else False, "Unclear")
    if judged is None:
        return Progress(False if stands else None, "NoSuchNode")
    if done(judged) or (cleared and judged.observation.node.fenced):
        return Progress(succeeded=True, reason=_word(DONE))
    return Progress(False if _is_no(judged, stood_s) else None, _word(judged.decision.reason))


def done(judged: Judged) -> bool:
    """Whether a node is fenced, and nothing is left on it, as far as is known; whatever its guest is now."""
    seen = judged.observation
    nothing_left = seen.pods is not None and not (to_clear(seen) or to_release(seen))
    return judged.decision.reason is DONE or (seen.node.fenced and nothing_left)


def _is_no(judged: Judged, stood_s: float) -> bool:
    """Whether nothing will be done for a node. One that is fenced will be cleared, sooner or later."""
    decision, node = judged.decision, judged.observation.node
    over = decision.verdict in {Verdict.REFUSE, Verdict.HEALTHY} and decision.reason in FINAL
    needed_s = HANDED_OVER_S if decision.reason in OWN_VIEW else STANDS_S
    return over and stood_s >= needed_s and not node.fenced


def answers(judged: Judged | None) -> bool:
    """Whether this agent, of several, is the one who answers: the one that gives the guest's orders, if any.

    Another one sees the same, but may put it in other words, and may know less. Least of all does one that
    knows no guest of a node that is bound to one.
    """
    if judged is None:
        return True
    seen, tenure = judged.observation, judged.observation.tenure
    elsewhere = not (seen.candidates or seen.taken_by) and isinstance(seen.node.binding, Binding)
    return not elsewhere and (tenure is None or tenure.seat is not Seat.STANDBY)


def may_go(request: Request, node: NodeView | None) -> bool:
    """Whether a deleted request may go: nothing that was done for it is left.

    Args:
        request: A deleted one.
        node: The node that it was about; None: there is no such node. One that is gone is told by nobody
            any more, and has no fence to lift.
    """
    if node is None or node.gone or not request.node:
        return True
    settles = cordoned_after_fence(node) and node.ready is True
    unclear = node.out_of_service is not None and isinstance(node.mark, Unreadable)
    return not (node.fenced or settles or unclear)


def _word(reason: Reason) -> str:
    """Return a reason as conditions have it: ``GuestRunning``."""
    return "".join(part.capitalize() for part in reason.value.split("_"))
