"""The rest of the cluster, as far as the brake, the quorum and the witnesses need it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from fencer.core import brake
from fencer.core.distrust import against, distrusted, proven
from fencer.core.history import LEASE_DURATION_S
from fencer.core.model import (
    OUT_OF_SERVICE,
    Evidence,
    FenceMark,
    Fleet,
    NodeView,
    Note,
    PowerState,
    Taint,
    version_number,
)
from fencer.core.policy import Policy

STALLED_GUESTS = 2
STALL_REMEMBERED_S = 600.0
"""How long after a stall a guest that is still paused by it counts as part of it."""


def survey(
    nodes: Collection[NodeView],
    evidence: Iterable[Evidence],
    policy: Policy,
    utc: str,
    last_stop_age_s: float | None,
    paused_why: str | None,
    stalled: frozenset[str] = frozenset(),
    notes: Mapping[str, Note] = MappingProxyType({}),
) -> Fleet:
    """Sum up one pass, but for `reserved` and `quorum_without`.

    Args:
        nodes: Every node, with lease data.
        evidence: The newest reading of every guest.
        policy: For what counts as silent.
        utc: The slower of two clocks: for how old a fence is.
        last_stop_age_s: Since when any agent last stopped a guest.
        paused_why: The pause annotation's text.
        stalled: Endpoints whose storage stalled a while ago.
        notes: See `fencer.core.distrust.against`.
    """
    readings = list(evidence)
    doubted = {name: doubts for name, doubts in against(nodes, notes).items() if distrusted(doubts.values())}
    deleted = {r.guest.key for r in readings if r.power_state is PowerState.ABSENT and r.gone}
    fleet = Fleet(
        nodes=len(nodes),
        silent=_silent(nodes, policy),
        last_stop_age_s=last_stop_age_s,
        stalled=stalled | stalls(readings),
        contradicted_endpoints=frozenset(doubted),
        paused_why=paused_why,
        contradicted_by=frozenset((name, node) for name, doubts in doubted.items() for node in doubts),
        proven_wrong=frozenset(name for name, doubts in doubted.items() if proven(doubts.values())),
    )
    return brake.count(nodes, utc, deleted, fleet)


def _silent(nodes: Collection[NodeView], policy: Policy) -> int:
    """Count the silent nodes; that a node is Ready alone does not show that the path to the API is sound."""
    voices = any(node.asked and heard(node, policy) for node in nodes)
    return sum(1 for node in nodes if not heard(node, policy)) if voices else len(nodes)


def stalls(evidence: Iterable[Evidence]) -> frozenset[str]:
    """Name the endpoints where storage errors pause several guests: that is the storage, not a guest."""
    paused = Counter(reading.guest.endpoint for reading in evidence if reading.io_error)
    return frozenset(name for name, count in paused.items() if count >= STALLED_GUESTS)


def heard(node: NodeView, policy: Policy) -> bool:
    """Whether the node's kubelet counts as heard: Ready, and its lease, if it was read, not silent."""
    if not node.asked:
        return node.ready is True
    limit_s = policy.lease_silent_s or LEASE_DURATION_S
    return node.ready is True and node.heard_s is not None and node.heard_s < limit_s


def may_be_alive(node: NodeView, policy: Policy) -> bool:
    """Whether a node's guest may run: it is Ready, or not silent for as long as power-offs take.

    Its last renewal may have been just now, whatever was heard from others meanwhile; or if nobody has asked.
    """
    limit_s = max(policy.lease_silent_s, LEASE_DURATION_S, policy.unresponsive_after_s)
    if node.ready is True or not node.asked:
        return True
    return node.lease_age_s is not None and node.lease_age_s < limit_s


def tainted(node: NodeView, mark: FenceMark) -> NodeView:
    """Return a node as it is once our taint and mark are written on it; no older state counts then."""
    ours = Taint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute", mark.fenced_at_utc)
    version = version_number(node.version)
    next_one = str(version + 1) if version else node.version
    return replace(node, mark=mark, taints=(*node.taints, ours), version=next_one)


def quorum(
    nodes: Iterable[NodeView], policy: Policy, down: frozenset[str] = frozenset()
) -> tuple[frozenset[str], int]:
    """Return the healthy control-plane nodes, and how many of them are a majority of all.

    Args:
        nodes: All nodes.
        policy: What counts as heard.
        down: Nodes whose guests do not run: their leases still look young for a while.
    """
    members = [node for node in nodes if node.control_plane]
    healthy = frozenset(node.name for node in members if heard(node, policy) and node.name not in down)
    return healthy, len(members) // 2 + 1


def quorum_without(
    nodes: Collection[NodeView], policy: Policy, down: frozenset[str] = frozenset()
) -> frozenset[str]:
    """Name the control-plane nodes without whose guest the healthy ones still are a majority. As `quorum`."""
    members = [node for node in nodes if node.control_plane]
    healthy, majority = quorum(nodes, policy, down)
    return frozenset(node.name for node in members if len(healthy - {node.name}) >= majority)
