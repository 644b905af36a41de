"""When a hypervisor's "off" is not believed: it was proven wrong, or said just before that memory is left.

A doubt is written on the Node, so that neither a restart nor another agent forgets it. It stays until that
hypervisor reads the guest RUNNING on that host again (one about saved memory: restored; one about a
hibernation: with its kubelet alive in that run), or the node is bound to another guest. It makes the off
readings of that one witness UNKNOWN: an operator's word still proves. If the host has no power, or was fenced
by HA, that ends a doubt about a witness that was wrong, but none about memory that is elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core.distrust import is_to_be_proven, shows_known_boot, with_proof
from fencer.core.history import CONTRADICTIONS, LEASE_DURATION_S, renewals_in_run
from fencer.core.identity import nothing_read
from fencer.core.kept import standing
from fencer.core.model import (
    Binding,
    Doubt,
    Doubted,
    Evidence,
    GuestHistory,
    GuestRef,
    NodeView,
    Observation,
    PowerState,
    Proof,
)
from fencer.core.naming import UNIDENTIFIED
from fencer.core.proof import WITNESSED

LOOK_EVERY_S = 4.0
"""Between two looks at a guest that seems to be off while its node is heard: well within a kubelet's 10 s."""

DOUBTFUL = frozenset(Proof) - {Proof.OPERATOR}
"""Kinds of proof that a doubt may be about: all, a new one too, but an operator's word, which knows more."""

ON_DISK = frozenset({Doubted.SAVED, Doubted.FILED})
"""Doubts about memory that does no harm to a guest that starts cold."""

STILL = frozenset({PowerState.PAUSED, PowerState.SAVED})
"""In which a guest's memory waits, and no kubelet runs."""

WORDS = {
    Doubted.CONTRADICTED: "its kubelet was alive after it was reported off",
    Doubted.SAVED: "its memory was on disk before, and it has not been started since",
    Doubted.FILED: "its memory was saved to a file before, and it has not been seen running since",
    Doubted.HIBERNATED: "it hibernated into its own disk, and its kubelet has not been alive since",
    Doubted.MIGRATED: "it had moved away before, and has not been started here since",
    Doubted.UNSEEN: "its kubelet was alive while its VM was not seen running here, so that may run elsewhere",
}


def believe(evidence: Evidence | None, node: NodeView, history: GuestHistory) -> Evidence | None:
    """Return a reading as far as it is believed.

    Args:
        evidence: As a hypervisor gave it.
        node: For the doubts written on it.
        history: For those that this agent has seen itself.
    """
    if evidence is None or not evidence.gone or evidence.proof not in DOUBTFUL:
        return evidence
    doubts = [doubt for doubt in standing(node, None) if doubt.means(evidence)]
    if contradicted(history, evidence):
        doubts.append(Doubt(Doubted.CONTRADICTED, evidence.guest, evidence.witness, by="", since_utc=""))
    if not doubts:
        return evidence
    # A doubt that says that it lives elsewhere goes before one that a cold start would end.
    doubt = min(doubts, key=lambda doubt: doubt.kind in ON_DISK)
    noted = f" (noted by {doubt.by})" if doubt.by else ""
    return replace(
        evidence,
        power_state=PowerState.UNKNOWN,
        raw=f"{evidence.raw}, which is distrusted: {WORDS[doubt.kind]}{noted}",
        doubt=doubt,
    )


def contradicted(history: GuestHistory, evidence: Evidence) -> bool:
    """Whether this agent itself has proven wrong the hypervisor that reports this guest off."""
    heard = history.heard
    if heard is None or heard.renewals < CONTRADICTIONS or evidence.proof not in WITNESSED:
        return False
    same = (heard.guest.key, heard.witness) == (evidence.guest.key, evidence.witness)
    return same and heard.guest.shares_host(evidence.guest)


def found(seen: Observation) -> tuple[tuple[Doubt, ...] | None, bool]:
    """Return the doubts that have to be noted now, and whether only a live look can tell.

    Returns:
        None instead of doubts: they are as they were.
    """
    doubts = due(seen)
    if doubts == _standing(seen):
        return None, _worth_a_look(seen)
    if not _certain(seen, doubts):
        return None, seen.looked_s >= LOOK_EVERY_S
    return doubts, False


