"""The promise, asked of the truth: nothing is given away, and nobody is cut off, who still lives.

An independent witness of what an agent does. It knows neither evidence nor rules, only the world as it is;
and it stands between agent and ports, so that nothing is done that it does not see.
"""

from __future__ import annotations

from typing import cast

from fencer.core.model import Cordon, FenceMark, NodeView, PodView, PowerState
from fencer.ports import Cleared, Cluster
from fencer.simulation.assembly import Simulation
from fencer.simulation.guests import Guest


class Breach(AssertionError):
    """The promise was broken, whether or not two guests came to write because of it."""


class Truth:
    """Watches what is done in a world.

    Args:
        simulation: The world.
        strict: A breach raises; otherwise it is told and counted.
        trusts_pauses: The operator has said that a paused guest counts as gone.
    """

    def __init__(self, simulation: Simulation, *, strict: bool, trusts_pauses: bool) -> None:
        self.breaches = 0
        self._simulation = simulation
        self._strict = strict
        self._alive = {PowerState.RUNNING, PowerState.SAVED} | (
            set() if trusts_pauses else {PowerState.PAUSED}
        )
        self._ours: set[str] = set()
        for hypervisor in simulation.hypervisors.values():
            hypervisor.on_stop.append(self.cut_off)

    def gone(self, node: str) -> bool:
        """Whether no machine that was this node can run on: nothing of its memory is anywhere."""
        return not self._living(node)

    def cluster(self) -> Cluster:
        """Return the cluster's port, watched."""
        return cast("Cluster", _WatchedCluster(self, self._simulation.cluster))

    def tainted(self, node: str) -> None:
        """Take note of a taint that is about to be set."""
        self._ours.add(node)
        self._given_away(node, "tainted")

    def cleared(self, pod: PodView) -> None:
        """Take note of a pod that is about to be cleared."""
        found = self._simulation.api.pods.get(pod.uid)
        if found is not None and found.node is not None:
            self._given_away(found.node, f"{pod} is cleared")

    def untainted(self, node: str) -> None:
        """Take note of a taint that is about to be lifted."""
        if node not in self._ours:
            self._breach(node, "a taint is lifted that fencer did not set")
        self._ours.discard(node)

    def cut_off(self, guest: Guest) -> None:
        """Take note of a guest whose power is being cut, at the moment in which it is.

        One that runs under a fence of ours runs with old memory, and may be wanted off (``resumed_guest``).
        """
        if self._simulation.heard(guest) and guest.node not in self._ours:
            self._breach(guest.node or guest.name, "its guest is stopped, which runs and is heard")

    def _living(self, node: str) -> list[Guest]:
        guests = self._simulation.world.guests.values()
        return [guest for guest in guests if guest.node == node and guest.power in self._alive]

    def _given_away(self, node: str, how: str) -> None:
        for guest in self._living(node):
            self._breach(node, f"{how}, and its guest {guest.name} is {guest.power} on {guest.endpoint}")

    def _breach(self, node: str, text: str) -> None:
        self.breaches += 1
        self._simulation.timeline.tell("world", node, "breach", text)
        if self._strict:
            raise Breach(f"{self._simulation.timeline.now_s():.1f} s: {node}: {text}")


class _WatchedCluster:
    """The cluster's port, and what is given away by it."""

    def __init__(self, truth: Truth, cluster: Cluster) -> None:
        self._truth, self._cluster = truth, cluster

    def __getattr__(self, name: str) -> object:
        return getattr(self._cluster, name)

    def taint(self, node: NodeView, mark: FenceMark) -> None:
        self._cluster.taint(node, mark)
        self._truth.tainted(node.name)

    def untaint(self, node: NodeView, cordon: Cordon | None) -> None:
        self._cluster.untaint(node, cordon)
        self._truth.untainted(node.name)

    def clear(self, pod: PodView, why: str) -> Cleared:
        self._truth.cleared(pod)
        return self._cluster.clear(pod, why)
