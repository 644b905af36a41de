"""Look without a past: what a command that has not watched can say. It never acts.

An agent believes only those renewals of a lease that it saw itself. A command that looks once has seen none,
and would call every lease fresh. So the onlooker takes the API's word for what went before: good enough to
tell people, never to act upon. Where nothing is written, it says that it cannot tell, and what would follow.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from fencer.core.decide import decide
from fencer.core.history import LeaseTrack
from fencer.core.identity import Rules
from fencer.core.model import Judged, NodeView, PowerState, Reason
from fencer.core.policy import Policy
from fencer.core.shutdown import MAY_TAKE_S
from fencer.core.times import parse_utc, seconds_between
from fencer.errors import ClusterError
from fencer.ports import Heartbeats, Lease
from fencer.runtime.memory import Scene
from fencer.runtime.reconcile import Agent, Pass
from fencer.runtime.world import World
from fencer.wording.foresight import foretold, past_untold, untold

NOT_READY_TAINTS = frozenset({"node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"})
"""Set when Ready stops being True, with the time.

Source: kubernetes pkg/controller/nodelifecycle/node_lifecycle_controller.go.
"""


class Onlooker:
    """Judges nodes for people.

    Args:
        world: The ports.
        policy: How careful an agent would be.
        rules: What the configuration says of identity.

    Attributes:
        agent: The one that looks.
    """

    def __init__(self, world: World, policy: Policy, rules: Rules) -> None:
        self._world = world
        self._policy = policy
        self.agent = Agent(world, policy, rules)
        self._untold = untold(policy, first_look=True)
        self._began_s = float("inf")

    @property
    def call_took_s(self) -> float:
        """How long the newest call to the API server took."""
        return self.agent.shared.api.took_s

    def look(self, name: str | None = None) -> Pass:
        """Judge every node (or one) like an agent that had watched all along.

        From the second look on, leases are judged by what was seen in between, as an agent's are.

        Raises:
            ClusterNotFound: there is no node of that name.
            ClusterError: the cluster could not be read.
        """
        shared = self.agent.shared
        known, beats = shared.api(self._world.cluster.nodes), shared.api(self._all_leases)
        now_s = self._world.clock.now_s()
        for view in known.views:
            lease = beats.leases.get(view.name, Lease(None))
            shared.memory.leases.setdefault(view.uid, _told(view, lease, beats.utc, now_s))
        seen = self.agent.survey(name)
        self._began_s = min(self._began_s, seen.scene.now_s)
        for node, judged in seen.judged.items():
            if self._may_hang(judged):
                bare = replace(judged.observation, node=replace(judged.observation.node, cordon=None))
                seen.judged[node] = replace(judged, decision=decide(bare, self._policy))
            if judged.decision.reason in self._untold:
                seen.judged[node] = self._foretold(seen.scene, judged)
        self._untold = untold(self._policy, first_look=False)
        return seen

    def _may_hang(self, judged: Judged) -> bool:
        """Whether a guest that was shut down by fencer runs, and perhaps has for long: its node is not heard.

        One that was seen to begin is on its way; of any other only an agent knows for how long it has run.
        """
        run, unheard_s = judged.observation.history.run, judged.observation.node.not_ready_s or 0.0
        runs = run is not None and run.power_state is PowerState.RUNNING and run.since_s <= self._began_s
        return judged.decision.reason is Reason.PLANNED_STOP and runs and unheard_s >= MAY_TAKE_S

    def _all_leases(self) -> Heartbeats:
        return self._world.cluster.heartbeats(None)

    def _foretold(self, scene: Scene, judged: Judged) -> Judged:
        """Add what one look cannot tell about a node, and what would follow; that takes a live look."""
        if not judged.observation.close:
            with suppress(ClusterError):  # then what would follow is not said
                observation = self.agent.observer.closer(scene, judged.observation)
                judged = Judged(observation, decide(observation, self._policy))
        if judged.decision.reason not in self._untold:
            return judged
        if judged.observation.node.fenced and judged.decision.reason is Reason.NOT_HELD:
            # Whoever fenced it has waited for that.
            return replace(judged, decision=past_untold(judged.observation, self._policy) or judged.decision)
        text, stands = foretold(judged.observation, judged.decision, self._policy)
        return replace(judged, untold=text, stands=stands)


def _told(node: NodeView, lease: Lease, utc: str, now_s: float) -> LeaseTrack:
    """Return the API's view of a lease: its age by the node's clock compared with the API server's."""
    silence_s = max((_age_s(since, utc) for since in _not_ready_since(node)), default=0.0)
    return LeaseTrack(
        renew_time=lease.renew_time,
        changed_at_s=now_s - _age_s(lease.renew_time, utc),
        renewals=int(lease.renew_time is not None),  # it was renewed once: so a known boot counts as heard
        not_ready_since_s=None if node.ready else now_s - silence_s,
        version=lease.version,
    )


def _not_ready_since(node: NodeView) -> list[str | None]:
    return [taint.time_added for taint in node.taints if taint.key in NOT_READY_TAINTS]


def _age_s(text: str | None, utc: str) -> float:
    """Return the seconds since a time of the API; 0 where there is none, or one that cannot be read."""
    if text is None or parse_utc(text) == parse_utc(""):
        return 0.0
    return max(0.0, seconds_between(text, utc))
