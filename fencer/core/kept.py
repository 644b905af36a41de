"""What an agent keeps on its own disk: what it has seen, and which nodes there are to see it of.

The Node is the place for what must not be lost (N1). This is for the time in which nothing can be written
there: while the API server is away, while an agent only observes, or while a Node's notes cannot be read.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencer.core.model import NodeView, Note
from fencer.core.wire import wire


@wire("nodes notes utc")
@dataclass(frozen=True, slots=True)
class Kept:
    """All that one agent keeps.

    Attributes:
        nodes: As they were last told, reduced to what says which VM is which node, and what is written of it.
        notes: What is not written on Nodes yet.
        utc: The API server's clock when it last answered, RFC 3339; empty: it never did.
    """

    nodes: tuple[NodeView, ...] = ()
    notes: tuple[Note, ...] = ()
    utc: str = ""
