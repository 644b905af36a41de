"""The findings of a topology. Pure: the same topology gives the same findings.

Nothing is concluded from what was not seen. "All are on this host" needs every place to be known; "so many
are on this host that etcd loses its quorum" holds wherever the others are.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencer.core.text import count
from fencer.topology.control_plane import api_server, control_plane
from fencer.topology.places import by_host, in_order, names_of
from fencer.topology.words import Finding, Host, Lack, Topology, What
from fencer.topology.workloads import replicas, volumes


def findings(topology: Topology) -> tuple[Finding, ...]:
    """Name what the loss of one host, or of one guest, takes along, the worst first."""
    only = _only_host(topology)
    shared = () if only else (*api_server(topology), *replicas(topology))
    return (
        *_one_host(topology, only),
        *control_plane(topology),
        *shared,  # with a single host they go without saying
        *volumes(topology, hosts_differ=only is None),
        *_no_guest(topology),
        *_host_not_told(topology),
    )


def _only_host(topology: Topology) -> Host | None:
    """Return the host that all nodes are on; None: there are others, or it is not known, or only one node."""
    places = topology.places
    known = topology.seen.nodes.complete and all(place.host for place in places)
    return places[0].host if known and len(places) > 1 and len(by_host(places)) == 1 else None


def _one_host(topology: Topology, only: Host | None) -> Iterator[Finding]:
    if only is not None:
        yield Finding(
            What.ONE_HOST,
            str(only),
            f"all {len(topology.places)} nodes are on it",
            "if it fails, no node is left to take its pods: fencing helps only where single guests fail",
            "nodes on a second host",
            names_of(topology.places),
        )


def _no_guest(topology: Topology) -> Iterator[Finding]:
    found = [place for place in topology.places if place.lack is Lack.NO_GUEST]
    if found:
        have = "has" if len(found) == 1 else "have"
        yield Finding(
            What.NO_GUEST,
            "nodes",
            f"{count(len(found), 'node')} {have} no guest, or it is not certain which",
            "such a node is unprotected, and which host takes it along is not known",
            "`fencer explain NODE` says what is missing",
            tuple(f"{place.node} ({place.why})" for place in in_order(found)),
        )


def _host_not_told(topology: Topology) -> Iterator[Finding]:
    found = [place for place in topology.places if place.lack is Lack.HOST_NOT_TOLD]
    if found:
        yield Finding(
            What.HOST_NOT_TOLD,
            "nodes",
            f"the host of {count(len(found), 'node')} is not told by the endpoint",
            "what else fails together with such a node is not known",
            "an adapter that tells the host; or `one_host: true`, if the endpoint is a single host",
            tuple(f"{place.node} ({place.why})" for place in in_order(found)),
        )
