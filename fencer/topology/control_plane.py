"""Whether the control plane, or fencer's way to it, ends with one host. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from fencer.topology.places import by_host, names_of
from fencer.topology.words import Finding, Place, Topology, What

LOOPBACK = ("localhost", "127.", "::1")
"""What such an address leads to depends on who asks."""


def control_plane(topology: Topology) -> Iterator[Finding]:
    """Name the host without which etcd has no majority. A node that could not be read may be a member."""
    if not topology.seen.nodes.complete:
        return
    members = [place for place in topology.places if place.control_plane]
    total, majority = len(members), len(members) // 2 + 1
    most = total - majority
    for here in by_host(members).values():
        left = total - len(here)
        if len(here) == 1 or left >= majority:
            continue
        yield Finding(
            What.QUORUM if left else What.CONTROL_PLANE,
            str(here[0].host),
            f"{len(here)} of {total} control-plane nodes are on it"
            if left
            else f"all {total} control-plane nodes are on it",
            f"if it fails, etcd (where it runs on these nodes) has {left} of {total} members and needs "
            f"{majority}: the API stops, and nobody can fence or move anything until this host is back",
            f"at most {most} of the {total} on each host" if most else "three of them, on three hosts",
            names_of(here),
        )


def api_server(topology: Topology) -> Iterator[Finding]:
    """Name the host with all API servers that fencer asks, where each one's address is that of one node.

    A load balancer's address, or a virtual one, is no node's: then nothing is said.
    """
    behind = [_node_of(topology, server) for server in topology.servers]
    known = [place for place in behind if place is not None and place.host is not None]
    if not known or len(known) < len(behind) or len(by_host(known)) > 1:
        return
    one = len(behind) == 1
    yield Finding(
        What.API_SERVER,
        str(known[0].host),
        f"{'the only API server' if one else f'all {len(behind)} API servers'} that fencer asks "
        f"{'is' if one else 'are'} on it",
        "if it fails, fencer does not reach the cluster, and fences nothing",
        "an API server on another host, in `kubernetes: {servers: […]}` of the configuration",
        names_of(known),
    )


def _node_of(topology: Topology, server: str) -> Place | None:
    """Return the node that has the address of an API server; None: that is not certain."""
    names = {one.name for one in topology.seen.nodes.items if server in one.addresses}
    found = [place for place in topology.places if place.node in names]
    return found[0] if len(names) == len(found) == 1 and not server.startswith(LOOPBACK) else None
