"""Small worlds and hand-written agents for the tests of the simulation."""

from __future__ import annotations

from fencer.core.model import FenceMark, GuestRef
from fencer.simulation.assembly import Shape, Simulation
from fencer.simulation.crew import Obeyed
from fencer.simulation.faults import Fault, What, apply
from fencer.simulation.stage import StagePorts
from fencer.simulation.workloads import StatefulSet


def warm(*workloads, seed=1, strict=True, **timing):
    """Return a world of three nodes in which everything is Ready."""
    simulation = Simulation(Shape(), workloads or (StatefulSet("db", 8),), seed=seed, strict=strict, **timing)
    simulation.warm_up()
    return simulation


def happen(simulation, what, target=""):
    """Let one thing happen now."""
    apply(Fault(0.0, what, target), simulation)


def names(pods):
    return sorted(pod.name for pod in pods)


def set_taint_by_hand(simulation, node):
    """Taint a node through the port, as a person (or a hasty agent) would."""
    cluster = simulation.cluster
    view = cluster.fact(node).node
    guest = simulation.guest(node).ref
    cluster.taint(view, FenceMark("x", cluster.fact(node).utc, view.boot_id, guest, "somebody"))


class Idle:
    """An agent that does nothing."""

    def __init__(self, _ports: StagePorts) -> None:
        self.passes = 0

    def tick(self) -> None:
        self.passes += 1

    def obey(self, _words: str) -> Obeyed:
        return Obeyed(done=False, text="it does nothing that a person types, either")


class Hasty:
    """An unsafe agent: fences whatever is NotReady, and asks no hypervisor."""

    def __init__(self, ports: StagePorts) -> None:
        self._ports = ports

    def tick(self) -> None:
        cluster = self._ports.cluster
        listed = cluster.list_nodes()
        for node in listed.views:
            if node.ready is not None or node.out_of_service is not None:
                continue
            guest = GuestRef("lab", node.name, node.system_uuid, node.name)
            cluster.taint(node, FenceMark("hasty", listed.utc, node.boot_id, guest, "hasty"))
            for pod in cluster.pods(node.name):
                cluster.clear(pod, "not ready is dead, is it not")

    def obey(self, _words: str) -> Obeyed:
        return Obeyed(done=False, text="it takes no commands")


__all__ = ["Hasty", "Idle", "What", "happen", "names", "set_taint_by_hand", "warm"]