def _certain(seen: Observation, doubts: tuple[Doubt, ...]) -> bool:
    """Whether what was read is enough to write it down. Lifting a doubt takes our own live look."""
    told = all(reading.conclusive or reading.power_state is PowerState.UNKNOWN for reading in _readings(seen))
    return told and (seen.close or set(doubts).issuperset(_standing(seen)))


def _worth_a_look(seen: Observation) -> bool:
    """Whether to look live, now and then, at a guest that seems to be off while its node is heard.

    Either it has just ended, or its hypervisor is wrong; and only live looks, one after the other, tell. So
    they do in which boot it was wrong.
    """
    lately = seen.node.heard_s is not None and seen.node.heard_s < LEASE_DURATION_S
    at_rest = seen.evidence is not None and seen.evidence.at_rest
    open_ = seen.evidence is not None and seen.evidence.doubt is not None and _is_open(seen, seen.evidence)
    return (at_rest or open_) and lately and seen.looked_s >= LOOK_EVERY_S


def _is_open(seen: Observation, doubted: Evidence) -> bool:
    """Whether it is still to be proven in which boot a hypervisor was wrong that reports a guest off."""
    return any(is_to_be_proven(seen.node, doubt) and doubt.means(doubted) for doubt in _standing(seen))


def due(seen: Observation) -> tuple[Doubt, ...]:
    """Return the doubts that should be on the Node now."""
    doubts = _standing(seen)
    for reading in _readings(seen):
        doubts = tuple(doubt for doubt in doubts if not _lifted(seen, doubt, reading))
        kind = _kind(seen, reading)
        if kind is not None and not _stands(kind, reading, doubts):
            doubts = (*doubts, Doubt(kind, reading.guest, reading.witness, seen.by, seen.utc))
    left = _left_behind(seen)
    if left is not None and not _stands(Doubted.MIGRATED, left, doubts):
        doubts = (*doubts, Doubt(Doubted.MIGRATED, left.guest, left.witness, seen.by, seen.utc))
    unseen = _runs_unseen(seen)
    if unseen is not None and not _stands(Doubted.UNSEEN, unseen, doubts):
        doubts = (*doubts, Doubt(Doubted.UNSEEN, unseen.guest, unseen.witness, seen.by, seen.utc))
    return tuple(with_proof(seen, doubt) for doubt in doubts)


def _lifted(seen: Observation, doubt: Doubt, reading: Evidence) -> bool:
    """Whether a reading ends a doubt.

    That it runs here, too, does not say that it runs nowhere else (D5). And a guest that hibernated has used
    its image up only once its kernel runs: cut off before that, it continues from there next time (D3).
    """
    if doubt.kind is Doubted.UNSEEN and not shows_known_boot(seen.node):
        return False
    return _ends(doubt, reading, seen.node, seen.history)


def _ends(doubt: Doubt, reading: Evidence, node: NodeView, history: GuestHistory) -> bool:
    """Whether a reading ends a doubt; one about a hibernation only where its kernel has come up (D3)."""
    asleep = doubt.kind is Doubted.HIBERNATED and not _is_awake(node, history)
    return doubt.lifted_by(reading) and not asleep


def _is_awake(node: NodeView, history: GuestHistory) -> bool:
    """Whether the kernel of a VM has come up in its present run: its kubelet is alive in it."""
    return renewals_in_run(history, node) >= CONTRADICTIONS


def _stands(kind: Doubted, reading: Evidence, doubts: tuple[Doubt, ...]) -> bool:
    """Whether this is noted already. One of another kind does not count: something else ends it."""
    return any(doubt.kind is kind and doubt.means(reading) for doubt in doubts)


def _readings(seen: Observation) -> tuple[Evidence, ...]:
    """Return what was read of the guest that may be the node, and of the one that it is bound to."""
    return tuple(reading for reading in (seen.evidence, seen.bound_reading) if reading is not None)


