"""When an endpoint is distrusted for all its VMs: it reported several of them off while their kubelets lived.

This rests on the doubts written on Nodes alone, so that all agents, commands and a restarted agent agree.
A doubt counts if the kubelet is alive in a boot that this endpoint itself reported running before. A VM that
is moved cold to a hypervisor that fencer doesn't know runs another boot: its old place is right to say off.

A kubelet that starts renews its lease before it reports its boot id (`fencer.core.old_memory`). So a doubt
counts at first only while the Node shows a known boot. Once that boot is proven, it is written into the
doubt, and no later boot takes it back. A proven distrust ends when each of its VMs is reported running there
again, is bound elsewhere, or its Node is deleted; or when a person says so (`fencer trust`). Never by time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from fencer.core.kept import standing
from fencer.core.model import Binding, Doubt, Doubted, Fleet, GuestRef, Heard, NodeView, Note, Observation
from fencer.core.naming import UNIDENTIFIED
from fencer.core.text import listing, natural, unticked

PROVED_WRONG = 2
"""If an endpoint was wrong about so many VMs, none of its off readings counts."""


def binds(node: NodeView, guest: GuestRef) -> bool:
    """Whether a Node is bound to this VM, on this host."""
    bound = node.binding.guest if isinstance(node.binding, Binding) else None
    return bound is not None and bound.key == guest.key and bound.shares_host(guest)


def shows_known_boot(node: NodeView) -> bool:
    """Whether a Node shows a boot in which its VM was reported running before."""
    return isinstance(node.binding, Binding) and node.boot_id in node.binding.boot_ids


def counts(node: NodeView, doubt: Doubt) -> bool:
    """Whether a doubt on a Node counts against the endpoint of its VM, by what the Node shows now.

    A proof does not depend on a binding that can't be read: that ends nothing.
    """
    if doubt.kind is not Doubted.CONTRADICTED or doubt.trusted or node.gone:
        return False
    if isinstance(node.binding, Binding) and not binds(node, doubt.guest):
        return False
    return bool(doubt.boot_id) or shows_known_boot(node)


def against(
    nodes: Iterable[NodeView], notes: Mapping[str, Note] = MappingProxyType({})
) -> Mapping[str, dict[str, Doubt]]:
    """Return the doubts that count: endpoint → node → doubt.

    Args:
        nodes: All nodes.
        notes: What this agent has noted, by the UID of the node: for doubts that can't be read on it.
    """
    found: dict[str, dict[str, Doubt]] = defaultdict(dict)
    for node in nodes:
        for doubt in standing(node, notes.get(node.uid)):
            if counts(node, doubt):
                # An endpoint that can't report its identity now may be the one that was wrong (W7).
                found[doubt.guest.endpoint.removeprefix(UNIDENTIFIED)][node.name] = doubt
    return found


def distrusted(doubts: Iterable[Doubt]) -> bool:
    """Whether these doubts about VMs of one endpoint make it distrusted.

    One is enough that made a distrust before, together with others: it ends with the last of them.
    """
    doubts = list(doubts)
    return len(doubts) >= PROVED_WRONG or any(doubt.paired for doubt in doubts)


def proven(doubts: Iterable[Doubt]) -> bool:
    """The same, by those doubts alone that no later boot takes back."""
    return distrusted(doubt for doubt in doubts if doubt.boot_id)


def with_proof(seen: Observation, doubt: Doubt) -> Doubt:
    """Return a doubt with what is known by now: the boot that is proven, and that it is one of several."""
    if doubt.kind is not Doubted.CONTRADICTED or doubt.trusted:
        return doubt
    heard = seen.history.heard
    if heard is not None and _is_about(heard, doubt):
        doubt = replace(doubt, boot_id=doubt.boot_id or heard.boot_id)
    if doubt.boot_id and doubt.guest.endpoint in seen.fleet.proven_wrong and counts(seen.node, doubt):
        doubt = replace(doubt, paired=True)
    return doubt


def _is_about(heard: Heard, doubt: Doubt) -> bool:
    """Whether signs of life contradict what a doubt is about: this VM, on this host, by this hypervisor."""
    same = (heard.guest.key, heard.witness) == (doubt.guest.key, doubt.witness)
    return same and heard.guest.shares_host(doubt.guest)


def is_to_be_proven(node: NodeView, doubt: Doubt) -> bool:
    """Whether further looks at a node can prove that a doubt counts, whatever boot it shows later."""
    return counts(node, doubt) and not doubt.boot_id


def why_distrusted(endpoint: str, fleet: Fleet) -> str:
    """Return why an endpoint is distrusted, with the nodes whose VMs it was wrong about.

    One VM is enough after others that are over: each has to end for itself.
    """
    nodes = _proving(endpoint, fleet)
    if len(nodes) == 1:
        whom, whose = f"the VM of {nodes[0]}", "its kubelet was alive, and was wrong about other VMs before"
    else:
        whom = f"the VMs of {listing(nodes)}" if nodes else "several VMs"
        whose = "their kubelets were alive"
    return f"{endpoint} is distrusted: it reported {whom} as off while {whose}"


def ends_distrust(endpoint: str, fleet: Fleet) -> str:
    """Return what ends the distrust of an endpoint, and with which command a person answers for it."""
    who, named = "that VM" if len(_proving(endpoint, fleet)) == 1 else "each of these VMs", unticked(endpoint)
    return (
        f"{who} reported running again, there or on another host; or, if you know that {named} reports the "
        f"truth now, `fencer trust {named} --why WHY`"
    )


def _proving(endpoint: str, fleet: Fleet) -> list[str]:
    return sorted((node for name, node in fleet.contradicted_by if name == endpoint), key=natural)


def answered_for(node: NodeView, shown: Doubt, why: str) -> tuple[Doubt, ...]:
    """Return a Node's doubts after a person said that they trust an endpoint.

    Args:
        node: The node.
        shown: The doubt that the person was shown. A newer one, about the same VM, is news.
        why: The person's words, with their name.
    """
    doubts = node.doubts if isinstance(node.doubts, tuple) else ()
    return tuple(
        replace(doubt, trusted=why)
        if (doubt.key, doubt.since_utc) == (shown.key, shown.since_utc) and counts(node, doubt)
        else doubt
        for doubt in doubts
    )
