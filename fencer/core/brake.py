"""The brake: not too many nodes at once. A host that died with its guests is one incident, not many.

Where the proof is the host's own (HA has fenced it, or it has no power), all its nodes count once; but of
hosts there is a bound as well. Slots of the ledger count while the fences that they are for cannot be seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TypeAlias

from fencer.core.model import Binding, Evidence, FenceMark, Fleet, GuestRef, NodeView, Proof
from fencer.core.policy import Policy
from fencer.core.times import seconds_between

YOUNG_S = 3600.0
"""A fence younger than this counts against the brake."""

OF_HOST = frozenset({Proof.HA_RECOVERY, Proof.HOST_POWER})
"""Proofs that are about a host, and so about every guest there."""

_HOST = "host/"
"""Before a host that has a slot: a UID has no such character."""

Place: TypeAlias = tuple[str, str]
"""A hypervisor, by its identity or else its endpoint's name, and one of its hosts: many are called pve1."""


def count(
    nodes: Collection[NodeView], utc: str, deleted: Collection[tuple[str, str, str]], fleet: Fleet
) -> Fleet:
    """Return the sums with what counts against the brake.

    Args:
        nodes: Every node.
        utc: The slower of two clocks: a fence of the future counts as young (E26).
        deleted: Guests, by key, that were deleted, on record: somebody wanted that.
        fleet: All other sums.
    """
    young = [node for node in nodes if _young(node, utc, deleted)]
    places = [_of_fence(node) for node in young]
    hosts = frozenset(place for place in places if place is not None)
    bound = (node.binding.guest for node in nodes if isinstance(node.binding, Binding))
    return replace(
        fleet,
        young_fences=places.count(None) + len(hosts),
        young_hosts=hosts,
        hosts=len({_place(guest, guest.host) for guest in bound if guest.host is not None}),
        tainted=frozenset(node.uid for node in nodes if node.out_of_service is not None),
    )


def slots_for(node: NodeView, evidence: Evidence | None) -> tuple[str, ...]:
    """Name the slots that a node needs: its own, and one for its host where the proof is about that.

    Args:
        node: The node that is about to be fenced.
        evidence: The reading that proves its guest off.
    """
    host = place(node, evidence)
    return (node.uid,) if host is None else (node.uid, _HOST + "/".join(host))


def with_slots(fleet: Fleet, slots: Iterable[str]) -> Fleet:
    """Return it with what agents are about to fence.

    Args:
        fleet: As it was summed up.
        slots: All slots that there are now: also of fences that are written.
    """
    hosts = frozenset(slot for slot in slots if slot.startswith(_HOST))
    return replace(
        fleet,
        reserved=frozenset(slots) - hosts - fleet.tainted,
        reserved_hosts=frozenset(_read_place(slot.removeprefix(_HOST)) for slot in hosts),
    )


def used(fleet: Fleet, node: NodeView, evidence: Evidence | None) -> int:
    """Return how much of the brake is used beside a node that is about to be fenced."""
    same_host = place(node, evidence) in fleet.young_hosts
    return fleet.young_fences + len(fleet.reserved - {node.uid}) - same_host


def too_many_hosts(fleet: Fleet, policy: Policy, node: NodeView, evidence: Evidence | None) -> bool:
    """Whether this node's host would be one more than may die within an hour."""
    host, dead = place(node, evidence), dead_hosts(fleet)
    return host is not None and host not in dead and len(dead) >= policy.brake_at_hosts(fleet.hosts)


def dead_hosts(fleet: Fleet) -> frozenset[Place]:
    """Return the hosts whose nodes were fenced, or are about to be, because they died."""
    return fleet.reserved_hosts | fleet.young_hosts


def fits(
    fleet: Fleet, policy: Policy, node: NodeView, evidence: Evidence | None, slots: Iterable[str]
) -> bool:
    """Whether one more node may be fenced, now that it is known whom other agents are about to fence.

    Args:
        fleet: As it was summed up.
        policy: Where the brake is.
        node: The node that is about to be fenced.
        evidence: The reading that proves its guest off.
        slots: All slots that there are now.
    """
    fleet = with_slots(fleet, slots)
    few = used(fleet, node, evidence) < policy.brake_at(fleet.nodes)
    return few and not too_many_hosts(fleet, policy, node, evidence)


def place(node: NodeView, evidence: Evidence | None) -> Place | None:
    """Return the host that a proof is about; None: it is about this guest alone."""
    if evidence is None or not evidence.gone or evidence.proof not in OF_HOST:
        return None
    return _ran_on(node, evidence.guest)


def _of_fence(node: NodeView) -> Place | None:
    """Return the host that a fence's proof was about."""
    mark = node.mark
    if not isinstance(mark, FenceMark) or not node.fenced or mark.proof not in OF_HOST:
        return None
    return _ran_on(node, mark.guest)


def _ran_on(node: NodeView, guest: GuestRef) -> Place | None:
    """Return where a guest ran last, by its binding: HA may have put it elsewhere since."""
    binding = node.binding
    bound = binding.guest if isinstance(binding, Binding) and binding.guest.key == guest.key else guest
    host = bound.host or guest.host
    return None if host is None else _place(bound, host)


def _place(guest: GuestRef, host: str) -> Place:
    return guest.hypervisor or guest.endpoint, host


def _read_place(text: str) -> Place:
    hypervisor, _, host = text.rpartition("/")
    return hypervisor, host


def _young(node: NodeView, utc: str, deleted: Collection[tuple[str, str, str]]) -> bool:
    """Whether a fence counts. One for a guest that was deleted, on record, does not: somebody wanted that.

    One whose mark somebody has overwritten does: it may be ours.
    """
    mark, taint = node.mark, node.out_of_service
    if taint is None or mark is None:
        return False
    if isinstance(mark, FenceMark) and node.fenced and mark.guest.key in deleted:
        return False
    return taint.time_added is None or seconds_between(taint.time_added, utc) < YOUNG_S
