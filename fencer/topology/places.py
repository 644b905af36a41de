"""On which host each node is, by what its guest's endpoint said last. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from fencer.core.identity import bound
from fencer.core.model import GuestRef, Observation, PowerState
from fencer.core.rung import Objection
from fencer.core.text import natural
from fencer.topology.words import Host, Lack, Place


def place_of(observation: Observation, one_host: Collection[str]) -> Place:
    """Say where a node is. Only a reading tells: a guest that was bound there once may have moved.

    Args:
        observation: The node, as it was seen.
        one_host: Endpoints that are one host each.
    """
    node, found = observation.node, bound(observation)
    if isinstance(found, Objection):
        lack, why = Lack.NO_GUEST, found.seen
        if observation.unanswered and not observation.candidates:  # its guest may be there
            lack, why = Lack.NOT_READ, f"no answer from {', '.join(observation.unanswered)}"
        return Place(node.name, node.control_plane, lack=lack, why=why)
    reading = found[0].evidence
    if not reading.read or reading.power_state is PowerState.ABSENT:
        return Place(node.name, node.control_plane, lack=Lack.NOT_READ, why=reading.raw)
    host = host_of(reading.guest, one_host)
    if host is None:
        return Place(node.name, node.control_plane, lack=Lack.HOST_NOT_TOLD, why=reading.guest.endpoint)
    return Place(node.name, node.control_plane, host)


def host_of(guest: GuestRef, one_host: Collection[str]) -> Host | None:
    """Return the host that a guest is on; None: its endpoint does not tell. Arguments as in `place_of`."""
    if guest.host or guest.host_uuid or guest.endpoint in one_host:
        return Host(guest.endpoint, guest.host or "", guest.host_uuid or "")
    return None


def in_order(places: Iterable[Place]) -> list[Place]:
    """Return places in the order of their nodes' names."""
    return sorted(places, key=lambda place: natural(place.node))


def names_of(places: Iterable[Place]) -> tuple[str, ...]:
    """Return the names of their nodes, in order."""
    return tuple(place.node for place in in_order(places))


def by_host(places: Iterable[Place]) -> dict[tuple[str, str], list[Place]]:
    """Return places by host, as far as that is known."""
    found: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for place in in_order(places):
        if place.host is not None:
            found[place.host.key].append(place)
    return dict(found)
