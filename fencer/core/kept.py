"""What an agent keeps on its own disk: what it has seen, and which nodes there are to see it of.

The Node is the place for what must not be lost (N1). This is for the time in which nothing can be written
there: while the API server is away, while an agent only observes, or while a Node's notes cannot be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from fencer.core.model import (
    BOOT_IDS_KEPT,
    Binding,
    BindNode,
    Doubt,
    NodeView,
    Note,
    RecordDoubts,
    Unreadable,
)
from fencer.core.wire import wire


@wire("nodes notes utc")
@dataclass(frozen=True, slots=True)
class Kept:
    """All that one agent keeps.

    Attributes:
        nodes: As the API last had them, reduced to what says which VM is which node, and what is written
            there.
        notes: What is not written on Nodes yet.
        utc: The API server's clock when it last answered, RFC 3339; empty: it never did.
    """

    nodes: tuple[NodeView, ...] = ()
    notes: tuple[Note, ...] = ()
    utc: str = ""


def reduced(node: NodeView) -> NodeView:
    """Return what has to be known of a node to learn about it while the API server is away."""
    return NodeView(
        name=node.name,
        uid=node.uid,
        system_uuid=node.system_uuid,
        boot_id=node.boot_id,
        ready=None,
        version="",
        binding=node.binding,
        doubts=node.doubts,
    )


def remembered(node: NodeView) -> NodeView:
    """Return a node that cannot be read now, as it last was: nobody knows which doubts are on it now.

    Others may have lifted one since, and it may be due again. So it is noted again, if it is seen again. What
    is on the Node after all is dropped when that is read.
    """
    if isinstance(node.doubts, Unreadable) or not node.doubts:
        return node
    return replace(node, doubts=Unreadable("the Node cannot be read now"))


def with_action(note: Note | None, node: NodeView, action: BindNode | RecordDoubts) -> Note:
    """Return a note with what an action would write on the Node.

    Doubts are only ever added: one that ends is seen to end again, or it stays.

    Args:
        note: What is noted of the node before; None: nothing.
        node: As it was read, with that note laid over.
        action: What to write.
    """
    note = note or Note(node.name, node.uid)
    match action:
        case BindNode(binding):
            stood = node.binding if isinstance(node.binding, Binding) else None
            return replace(
                note, binding=binding, instead_of=stood if note.binding is None else note.instead_of
            )
        case RecordDoubts(doubts):
            stands = standing(node, note)
            go_on = {doubt.key for doubt in doubts}
            still = [doubt for doubt in note.doubts if doubt.key in go_on]
            new = [doubt for doubt in doubts if doubt not in stands]
            return replace(note, doubts=united_doubts(still, new))
        case _:
            assert_never(action)


def standing(node: NodeView, note: Note | None) -> tuple[Doubt, ...]:
    """Return the doubts that count: those of the Node; where they cannot be read, those noted here."""
    if not isinstance(node.doubts, Unreadable):
        return node.doubts
    return () if note is None else note.doubts


def laid_over(node: NodeView, note: Note) -> NodeView:
    """Return a node as it will be once what is noted of it is written there.

    Args:
        node: As it was read.
        note: What is noted of it.
    """
    doubts = node.doubts
    if not isinstance(doubts, Unreadable):
        doubts = united_doubts(doubts, note.doubts)
    return replace(node, binding=_bound(node, note), doubts=doubts)


def still_unwritten(node: NodeView, note: Note) -> Note | None:
    """Return what of a note is not on the Node as it was read; None: all of it is there."""
    doubts = note.doubts
    if not isinstance(node.doubts, Unreadable):
        doubts = missing_doubts(doubts, node.doubts)
    binding = None if _bound(node, note) == node.binding else note.binding
    instead_of = None if binding is None else note.instead_of
    left = replace(note, doubts=doubts, binding=binding, instead_of=instead_of)
    return left if doubts or binding is not None else None


def merged(older: Note, newer: Note) -> Note:
    """Return one note out of two of the same node, neither of which is on the Node yet."""
    first = older if older.binding is not None else newer
    return replace(
        newer,
        doubts=united_doubts(older.doubts, newer.doubts),
        binding=newer.binding or older.binding,
        instead_of=first.instead_of,
    )


def missing_doubts(doubts: Sequence[Doubt], written: Sequence[Doubt]) -> tuple[Doubt, ...]:
    """Return the doubts that are not written: what another agent has found out, too, is not new.

    A proof is: it is written into the doubt that is there.
    """
    there = {doubt.key: doubt for doubt in written}
    return tuple(
        doubt
        for doubt in doubts
        if doubt.key not in there or _adds(there[doubt.key], doubt) != there[doubt.key]
    )


def united_doubts(written: Sequence[Doubt], doubts: Sequence[Doubt]) -> tuple[Doubt, ...]:
    """Return the doubts of both, each once: what is written stays, with the proofs that the others add."""
    more = {doubt.key: doubt for doubt in doubts}
    there = {doubt.key: _adds(doubt, more.get(doubt.key, doubt)) for doubt in written}
    return tuple((more | there)[key] for key in (*there, *(key for key in more if key not in there)))


def _adds(written: Doubt, doubt: Doubt) -> Doubt:
    """Return a doubt that is written, with what another note of it proves.

    One that a person has answered for stays as it is.
    """
    if written.trusted:
        return written
    boot_id, paired = written.boot_id or doubt.boot_id, written.paired or doubt.paired
    return replace(written, boot_id=boot_id, paired=paired)


def must_outlive(note: Note) -> bool:
    """Whether anything could be fenced wrongly without this note.

    A node that was never bound to a guest is fenced by no agent: its first binding may be lost.
    """
    return bool(note.doubts) or note.instead_of is not None


def _bound(node: NodeView, note: Note) -> Binding | Unreadable | None:
    """Return a node's binding with ours, if another agent has not found it elsewhere since.

    All boots that either has seen are known; the one that runs is the newest. What is not signed counts for
    nothing here: a kubelet may have written it.
    """
    stands, ours = node.binding, note.binding
    if ours is None or stands == note.instead_of:
        return ours or stands
    if isinstance(stands, Unreadable):
        return ours if stands.forged else stands
    if stands is None or not stands.signed:
        return stands and ours
    elsewhere = note.instead_of is None or stands.guest != note.instead_of.guest
    boots = dict.fromkeys((*ours.boot_ids, *stands.boot_ids))
    if node.boot_id in boots:
        boots = dict.fromkeys((*(boot for boot in boots if boot != node.boot_id), node.boot_id))
    merged = replace(ours, boot_ids=tuple(boots)[-BOOT_IDS_KEPT:])
    merged = replace(merged, guest=stands.guest) if elsewhere else merged
    same = merged.guest == stands.guest and set(merged.boot_ids) == set(stands.boot_ids)
    return stands if same else merged
