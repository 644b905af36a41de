"""Learn: what has to be noted of what was just seen, and which live look would tell more.

It comes before every decision, and nothing that holds fencer back holds this back (`fencer.core.holds`, D3):
what is seen while fencing is paused, and forgotten, is missing when it goes on. What a hypervisor says of a
guest that has moved away, or whose memory lies in a file, is a plain "off" as soon as its daemon restarts.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencer.core import doubt, fence, identity
from fencer.core.kept import standing
from fencer.core.model import Binding, BindNode, Intent, Observation, RecordDoubts
from fencer.core.policy import Policy


@dataclass(frozen=True, slots=True)
class Learned:
    """What follows from what was seen, before anybody decides.

    Attributes:
        notes: What has to be written on the Node, where it is not, in this order.
        look: Whether a live look is due: two leases after an off reading prove that it is wrong (D1).
    """

    notes: tuple[BindNode | RecordDoubts, ...] = ()
    look: bool = False


def learn(seen: Observation, policy: Policy) -> Learned:
    """Learn from what was seen of one node.

    Args:
        seen: All that is known of it, without the word of a person.
        policy: What counts as silent.
    """
    binding = _binding(seen, policy)
    doubts, look = doubt.found(seen)
    if seen.note is not None and seen.node.name in seen.unwritten:  # noted before, and still to be written
        stands = seen.node.binding
        if binding is None and seen.note.binding is not None and isinstance(stands, Binding):
            binding = stands
        if doubts is None and (seen.note.doubts or seen.note.binding is None):
            doubts = standing(seen.node, seen.note)
    # Doubts come first: once the node is bound elsewhere, nothing tells any more that it left this place.
    doubted = () if doubts is None else (RecordDoubts(doubts),)
    return Learned((*doubted, *(() if binding is None else (BindNode(binding),))), look)


def _binding(seen: Observation, policy: Policy) -> Binding | None:
    """Return which guest the node is, in this boot, and where it runs, if that is new. Only `watch` tells."""
    if seen.intent is not Intent.WATCH:
        return None
    subject = identity.bound(seen)
    if not isinstance(subject, tuple):
        return None
    alive = not seen.node.fenced and fence.heard(subject[0], policy)
    return (identity.new_binding(subject[0]) if alive else None) or identity.moved_binding(seen)
