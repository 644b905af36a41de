"""Which guest is a node: candidates by map and UUID, and the binding that makes one of them certain.

Names alone never count, unless the author of the configuration wrote one. What a Node says about itself may
narrow the choice, never widen it.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias, assert_never

from fencer.core.history import LEASE_DURATION_S, proven_running
from fencer.core.model import (
    BOOT_IDS_KEPT,
    NEVER_S,
    Binding,
    Candidate,
    Evidence,
    FenceMark,
    GuestRef,
    NodeView,
    Observation,
    PowerState,
    Reason,
    Unreadable,
    Verdict,
    Via,
)
from fencer.core.rung import Objection, Subject

MEANINGLESS = frozenset(
    {
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "03000200-0400-0500-0006-000700080009",
    }
)
"""What firmware without a UUID reports; the last one is AMI's, on boards whose maker did not set any."""

AT_REST = frozenset({PowerState.STOPPED, PowerState.SAVED, PowerState.ABSENT})
"""States in which nothing of a guest runs."""

HARMLESS = AT_REST - {PowerState.SAVED}
"""States in which another guest with the same UUID does not weaken a binding: memory on disk may be the
node's own."""


@dataclass(frozen=True, slots=True)
class Admission:
    """On which guests of an endpoint the configuration admits power actions.

    Attributes:
        mapped: Those that the configuration's map names.
        uuids: And these.
        groups: And those in one of these groups, see `Evidence.groups`, that a person has approved.
    """

    mapped: bool = False
    uuids: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @property
    def nobody(self) -> bool:
        """Whether it admits power actions on no guest at all."""
        return not (self.mapped or self.uuids or self.groups)

    def admits(self, guest: GuestRef, via: Via) -> tuple[str, ...]:
        """Return the words that name this very VM, and so admit power actions on it; none: no word does.

        Args:
            guest: The guest.
            via: How it became the candidate of a node.
        """
        mapped = ("mapped",) if self.mapped and via is Via.MAP else ()
        listed = ("uuids",) if guest.uuid in self.uuids else ()
        return (*mapped, *listed)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the configuration says of identity.

    Attributes:
        nodes: Node name → (endpoint, guest's UUID or id, or its name where names count).
        admitted: Endpoint → where power actions are admitted.
        by_name: Endpoints whose guests the map may name by name. Nowhere else a name counts: it may be
            another guest's number.
    """

    nodes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    admitted: Mapping[str, Admission] = field(default_factory=dict)
    by_name: frozenset[str] = frozenset()

    def kinds(self, mapped: tuple[str, str]) -> tuple[str, ...]:
        """Return what of a guest an entry of the map may mean: fields of `GuestRef`, the surest first (W1).

        Whoever may name a VM could name it like another one's number or UUID.
        """
        endpoint, label = mapped
        named = endpoint in self.by_name and not canonical(label) and not label.isdecimal()
        return ("uuid", "id", "name") if named else ("uuid", "id")


_Told: TypeAlias = tuple[str, Binding | Unreadable | None, str]
"""What a node says of itself, and the VM that a person has approved as its own."""


class Directory:
    """All guests and nodes of one pass, indexed, so that joining them costs one look-up each.

    A guest that is bound to a node belongs to no other node, whatever another one says about itself. The same
    holds for a copy of it, and for a guest that the configuration names for a node which reports its UUID, or
    does not exist.

    Args:
        guests: Every guest that any endpoint named, and those that were last seen running on one that fails.
        nodes: Every node.
        rules: The configuration.
        endpoints: All that are configured: a binding to a guest of another one binds nobody. None: not known.
        readings: What was read of the guests: without a reading, a guest is in no group.
    """

    def __init__(
        self,
        guests: Iterable[GuestRef],
        nodes: Iterable[NodeView],
        rules: Rules,
        endpoints: Collection[str] | None = None,
        readings: Iterable[Evidence] = (),
    ) -> None:
        self._rules = rules
        self._endpoints = endpoints
        self._groups = {reading.guest.key: reading.groups for reading in readings if reading.groups}
        self._by_uuid: defaultdict[str, list[GuestRef]] = defaultdict(list)
        self._by_label: dict[str, defaultdict[tuple[str, str], list[GuestRef]]] = {
            kind: defaultdict(list) for kind in ("uuid", "id", "name")
        }
        self._found: dict[str, tuple[_Told, tuple[Candidate, ...]]] = {}
        for guest in guests:
            self._by_uuid[guest.uuid].append(guest)
            for kind, labels in self._by_label.items():
                labels[guest.endpoint, getattr(guest, kind)].append(guest)
        nodes = tuple(nodes)
        self._owners = self._owned(nodes)
        self._owners_by_uuid: dict[str, set[str]] = {}
        for (_, _, uuid_text), names in self._owners.items():
            if uuid_text:  # two VMs without one are no copies
                self._owners_by_uuid.setdefault(uuid_text, set()).update(names)
        self._claims: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
        self._named_by: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
        for node in nodes:
            for candidate in self.candidates(node):
                self._claims[candidate.guest.key].append(node.name)
            for guest in self._named(node):
                self._named_by[guest.key].append(node.name)

    def candidates(self, node: NodeView) -> tuple[Candidate, ...]:
        """Return every guest that may be this node, the bound one first."""
        told = (node.system_uuid, node.binding, node.approved)
        known = self._found.get(node.name)  # asked more than once in a pass
        if known is None or known[0] != told:
            known = self._found[node.name] = (told, self._candidates(node))
        return known[1]

    def note(self, reading: Evidence) -> bool:
        """Take in a newer reading of a guest: only the groups that it is in now count.

        Returns:
            Whether it is in others now.
        """
        changed = self._groups.get(reading.guest.key, frozenset()) != reading.groups
        if changed:
            self._groups[reading.guest.key] = reading.groups
            self._found.clear()
        return changed

    def rivals(self, node: NodeView) -> tuple[str, ...]:
        """Return the other nodes that resolve to one of this node's guests, as clones and containers do."""
        others = (self._claims[candidate.guest.key] for candidate in self.candidates(node))
        return tuple(dict.fromkeys(name for names in others for name in names if name != node.name))

    def taken_by(self, node: NodeView) -> str:
        """Name the node that the guests are bound to which this one could be; empty: nobody has taken any."""
        owners = (self._owners_of(guest) for guest in self._named(node))
        return next((", ".join(names) for names in owners if names and node.name not in names), "")

    def claimed_by(self, node: NodeView) -> tuple[str, ...]:
        """Return the other nodes that name one of this node's guests, though it may not be theirs."""
        named = (self._named_by[candidate.guest.key] for candidate in self.candidates(node))
        return tuple(dict.fromkeys(name for names in named for name in names if name != node.name))

    def _owned(self, nodes: Sequence[NodeView]) -> dict[tuple[str, str, str], tuple[str, ...]]:
        """Return which node each guest belongs to: several, if all of them are bound to it.

        Signed bindings go before unsigned ones, which a kubelet could have written.
        """
        bound: defaultdict[tuple[str, str, str], list[tuple[bool, str]]] = defaultdict(list)
        agreed: dict[tuple[str, str, str], tuple[str, ...]] = {}
        there = {node.name for node in nodes}
        for node in nodes:
            guest = _bound_guest(node)
            if guest is not None and self._matches(node, guest):
                bound[guest.key].append(
                    (isinstance(node.binding, Binding) and node.binding.signed, node.name)
                )
            if node.name in self._rules.nodes:
                reported = self._by_system_uuid(node.system_uuid)
                agreed |= {guest.key: (node.name,) for guest in self._named(node) if guest in reported}
        absent = {
            guest.key: (name,)
            for name, label in self._rules.nodes.items()
            if name not in there
            for guest in self._labelled(label)
        }
        signed = {
            key: tuple(name for is_signed, name in names if is_signed == any(one for one, _ in names))
            for key, names in bound.items()
        }
        return absent | signed | agreed

    def _owners_of(self, guest: GuestRef) -> Collection[str]:
        """Name the nodes that a guest belongs to. A copy of one's guest belongs to no other node, either."""
        return self._owners.get(guest.key) or tuple(self._owners_by_uuid.get(guest.uuid, ()))

    def _free_for(self, node: NodeView, guest: GuestRef) -> bool:
        owners = self._owners_of(guest)
        return not owners or node.name in owners

    def _candidates(self, node: NodeView) -> tuple[Candidate, ...]:
        found = [guest for guest in self._named(node) if self._free_for(node, guest)]
        bound_guest = _bound_guest(node)
        if bound_guest is not None:
            found = self._with_bound(node, bound_guest, found)
        return tuple(self._candidate(node, guest) for guest in found)

    def _named(self, node: NodeView) -> list[GuestRef]:
        """Return the guests that the configuration names for a node, or those with its UUID."""
        mapped = self._rules.nodes.get(node.name)
        return self._by_system_uuid(node.system_uuid) if mapped is None else self._labelled(mapped)

    def _labelled(self, mapped: tuple[str, str]) -> list[GuestRef]:
        """Return the guests that the configuration means by endpoint and UUID, id or name."""
        kinds = map(self._by_label.__getitem__, self._rules.kinds(mapped))
        return list(next((labels[mapped] for labels in kinds if mapped in labels), ()))

    def _by_system_uuid(self, system_uuid: str) -> list[GuestRef]:
        straight = canonical(system_uuid)
        if not straight or straight in MEANINGLESS:
            return []
        if straight in self._by_uuid:
            return list(self._by_uuid[straight])
        return list(self._by_uuid.get(swapped(straight), ()))

    def _with_bound(self, node: NodeView, bound_guest: GuestRef, found: list[GuestRef]) -> list[GuestRef]:
        """Put the bound guest first, even if its endpoint does not name it now, if it matches the node."""
        named = [guest for guest in found if guest.key == bound_guest.key]
        others = [guest for guest in found if guest.key != bound_guest.key]
        if not named and self._matches(node, bound_guest) and self._free_for(node, bound_guest):
            named = [bound_guest]
        return named + others

    def _matches(self, node: NodeView, guest: GuestRef) -> bool:
        mapped = self._rules.nodes.get(node.name)
        if self._endpoints is not None and guest.endpoint not in self._endpoints:
            return False
        if mapped is not None:
            meant = {getattr(guest, kind) for kind in self._rules.kinds(mapped)}
            return mapped[0] == guest.endpoint and mapped[1] in meant
        straight = canonical(node.system_uuid)
        return bool(straight) and guest.uuid in {straight, swapped(straight)}

    def _candidate(self, node: NodeView, guest: GuestRef) -> Candidate:
        if node.name in self._rules.nodes:
            via = Via.MAP
        elif guest.uuid == canonical(node.system_uuid):
            via = Via.UUID
        else:
            via = Via.UUID_SWAPPED
        admission = self._rules.admitted.get(guest.endpoint, Admission())
        words = admission.admits(guest, via)
        groups = sorted(admission.groups & self._groups.get(guest.key, frozenset()))
        # C3: a group is of many VMs, and which of them a node is, is first of all its own word.
        if not guest.uuid:  # an approval could not name it
            return Candidate(guest, via, words)
        if node.approved == guest.uuid:
            return Candidate(guest, via, (*words, *groups))
        return Candidate(guest, via, words, () if words else tuple(groups))


@lru_cache(maxsize=65536)
def canonical(text: str) -> str:
    """Return a UUID in lower case with dashes; empty where it is none."""
    try:
        return str(uuid.UUID(text.strip()))
    except ValueError:
        return ""


@lru_cache(maxsize=65536)
def swapped(text: str) -> str:
    """Return the UUID with the bytes of its first three fields swapped, as VirtualBox's guests see theirs.

    Source: VirtualBox 7.2, `modifyvm --system-uuid-le on`, the default for new machines.
    """
    return str(uuid.UUID(bytes=uuid.UUID(text).bytes_le))


def bound(observation: Observation) -> tuple[Subject, str] | Objection:
    """Find the one guest that is the node, and say how that is known.

    A second candidate does not weaken a proven binding while it is at rest: a copy matters once it runs. The
    observer puts a guest that runs before the bound one, where that is at rest: the binding follows its
    guest.
    """
    node, candidates = observation.node, observation.candidates
    if not candidates:
        return _nobody(observation)
    first, bound_guest = candidates[0], _bound_guest(node)
    if observation.rivals:
        names = ", ".join(observation.rivals)
        return _ambiguous(f"{first.guest} may also be {names}", f"{names} to report its own UUID, or deleted")
    still = observation.bound_reading
    runs = still is not None and still.power_state is PowerState.RUNNING
    if still is not None and runs and still.guest.uuid != first.guest.uuid and not node.fenced:
        seen = f"bound to {still.guest}, which runs, and says that it is {first.guest} now"
        return _ambiguous(seen, "the node reporting its own UUID")
    known = {candidate.guest.key for candidate in candidates}
    is_bound = bound_guest is not None and bound_guest.key in known
    if len(candidates) > 1 and not (is_bound and HARMLESS.issuperset(observation.others)):
        fits = ", ".join(told_apart([candidate.guest for candidate in candidates]))
        return _ambiguous(f"fits {fits}", "one guest with that UUID, and another UUID for the copy")
    written = bound_guest is not None and bound_guest.key == first.guest.key
    history = observation.history
    seen_alive = written or (history.proven and history.guest == first.guest.key)
    evidence = observation.evidence
    if evidence is None or evidence.guest.key != first.guest.key:  # who comes first may change amid a look
        evidence = nothing_read(first.guest, observation.evidence_error)
    return Subject(first, evidence, seen_alive, observation), f"{first.guest}, {_how(first)}"


def told_apart(guests: Sequence[GuestRef]) -> list[str]:
    """Name guests for people, with UUIDs where names are equal, as after a machine was made again."""
    called = Counter(map(str, guests))
    return [str(guest) if called[str(guest)] == 1 else f"{guest} (UUID {guest.uuid})" for guest in guests]


def may_have_become(node: NodeView, reading: Evidence) -> bool:
    """Whether a node may be another guest than the one it is bound to, by how that one began to run (W4).

    A guest that was booted there runs a boot that nobody has seen before; while the node tells of a boot that
    is known, it is not that guest, but a copy. If its hypervisor does not say whether it was booted, its name
    does: what moves with its memory keeps it, and a copy at the same endpoint has to have another.
    """
    if node.boot_id not in node.known_boot_ids or reading.cold_start is False:
        return True
    bound = node.binding.guest.name if isinstance(node.binding, Binding) else ""
    return reading.cold_start is None and reading.guest.name == bound


def leftover(node: NodeView) -> bool:
    """Whether a Node object seems abandoned: not Ready, and never heard while this agent looked, for long.

    A renamed machine leaves such a Node behind: it reports the same UUID for ever, and is no rival of the
    node that is heard. A bound one is a rival: that guest was seen alive with it.
    """
    long_silent = node.lease_age_s is None or node.lease_age_s >= LEASE_DURATION_S
    unheard = node.ready is not True and node.lease_renewals == 0 and long_silent
    return unheard and not isinstance(node.binding, Binding)


def subject_of(observation: Observation) -> Subject | None:
    """Return the guest that is the node with its newest reading; None where that is not certain."""
    found = bound(observation)
    return None if isinstance(found, Objection) else found[0]


def untold(observation: Observation) -> Subject:
    """Return a node whose guest no endpoint reports, with the guest that it was fenced as, if it was."""
    mark = observation.node.mark
    guest = mark.guest if isinstance(mark, FenceMark) else GuestRef("", "", "", "nobody")
    nobody = nothing_read(guest, "no endpoint reports it")
    return Subject(Candidate(guest, Via.UUID), nobody, seen_alive=False, seen=observation)


def nothing_read(guest: GuestRef, why: str) -> Evidence:
    """Return the reading of a guest that could not be read."""
    nothing = Evidence.unknown(guest, why or "no reading of the guest", "nothing", NEVER_S)
    return replace(nothing, conclusive=False)


def _nobody(observation: Observation) -> Objection:
    if observation.taken_by:
        return Objection(
            Verdict.REFUSE,
            Reason.GUEST_TAKEN,
            f"the only guest with UUID {observation.node.system_uuid} is bound to {observation.taken_by}",
            f"the node reporting its own UUID; or {observation.taken_by} deleted, if that was its name "
            "before",
        )
    uuid_text = observation.node.system_uuid or "(none reported)"
    if observation.unanswered and not observation.node.fenced:
        silent = ", ".join(observation.unanswered)
        seen = f"no guest has UUID {uuid_text} on the endpoints that answer; {silent} does not"
        return Objection(Verdict.REFUSE, Reason.EVIDENCE_MISSING, seen, f"an answer from {silent}")
    return Objection(
        Verdict.REFUSE,
        Reason.NO_GUEST,
        f"no guest has UUID {uuid_text}",
        f"one guest with that UUID, or {_MAPPED}",
    )


def _ambiguous(seen: str, needs: str) -> Objection:
    return Objection(Verdict.REFUSE, Reason.GUEST_AMBIGUOUS, seen, f"{needs}; or {_MAPPED}")


_MAPPED = "the node in the configuration's `nodes:`"


def _how(candidate: Candidate) -> str:
    match candidate.via:
        case Via.MAP:
            return "named in the configuration"
        case Via.UUID:
            return f"systemUUID = guest UUID {candidate.guest.uuid}"
        case Via.UUID_SWAPPED:
            return f"systemUUID = guest UUID {candidate.guest.uuid}, byte order swapped"
        case _:
            assert_never(candidate.via)


def new_binding(subject: Subject) -> Binding | None:
    """Return the binding that should be on the Node now; None: nothing has to be written.

    Proven by a guest that was read RUNNING before and after its node renewed its lease, in the same boot.
    """
    node, evidence = subject.node, subject.evidence
    if not node.boot_id or (isinstance(node.binding, Unreadable) and not node.binding.forged):
        return None
    if evidence.power_state is not PowerState.RUNNING or not proven_running(subject.history, node):
        return None
    known = node.binding.boot_ids if isinstance(node.binding, Binding) else ()
    boot_ids = known if node.boot_id in known else (*known, node.boot_id)[-BOOT_IDS_KEPT:]
    binding = Binding(guest=evidence.guest, boot_ids=boot_ids)
    return None if binding == node.binding else binding


def moved_binding(observation: Observation) -> Binding | None:
    """Return the binding with the place where the guest runs now; None: it is where it was, or not known."""
    binding, evidence = observation.node.binding, observation.evidence
    if not isinstance(binding, Binding) or not binding.signed:  # nothing that a kubelet wrote is signed by us
        return None
    if evidence is None or evidence.power_state is not PowerState.RUNNING:
        return None
    if evidence.guest.key != binding.guest.key or evidence.guest.shares_host(binding.guest):
        return None
    return replace(binding, guest=evidence.guest) if evidence.conclusive else None


def still_bound(observation: Observation) -> GuestRef | None:
    """Return the guest that a mapped node is bound to, if the map now means another one; None: none.

    A machine that was made again under its old name has another UUID. The node's own word does not tell what
    became of the first: if that one still runs, it is the node.
    """
    binding, candidates = observation.node.binding, observation.candidates
    if not isinstance(binding, Binding) or not any(one.via is Via.MAP for one in candidates):
        return None
    others = [one.guest for one in candidates if one.guest.key != binding.guest.key]
    return binding.guest if others and len(others) < len(candidates) else None


def _bound_guest(node: NodeView) -> GuestRef | None:
    return node.binding.guest if isinstance(node.binding, Binding) else None
