"""Which guest each node is, for ``fencer init``: by their UUIDs, as every look of the agent has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fencer.cli.approve import is_meant, vm_rows
from fencer.cli.asked import Person
from fencer.cli.render import say
from fencer.cli.wire import Quiet, Wiring, connected
from fencer.core.model import GuestRef
from fencer.core.text import listing, natural
from fencer.runtime.approvals import Approvals
from fencer.runtime.reconcile import Agent

THESE = "Are these VMs the nodes beside them, and may fencer stop and start them?"


def approved_as_typed(person: Person, vms: Mapping[str, GuestRef]) -> set[str]:
    """Return the nodes of which a person has typed which VM they are, where that is right."""
    return {node for node, vm in vms.items() if is_meant(vm, person.approves.get(node) or "?")}


@dataclass(frozen=True, slots=True)
class Matched:
    """What was found.

    Attributes:
        guests: Node → its VM, of the nodes that can be one VM alone, and have its name.
        claimed: Node → its VM, of those that have another name.
        others: Node → its guests, of those that may be none or several.
        silent: Endpoint → why it did not answer.
        powered: The nodes over whose VM fencer has power, or once it is approved (`fencer approve`).
    """

    guests: dict[str, GuestRef]
    claimed: dict[str, GuestRef]
    others: dict[str, tuple[GuestRef, ...]]
    silent: dict[str, str]
    powered: frozenset[str] = frozenset()

    @property
    def single(self) -> dict[str, GuestRef]:
        """Node → its VM, of all nodes that can be one VM alone."""
        return self.guests | self.claimed


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
        candidates = {
            node.name: scene.directory.candidates(node) for node in scene.nodes.values() if not node.excluded
        }
        found = {name: tuple(one.guest for one in several) for name, several in candidates.items()}
        single = {name: guests[0] for name, guests in sorted(found.items()) if len(guests) == 1}
        return Matched(
            {name: guest for name, guest in single.items() if _alike(name, guest, names)},
            {name: guest for name, guest in single.items() if not _alike(name, guest, names)},
            {name: guests for name, guests in sorted(found.items()) if len(guests) != 1},
            dict(scene.errors),
            frozenset(
                name
                for name, several in candidates.items()
                if any(one.power_admitted or one.unapproved for one in several)
            ),
        )


def approve_vms(wiring: Wiring, person: Person, path: Path) -> Iterator[str]:
    """Ask over which of the VMs that a tag or a pool admits fencer is to have power (C3).

    Args:
        wiring: Builds the parts.
        person: Is asked.
        path: The configuration.

    Yields:
        What is left to do.

    Raises:
        ClusterError: the cluster could not be read, or an approval not be written.
    """
    if not any(endpoint.power.groups for endpoint in wiring.load(path).endpoints):
        return
    with connected(wiring, path) as parts:
        world = parts.world(Quiet())
        found = Approvals(world, Agent(world, parts.policy, parts.rules))
        waiting = {node: subject.guest for node, subject in found.waiting.items()}
        agreed = approved_as_typed(person, waiting)
        left = {node: vm for node, vm in waiting.items() if node not in agreed}
        if left and person.answers:
            for line in vm_rows(left):
                say(line)
        if left and person.confirms(THESE):
            agreed |= set(left)
        by = f"{wiring.person()} (by hand)"
        done = [node for node in sorted(agreed) if found.approve(node, waiting[node].uuid, by)]
    if done:
        say(f"approved: {listing(done)}")
    rest = [node for node in sorted(waiting, key=natural) if node not in done]
    if rest:
        yield (
            f"{listing(rest)}: fencer has no power over these VMs before a person approves them: `fencer "
            f"approve -c {path}` lists them"
        )


def _alike(node: str, guest: GuestRef, names: Mapping[str, str]) -> bool:
    """Whether node and VM have one name, perhaps with a domain behind it.

    A node reports its UUID and chooses its name. So both may be those of any VM of that hypervisor, also of
    one that is no node; power over it is for a person to give (C3).
    """
    name = names.get(guest.id, guest.name)
    return node.partition(".")[0] == name.partition(".")[0].lower()
