"""The operator's word that a guest is off, where no hypervisor can say so.

It stands in for UNKNOWN only: never for RUNNING, PAUSED or SAVED, and never against a kubelet that is heard.
It is bound to the guest and the boot that were meant, and lasts as long as `WORD_LASTS_S`.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core.history import LEASE_DURATION_S
from fencer.core.model import Evidence, FenceMark, Intent, Observation, PowerState, Proof
from fencer.core.pods import seconds_between
from fencer.core.policy import Policy

WORD_LASTS_S = 600.0
"""How long a word is acted upon: by the command it was given with, and by agents that find it in the mark."""


def spoken_for(observation: Observation, policy: Policy) -> Observation:
    """Return the observation with the operator's word as evidence, where it may stand in for a reading."""
    if observation.intent in {Intent.SHUTDOWN, Intent.START}:
        return observation
    why = _given(observation) or _recorded(observation)
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


def _given(observation: Observation) -> str | None:
    """The word of this very command, while it lasts."""
    given_s = observation.word.given_s
    if given_s is not None and observation.now_s - given_s > WORD_LASTS_S:
        return None
    return observation.word.guest_off_why


def _recorded(observation: Observation) -> str | None:
    """The word that an earlier command recorded in the mark, while it lasts. Unsigned, it is nobody's."""
    node, mark = observation.node, observation.node.mark
    if not isinstance(mark, FenceMark) or not mark.signed:
        return None
    if mark.proof is not Proof.OPERATOR or mark.boot_id != node.boot_id:
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
