"""Which guest is a node: candidates by map and UUID, and the binding that makes one of them certain.

Names alone never count, except where the author of the configuration wrote one. What a Node says of itself
may narrow the choice, never widen it.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import assert_never

from fencer.core.history import proven_running
from fencer.core.model import (
    BOOT_IDS_KEPT,
    Binding,
    Candidate,
    GuestRef,
    NodeView,
    Observation,
    PowerState,
    Reason,
    Unreadable,
    Via,
)

MEANINGLESS = frozenset({"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"})
"""What firmware says that has no UUID."""

AT_REST = frozenset({PowerState.STOPPED, PowerState.SAVED, PowerState.ABSENT})


@dataclass(frozen=True, slots=True)
class Admission:
    """On which guests of an endpoint the configuration admits power actions.

    Attributes:
        mapped: Those that the configuration's map names.
        uuids: And these.
    """

    mapped: bool = False
    uuids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rules:
    """What the configuration says of identity.

    Attributes:
        nodes: Node name → (endpoint, guest's UUID, id or name).
        admitted: Endpoint → where power actions are admitted.
    """

    nodes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    admitted: Mapping[str, Admission] = field(default_factory=dict)


class Directory:
    """All guests and nodes of one pass, indexed, so that joining them costs one look-up each.

    Args:
        guests: Every guest that any endpoint named.
        nodes: Every node.
        rules: The configuration.
    """

    def __init__(self, guests: Iterable[GuestRef], nodes: Iterable[NodeView], rules: Rules) -> None:
        self._rules = rules
        self._by_uuid: defaultdict[str, list[GuestRef]] = defaultdict(list)
        self._by_label: defaultdict[tuple[str, str], list[GuestRef]] = defaultdict(list)
        self._claims: defaultdict[str, list[str]] = defaultdict(list)
        self._found: dict[tuple[str, str, Binding | Unreadable | None], tuple[Candidate, ...]] = {}
        for guest in guests:
            self._by_uuid[guest.uuid].append(guest)
            for label in {guest.uuid, guest.id, guest.name}:
                self._by_label[(guest.endpoint, label)].append(guest)
        for node in nodes:
            if node.name not in rules.nodes:
                self._claims[canonical(node.system_uuid)].append(node.name)

    def candidates(self, node: NodeView) -> tuple[Candidate, ...]:
        """Return every guest that may be this node, the bound one first."""
        told = (node.name, node.system_uuid, node.binding)  # asked more than once in a pass
        if told not in self._found:
            self._found[told] = self._candidates(node)
        return self._found[told]

    def rivals(self, node: NodeView) -> tuple[str, ...]:
        """Return the other nodes that report the same system UUID, as clones and containers do."""
        if node.name in self._rules.nodes:
            return ()
        return tuple(name for name in self._claims[canonical(node.system_uuid)] if name != node.name)

    def _candidates(self, node: NodeView) -> tuple[Candidate, ...]:
        mapped = self._rules.nodes.get(node.name)
        found = list(self._by_label.get(mapped, ())) if mapped else self._by_system_uuid(node.system_uuid)
        bound = _bound_guest(node)
        if bound is not None:
            found = self._with_bound(node, bound, found)
        return tuple(self._candidate(node, guest) for guest in found)

    def _by_system_uuid(self, system_uuid: str) -> list[GuestRef]:
        straight = canonical(system_uuid)
        if not straight or straight in MEANINGLESS:
            return []
        if straight in self._by_uuid:
            return list(self._by_uuid[straight])
        return list(self._by_uuid.get(swapped(straight), ()))

    def _with_bound(self, node: NodeView, bound: GuestRef, found: list[GuestRef]) -> list[GuestRef]:
        """Put the bound guest first; also when its endpoint does not name it now, if it matches the node."""
        named = [guest for guest in found if guest.key == bound.key]
        others = [guest for guest in found if guest.key != bound.key]
        if not named and self._matches(node, bound):
            named = [bound]
        return named + others

    def _matches(self, node: NodeView, bound: GuestRef) -> bool:
        mapped = self._rules.nodes.get(node.name)
        if mapped is not None:
            return mapped[0] == bound.endpoint and mapped[1] in {bound.uuid, bound.id, bound.name}
        straight = canonical(node.system_uuid)
        return bool(straight) and bound.uuid in {straight, swapped(straight)}

    def _candidate(self, node: NodeView, guest: GuestRef) -> Candidate:
        if node.name in self._rules.nodes:
            via = Via.MAP
        elif guest.uuid == canonical(node.system_uuid):
            via = Via.UUID
        else:
            via = Via.UUID_SWAPPED
        admission = self._rules.admitted.get(guest.endpoint, Admission())
        admitted = guest.uuid in admission.uuids or (admission.mapped and via is Via.MAP)
        return Candidate(guest, via, admitted)


@lru_cache(maxsize=65536)
def canonical(text: str) -> str:
    """Return a UUID in lower case with dashes; empty where it is none."""
    try:
        return str(uuid.UUID(text.strip()))
    except ValueError:
        return ""


@lru_cache(maxsize=65536)
def swapped(text: str) -> str:
    """Return the UUID with its first three fields' bytes turned round, as VirtualBox's guests see theirs.

    Source: facts of VirtualBox 7.2, `modifyvm --system-uuid-le on`, the default for new machines.
    """
    return str(uuid.UUID(bytes=uuid.UUID(text).bytes_le))


@dataclass(frozen=True, slots=True)
class Resolution:
    """The answer to "which guest is this node".

    Attributes:
        candidate: The guest; None where there is none, or more than one.
        proven: The binding is certain enough for `watch`.
        reason: Why there is no candidate.
        seen: What was seen, for people.
    """

    candidate: Candidate | None
    proven: bool
    reason: Reason | None
    seen: str


def resolve(observation: Observation) -> Resolution:
    """Decide which of the candidates is the node.

    A second candidate does not shake a proven binding while it is at rest: a copy matters once it runs.
    """
    node, candidates = observation.node, observation.candidates
    if not candidates:
        uuid_text = node.system_uuid or "(none reported)"
        return Resolution(None, False, Reason.NO_GUEST, f"no guest has UUID {uuid_text}")  # noqa: FBT003
    first, bound = candidates[0], _bound_guest(node)
    is_bound = bound is not None and first.guest.key == bound.key
    if observation.rivals:
        names = ", ".join(observation.rivals)
        seen = f"{node.system_uuid} is also the UUID of {names}"
        return Resolution(None, False, Reason.GUEST_AMBIGUOUS, seen)  # noqa: FBT003
    if len(candidates) > 1 and not (is_bound and AT_REST.issuperset(observation.others)):
        seen = "fits " + ", ".join(str(candidate.guest) for candidate in candidates)
        return Resolution(None, False, Reason.GUEST_AMBIGUOUS, seen)  # noqa: FBT003
    seen_alive = observation.history.proven and observation.history.guest == first.guest.key
    proven = is_bound or seen_alive or first.via is Via.MAP
    return Resolution(first, proven, None, f"{first.guest}, {_how(node, first)}")


def _how(node: NodeView, candidate: Candidate) -> str:
    match candidate.via:
        case Via.MAP:
            return "named in the configuration"
        case Via.PROVIDER_ID:
            return f"providerID {node.provider_id}"
        case Via.UUID:
            return f"systemUUID = guest UUID {candidate.guest.uuid}"
        case Via.UUID_SWAPPED:
            return f"systemUUID = guest UUID {candidate.guest.uuid}, byte order turned"
        case _:
            assert_never(candidate.via)


def new_binding(observation: Observation, guest: GuestRef) -> Binding | None:
    """Return the binding that should stand on the Node now; None where nothing is to be written.

    Proven by a guest that was read RUNNING before and after its node renewed its lease, in the same boot.
    """
    node, evidence = observation.node, observation.evidence
    if isinstance(node.binding, Unreadable) or evidence is None or not node.boot_id:
        return None
    if evidence.power_state is not PowerState.RUNNING or not proven_running(observation.history, node):
        return None
    known = node.binding.boot_ids if node.binding is not None else ()
    boot_ids = known if node.boot_id in known else (*known, node.boot_id)[-BOOT_IDS_KEPT:]
    binding = Binding(guest=evidence.guest if evidence.guest.key == guest.key else guest, boot_ids=boot_ids)
    return None if binding == node.binding else binding


def known_boot_ids(node: NodeView) -> frozenset[str]:
    """Return every boot id that must not come back: those of the binding and of the fence."""
    bound = node.binding.boot_ids if isinstance(node.binding, Binding) else ()
    marked = () if node.mark is None or isinstance(node.mark, Unreadable) else (node.mark.boot_id,)
    return frozenset((*bound, *marked))


def _bound_guest(node: NodeView) -> GuestRef | None:
    return node.binding.guest if isinstance(node.binding, Binding) else None
