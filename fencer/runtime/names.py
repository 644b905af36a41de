"""Names: puts what is written on Nodes into the names of one's own configuration, and back.

The rules are in `fencer.core.naming`; this asks each endpoint who it is, once, when that is first needed:
before a guest is written down, and before one is read that was written with its hypervisor's identity.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from fencer.core.model import Binding, Doubt, FenceMark, GuestRef, NodeView, Note
from fencer.core.naming import Identities, goes_by_identity, named
from fencer.core.policy import Policy
from fencer.errors import FencerError
from fencer.runtime.world import World

ASK_AGAIN_S = 10.0
"""Between two times that an endpoint is asked who it is, after it did not say."""
ASKING = "identity"
"""The worker that asks, of each endpoint: one that hangs must not keep anybody from sweeping it."""


class Names:
    """Names of hypervisors, on Nodes and here.

    Args:
        world: The ports.
        policy: Deadlines.
    """

    def __init__(self, world: World, policy: Policy) -> None:
        self._world, self._policy = world, policy
        self._known = Identities()
        self._answering: Collection[str] = ()
        self._asked_s: dict[str, float] = {}
        self._read: dict[str, tuple[Identities, NodeView, NodeView]] = {}
        """Each node as it was last read, by its UID: with which identities, before and after."""

    def learn(self, written: Iterable[NodeView | Note], answering: Collection[str]) -> None:
        """Ask endpoints that have just answered who they are, if something that is written down needs it.

        Args:
            written: All nodes, as they were read, and what is noted of them on this agent's disk.
            answering: Those endpoints.
        """
        self._answering = answering
        unknown = [endpoint for endpoint in answering if endpoint not in self._known.told]
        if unknown and any(map(goes_by_identity, written)):
            self._ask(unknown)

    def read(self, node: NodeView) -> NodeView:
        """Return a node that was read with all guests in one's own names."""
        known, before, read = self._read.get(node.uid, (None, None, node))
        if known is not self._known or before is not node:
            read = named(node, self._known.read)
            self._read[node.uid] = (self._known, node, read)
        return read

    def binding(self, binding: Binding) -> Binding:
        """Return a binding as it is written."""
        return replace(binding, guest=self._written(binding.guest))

    def mark(self, mark: FenceMark) -> FenceMark:
        """Return a mark as it is written."""
        return replace(mark, guest=self._written(mark.guest))

    def doubts(self, doubts: tuple[Doubt, ...]) -> tuple[Doubt, ...]:
        """Return doubts as they are written."""
        return tuple(replace(doubt, guest=self._written(doubt.guest)) for doubt in doubts)

    def note(self, note: Note) -> Note:
        """Return a note as it is kept: it outlives the names of this configuration."""
        return _renamed(note, self._known.written)

    def own(self, note: Note) -> Note:
        """Return a note that was kept in the names of this configuration."""
        return _renamed(note, self._known.read)

    @property
    def version(self) -> object:
        """What the names depend on: another object once more is known of hypervisors."""
        return self._known

    def keep(self, uids: Collection[str]) -> None:
        """Forget all other nodes."""
        for forgotten in self._read.keys() - uids:
            del self._read[forgotten]

    def _written(self, guest: GuestRef) -> GuestRef:
        if guest.endpoint in self._answering:  # a fence must not wait for one that is silent
            self._ask([guest.endpoint])
        return self._known.written(guest)

    def _ask(self, endpoints: Collection[str]) -> None:
        """Ask endpoints that answer who they are, unless they have said it, or were asked a moment ago."""
        world = self._world
        if all(endpoint in self._known.told for endpoint in endpoints):
            return
        with world.asker.alone(ASKING):  # whoever waited for the same finds it told
            now_s, known = world.clock.now_s(), self._known
            due = [
                endpoint
                for endpoint in endpoints
                if endpoint not in known.told
                and now_s - self._asked_s.get(endpoint, float("-inf")) >= ASK_AGAIN_S
            ]
            if not due:
                return
            self._asked_s |= dict.fromkeys(due, now_s)
            calls = {f"{endpoint}/{ASKING}": world.hypervisors[endpoint].describe for endpoint in due}
            answers = world.asker.ask_all(calls, self._policy.call_deadline_s)
            told, untold = dict(known.told), set(known.untold)
            for endpoint in due:
                answer = answers[f"{endpoint}/{ASKING}"]
                if isinstance(answer, FencerError) or answer.identity is None:
                    untold.add(endpoint)
                else:
                    told[endpoint] = answer.identity
            self._known = Identities(told, frozenset(untold))


def _renamed(note: Note, as_named: Callable[[GuestRef], GuestRef]) -> Note:
    """Return a note with each guest in it named in another way."""
    bindings = (
        None if binding is None else replace(binding, guest=as_named(binding.guest))
        for binding in (note.binding, note.instead_of)
    )
    binding, instead_of = bindings
    doubts = tuple(replace(doubt, guest=as_named(doubt.guest)) for doubt in note.doubts)
    return replace(note, doubts=doubts, binding=binding, instead_of=instead_of)
