"""Judges the Leases by which several agents agree who gives a hypervisor its orders."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fencer.core.election import CLUSTER_LEASE, NAMESPACE, holder_name
from fencer.core.ledger import BRAKE, POWER
from fencer.core.text import count, printable
from fencer.ports import ClusterInfo
from fencer.preflight.facts import LeaseFacts
from fencer.preflight.finding import Finding, Level
from fencer.preflight.rights import granting

_SHARED = "fencer gives no power orders: agents cannot tell each other what they do"
_FORGETS = f"kubectl -n {NAMESPACE} annotate lease {CLUSTER_LEASE} {POWER}- {BRAKE}-"
"""A newer fencer may have written it: then all agents should be of that version instead."""
_NO_ORDERS = "fencer gives no power orders there"


def judge(path: Path, info: ClusterInfo, leases: Sequence[LeaseFacts]) -> Finding:
    """Judge the Lease of the cluster, and those of all hypervisors that said who they are.

    Agents go on without: they fence guests that ended, and stop and start none.

    Args:
        path: Of the configuration.
        info: Who we are, and in which Kubernetes.
        leases: What is known of each.
    """
    about = f"{CLUSTER_LEASE}, {count(len(leases) - 1, 'hypervisor')}"
    wrong = [trouble for lease in leases for trouble in _troubles(lease)]
    garbled = [lease for lease in leases if lease.garbled]
    if wrong:
        makes = granting(info.user, "-c", shlex.quote(str(path)), version=info.version)
        text = "fencer gives no power orders where a Lease is missing, or may not be written; fences go on"
        return Finding("leases", about, Level.FAIL, text, (makes,), tuple(wrong))
    if garbled:
        text = "fencer stops no guest while what agents share cannot be read; fences go on"
        points = tuple(printable(lease.garbled) for lease in garbled)
        return Finding("leases", about, Level.FAIL, text, (_FORGETS,), points)
    unknown = [f"{_which(lease)}: {lease.unknown}" for lease in leases if lease.unknown is not None]
    if unknown:
        text = "whether the Leases are there is not known"
        return Finding("leases", about, Level.WARN, text, (), tuple(unknown))
    strange = tuple(_held_by_strangers(leases))
    if strange:
        text = "a Lease is held by somebody of whom no pass is known: nobody gives orders there"
        return Finding("leases", about, Level.WARN, text, (), strange)
    return Finding("leases", about, Level.OK, "; ".join(_holders(leases)))


def _troubles(lease: LeaseFacts) -> Iterator[str]:
    follows = _NO_ORDERS if lease.endpoints else _SHARED
    if lease.missing:
        yield f"{_which(lease)} is missing: {follows}"
    if lease.lacking:
        yield f"{_which(lease)}: may not {', '.join(lease.lacking)}: {follows}"


def _which(lease: LeaseFacts) -> str:
    of = f" of {', '.join(map(printable, lease.endpoints))}" if lease.endpoints else ""
    return f"lease {lease.name}{of}"


def _held_by_strangers(leases: Sequence[LeaseFacts]) -> Iterator[str]:
    """Name the Leases whose holder has not written itself as an agent that makes passes."""
    for cluster in (lease for lease in leases if lease.agents is not None and not lease.endpoints):
        known = cluster.agents.there(cluster.utc) if cluster.agents else ()
        there = {agent.instance for agent in known}
        for lease in leases:
            if lease.holder and lease.holder.rpartition("/")[2] not in there:
                yield f"{_which(lease)}: {printable(lease.holder)}"


def _holders(leases: Sequence[LeaseFacts]) -> Iterator[str]:
    """Say who gives orders where, by the names that the configuration gives."""
    for lease in leases:
        for endpoint in lease.endpoints:
            holder = printable(holder_name(lease.holder)) if lease.holder else ""
            yield f"{printable(endpoint)}: {f'held by {holder}' if holder else 'held by nobody'}"


def by_lease(names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the endpoints of each Lease: that of the cluster, which has none, first.

    Args:
        names: Endpoint → its Lease's name.
    """
    found: dict[str, tuple[str, ...]] = {CLUSTER_LEASE: ()}
    for endpoint, name in names.items():
        found[name] = (*found.get(name, ()), endpoint)
    return found