def _left_behind(seen: Observation) -> Evidence | None:
    """Return the reading of the bound guest, or one that knows nothing, where the guest now runs elsewhere.

    Whether it was seen leaving or not: it did, and what its old place says later is not its end. That has to
    be on the Node before anybody forgets it, whether the node is silent or not.
    """
    if not isinstance(seen.node.binding, Binding):
        return None
    guest = seen.node.binding.guest
    if guest.endpoint.startswith(UNIDENTIFIED):  # where it runs may be the very place that it is bound to
        return None
    if all(candidate.guest.key == guest.key for candidate in seen.candidates):
        return None
    first = PowerState.UNKNOWN if seen.evidence is None else seen.evidence.power_state
    states = dict(zip(seen.candidates, (first, *seen.others), strict=False))
    runs_elsewhere = any(
        state is PowerState.RUNNING and candidate.guest.uuid == guest.uuid
        for candidate, state in states.items()
        if candidate.guest.key != guest.key
    )
    here = next((reading for reading in _readings(seen) if reading.guest.key == guest.key), None)
    if not runs_elsewhere or (here is not None and here.power_state is PowerState.RUNNING):
        return None
    return here or nothing_read(guest, "")


def _runs_unseen(seen: Observation) -> Evidence | None:
    """Return the reading of a bound guest whose kubelet is alive, and seems to run elsewhere (D5).

    Another tool may have started it where fencer has no endpoint. What its old place says later is then not
    its end. If its hypervisor itself reports it off, that is contradicted (D1).
    """
    node, run = seen.node, seen.history.run
    if not isinstance(node.binding, Binding) or not node.boot_id:
        return None
    if node.heard_s is None or node.heard_s >= LEASE_DURATION_S:
        return None
    if any(state is PowerState.RUNNING for state in seen.others):
        return None  # known where, see `_left_behind`
    here = _reading_of(seen, node.binding.guest)
    if here is None or (shows_known_boot(node) and not here.gone):
        return None
    if run is not None and run.power_state is PowerState.RUNNING and run.last_s >= seen.history.boot_seen_s:
        return None  # read running in this boot, a moment ago
    return here if _speaks_for_no_kubelet(seen, here) else None


def _reading_of(seen: Observation, guest: GuestRef) -> Evidence | None:
    """Return what was read of a guest, or that nothing was; None: this agent does not watch its endpoint."""
    found = next((one for one in _readings(seen) if one.guest.key == guest.key), None)
    return nothing_read(guest, "") if found is None and guest.endpoint in seen.unanswered else found


def _speaks_for_no_kubelet(seen: Observation, reading: Evidence) -> bool:
    """Whether a reading can't be of what the kubelet runs in. What is not believed has a doubt of its own."""
    if reading.gone and reading.proof in WITNESSED:
        return False
    if reading.gone or reading.power_state in STILL:  # it may have been heard a moment before
        run = seen.history.run
        its = run is not None and run.power_state is reading.power_state
        return its and renewals_in_run(seen.history, seen.node) >= CONTRADICTIONS
    explained = reading.away or reading.untracked or reading.doubt is not None
    return reading.power_state in {PowerState.UNKNOWN, PowerState.ABSENT} and not explained


def without_saved(node: NodeView, evidence: Evidence) -> tuple[Doubt, ...]:
    """Return the doubts left after fencer discarded a guest's saved memory: neither a file nor its disk."""
    return tuple(
        doubt
        for doubt in standing(node, None)
        if doubt.kind is not Doubted.SAVED or not doubt.means(evidence)
    )


def in_the_way(node: NodeView, evidence: Evidence, history: GuestHistory) -> Doubt | None:
    """Return a doubt that would be left once fencer had ended a guest that is not off."""
    left = without_saved(node, evidence) if evidence.power_state is PowerState.SAVED else standing(node, None)
    return next(
        (doubt for doubt in left if doubt.means(evidence) and not _ends(doubt, evidence, node, history)), None
    )


def _kind(seen: Observation, evidence: Evidence) -> Doubted | None:
    if evidence.away:
        return Doubted.MIGRATED
    if evidence.power_state is PowerState.RUNNING and _is_awake(seen.node, seen.history):
        return None  # whatever image there was, its kernel has used it up (D3)
    if evidence.untracked is not None:
        return evidence.untracked
    if evidence.power_state is PowerState.SAVED:
        return Doubted.SAVED
    if evidence.doubt is not None and evidence.doubt.kind is Doubted.CONTRADICTED:
        return Doubted.CONTRADICTED
    return None


def _standing(seen: Observation) -> tuple[Doubt, ...]:
    return standing(seen.node, seen.note)
