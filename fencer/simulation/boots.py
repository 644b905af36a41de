"""Which boots of each node's VMs there were, and when one of them ran again: the truth about old memory."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from fencer.core.model import PowerState
from fencer.simulation.assembly import Simulation
from fencer.simulation.guests import Guest
from fencer.simulation.objects import ApiNode, ApiObject


@dataclass(frozen=True, slots=True)
class ShownBoot:
    """A Node shows another boot than before.

    Attributes:
        at_s: Since when, in seconds of the story.
        before_s: For how long it had shown the one before.
        earlier: It has shown this one before that.
    """

    at_s: float
    before_s: float
    earlier: bool


class Boots:
    """All boots, from the beginning of a story on.

    Args:
        simulation: The world.

    Attributes:
        memory_back_s: Node → when a boot from before its fence first ran under it, or after it; in seconds of
            the story, as the others.
        earlier_boot_s: Node → when it first had an earlier boot again: a VM ran in it, or another machine
            under its name reported another one in between.
        starts_s: Node → when each run of its VM began.
        changed_boot: Node → how it came to show the boot that it shows.
        looks_s: When armed agents have read all nodes, by the world's clock.
        exposed_s: VM → when its kubelet was last alive for so long, while another VM of its node and its disk
            was off, that it had to be running where no agent looks; by the world's clock.
        seen_alive: VMs that an armed agent has read running, with a kubelet that was alive for long enough
            in that boot to show that (W2).
    """

    def __init__(self, simulation: Simulation) -> None:
        self.memory_back_s: dict[str, float] = {}
        self.earlier_boot_s: dict[str, float] = {}
        self.starts_s: dict[str, list[float]] = {}
        self.changed_boot: dict[str, ShownBoot] = {}
        self.looks_s: list[float] = []
        self.exposed_s: dict[str, float] = {}
        self.seen_alive: set[str] = set()
        self._simulation = simulation
        self._fenced: dict[str, set[str]] = {}
        """Node that was ever tainted → the boots that its VMs had by then."""
        self._ran = {name: [machine.guest.boot_id] for name, machine in simulation.nodes.items()}
        """Node → the boots of its VMs, in the order in which they began."""
        self._runs = {name: guest.starts for name, guest in simulation.world.guests.items()}
        """VM → its newest run that is counted in `starts_s`."""
        self._reported = {name: [node.boot_id] for name, node in simulation.api.nodes.items()}
        """Node → the boots that it has shown."""
        self._shows = {name: (node.boot_id, -math.inf) for name, node in simulation.api.nodes.items()}
        """Node → the boot that it shows, and since when."""
        simulation.world.on_power.append(self._power)
        simulation.api.watchers.append(self._changed)

    def from_before(self, guest: Guest) -> bool:
        """Whether a VM is in a boot from before a fence of its node."""
        return guest.boot_id in self._fenced.get(guest.node, ())

    def shown_since_s(self, node: str, boot_id: str) -> float:
        """Return since when a Node shows a boot, by the world's clock; infinity: it does not."""
        shown, since_s = self._shows.get(node, ("", math.inf))
        return since_s if shown == boot_id else math.inf

    def was_shown(self, guest: Guest) -> bool:
        """Whether the Node of a VM ever showed the boot that it is in."""
        return guest.boot_id in self._reported.get(guest.node, ())

    def fenced(self, node: str, guests: Collection[Guest]) -> None:
        """Take note of the boots from before a fence; one that has just begun, and held nothing, is none.

        Args:
            node: That is being fenced.
            guests: The VMs that are that node.
        """
        self.memory_back_s.pop(node, None)
        boots, known = self._fenced.setdefault(node, set()), self._simulation.api.nodes[node].boot_id
        for guest in guests:
            # excuse: memory of a boot that its Node had not shown yet when it was fenced counts as no old
            #   memory
            begun = guest.cold and not self._simulation.holds_pods(guest)
            stands = guest.power is not PowerState.RUNNING and not begun
            if stands or guest.outdated or guest.boot_id == known:
                boots.add(guest.boot_id)
            if guest.snapshot is not None:
                boots.add(guest.snapshot.boot_id)
            self._note_old_memory(guest)

    def _power(self, guest: Guest) -> None:
        if guest.power is PowerState.RUNNING and self._runs.get(guest.name) != guest.starts:
            self._runs[guest.name] = guest.starts
            self.starts_s.setdefault(guest.node, []).append(self._now_s())
        # A moment later: which boot it is of is set after its power.
        self._simulation.clock.after(0.001, lambda: self._note(guest))

    def _changed(self, obj: ApiObject) -> None:
        if isinstance(obj, ApiNode):
            shown = self._reported.setdefault(obj.name, [])
            self._note_shown(obj)
            if obj.boot_id in shown[:-1]:
                self.earlier_boot_s.setdefault(obj.name, self._now_s())
            shown += [obj.boot_id] * (obj.boot_id not in shown)

    def _note_shown(self, node: ApiNode) -> None:
        before, since_s = self._shows.get(node.name, ("", math.inf))
        if before == node.boot_id:
            return
        now_s = self._simulation.clock.now_s()
        self._shows[node.name] = node.boot_id, now_s
        self.changed_boot[node.name] = ShownBoot(
            self._now_s(), now_s - since_s, earlier=node.boot_id in self._reported[node.name][:-1]
        )

    def _note(self, guest: Guest) -> None:
        if guest.power is not PowerState.RUNNING:
            return
        ran = self._ran.setdefault(guest.node, [])
        ran += [guest.boot_id] * (guest.boot_id not in ran)
        guests = self._simulation.world.guests.values()
        runs = (one for one in guests if one.node == guest.node and one.power is PowerState.RUNNING)
        if any(one.boot_id != ran[-1] for one in runs):
            self.earlier_boot_s.setdefault(guest.node, self._now_s())
        self._note_old_memory(guest)

    def _note_old_memory(self, guest: Guest) -> None:
        if guest.power is PowerState.RUNNING and self.from_before(guest):
            self.memory_back_s.setdefault(guest.node, self._now_s())

    def _now_s(self) -> float:
        return self._simulation.timeline.now_s()
