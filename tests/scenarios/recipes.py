"""The real agent, and the ways in which people may set it."""

from __future__ import annotations

from dataclasses import replace

from fencer.cli.stage_agent import StageAgent
from fencer.core.policy import AfterStop, Policy, ResumedGuest, SavedGuest, UnresponsiveGuest
from fencer.runtime.reconcile import Agent
from fencer.simulation.scenario import ARMED
from fencer.simulation.stage import StagePorts

RECIPES: dict[str, Policy] = {
    "careful": ARMED,
    "quick": replace(ARMED, require_not_ready=False, lease_silent_s=20.0),
    "seconds": replace(ARMED, require_not_ready=False, lease_silent_s=0.0),
    "eager": replace(
        ARMED,
        unresponsive_guest=UnresponsiveGuest.STOP,
        unresponsive_after_s=90.0,
        saved_guest=SavedGuest.DISCARD,
        resumed_guest=ResumedGuest.STOP,
        after_stop=AfterStop.START,
    ),
}
"""The three recipes of docs/concepts.md, and one in which fencer may do all that it is ever allowed to."""


def real_agent(ports: StagePorts) -> Agent:
    """Build what `fencer watch` runs."""
    return StageAgent(ports)
