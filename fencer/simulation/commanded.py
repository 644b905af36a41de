"""What commands do in a story, held against what they were typed for, and against what they report."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from fencer.core.annotations import CORDON, read_cordon
from fencer.core.model import Cordon, PowerState
from fencer.simulation.assembly import Simulation
from fencer.simulation.commands import Typed
from fencer.simulation.guests import Guest
from fencer.simulation.objects import ApiNode

A_MOMENT_S = 0.01
"""Times are added up from parts."""

Shows: TypeAlias = Callable[[Simulation, ApiNode], bool]


def _vms(simulation: Simulation, node: ApiNode) -> Iterator[Guest]:
    return (guest for guest in simulation.world.guests.values() if guest.node == node.name)


def _off(simulation: Simulation, node: ApiNode) -> bool:
    return all(vm.power in {PowerState.STOPPED, PowerState.ABSENT} for vm in _vms(simulation, node))


def _runs(simulation: Simulation, node: ApiNode) -> bool:
    running = any(vm.power is PowerState.RUNNING for vm in _vms(simulation, node))
    return running and not node.out_of_service


def _is_back(simulation: Simulation, node: ApiNode) -> bool:
    """Whether a node runs, and no cordon of fencer's is left of its stop."""
    noted = isinstance(read_cordon(node.annotations.get(CORDON)), Cordon)
    ours = node.recorded and node.cordoner == "fencer" and noted
    return _runs(simulation, node) and not (node.unschedulable and ours)


SHOWS: Mapping[str, Shows] = {
    "fence": lambda _, node: node.out_of_service,
    "unfence": lambda _, node: not node.out_of_service,
    "drain": lambda _, node: node.unschedulable,
    "shutdown": _off,
    "start": _is_back,
    "drill": _runs,
}
"""What must be so of a node once a command reports success."""


class Commanded:
    """Knows for which command a strand acts, and judges commands.

    Args:
        simulation: The world.
        breach: Called with a node and what is wrong.
        late_s: How old what a command says may be.
    """

    def __init__(self, simulation: Simulation, breach: Callable[[str, str], None], late_s: float) -> None:
        self._simulation, self._breach, self._late_s = simulation, breach, late_s
        self._at = threading.local()
        """Of each strand: for which command it acts."""
        self._cordoned_by: dict[str, Typed] = {}
        """Node → the command that has cordoned it."""
        self._changed_s: dict[tuple[str, Typed | None], float] = {}
        """Node and whose doing → when it or its VM last changed, by the world's clock."""

    @property
    def typed(self) -> Typed | None:
        """The command for which this strand acts; None: it acts for an agent."""
        return getattr(self._at, "typed", None)

    @contextmanager
    def doing(self, typed: Typed | None) -> Iterator[None]:
        """What this strand does now is done for a command; None: for an agent."""
        before, self._at.typed = self.typed, typed
        try:
            yield
        finally:
            self._at.typed = before

    @property
    def over_brake(self) -> bool:
        """Whether this is done for a command that goes over the brake."""
        return self.typed is not None and self.typed.over_brake

    def wants_off(self, guest: Guest) -> bool:
        """Whether this is done for a command by which the power of this VM is to be cut, whatever it does."""
        return self.typed is not None and self.typed.may_cut and guest.node in self.typed.nodes

    def asks_off(self, guest: Guest) -> None:
        """Take note of a VM that is asked to shut down: only a person asks for that, of a node of theirs."""
        typed = self.typed
        if typed is None or typed.verb != "shutdown" or guest.node not in typed.nodes:
            self._breach(guest.node, "its VM is asked to shut down, and no person typed that")
        else:
            typed.asked_s.setdefault(guest.name, self._simulation.clock.now_s())
            self._hold_against_boots(typed, guest, "asked to shut down")

    def cuts(self, guest: Guest) -> bool:
        """Take note of a VM whose power is being cut. Returns whether a person wants that.

        A shutdown waits before that (--stop-after).
        """
        runs = self.wants_off(guest) and not guest.process_left
        if self.typed is not None and runs and self.typed.verb == "shutdown":
            waited_s = self._simulation.clock.now_s() - self.typed.asked_s.get(guest.name, math.inf)
            if waited_s < self.typed.stop_after_s - A_MOMENT_S:
                asked = "before" if waited_s < 0 else f"{waited_s:.1f} s after"
                self._breach(guest.node, f"its power is cut {asked} it was asked to shut down")
        if self.typed is not None and self.wants_off(guest) and guest.power is PowerState.RUNNING:
            self._hold_against_boots(self.typed, guest, "cut off")
        return self.wants_off(guest)

    def _hold_against_boots(self, typed: Typed, guest: Guest, order: str) -> None:
        """A command ends one boot of a VM: what started since is another one (S12)."""
        first = typed.boots.setdefault(guest.node, guest.boot_id)
        node = self._simulation.api.nodes.get(guest.node)
        # excuse: a command ends a second boot that neither another run nor the Node shows
        if first != guest.boot_id and node is not None and node.boot_id == guest.boot_id:
            self._breach(guest.node, f"a second boot of its VM is {order} by one command")

    def evicts(self, volumes: Collection[str]) -> None:
        """Take note of an eviction that is asked for, of a pod with these volumes."""
        if self.typed is not None:
            self.typed.moved += 1
            self.typed.volumes.update(volumes)

    def cordons(self, node: str) -> None:
        """Take note of a node that is cordoned now."""
        if self.typed is not None:
            self._cordoned_by[node] = self.typed

    def changes(self, node: str) -> None:
        """Take note of a node that changes, or its VM does."""
        self._changed_s[node, self.typed] = self._simulation.clock.now_s()

    def ends(self, typed: Typed) -> None:
        """Hold a command that has ended against what it says, unless its node was changed a moment ago."""
        for name in typed.nodes if typed.verb in SHOWS else ():
            node = self._simulation.api.nodes.get(name)
            if node is None or self._meddled(name, typed):
                continue
            if typed.done and not SHOWS[typed.verb](self._simulation, node):
                self._breach(name, f"`fencer {typed.words}` reports success, and that is not so")
            elif typed.verb == "drain" and self._leaves_cordon(node, typed):
                self._breach(name, f"`fencer {typed.words}` has failed, and its cordon is left")

    def _meddled(self, node: str, typed: Typed) -> bool:
        """Whether something else has changed a node a moment ago; one of several, since the command began."""
        by_others_s = (
            at_s for (name, who), at_s in self._changed_s.items() if name == node and who is not typed
        )
        since_s = typed.began_s if len(typed.nodes) > 1 else self._simulation.clock.now_s() - self._late_s
        return max(by_others_s, default=-math.inf) > since_s

    def _leaves_cordon(self, node: ApiNode, typed: Typed) -> bool:
        """Whether a drain of one node that failed by itself leaves its cordon.

        Of several nodes those stay cordoned that are drained. If it is interrupted, it shows what is left.
        """
        keeps = typed.interrupted or typed.says("--keep-cordon")
        unreached = self._simulation.api.down_why is not None
        own = self._cordoned_by.get(node.name) is typed and typed.nodes == (node.name,)
        left = node.unschedulable and node.cordoner == "fencer"
        return not (typed.done or keeps or unreached) and own and left
