"""The notebook: what this agent has seen and could not write on Nodes yet. It counts as if it were written.

An agent that only observes writes nothing, and keeps all its notes here. Any other one has a note here until
it is on its Node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import assert_never

from fencer.core.kept import laid_over, merged, missing_doubts, still_unwritten, with_action
from fencer.core.model import BindNode, Doubt, NodeView, Note, RecordDoubts, Unreadable
from fencer.runtime.names import Names

NAMED = 8
"""So many other nodes are named, at most."""


class Notebook:
    """What is noted of each node.

    Args:
        names: What hypervisors are called on Nodes, and here.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._notes: dict[str, Note] = {}
        """By the UID of the node, as all below; with guests named as they are on Nodes."""
        self._ended: dict[str, frozenset[Doubt]] = {}
        """Doubts on a Node that an agent which only observes would take off. They are kept nowhere else."""
        self._tried: set[str] = set()
        """Nodes on which a note could not be written, although the API server answered before."""
        self._read: dict[str, tuple[NodeView, object, NodeView]] = {}
        """Each node as it was last read, without and with its note."""
        self._unreadable: set[str] = set()
        self._names_of: dict[str, str] = {}

    @property
    def notes(self) -> tuple[Note, ...]:
        """All notes, with guests named as they are on Nodes."""
        return tuple(self._notes.values())

    def take_over(self, notes: Iterable[Note]) -> None:
        """Go on with the notes of the process before this one."""
        for note in notes:
            since = self._notes.get(note.uid)
            self._notes[note.uid] = note if since is None else merged(note, since)
            self._names_of[note.uid] = note.node
        self._read.clear()

    def tear_out(self) -> None:
        """Forget all notes: they were not ours."""
        self._notes.clear()
        self._read.clear()

    def note(self, node: NodeView, action: BindNode | RecordDoubts, *, ends: bool) -> Note:
        """Take a note.

        Args:
            node: As it was read through this notebook.
            action: What has to be written on the Node.
            ends: Doubts that are on the Node may end here, too, because nobody writes it there.

        Returns:
            All that is noted of the node now.
        """
        before = self.of(node.uid)
        note = with_action(before, node, action)
        if isinstance(action, RecordDoubts) and ends:
            noted = () if before is None else before.doubts
            stood = () if isinstance(node.doubts, Unreadable) else node.doubts
            goes_on = {doubt.key for doubt in action.doubts}
            over = (doubt for doubt in stood if doubt.key not in goes_on and doubt not in noted)
            # One that is found out again has not ended any more: the Node already has it.
            ended = (doubt for doubt in self._ended.get(node.uid, ()) if doubt.key not in goes_on)
            self._ended[node.uid] = frozenset((*ended, *over))
        self._names_of[node.uid] = node.name
        self._put(node.uid, self._names.note(note))
        return note

    def of(self, uid: str) -> Note | None:
        """Return what is noted of a node, in the names of this configuration; None: nothing.

        Without a doubt and a binding it is that doubts on the Node have ended.
        """
        note = self._notes.get(uid)
        if note is not None:
            return self._names.own(note)
        return Note(self._names_of[uid], uid) if self._ended.get(uid) else None

    def first(self, node: NodeView, *, alone: bool = False) -> tuple[str, ...]:
        """Name the nodes whose notes have to be written before anything is given away for a node.

        That is its own, and any that was not tried since the API server answers: a Node that refuses its note
        keeps no other one from being fenced.

        Args:
            node: The node.
            alone: Only its own: a command by hand writes nothing on any other Node.
        """
        noted = (self._notes.keys() | {uid for uid, ended in self._ended.items() if ended}) - self._unreadable
        own = [node.name] if node.uid in noted and not node.gone else []
        others = [] if alone else sorted(self._names_of[uid] for uid in noted - self._tried - {node.uid})
        return (*own, *others[:NAMED])

    def written(self, node: NodeView, action: BindNode | RecordDoubts) -> None:
        """Take note that this is on the Node now; what was noted meanwhile is not."""
        note = self.of(node.uid)
        if note is None:
            return
        match action:
            case BindNode(binding):
                later = None if note.binding == binding else note.binding
                note = replace(note, binding=later, instead_of=None if later is None else binding)
            case RecordDoubts(doubts):
                note = replace(note, doubts=missing_doubts(note.doubts, doubts))
                self._ended.pop(node.uid, None)
            case _:
                assert_never(action)
        self._put(node.uid, self._names.note(note))

    def _put(self, uid: str, note: Note | None) -> None:
        if note is not None and (note.doubts or note.binding):
            self._notes[uid] = note
            return
        self._notes.pop(uid, None)
        self._tried.discard(uid)

    def failed(self, uid: str) -> None:
        """Take note that a note could not be written."""
        self._tried.add(uid)

    def try_again(self) -> None:
        """Have every note tried: the API server was away."""
        self._tried.clear()

    def read(self, node: NodeView) -> NodeView:
        """Return a node that was just read, with its notes laid over; drop those that are written there."""
        note, ended = self._notes.get(node.uid), self._ended.get(node.uid)
        if note is None and not ended:
            return node
        before, basis, laid = self._read.get(node.uid, (None, None, node))
        if before is not node or basis != (note, ended, self._names.version):
            laid = self._laid(node)
            basis = (self._notes.get(node.uid), self._ended.get(node.uid), self._names.version)
            self._read[node.uid] = (node, basis, laid)
        return laid

    def keep(self, uids: Collection[str], unread: Collection[str] = ()) -> None:
        """Forget all other nodes; what is noted of one whose Node cannot be read, by its name, stays.

        It cannot be written there now, and so keeps no other node from being fenced.
        """
        lost = [uid for uid in self._notes if uid not in uids]
        for uid in lost:
            if self._notes[uid].node in unread:
                self._tried.add(uid)
            else:
                del self._notes[uid]
        for forgotten in (self._ended.keys() | self._read.keys()).difference(uids):
            self._ended.pop(forgotten, None)
            self._read.pop(forgotten, None)
        noted = self._notes.keys() | self._ended.keys()
        self._tried &= noted
        self._unreadable &= noted
        for forgotten in self._names_of.keys() - noted:
            del self._names_of[forgotten]

    def _laid(self, node: NodeView) -> NodeView:
        note = self.of(node.uid)
        if note is not None:
            left = still_unwritten(node, note)
            self._put(node.uid, left and self._names.note(left))
            ended = self._ended.get(node.uid, frozenset())
            if ended and not isinstance(node.doubts, Unreadable):
                self._ended[node.uid] = ended.intersection(node.doubts)
                node = replace(node, doubts=tuple(doubt for doubt in node.doubts if doubt not in ended))
            node = laid_over(node, left) if left is not None else node
            closed = isinstance(node.doubts, Unreadable) or isinstance(node.mark, Unreadable)
            (self._unreadable.add if closed else self._unreadable.discard)(node.uid)
        return node
