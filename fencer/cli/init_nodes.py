"""Which guest each node is, for ``fencer init``: by their UUIDs, as every look of the agent has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fencer.cli.wire import Quiet, Wiring, connected
from fencer.core.model import GuestRef
from fencer.runtime.reconcile import Agent


@dataclass(frozen=True, slots=True)
class Matched:
    """What was found.

    Attributes:
        guests: Node → its guest, of the nodes that can be one guest alone, and have its name.
        claimed: Node → its guest, of those that have another name: only a node's own word says which it is.
        others: Node → its guests, of those that may be none or several.
        silent: Endpoint → why it did not answer.
    """

    guests: dict[str, GuestRef]
    claimed: dict[str, GuestRef]
    others: dict[str, tuple[GuestRef, ...]]
    silent: dict[str, str]


def guests_of_nodes(wiring: Wiring, path: Path, names: Mapping[str, str]) -> Matched:
    """Look at all nodes and guests once, and change nothing.

    Args:
        wiring: Builds the parts.
        path: The configuration that leads there.
        names: As `Chosen` has them.

    Raises:
        ConfigError: something that it names is not right.
        ClusterError: the cluster could not be read.
    """
    with connected(wiring, path) as parts:
        scene = Agent(parts.world(Quiet()), parts.policy, parts.rules).observer.look()
        found = {
            node.name: tuple(candidate.guest for candidate in scene.directory.candidates(node))
            for node in scene.nodes.values()
            if not node.excluded
        }
        single = {name: guests[0] for name, guests in sorted(found.items()) if len(guests) == 1}
        return Matched(
            {name: guest for name, guest in single.items() if _alike(name, guest, names)},
            {name: guest for name, guest in single.items() if not _alike(name, guest, names)},
            {name: guests for name, guests in sorted(found.items()) if len(guests) != 1},
            dict(scene.errors),
        )


def _alike(node: str, guest: GuestRef, names: Mapping[str, str]) -> bool:
    """Whether node and guest have one name, perhaps with a domain behind it.

    A node's UUID is its kubelet's word. It may name any machine of that hypervisor, also one that is no node;
    power over that one is for a person to give.
    """
    name = names.get(guest.id, guest.name)
    return node.partition(".")[0] == name.partition(".")[0].lower()
