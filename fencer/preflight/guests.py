"""Judges identity: is each node one guest?"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from fencer.core.identity import bound, still_bound
from fencer.core.model import GuestRef, Observation
from fencer.core.rung import Objection
from fencer.core.text import count, listing
from fencer.preflight.finding import Finding, Level


def judge(observations: Sequence[Observation], silent: Sequence[str]) -> Finding:
    """Name the nodes that are no guest, or may be several.

    Args:
        observations: All nodes.
        silent: Endpoints that are not in order: the other guests may be there.
    """
    lost = {one.node.name: (one, why) for one in observations if isinstance(why := bound(one), Objection)}
    found = len(observations) - len(lost)
    about = f"{found} of {count(len(observations), 'node')} found"
    if not lost:
        return Finding("guests", about, Level.OK, "each node is one guest")
    if silent:
        verb = "is" if len(silent) == 1 else "are"
        text = f"the rest cannot be known before {listing(silent)} {verb} in order"
        return Finding("guests", about, Level.WARN, text)
    text = listing([f"{name}: {why.seen}" for name, (_, why) in lost.items()])
    held = {name: old for name, (one, _) in lost.items() if (old := still_bound(one)) is not None}
    tries = [freeing(name, old) for name, old in held.items()]
    if len(held) < len(lost):
        tries.append("name the guest in the configuration: `nodes: {NODE: ENDPOINT/GUEST}`")
    return Finding("guests", about, Level.WARN if found else Level.FAIL, text, tuple(tries))


def freeing(node: str, old: GuestRef) -> str:
    """Return the command for a mapped node that is bound to a machine that the map no longer means."""
    command = f"kubectl annotate node {shlex.quote(node)} fencer.dev/binding-"
    return f"{command}   (if the machine with UUID {old.uuid} is gone for good)"
