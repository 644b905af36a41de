"""The operator's word that a guest is off, where no hypervisor can say so.

It stands in for UNKNOWN only: never for RUNNING, PAUSED or SAVED, and never against a kubelet that is heard.
It is bound to the guest and the boot that were meant, and lasts as long as `WORD_LASTS_S`.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core.history import LEASE_DURATION_S
from fencer.core.model import Evidence, FenceMark, Observation, PowerState, Proof
from fencer.core.pods import seconds_between
from fencer.core.policy import Policy

WORD_LASTS_S = 600.0
"""How long an agent goes on clearing pods on a word that was recorded in the mark."""


def spoken_for(observation: Observation, policy: Policy) -> Observation:
    """Return the observation with the operator's word as evidence, where it may stand in for a reading."""
    why = observation.word.guest_off_why or _recorded(observation)
    candidate = observation.candidates[0] if observation.candidates else None
    if (
        why is None
        or candidate is None
        or not _nothing_known(observation)
        or not _unheard(observation, policy)
    ):
        return observation
    evidence = Evidence(
        guest=candidate.guest,
        power_state=PowerState.STOPPED,
        settled=True,
        incarnation=None,
        cold_start=None,
        raw=f"off by the operator's word: {why}",
        source="operator",
        observed_at_s=observation.now_s,
        proof=Proof.OPERATOR,
    )
    return replace(observation, evidence=evidence)


def _recorded(observation: Observation) -> str | None:
    """The word that an earlier command recorded in the mark, while it lasts."""
    node, mark = observation.node, observation.node.mark
    if not isinstance(mark, FenceMark) or mark.proof is not Proof.OPERATOR or mark.boot_id != node.boot_id:
        return None
    if seconds_between(mark.fenced_at_utc, observation.utc) > WORD_LASTS_S:
        return None
    return f"recorded by {mark.by} at {mark.fenced_at_utc}"


def _nothing_known(observation: Observation) -> bool:
    evidence = observation.evidence
    if evidence is None or evidence.power_state is PowerState.UNKNOWN:
        return True
    return evidence.power_state is PowerState.ABSENT and not evidence.end_recorded


def _unheard(observation: Observation, policy: Policy) -> bool:
    """Silent by our own clock, or by the control plane's judgement and nothing heard since we look."""
    node = observation.node
    long_silent = node.lease_age_s is not None and node.lease_age_s >= max(
        policy.lease_silent_s, LEASE_DURATION_S
    )
    return long_silent or (node.ready is None and node.lease_renewals == 0)
