"""The operator's word that a guest is off, where no hypervisor can say so.

It replaces only UNKNOWN: never RUNNING, PAUSED or SAVED, and it never counts against a kubelet that is heard.
It can also support a hypervisor's "off" that is not enough alone: no lease shows that the node is silent, its
endpoint's off readings are not believed, or the guest ran on another host. It is bound to the guest and the
boot that were meant, and lasts for `WORD_LASTS_S`.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core.history import LEASE_DURATION_S
from fencer.core.model import Evidence, FenceMark, Intent, Observation, PowerState, Proof
from fencer.core.policy import Policy
from fencer.core.proof import ran_elsewhere
from fencer.core.times import MOST_APART_S, age_between, seconds_between

ALIVE = frozenset({PowerState.RUNNING, PowerState.PAUSED, PowerState.SAVED, PowerState.STOPPING})
"""Readings that no word is accepted against, even if the closer look after them failed."""

WORD_LASTS_S = 600.0
"""How long a word counts: for the command it was given with, and for agents that find it in the mark."""


def spoken_for(observation: Observation, policy: Policy) -> Observation:
    """Return the observation with the operator's word as evidence, if it may replace a reading."""
    if observation.intent in {Intent.SHUTDOWN, Intent.START, Intent.UNFENCE}:  # there, it is of another guest
        return observation
    why = word_given(observation) or _recorded(observation)
    if why is None or not observation.candidates or not _unheard(observation, policy):
        return observation
    read = observation.evidence
    if nothing_known(read) and observation.last_state not in ALIVE:
        return replace(observation, evidence=_by_word_alone(observation, why))
    if read is not None and read.gone and _not_enough(observation, read):
        raw = f"{read.raw}; and off by the operator's word: {why}"
        return replace(observation, evidence=replace(read, raw=raw, proof=Proof.OPERATOR))
    return observation


def _not_enough(observation: Observation, read: Evidence) -> bool:
    """Whether a hypervisor's "off" alone is not enough.

    Nobody can say that the node is silent; or its endpoint was wrong before; or the guest did not run there.
    """
    contradicted = read.guest.endpoint in observation.fleet.contradicted_endpoints
    elsewhere = ran_elsewhere(observation, read) is not None
    return contradicted or elsewhere or observation.node.lease_age_s is None


def _by_word_alone(observation: Observation, why: str) -> Evidence:
    return Evidence(
        guest=observation.candidates[0].guest,
        power_state=PowerState.STOPPED,
        settled=True,
        incarnation=None,
        cold_start=None,
        raw=f"off by the operator's word: {why}",
        source="operator",
        observed_at_s=observation.now_s,
        proof=Proof.OPERATOR,
    )


def word_given(observation: Observation) -> str | None:
    """The word of this command, while it lasts."""
    return None if word_over(observation) else observation.word.guest_off_why


def word_over(observation: Observation) -> bool:
    """Whether a word was given with this command, and counts no longer."""
    word = observation.word
    given = word.guest_off_why is not None and word.given_s is not None
    return given and observation.now_s - (word.given_s or 0.0) > WORD_LASTS_S


def _recorded(observation: Observation) -> str | None:
    """The word that an earlier command recorded in the mark, while it lasts, if the mark is signed."""
    node, mark = observation.node, observation.node.mark
    if not isinstance(mark, FenceMark) or not mark.signed:
        return None
    if mark.proof is not Proof.OPERATOR or mark.boot_id != node.boot_id:
        return None
    if not _lasts(mark, observation):
        return None
    return f"recorded by {mark.by} {age_between(mark.fenced_at_utc, observation.utc)} ago"


def _lasts(mark: FenceMark, observation: Observation) -> bool:
    """Whether the word in a mark counts by the faster clock, and by the time that this agent has known of it.

    A mark in the future would otherwise last as much longer as clocks are apart. One that lies further ahead
    than two clocks may be apart has no age at all (E26).
    """
    age_s = seconds_between(mark.fenced_at_utc, observation.latest_utc)
    given_s = observation.word.given_s
    lately = given_s is None or observation.now_s - given_s <= WORD_LASTS_S
    return lately and -MOST_APART_S <= age_s <= WORD_LASTS_S


def nothing_known(evidence: Evidence | None) -> bool:
    """Whether a reading leaves open what became of a guest, so that a person may say it."""
    if evidence is None or evidence.power_state is PowerState.UNKNOWN:
        return True
    return evidence.power_state is PowerState.ABSENT and not evidence.end_recorded


def _unheard(observation: Observation, policy: Policy) -> bool:
    """Silent by our own clock; or by the control plane's judgement, and not heard since we began to look."""
    node = observation.node
    long_silent = node.lease_age_s is not None and node.lease_age_s >= max(
        policy.lease_silent_s, LEASE_DURATION_S
    )
    return long_silent or (node.ready is None and node.lease_renewals == 0)
