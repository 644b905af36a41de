"""What must be gone before a fence is lifted, and what must have come (R1): the truth about both."""

from __future__ import annotations

from collections.abc import Iterator

from fencer.core.model import PowerState
from fencer.core.policy import Policy
from fencer.simulation.assembly import Simulation
from fencer.simulation.guests import Guest
from fencer.simulation.objects import ApiNode, ApiObject, ApiPod

LONG_AGO = (float("-inf"), 0)
"""When a VM began to run that did from the beginning, and how often the lease was renewed before."""


class Lifts:
    """Watches fenced nodes, and judges the lifts of their fences.

    Args:
        simulation: The world.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._there_s: dict[str, float] = {}
        """UID → since when a pod is on its node, or an attachment is there; none: since the beginning."""
        self._record: dict[str, frozenset[str]] = {}
        """Fenced node → the UIDs of what was there when it was fenced, and a moment before."""
        self._kept: dict[str, set[str]] = {}
        """Fenced node → volumes of pods that stay: they tolerate the taint, or came after the fence (R6)."""
        self._runs = dict.fromkeys(simulation.world.guests, LONG_AGO)
        """VM → when it began to run, and how often the lease of its node was renewed until then."""
        simulation.world.on_power.append(self._power)
        simulation.api.watchers.append(self._changed)

    def fenced(self, node: str, late_s: float) -> None:
        """Take note of what is on a node that is being fenced.

        Args:
            node: Which.
            late_s: What came less long ago may not have been seen.
        """
        api, oldest_s = self._simulation.api, self._now_s() - late_s
        held = [pod.uid for pod in api.pods_on(node)]
        held += [one.uid for one in api.attachments.values() if one.node == node]
        self._record[node] = frozenset(uid for uid in held if self._there_s.get(uid, oldest_s) <= oldest_s)
        self._kept[node] = set()
        for pod in api.pods_on(node):
            self._keep(pod)

    def objections(self, node: str, fenced_s: float, policy: Policy, late_s: float) -> Iterator[str]:
        """Say what keeps a fence from being lifted, at the moment in which it is.

        Args:
            node: Which.
            fenced_s: When it was fenced.
            policy: Of the agent.
            late_s: How old its answers may be.
        """
        guests = [guest for guest in self._simulation.machines_of(node) if guest.starts]
        if self._was_wrong(guests, fenced_s):
            return
        if left := [*self._pods_left(node), *self._volumes_left(node)]:
            yield f"its fence is lifted, and of before it are left: {', '.join(left)}"
        if len(guests) == 1 and guests[0].power is PowerState.RUNNING:
            since_s, before = self._runs.get(guests[0].name, LONG_AGO)
            renewals = self._simulation.api.nodes[node].renewals - before
            blindly = int(policy.unfence_blind_s // self._simulation.timing_of(node).renew_s)
            needed = min(policy.unfence_renewals, blindly)
            if renewals < needed and self._now_s() - since_s > late_s:
                yield f"its fence is lifted after {renewals} of {needed} renewals since its VM runs again"

    def _was_wrong(self, guests: list[Guest], fenced_s: float) -> bool:
        """Whether what ran before the fence runs on: a wrong fence is undone at once (R3)."""
        runs = [guest for guest in guests if guest.power is PowerState.RUNNING]
        return any(not one.cold or self._runs.get(one.name, LONG_AGO)[0] < fenced_s for one in runs)

    def _pods_left(self, node: str) -> Iterator[str]:
        for pod in self._simulation.api.pods_on(node):
            waits = pod.deleted_s is not None and bool(pod.finalizers)
            stays = pod.tolerates_out_of_service or pod.mirror or pod.over or waits
            if pod.uid in self._record.get(node, ()) and not stays:
                yield str(pod)

    def _volumes_left(self, node: str) -> Iterator[str]:
        for one in self._simulation.api.attachments.values():
            before = one.node == node and one.uid in self._record.get(node, ())
            if before and one.volume not in self._kept.get(node, ()):
                yield one.volume

    def _keep(self, pod: ApiPod) -> None:
        node = pod.node
        if node not in self._record or pod.volume is None:
            return
        if pod.uid not in self._record[node] or pod.tolerates_out_of_service or pod.mirror:
            self._kept[node].add(pod.volume)

    def _changed(self, obj: ApiObject) -> None:
        if isinstance(obj, ApiNode):
            return
        if obj.node is not None:
            self._there_s.setdefault(obj.uid, self._now_s())
        if isinstance(obj, ApiPod):
            self._keep(obj)

    def _power(self, guest: Guest) -> None:
        node = self._simulation.api.nodes.get(guest.node)
        if guest.power is PowerState.RUNNING:
            self._runs.setdefault(guest.name, (self._now_s(), 0 if node is None else node.renewals))
        elif guest.power is not PowerState.PAUSED:  # with that its run goes on
            self._runs.pop(guest.name, None)

    def _now_s(self) -> float:
        return self._simulation.clock.now_s()
