"""Index: which guest may be which node; made again whenever one of them is another one, or elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fencer.core.identity import Directory, Rules
from fencer.core.model import Evidence, GuestRef, NodeView, PowerState
from fencer.runtime.memory import Memory
from fencer.runtime.world import World


class Index:
    """Makes directories, and tells each endpoint which of its guests may be nodes.

    Args:
        world: The ports.
        rules: What the configuration says of identity.
        memory: What is remembered from pass to pass.
    """

    def __init__(self, world: World, rules: Rules, memory: Memory) -> None:
        self._world = world
        self._rules = rules
        self._memory = memory
        self._made: tuple[object, Directory] | None = None

    def directory(
        self,
        nodes: Collection[NodeView],
        readings: Mapping[tuple[str, str, str], Evidence],
        failed: Collection[str],
    ) -> Directory:
        """Return the directory of all guests and nodes: the one made before, if it still holds.

        Args:
            nodes: All nodes.
            readings: The newest one of each guest, by its key.
            failed: Endpoints that did not answer.
        """
        guests = self._guests(readings, failed)
        groups = {key: reading.groups for key, reading in readings.items() if reading.groups}
        basis = (
            guests,
            [(node.name, node.system_uuid, node.binding, node.approved) for node in nodes],
            groups,
        )
        if self._made is None or self._made[0] != basis:
            self._memory.calm.clear()
            endpoints = self._world.hypervisors
            directory = Directory(guests, nodes, self._rules, endpoints, readings.values())
            self._made = basis, directory
            attended = [candidate.guest for node in nodes for candidate in directory.candidates(node)]
            for port in endpoints.values():
                port.attend(attended)
        return self._made[1]

    def outdate(self) -> None:
        """Have the directory made again: it learnt something that the next readings may not show."""
        self._made = None

    def _guests(
        self, readings: Mapping[tuple[str, str, str], Evidence], failed: Collection[str]
    ) -> list[GuestRef]:
        """Return all guests that are listed now, and those last seen running on an endpoint that fails."""
        running = self._memory.running
        for key in [key for key in running if key[0] not in failed]:
            del running[key]
        running |= {
            key: reading.guest
            for key, reading in readings.items()
            if reading.power_state is PowerState.RUNNING
        }
        lost = (guest for key, guest in running.items() if key not in readings)
        return [*(reading.guest for reading in readings.values()), *lost]
