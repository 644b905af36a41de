"""Whether this agent, of several, is the one that gives a hypervisor its orders."""

from __future__ import annotations

from fencer.core.election import DURATION_S, RETRY_S, Seat
from fencer.core.model import Intent, Reason, Verdict
from fencer.core.policy import Mode, Policy
from fencer.core.rung import Answer, Objection, Passed, Subject
from fencer.core.text import age

MAKES_LEASES = "`fencer setup kubernetes --config CONFIG | kubectl apply -f -`, or the guest stopped by hand"


def holder(subject: Subject, policy: Policy) -> Answer:
    """Of several agents one gives this hypervisor its orders: the one that holds its Lease."""
    seen, tenure = subject.seen, subject.seen.tenure
    if seen.intent is not Intent.WATCH:
        return Passed("by hand")
    if tenure is None or policy.mode is not Mode.ARMED:
        return Passed(
            "which agent, they settle by Leases" if tenure is None else "mode: observe: it gives no order"
        )
    if tenure.holds(seen.now_s):
        return Passed(f"holds lease {tenure.lease}")
    if tenure.seat is Seat.UNFILLED:
        return Objection(Verdict.REFUSE, Reason.NO_LEASE, tenure.why, MAKES_LEASES)
    if tenure.seat is Seat.STANDBY:
        ends = f"that agent to act, or its silence for {age(DURATION_S)}"
        told = f"{tenure.holder} holds lease {tenure.lease}"
        return Objection(Verdict.WAIT, Reason.STANDBY, told, ends, RETRY_S)
    why = tenure.why or f"lease {tenure.lease} has run out, and was not renewed yet"
    return Objection(Verdict.WAIT, Reason.STANDBY, why, "the Lease, held by this agent", RETRY_S)
