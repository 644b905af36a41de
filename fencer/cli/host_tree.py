"""Hosts, guests and nodes as a tree: the rows of `fencer topology`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fencer.cli.judged import fence_cell, ready_cell, state_cell
from fencer.cli.render import BAD, FAINT, Cell, clean
from fencer.core.model import Judged, PowerState
from fencer.core.text import count, natural
from fencer.runtime.reconcile import Pass
from fencer.runtime.world import World
from fencer.topology.places import host_of
from fencer.topology.words import Host, Place
from fencer.wording.conditions import PLAIN, condition
from fencer.wording.nodes import NOBODY, cordon_words, guest_of

HEADER = ("ENDPOINT, HOST, GUEST", "STATE", "NODE", "READY", "ROLES", "FENCE", "CORDON")


@dataclass(frozen=True, slots=True)
class Twig:
    """The guests on one host.

    Attributes:
        host: The host; None: not known.
        nodes: Those that are nodes.
        others_count: How many are no node.
    """

    host: Host | None
    nodes: tuple[Judged, ...]
    others_count: int = 0


@dataclass(frozen=True, slots=True)
class Tree:
    """What is where.

    Attributes:
        endpoints: Endpoint → its hosts with guests.
        lost: The nodes of which the host is not known.
        silent: Endpoints that do not answer.
    """

    endpoints: Mapping[str, Sequence[Twig]]
    lost: Twig
    silent: Collection[str]


def grow(seen: Pass, places: Mapping[str, Place], world: World) -> Tree:
    """Put nodes and guests under their hosts.

    Args:
        seen: Nodes and guests.
        places: Node → where it is.
        world: For the endpoints.
    """
    others = _others(seen, world.one_host)
    nodes = sorted(seen.judged.values(), key=lambda one: natural(one.observation.node.name))

    def on(host: Host | None) -> tuple[Judged, ...]:
        return tuple(one for one in nodes if places[one.observation.node.name].host == host)

    hosts = {(place.host.endpoint, place.host) for place in places.values() if place.host} | others.keys()
    endpoints = {
        endpoint: [
            Twig(host, on(host) if host else (), others[endpoint, host])
            for _, host in sorted((one for one in hosts if one[0] == endpoint), key=_by_name)
        ]
        for endpoint in world.hypervisors
    }
    return Tree(endpoints, Twig(None, on(None)), seen.scene.errors)


def _by_name(place: tuple[str, Host | None]) -> list[tuple[int, str]]:
    return natural(place[1].name if place[1] else "")


def _others(seen: Pass, one_host: frozenset[str]) -> Counter[tuple[str, Host | None]]:
    """Count the guests that can be no node, by endpoint and host."""
    may_be = {one.guest.key for item in seen.judged.values() for one in item.observation.candidates}
    return Counter(
        (reading.guest.endpoint, host_of(reading.guest, one_host))
        for key, reading in seen.scene.evidence.items()
        if key not in may_be and reading.power_state is not PowerState.ABSENT
    )


def rows(tree: Tree, *, whole: bool) -> Iterator[list[Cell | str]]:
    """Give a row for each endpoint, host and guest; nodes come last whose host is not known.

    Args:
        tree: What is where.
        whole: Also healthy workers; otherwise they are only counted.
    """
    yield [Cell(word, FAINT) for word in HEADER]
    for endpoint, twigs in tree.endpoints.items():
        silent = endpoint in tree.silent
        yield [Cell(f"{clean(endpoint)} does not answer", BAD) if silent else clean(endpoint)]
        if not (twigs or silent):
            yield [Cell("  no guests", FAINT)]
        for twig in twigs:
            yield [f"  {_host_line(twig.host)}"]
            yield from _guests(twig, whole=whole)
    if tree.lost.nodes:
        yield ["host not known"]
        yield from _guests(tree.lost, whole=True)


def _host_line(host: Host | None) -> str:
    if host is None:
        return "host not told"
    return clean(host.name) or "this endpoint is one host"


def _guests(twig: Twig, *, whole: bool) -> Iterator[list[Cell | str]]:
    shown = [
        one
        for one in twig.nodes
        if whole or one.observation.node.control_plane or condition(one) not in PLAIN
    ]
    for one in shown:
        node, guest = one.observation.node, guest_of(one)
        yield [
            Cell("    (none)", FAINT) if guest is None else f"    {clean(replace(guest, host=None))}",
            state_cell(one.observation),
            clean(node.name),
            ready_cell(node),
            clean(", ".join(node.roles)) or NOBODY,
            fence_cell(one),
            cordon_words(node) or NOBODY,
        ]
    if len(shown) < len(twig.nodes):
        yield [
            Cell(f"    {count(len(twig.nodes) - len(shown), 'other node')}, healthy; --all shows them", FAINT)
        ]
    if twig.others_count:
        yield [Cell(f"    {count(twig.others_count, 'other guest')}, no nodes of this cluster", FAINT)]
