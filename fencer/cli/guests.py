"""From a guest to its node: for hooks, which know only their hypervisor's name for it."""

from __future__ import annotations

from collections.abc import Iterable

from fencer.cli.render import clean
from fencer.cli.wire import Parts, Quiet
from fencer.core.identity import canonical
from fencer.core.model import GuestRef
from fencer.core.text import listing
from fencer.errors import ConfigError, HypervisorUnreachable
from fencer.runtime.memory import Scene
from fencer.runtime.reconcile import Agent


def node_of_guest(parts: Parts, wanted: str) -> tuple[str, GuestRef]:
    """Look at everything from afar, and return the node that a guest is, or may be, and the guest.

    Args:
        parts: What to look with.
        wanted: The guest's id, UUID or name; ``ENDPOINT/…`` where several endpoints have one such.

    Raises:
        ConfigError: there is no such guest, it is no node, or it may be several.
        HypervisorUnreachable: it was not found, and an endpoint that may have it did not answer.
        ClusterError: the cluster could not be read.
    """
    scene = Agent(parts.world(Quiet()), parts.policy, parts.rules).observer.look()
    may_be = {
        node.name: [candidate.guest for candidate in scene.directory.candidates(node)]
        for node in scene.nodes.values()
    }
    everyone = [reading.guest for reading in scene.evidence.values()]
    named = _named((*everyone, *(guest for guests in may_be.values() for guest in guests)), wanted)
    nodes = sorted(name for name, guests in may_be.items() if not named.isdisjoint(guests))
    match nodes:
        case [node]:
            return node, next(guest for guest in may_be[node] if guest in named)
        case []:
            raise _no_node(scene, named, wanted)
        case _:
            raise ConfigError(
                f"guest {clean(wanted)} may be any of {listing(nodes)}: name the node, or the guest as "
                "ENDPOINT/ID"
            )


def _named(guests: Iterable[GuestRef], wanted: str) -> frozenset[GuestRef]:
    """Return the guests of that number or UUID; only where there is none, those of that name.

    Anybody can choose a name: a guest that calls itself 102 must not be taken for the guest 102.
    """
    by_id, by_name = set(), set()
    for guest in guests:
        text = wanted.removeprefix(f"{guest.endpoint}/")
        if text == guest.id or (guest.uuid and canonical(text) == guest.uuid):
            by_id.add(guest)
        elif text == guest.name:
            by_name.add(guest)
    return frozenset(by_id or by_name)


def _no_node(scene: Scene, named: frozenset[GuestRef], wanted: str) -> ConfigError | HypervisorUnreachable:
    """Say what was found instead of a node; a silent endpoint does not mean "there is none"."""
    if named:
        return ConfigError(
            f"{listing(sorted(named, key=str))} is no node of this cluster: no node reports its UUID, and "
            "`nodes:` of the configuration does not name it"
        )
    if scene.errors:
        mute = "; ".join(f"{name}: {text}" for name, text in scene.errors.items())
        return HypervisorUnreachable(f"no guest {clean(wanted)} was found, but not all answered: {mute}")
    return ConfigError(
        f"no guest {clean(wanted)}, by number, UUID or name. `fencer status` shows each node's guest"
    )
