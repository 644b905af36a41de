"""Which workloads have all that they need on one host, or on one node. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fencer.core.model import PodView
from fencer.core.text import count, listing, natural
from fencer.ports.inventory import Tenant
from fencer.ports.selectors import NodeSelector
from fencer.topology.places import by_host
from fencer.topology.words import Finding, Host, Place, Topology, What

NO_REPLICAS = frozenset({"", "DaemonSet", "Job", "Node"})
"""Controllers whose pods do not stand in for each other. ``Node`` has static pods; empty: there is none."""
STAYING = frozenset({"", "DaemonSet", "Node"})
"""Controllers whose pods start nowhere else after a fence, wherever their volumes are."""
HASH = "pod-template-hash"
"""Label of a Deployment's pods: the names of its ReplicaSets end in it.

Source: kubernetes pkg/controller/deployment/sync.go, getNewReplicaSet.
"""


def replicas(topology: Topology) -> Iterator[Finding]:
    """Name workloads of several pods that are all on one host; those that wait for a node are on none."""
    if not topology.seen.pods.complete:
        return  # one of those could be elsewhere
    hosts = {place.node: place.host for place in topology.places}
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    named: dict[tuple[str, str], Host] = {}
    for name, tenants in _several(topology):
        there = [hosts.get(tenant.node) for tenant in tenants if tenant.node]
        known = [host for host in there if host is not None]
        if len(known) == len(there) and len({host.key for host in known}) == 1:
            host = named.setdefault(known[0].key, known[0])
            found[host.key].append(f"{name} ({count(len(tenants), 'pod')})")
    for key, names in found.items():
        yield Finding(
            What.REPLICAS,
            str(named[key]),
            f"all replicas of {count(len(names), 'workload')} are on it",
            "if it fails, none of their pods is left",
            "a label on each node that names its host, and topologySpreadConstraints over that label: "
            "Kubernetes itself knows no hosts",
            tuple(names),
        )


def _several(topology: Topology) -> Iterator[tuple[str, list[Tenant]]]:
    """Give the workloads that have, or want, more than one pod, in the order of their names."""
    pods: dict[str, list[Tenant]] = defaultdict(list)
    for tenant in topology.seen.pods.items:
        if _kind(tenant.pod) not in NO_REPLICAS and not (tenant.pod.finished or tenant.pod.terminating):
            pods[workload(tenant.pod)].append(tenant)
    for name in sorted(pods, key=natural):
        if len(pods[name]) > 1:
            yield name, pods[name]


def volumes(topology: Topology, *, hosts_differ: bool) -> Iterator[Finding]:
    """Name workloads with a volume that one node alone can use, or only nodes on one host.

    Args:
        topology: What is known.
        hosts_differ: There is more than one host.
    """
    on_node: dict[str, set[str]] = defaultdict(set)
    on_host: dict[str, set[str]] = defaultdict(set)
    for name, able in _held(topology):
        if len(able) == 1:
            on_node[name].add(able[0].node)
        elif hosts_differ and len(by_host(able)) == 1 and all(place.host for place in able):
            on_host[name].add(str(able[0].host))
    yield from _pinned(
        What.VOLUME_ON_ONE_NODE,
        on_node,
        "a volume that only one node can use",
        "after a fence of that node its pod stays Pending until the node is back: fencer cannot move it",
    )
    yield from _pinned(
        What.VOLUME_ON_ONE_HOST,
        on_host,
        "a volume that only nodes on one host can use",
        "if that host fails, its pod stays Pending until the host is back",
    )


def _held(topology: Topology) -> Iterator[tuple[str, list[Place]]]:
    """Give each workload with the nodes that can use a volume of its pods, for volumes that name nodes."""
    if not topology.seen.nodes.complete:
        return  # one of those might be able to
    places = {place.node: place for place in topology.places}
    labels = [(machine.name, dict(machine.labels)) for machine in topology.seen.nodes.items]
    claims = {(claim.namespace, claim.name): claim.volume for claim in topology.seen.claims.items}
    wanted = {volume.name: volume.nodes for volume in topology.seen.volumes.items}
    able: dict[NodeSelector, list[Place]] = {}
    for tenant in topology.seen.pods.items:
        if _kind(tenant.pod) in STAYING or tenant.pod.finished:
            continue
        for claim in tenant.pod.claims:
            nodes = wanted.get(claims.get((tenant.pod.namespace, claim), ""))
            if nodes is None:
                continue
            if nodes not in able:  # volumes of one node ask for the same
                names = [name for name, its in labels if nodes.admits(name, its)]
                able[nodes] = [places.get(name, Place(name)) for name in names]
            yield workload(tenant.pod), able[nodes]


def _pinned(what: What, found: dict[str, set[str]], volume: str, why: str) -> Iterator[Finding]:
    if found:
        nodes = {name: sorted(found[name], key=natural) for name in sorted(found, key=natural)}
        yield Finding(
            what,
            "volumes",
            f"{count(len(found), 'workload')} {'has' if len(found) == 1 else 'have'} {volume}",
            why,
            "network storage; or nothing, where the application itself keeps copies on other nodes",
            tuple(f"{name} ({listing(places)})" for name, places in nodes.items()),
        )


def workload(pod: PodView) -> str:
    """Return namespace and controller of a pod; the Deployment, where that has its controller."""
    kind, _, name = pod.controller.partition("/")
    ending = dict(pod.labels).get(HASH, "")
    if kind == "ReplicaSet" and ending and name.endswith(f"-{ending}"):
        return f"{pod.namespace}/Deployment/{name.removesuffix(f'-{ending}')}"
    return f"{pod.namespace}/{pod.controller}"


def _kind(pod: PodView) -> str:
    return pod.controller.partition("/")[0]
