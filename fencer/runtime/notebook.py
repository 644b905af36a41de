"""Notes of an agent that only observes: what an armed one would have written on the Nodes.

Such an agent writes nothing. But at its next look it must know what an armed one would know: which guest each
node is, where that runs, and whose word about it is not believed. So it keeps that in memory, and reads every
Node as if it were written there. A note lasts no longer than the process, and only while the Node says the
same as when the note was taken: an armed agent would read what somebody has written since.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

from fencer.core.model import Binding, BindNode, Doubt, NodeView, RecordDoubts, Unreadable

T = TypeVar("T")

Bound: TypeAlias = Binding | Unreadable | None
Doubts: TypeAlias = tuple[Doubt, ...] | Unreadable


@dataclass(frozen=True, slots=True)
class _Note(Generic[T]):
    """What the Node said when the note was taken, and what to read there instead."""

    stood: T
    noted: T


class Notebook:
    """What is noted of each node."""

    def __init__(self) -> None:
        self._bound: dict[str, _Note[Bound]] = {}
        """By the UID of the node, as below."""
        self._doubts: dict[str, _Note[Doubts]] = {}
        self._laid: dict[str, tuple[NodeView, NodeView]] = {}
        """Each node as it was last read, without and with its notes."""

    def note(self, node: NodeView, action: BindNode | RecordDoubts) -> None:
        """Take a note instead of writing it on the Node.

        Args:
            node: As it was read through this notebook.
            action: What an armed agent would write.
        """
        self._laid.pop(node.uid, None)
        match action:
            case BindNode(binding):
                _note(self._bound, node.uid, node.binding, binding)
            case RecordDoubts(doubts):
                _note(self._doubts, node.uid, node.doubts, doubts)

    def read(self, node: NodeView) -> NodeView:
        """Return a node that was just read, with its notes laid over; drop outdated notes."""
        if node.uid not in self._bound and node.uid not in self._doubts:
            return node
        before, laid = self._laid.get(node.uid, (None, node))
        if before is not node:
            bound = _read(self._bound, node.uid, node.binding)
            laid = replace(node, binding=bound, doubts=_read(self._doubts, node.uid, node.doubts))
            self._laid[node.uid] = (node, laid)
        return laid

    def keep(self, uids: Collection[str]) -> None:
        """Forget all other nodes."""
        for notes in (self._bound, self._doubts, self._laid):
            _keep(notes, uids)


def _note(notes: dict[str, _Note[T]], uid: str, stands: T, noted: T) -> None:
    stood = notes[uid].stood if uid in notes else stands
    notes[uid] = _Note(stood, noted)


def _keep(notes: dict[str, Any], uids: Collection[str]) -> None:
    for forgotten in notes.keys() - uids:
        del notes[forgotten]


def _read(notes: dict[str, _Note[T]], uid: str, stands: T) -> T:
    note = notes.get(uid)
    if note is None:
        return stands
    if note.stood != stands:
        del notes[uid]
        return stands
    return note.noted
