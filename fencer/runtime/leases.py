"""Leases: of which nodes they are read in a look, and for how long each node has been silent by them.

A healthy node's lease need not be read: what is asked is whether *anybody* is heard, and how long those have
been silent on whom something depends. How far all leases had got is noted at every look, so that the first
read of a lease tells how old it is (`fencer.core.history.Mark`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from fencer.core.fleet import heard
from fencer.core.history import (
    LAGS_S,
    LeaseTrack,
    Mark,
    aged,
    deafened,
    marked,
    silence_kept_s,
    track,
    unasked,
    unheard,
)
from fencer.core.identity import Directory
from fencer.core.model import Binding, Evidence, GuestHistory, GuestRef, NodeView, PowerState
from fencer.core.policy import Policy, UnresponsiveGuest
from fencer.errors import ClusterError
from fencer.ports import Fact, Heartbeats
from fencer.runtime.memory import Calm
from fencer.runtime.shared import Shared
from fencer.runtime.world import API, World

T = TypeVar("T")

LOOKS = f"{API}/looks"
"""The worker of what every look needs: calls for single nodes that hang cannot keep it busy."""
LIKELY = 3
"""So many are enough to know that somebody is heard; if none of them is, all are asked again."""


class Leases:
    """Reads leases, and remembers what they told.

    Args:
        world: The ports.
        policy: What counts as silent.
        shared: What it shares with the observer.
    """

    def __init__(self, world: World, policy: Policy, shared: Shared) -> None:
        self._world = world
        self._policy = policy
        self._api, self._memory, self._notes = shared.api, shared.memory, shared.notes
        self._names, self._cordons = shared.names, shared.cordons
        self._marks: tuple[Mark, ...] = ()
        self._likely: tuple[str, ...] = ()
        """Nodes that are likely to be heard, since those were silent that the cluster tells of unasked."""
        self._asked_s = self._voice_s = self._asked_awake_s = world.clock.now_s()
        self._lost_s = self._unseen_s = 0.0
        self._mute = self._stood_before = False

    def ask(self, call: Callable[[], T]) -> T:
        """Ask the cluster for what every look needs; if that fails, nobody could be heard until then.

        Raises:
            ClusterError: what the call raised, or that it came too late.
        """
        try:
            return self._api(call, LOOKS)
        except ClusterError:
            now_s = self._world.clock.now_s()
            passed_s, self._asked_s = now_s - self._asked_s, now_s
            self._lost_s += passed_s
            self._unseen_s += passed_s
            raise

    def newest(self, view: NodeView) -> NodeView:
        """Return a node as it was told from afar; or as it was read live a moment ago, if that is newer.

        Otherwise a fence of a moment ago would not count for the brake.
        """
        live, at_s = self._memory.live.get(view.uid, (view, 0.0))
        newer = live.newer_than(view) and self._world.clock.now_s() - at_s < LAGS_S
        return self._cordons.look(self._notes.read(self._names.read(live if newer else view)))

    def in_question(
        self,
        views: Collection[NodeView],
        readings: Mapping[tuple[str, str, str], Evidence],
        directory: Directory,
        calm: Collection[str] = (),
        calls: Collection[str] = (),
    ) -> set[str]:
        """Name the nodes whose leases something depends on, but for those that are calm.

        On those of nodes about which somebody asks for anything (`calls`) something does.

        Of the control plane's all or none: whether etcd keeps its quorum is a question about each of them.
        """
        asked = {
            view.name
            for view in views
            if view.name not in calm and (view.name in calls or self._depends(view, readings, directory))
        }
        members = {view.name for view in views if view.control_plane} if asked else asked
        return asked | members if asked & members else asked

    def read(
        self,
        views: Sequence[NodeView],
        asked: Collection[str] | None,
        calm: Mapping[str, Calm] = MappingProxyType({}),
    ) -> tuple[dict[str, NodeView], Heartbeats]:
        """Read leases; return the nodes with what this agent knows of them, by name, and what was read.

        Args:
            views: All nodes.
            asked: Names of those whose leases are read; those of all if none of them is heard. None: all.
            calm: Nodes of which nothing has changed, by name.

        Raises:
            ClusterError: they could not be read.
        """
        if asked is not None:
            asked = {*asked, *self._likely}
        beats = self._beats(asked)
        nodes = self._hear(views, asked, beats, calm)
        if asked is not None and not self._voices(nodes):
            beats = self._beats(None)
            nodes = self._hear(views, None, beats, calm)
            self._likely = tuple(node.name for node in self._voices(nodes))[:LIKELY]
        self._unseen_s = 0.0
        return self._counted(nodes), beats

    def live(self, fact: Fact) -> NodeView:
        """Return a node that was read live, with what this agent knows of it."""
        node = self._cordons.look(self._notes.read(self._names.read(fact.node)))
        return self._aged(node, fact.renew_time, fact.lease_version)

    def _depends(
        self,
        node: NodeView,
        readings: Mapping[tuple[str, str, str], Evidence],
        directory: Directory,
    ) -> bool:
        """Whether something depends on a lease: its node may be silent, fenced, or another guest.

        Where silence alone may cost a guest its power, something depends on each.
        """
        if not self._policy.require_not_ready and self._policy.unresponsive_guest is UnresponsiveGuest.STOP:
            return True
        lease, history = self._memory.leases.get(node.uid), self._memory.guests.get(node.uid)
        if lease is None or history is None or node.ready is not True or _written_on(node):
            return True
        candidates = directory.candidates(node)
        if not candidates:
            return False
        guest = candidates[0].guest
        reading = readings.get(guest.key)
        if len(candidates) > 1 or reading is None or reading.away:
            return True
        runs = reading.power_state is PowerState.RUNNING
        return not (runs and _bound(node, guest) and _seen_alive(node, guest, history, lease))

    def _beats(self, asked: Collection[str] | None) -> Heartbeats:
        began_s = self._world.clock.now_s()
        beats = self.ask(lambda: self._world.cluster.heartbeats(asked))
        now_s = self._asked_s = self._world.clock.now_s()
        self._marks = marked(self._marks, Mark(beats.version, began_s, now_s, unseen_s=self._unseen_s))
        return beats

    def _hear(
        self,
        views: Sequence[NodeView],
        asked: Collection[str] | None,
        beats: Heartbeats,
        calm: Mapping[str, Calm],
    ) -> dict[str, NodeView]:
        nodes = {}
        for view in views:
            lease = beats.leases.get(view.name)
            if lease is not None:
                nodes[view.name] = self._aged(view, lease.renew_time, lease.version)
            elif asked is None or view.name in asked or view.uid not in self._memory.leases:
                nodes[view.name] = self._aged(view, None, 0)
            elif view.name in calm:
                nodes[view.name] = calm[view.name].node
            else:
                nodes[view.name] = self._not_asked(view)
        return nodes

    def _counted(self, nodes: dict[str, NodeView]) -> dict[str, NodeView]:
        """Return the nodes without the silence that says nothing about them.

        Once any node is heard again, the time in which none was is not counted: since the last sign of life,
        if a look showed none meanwhile or nobody looked; otherwise the time of the looks without an answer.
        What is new after those may be as old as they are, and is no sign that a node is heard now.
        """
        now_s, voices = self._asked_s, [node.heard_s or 0.0 for node in self._voices(nodes)]
        # Not every time for an agent that stands still again and again: dead nodes have to become silent.
        stood, self._asked_awake_s = self._api.awake_since_s > self._asked_awake_s, self._api.awake_since_s
        self._mute = self._mute or not voices or (stood and not self._stood_before)
        self._stood_before = stood
        if not voices:
            return nodes
        deaf_s = now_s - self._voice_s if self._mute else self._lost_s
        newest_s = now_s if self._mute else now_s - min(voices)
        self._voice_s, self._lost_s, self._mute = max(self._voice_s, newest_s), 0.0, False
        if not deaf_s:
            return nodes
        keep_s, leases = silence_kept_s(self._policy), self._memory.leases
        self._marks = deafened(self._marks, deaf_s, now_s, keep_s)
        for uid, lease in leases.items():
            leases[uid] = unheard(lease, deaf_s, now_s, keep_s)
        return {
            name: aged(node, leases[node.uid], now_s) if node.asked else node for name, node in nodes.items()
        }

    def _voices(self, nodes: Mapping[str, NodeView]) -> list[NodeView]:
        return [node for node in nodes.values() if node.asked and heard(node, self._policy)]

    def _aged(self, view: NodeView, renew_time: str | None, version: int) -> NodeView:
        now_s = self._world.clock.now_s()
        lease = self._memory.leases[view.uid] = track(
            self._memory.leases.get(view.uid),
            renew_time,
            ready=view.ready is True,
            now_s=now_s,
            version=version,
            unseen_s=self._unseen_s,
            marks=self._marks,
        )
        return aged(view, lease, now_s)

    def _not_asked(self, view: NodeView) -> NodeView:
        """Return a node that is Ready, and whose lease is not read."""
        lease = self._memory.leases[view.uid]
        if lease.not_ready_since_s is not None:
            lease = self._memory.leases[view.uid] = replace(lease, not_ready_since_s=None)
        return unasked(view, lease)


def _written_on(node: NodeView) -> bool:
    """Whether anybody has written more on a node than which guest it is."""
    return bool(node.out_of_service or node.mark or node.cordon or node.doubts or node.claim)


def _bound(node: NodeView, guest: GuestRef) -> bool:
    """Whether that this guest is the node, in this boot and at this place, is written on it."""
    binding = node.binding
    return isinstance(binding, Binding) and binding.guest == guest and node.boot_id in binding.boot_ids


def _seen_alive(node: NodeView, guest: GuestRef, history: GuestHistory, lease: LeaseTrack) -> bool:
    """Whether this agent has seen the guest alive with the node, in this boot."""
    same = history.proven and history.guest == guest.key and history.boot_id == node.boot_id
    return same and lease.renewals > history.renewals_at_boot
