"""The ports of one agent, or of one command, as the judge of a story watches through them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from fencer.core.model import Evidence, FenceMark, GuestRef, NodeView, PodView
from fencer.core.policy import Mode, Policy
from fencer.core.times import parse_utc
from fencer.ports import Cleared, Cluster, Deadline, Hypervisor, Nodes
from fencer.simulation.commanded import Commanded
from fencer.simulation.commands import Typed
from fencer.simulation.guests import Guest
from fencer.simulation.own_clock import OwnClock

ON_ITS_WAY_S = 10.0
"""How long a Lease counts for its holder, by its own clock."""


ON_ITS_WAY_BACK_S = 0.1
"""An answer that was on its way when its clocks stopped is there at once when they go on."""


@dataclass(slots=True)
class Actor:
    """An agent, in one life of its process.

    Attributes:
        own: Its machine's clocks.
        knows: The endpoints in its configuration.
        policy: How it is set.
        typed: The command that a person has typed; None: it watches.
        looks: Guest → when it last looked at it live, by the world's clock.
        renewals: Guest and boot → the last renewal of its kubelet when it first read that running.
    """

    own: OwnClock
    knows: frozenset[str]
    policy: Policy
    typed: Typed | None
    looks: dict[str, float] = field(default_factory=dict)
    renewals: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def observes(self) -> bool:
        """Whether it may change nothing."""
        return self.policy.mode is Mode.OBSERVE and self.typed is None

    def went_on_lately(self, now_s: float) -> bool:
        """Whether its clocks stood still, or were set back, so shortly ago that it cannot know that yet."""
        return now_s - self.own.went_on_s <= max(ON_ITS_WAY_S, self.policy.evidence_max_age_s)

    def was_paused_over(self, guests: Collection[str], now_s: float) -> bool:
        """Whether it does now what was due when its clocks stopped: it has not looked at the VM since.

        Its deadline counts by its own clock, and no answer has come that could have shown it the time.
        """
        looked_s = max((self.looks.get(guest, -math.inf) for guest in guests), default=-math.inf)
        oldest_s = self.own.stopped_s - self.policy.evidence_max_age_s - ON_ITS_WAY_S
        due = oldest_s <= looked_s <= self.own.went_on_s + ON_ITS_WAY_BACK_S
        return due and self.went_on_lately(now_s)


class Witness(Protocol):
    """The judge, which each call of a port is reported to: see `fencer.simulation.truth.Truth`."""

    commanded: Commanded
    heard: dict[str, datetime]

    @property
    def now_s(self) -> float:
        """The world's clock."""
        ...

    def acting(self, actor: Actor) -> AbstractContextManager[None]:
        """What changes now is the doing of an agent."""
        ...

    def listed(self, actor: Actor) -> None:
        """An agent has just read all nodes."""
        ...

    def swept(self, endpoint: str, actor: Actor) -> None:
        """An agent has just listed the VMs of an endpoint."""
        ...

    def started(self, ref: GuestRef, actor: Actor) -> None:
        """A VM was started."""
        ...

    def stop_ended(self, ref: GuestRef, took_s: float) -> None:
        """A power-off took so long."""
        ...

    def asked_off(self, ref: GuestRef) -> None:
        """A VM is asked to shut down."""
        ...

    def discards(self, ref: GuestRef) -> Guest:
        """The saved memory of a VM is about to be thrown away. Returns that VM."""
        ...

    def discarded(self, guest: Guest) -> None:
        """It is thrown away."""
        ...

    def cleared(self, pod: PodView) -> None:
        """A pod is about to be cleared."""
        ...


class WatchedHypervisor:
    """A hypervisor's port, and when it was asked for a guest, or to start one."""

    def __init__(
        self,
        witness: Witness,
        actor: Actor,
        port: Hypervisor,
        looked: Callable[[GuestRef], None],
        orders: Callable[[GuestRef], None],
    ) -> None:
        self._witness, self._actor = witness, actor
        self._port, self._looked, self._orders = port, looked, orders

    def __getattr__(self, name: str) -> object:
        """Return what the port has of that name."""
        return getattr(self._port, name)

    def sweep(self) -> Sequence[Evidence]:
        """See `fencer.ports.Hypervisor.sweep`."""
        found = self._port.sweep()
        self._witness.swept(self._port.endpoint, self._actor)
        return found

    def read(self, guest: GuestRef) -> Evidence:
        """See `fencer.ports.Hypervisor.read`."""
        self._looked(guest)
        return self._port.read(guest)

    def start(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """See `fencer.ports.Hypervisor.start`."""
        self._orders(guest)
        with self._witness.commanded.doing(self._actor.typed):
            self._port.start(guest, incarnation, not_after)
        self._witness.started(guest, self._actor)

    def stop(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """See `fencer.ports.Hypervisor.stop`."""
        self._orders(guest)
        began_s = self._witness.now_s
        try:
            with self._witness.commanded.doing(self._actor.typed):
                self._port.stop(guest, incarnation, not_after)
        finally:
            self._witness.stop_ended(guest, self._witness.now_s - began_s)

    def shutdown(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """See `fencer.ports.Hypervisor.shutdown`."""
        self._orders(guest)
        with self._witness.commanded.doing(self._actor.typed):
            self._port.shutdown(guest, incarnation, not_after)
            self._witness.asked_off(guest)

    def discard(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """See `fencer.ports.Hypervisor.discard`."""
        self._orders(guest)
        found = self._witness.discards(guest)
        self._port.discard(guest, incarnation, not_after)
        self._witness.discarded(found)


class WatchedCluster:
    """The cluster's port, and what is given away by it."""

    def __init__(self, witness: Witness, actor: Actor, cluster: Cluster) -> None:
        self._witness, self._actor, self._cluster = witness, actor, cluster

    def __getattr__(self, name: str) -> object:
        """Return what the port has of that name."""
        call = getattr(self._cluster, name)
        if not callable(call):
            return call

        def watched(*args: object, **options: object) -> object:
            with self._witness.acting(self._actor):
                if name == "evict" and isinstance(args[0], PodView):
                    self._witness.commanded.evicts(args[0].claims)
                return call(*args, **options)

        return watched

    def nodes(self) -> Nodes:
        """See `fencer.ports.Cluster.nodes`. A command has no watch that could miss anything: it lists."""
        with self._witness.acting(self._actor):
            listed = self._cluster.nodes() if self._actor.typed is None else self._cluster.list_nodes()
        self._witness.listed(self._actor)
        return listed

    def clear(self, pod: PodView, why: str) -> Cleared:
        """See `fencer.ports.Cluster.clear`."""
        with self._witness.acting(self._actor):
            self._witness.cleared(pod)
            return self._cluster.clear(pod, why)

    def taint(self, node: NodeView, mark: FenceMark) -> None:
        """See `fencer.ports.Cluster.taint`."""
        self._witness.heard[node.name] = parse_utc(self._cluster.fact(node.name).renew_time or "")
        with self._witness.acting(self._actor):
            self._cluster.taint(node, mark)
