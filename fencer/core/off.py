"""When a reading says that a guest is gone: a positive list. Whatever is not in it objects."""

from __future__ import annotations

from fencer.core.ladder import Objection, Passed
from fencer.core.model import Evidence, PowerState, Reason, Verdict
from fencer.core.policy import PausedGuest, Policy

NOT_OFF: dict[PowerState, tuple[Verdict, Reason, str, str]] = {
    PowerState.RUNNING: (
        Verdict.REFUSE,
        Reason.GUEST_RUNNING,
        ": the node may only be cut off",
        ", or stopped by fencer (--stop-guest, or unresponsive_guest: stop)",
    ),
    PowerState.PAUSED: (
        Verdict.REFUSE,
        Reason.GUEST_PAUSED,
        ": a resume would write on",
        ", or paused_guest: stop",
    ),
    PowerState.SAVED: (
        Verdict.REFUSE,
        Reason.GUEST_SAVED,
        ": a restore would write on",
        ", or its saved state discarded",
    ),
    PowerState.ABSENT: (Verdict.REFUSE, Reason.ABSENCE_UNPROVEN, "", ", or --confirm-guest-off WHY"),
    PowerState.STOPPING: (Verdict.WAIT, Reason.GUEST_STOPPING, "", ""),
    PowerState.UNKNOWN: (Verdict.REFUSE, Reason.GUEST_UNKNOWN, "", ""),
}
"""Verdict, reason, what it means and what else would do, for each state in which a guest may write again."""


def off(evidence: Evidence, policy: Policy) -> Passed | Objection:
    """The hypervisor says that no process holds this guest's memory."""
    state, raw = evidence.power_state, evidence.raw
    if state is PowerState.STOPPED:
        return Passed(raw)
    if state is PowerState.ABSENT and evidence.end_recorded:
        return Passed(f"{raw}; its end was recorded")
    if state is PowerState.PAUSED and policy.paused_guest is PausedGuest.TRUST:
        return Passed(f"{raw}; trusted not to be resumed (paused_guest: trust)")
    if state is PowerState.ABSENT and not evidence.conclusive:
        return Objection(Verdict.WAIT, Reason.CLOSER_LOOK, raw, "a live reading of the guest", 0.0)
    verdict, reason, meaning, way = NOT_OFF[state]
    if state is PowerState.UNKNOWN and evidence.host_silent:
        return _host_silent(evidence)
    needs = f"its guest stopped, or deleted with a record of its end{way}"
    recheck_s = policy.poll_s if verdict is Verdict.WAIT else None
    return Objection(verdict, reason, f"{raw}{meaning}", needs, recheck_s)


def _host_silent(evidence: Evidence) -> Objection:
    """Refuse, and name the ways out in what is told everywhere: the host's hypervisor died with it."""
    host = evidence.guest.host or "its host"
    ways = f"{host} back, a power witness that reads it off (host_power), or --confirm-guest-off WHY"
    seen = f"{evidence.raw}. That does not prove the guest off. What would: {ways}"
    return Objection(Verdict.REFUSE, Reason.HOST_SILENT, seen, ways)
