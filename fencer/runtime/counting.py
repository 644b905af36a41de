"""Counting: what all nodes together say, and that it is still so right before a fence or a power-off.

Other agents act as well, and other incidents go on side by side. So whoever acts counts again, one at a time,
and what is under way counts for the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from fencer.core.brake import with_slots
from fencer.core.fleet import (
    STALL_REMEMBERED_S,
    heard,
    quorum_without,
    stalls,
    survey,
    tainted,
)
from fencer.core.history import aged, unasked
from fencer.core.model import Action, Fleet, NodeView, Note, PowerState, TaintNode, Unreadable
from fencer.core.policy import Policy
from fencer.core.times import Moment
from fencer.runtime.index import Index
from fencer.runtime.leases import Leases
from fencer.runtime.memory import Scene
from fencer.runtime.shared import Shared
from fencer.runtime.world import API, World

COUNTING = f"{API}/counting"
"""The worker of this: whoever is to act next does not wait behind what others look at."""
COUNTED_FOR_S = 2.0
"""For so long one count serves all who act then. What other agents are about to fence is on the ledger."""


class Counting:
    """Sums up a scene, and brings it up to date for whoever is about to act.

    Args:
        world: The ports.
        policy: What counts as silent, and where the brake is.
        shared: What it shares with observer and executor.
        leases: Reads leases.
        index: Knows which guest may be which node.
    """

    def __init__(self, world: World, policy: Policy, shared: Shared, leases: Leases, index: Index) -> None:
        self._world = world
        self._policy = policy
        self._api, self._memory = shared.api, shared.memory
        self._ledger, self._notes = shared.ledger, shared.notes
        self._leases = leases
        self._index = index
        self._counted: Scene | None = None
        """In which scene the nodes were counted last: only there all own actions are taken into account."""

    def fleet(self, scene: Scene) -> Fleet:
        """Sum up the scene, once per change."""
        if scene.fleet is None:
            now_s, now = self._world.clock.now_s(), Moment(scene.earliest_utc, scene.latest_utc)
            self._memory.stalls |= dict.fromkeys(stalls(scene.evidence.values()), now_s)
            fleet = survey(
                scene.nodes.values(),
                scene.evidence.values(),
                self._policy,
                now.earliest_utc,
                self._last_stop_age_s(now, now_s),
                scene.paused_why,
                frozenset(name for name, s in self._memory.stalls.items() if now_s - s < STALL_REMEMBERED_S),
                self._noted(scene.nodes.values()),
            )
            members = [node for node in scene.nodes.values() if node.control_plane]
            without = quorum_without(members, self._policy, not_running(scene, members))
            scene.fleet = replace(with_slots(fleet, self._ledger.slots(now)), quorum_without=without)
        return scene.fleet

    def _noted(self, nodes: Iterable[NodeView]) -> dict[str, Note]:
        """Return what this agent has noted of the nodes whose doubts can't be read, by UID."""
        unreadable = (node.uid for node in nodes if isinstance(node.doubts, Unreadable))
        return {uid: note for uid in unreadable if (note := self._notes.of(uid)) is not None}

    def _last_stop_age_s(self, now: Moment, now_s: float) -> float | None:
        """Return how long ago any agent last stopped a guest, as far as this one knows."""
        own_s, shared_s = self._memory.last_stop_s, self._ledger.power_age_s(now)
        ages_s = [
            age_s for age_s in (None if own_s is None else now_s - own_s, shared_s) if age_s is not None
        ]
        return min(ages_s, default=None)

    def again(self, scene: Scene, name: str, came_s: float) -> None:
        """Count the nodes again: others may have fenced, or died, since the pass began.

        Args:
            scene: Of this pass.
            name: The node that something is to be done to.
            came_s: Since when somebody waits to do it: a count from then is new enough.

        Raises:
            ClusterError: nothing may be done.
        """
        if self._counted is not scene or came_s - scene.counted_s >= COUNTED_FOR_S:
            self._count_all(scene, name)
        else:
            self._take_told(scene)

    def _count_all(self, scene: Scene, name: str) -> None:
        """List the nodes, and read the leases that something depends on."""
        began_s = self._world.clock.now_s()
        listed = self._api(self._world.cluster.list_nodes, COUNTING)
        self._ledger.look(Moment.of(listed.utc, self._world.apart_s(listed.utc)))
        views = [self._leases.newest(view) for view in listed.views]
        known = {node.uid for node in scene.nodes.values()}
        directory = scene.directory
        if any(view.uid not in known for view in views):
            directory = self._index.directory(views, scene.evidence, scene.errors)
        asked = self._leases.in_question(views, scene.evidence, directory)
        nodes, beats = self._leases.read(views, asked | {name})
        scene.nodes, scene.directory = scene.nodes | nodes, directory
        scene.pause_note, scene.fleet = beats.paused_why, None
        scene.utc, scene.apart_s = beats.utc, self._world.apart_s(beats.utc)
        scene.counted_s, self._counted = began_s, scene

    def _take_told(self, scene: Scene) -> None:
        """Take into account what was told since the nodes were counted. Whether fencing is paused is read."""
        pause = self._api(self._world.cluster.pause, COUNTING)
        apart_s = self._world.apart_s(pause.utc)
        self._take_newer(scene, self._api(self._world.cluster.nodes, COUNTING).views)
        scene.pause_note, scene.utc, scene.apart_s = pause.why, pause.utc, apart_s

    def _take_newer(self, scene: Scene, views: Collection[NodeView]) -> None:
        scene.fleet, now_s = None, self._world.clock.now_s()
        for view in map(self._leases.newest, views):
            before, lease = scene.nodes.get(view.name), self._memory.leases.get(view.uid)
            if before is not None and lease is not None and view.newer_than(before):
                scene.nodes[view.name] = aged(view, lease, now_s) if before.asked else unasked(view, lease)

    def count(self, scene: Scene, node: NodeView, action: Action) -> None:
        """Take into account what is being done to a node, for whoever is about to act next."""
        if isinstance(action, TaintNode):
            scene.nodes[node.name] = tainted(node, action.mark)
            self._memory.live[node.uid] = (scene.nodes[node.name], self._world.clock.now_s())
        scene.fleet = None

    def discount(self, scene: Scene, node: NodeView) -> None:
        """Take it back: it was not done."""
        scene.nodes[node.name], scene.fleet = node, None
        self._memory.live.pop(node.uid, None)

    def take_in(self, scene: Scene, node: NodeView, pause_note: str | None) -> None:
        """Put what was just read into the scene; sum up again only if that makes a difference.

        Args:
            scene: Of this pass.
            node: The node that was read.
            pause_note: The text of the pause annotation then; None: there is none.
        """
        before, paused_before = scene.nodes.get(node.name), scene.pause_note
        scene.nodes[node.name], scene.pause_note = node, pause_note
        if (
            before is None
            or _for_others(before, self._policy) != _for_others(node, self._policy)
            or paused_before != pause_note
        ):
            scene.fleet = None


def not_running(scene: Scene, nodes: Collection[NodeView]) -> frozenset[str]:
    """Name those nodes whose guests do not run, by their hypervisor's newest word."""
    states = {
        node.name: scene.evidence[candidates[0].guest.key].power_state
        for node in nodes
        if (candidates := scene.directory.candidates(node)) and candidates[0].guest.key in scene.evidence
    }
    up = {PowerState.RUNNING, PowerState.UNKNOWN}
    return frozenset(name for name, state in states.items() if state not in up)


def _for_others(node: NodeView, policy: Policy) -> tuple[object, ...]:
    """Return what of a node counts in the sums over all."""
    wrong = (node.doubts, node.boot_id, node.binding) if node.doubts else None
    return node.uid, node.taints, node.mark, node.roles, node.asked, heard(node, policy), wrong
