"""Leases of nodes, read live: of all, or of some and a few others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from fencer.cluster import parse
from fencer.cluster.answers import Answer
from fencer.cluster.client import Connection
from fencer.cluster.fields import items, version
from fencer.cluster.lists import Listed, Lists
from fencer.cluster.names import NAME
from fencer.cluster.requests import LEASE, LEASES, get
from fencer.errors import ClusterNotFound

NODE_LEASES = "kube-node-lease"
"""The namespace of the nodes' leases."""
FEW = 16
"""So many leases are asked for one by one, and so many others in one short list. More come quicker in a list
of all: a page of 500 takes as long as some 20 requests."""

Told = parse.LeaseView | str
"""A lease, or why it cannot be read."""


def read_leases(api: Connection, lists: Lists, nodes: Collection[str] | None) -> Listed[Told]:
    """Read the leases of these nodes, and a few more; None: all.

    Its version is that of the list, which is read first: a lease that is newer was written after it.

    Raises:
        ClusterUnreachable, ClusterDenied, ClusterProtocol.
    """
    if nodes is None or len(nodes) > FEW:
        return lists.listed(
            "list node leases",
            "LeaseList",
            get(LEASES, NODE_LEASES),
            lambda item, _utc: parse.set_aside(parse.lease, item),
        )
    answer = api.read("list some node leases", get(LEASES, NODE_LEASES, limit=FEW))
    found = [
        parse.set_aside(parse.lease, item) for item in answer.read(lambda body: items(body, "LeaseList"))
    ]
    listed = {lease.node for lease in sound(found)}
    missing = [node for node in nodes if node not in listed and NAME.fullmatch(node)]
    return Listed([*found, *_one_by_one(api, missing)], answer.read(version))


def sound(told: Iterable[Told]) -> Iterator[parse.LeaseView]:
    """Yield the leases that can be read."""
    return (lease for lease in told if not isinstance(lease, str))


def read_lease(api: Connection, node: str) -> parse.LeaseView | None:
    """Read the lease of a node; None: there is none.

    Raises:
        ClusterUnreachable, ClusterDenied, ClusterProtocol: also when it cannot be read.
    """
    answer = _answer(api, node)
    return None if answer is None else parse.name_in_error(parse.lease, answer.body)


def _one_by_one(api: Connection, nodes: Iterable[str]) -> Iterator[Told]:
    for node in nodes:
        if (answer := _answer(api, node)) is not None:
            yield parse.set_aside(parse.lease, answer.body)


def _answer(api: Connection, node: str) -> Answer | None:
    try:
        return api.read(f"get lease of {node}", get(LEASE, NODE_LEASES, node))
    except ClusterNotFound:
        return None
