"""Which VMs wait for a person's approval (C3), and what to type: for all that concerns no single node."""

from __future__ import annotations

from collections.abc import Iterable

from fencer.core.model import Judged
from fencer.core.text import listing, natural


def unapproved(judged: Iterable[Judged]) -> str:
    """Say over which nodes' VMs fencer has no power before a person approves them; empty: over none.

    Args:
        judged: The nodes, of one pass.
    """
    waiting = [
        one.observation.node.name
        for one in judged
        if any(candidate.unapproved for candidate in one.observation.candidates[:1])
    ]
    if not waiting:
        return ""
    waiting.sort(key=natural)
    whose = f"the VM{'' if len(waiting) == 1 else 's'} of {listing(waiting)}"
    return f"fencer has no power over {whose} until a person approves that: `fencer approve` shows what to do"
