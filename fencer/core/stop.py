"""When a guest that could write on is made unable to: stopped, or its saved memory thrown away.

The fence itself follows from what is read afterwards.
"""

from __future__ import annotations

from fencer.core import rungs
from fencer.core.ladder import Objection, Passed, Rung
from fencer.core.model import Intent, Observation, PowerState, Reason, Verdict
from fencer.core.policy import Policy
from fencer.core.rungs import age


def paused_long(observation: Observation, policy: Policy) -> Passed | Objection:
    """The pause is no snapshot, save or stall. By hand, it need not last that long."""
    run = observation.history.run
    limit_s = policy.paused_for_s if observation.intent is Intent.WATCH else policy.confirm_s
    lasted_s = run.last_s - run.since_s if run is not None and run.power_state is PowerState.PAUSED else 0.0
    needs = f"limit {limit_s:g} s, then it is stopped"
    raw = observation.evidence.raw if observation.evidence else ""
    if lasted_s < limit_s:
        seen = f"{raw} for {age(lasted_s)}"
        return Objection(Verdict.WAIT, Reason.PAUSE_TOO_SHORT, seen, needs, limit_s - lasted_s)
    return Passed(f"{raw} for {age(lasted_s)}", needs)


def saved(observation: Observation, policy: Policy) -> Passed | Objection:
    """The guest's memory was on disk for long enough."""
    run = observation.history.run
    held_s = run.last_s - run.since_s if run is not None and run.power_state is PowerState.SAVED else 0.0
    needs = f"limit {policy.confirm_s:g} s, then its saved memory is thrown away"
    raw = observation.evidence.raw if observation.evidence else ""
    if run is None or run.readings < 2 or held_s < policy.confirm_s:  # noqa: PLR2004 - once more than once
        left_s = max(policy.poll_s, policy.confirm_s - held_s)
        return Objection(Verdict.WAIT, Reason.NOT_HELD, f"{raw} for {age(held_s)}", needs, left_s)
    return Passed(f"{raw} for {age(held_s)}", needs)


def unresponsive(observation: Observation, policy: Policy) -> Passed | Objection:
    """The guest runs and is not heard, for long. By hand, the operator knows."""
    raw = observation.evidence.raw if observation.evidence else ""
    if observation.intent is Intent.FENCE:
        return Passed(f"{raw}; to be stopped, by hand")
    silent_s = observation.node.lease_age_s or 0.0
    needs = f"limit {policy.unresponsive_after_s:g} s, then it is stopped"
    if silent_s < policy.unresponsive_after_s:
        left_s = policy.unresponsive_after_s - silent_s
        seen = f"{raw}; silent for {age(silent_s)}"
        return Objection(Verdict.WAIT, Reason.GUEST_UNRESPONSIVE, seen, needs, left_s)
    return Passed(f"{raw}; silent for {age(silent_s)}", needs)


STOP: tuple[tuple[str, Rung], ...] = (
    ("settled", rungs.settled),
    ("no stall", rungs.no_stall),
    ("power rights", rungs.may_power),
    ("quorum", rungs.quorate_without),
    ("looked closely", rungs.looked_closely),
    ("needed", rungs.needed),
    ("brake", rungs.braked),
    ("power window", rungs.in_window),
    ("armed", rungs.armed),
)
"""From a guest that could write on to its power-off; the fence follows from what is read then."""

STOP_PAUSED: tuple[tuple[str, Rung], ...] = (("paused", paused_long), *STOP)
STOP_RUNNING: tuple[tuple[str, Rung], ...] = (("unresponsive", unresponsive), *STOP)
DISCARD_SAVED: tuple[tuple[str, Rung], ...] = (("saved", saved), *STOP)
