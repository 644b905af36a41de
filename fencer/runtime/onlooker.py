"""Look without a past: what a command can say that has not watched before. It never acts.

An agent believes only those renewals of a lease that it saw itself. A command that looks once has seen none,
and would call every lease fresh. So the onlooker takes the API's word for what went before: good enough to
tell people, never to act upon.
"""

from __future__ import annotations

from fencer.core.history import LeaseTrack
from fencer.core.identity import Rules
from fencer.core.model import NodeView, Reason
from fencer.core.pods import parse_utc, seconds_between
from fencer.core.policy import Policy
from fencer.ports import Fact
from fencer.runtime.observe import World
from fencer.runtime.reconcile import Agent, Pass

NOT_READY_TAINTS = frozenset({"node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"})
"""Set when Ready stops being True, with the time. Source: kubernetes pkg/controller/nodelifecycle."""

NEEDS_MEMORY: dict[Reason, str] = {
    Reason.NOT_HELD: "for how long its guest has been off",
    Reason.PAUSE_TOO_SHORT: "for how long its guest has been paused",
    Reason.FALL_UNSEEN: "whether its guest ran before",
    Reason.AWAITING_RENEWALS: "how often its kubelet has been heard since the boot",
}
"""What one look cannot tell; an agent that watches, or a fence by hand, counts it from its own first look."""


class Onlooker:
    """Judges nodes for people.

    Args:
        world: The ports.
        policy: How careful an agent would be.
        rules: What the configuration says of identity.
    """

    def __init__(self, world: World, policy: Policy, rules: Rules) -> None:
        self._world = world
        self._agent = Agent(world, policy, rules)

    def look(self, name: str | None = None) -> Pass:
        """Judge every node (or one) as an agent would that had watched all along.

        From the second look on, leases are judged by what was seen in between, as an agent's are.

        Raises:
            ClusterNotFound: there is no node of that name.
            ClusterError: the cluster could not be read.
        """
        observer = self._agent.observer
        roster = observer.api(self._world.cluster.roster)
        now_s = self._world.clock.now_s()
        for fact in roster.facts:
            observer.memory.leases.setdefault(fact.node.uid, _told(fact, now_s))
        return self._agent.survey(name)


def _told(fact: Fact, now_s: float) -> LeaseTrack:
    """Return what the API tells of a lease: its age by the node's clock against the API server's."""
    lease_age_s = _age_s(fact.renew_time, fact.utc)
    silence_s = max((_age_s(since, fact.utc) for since in _not_ready_since(fact.node)), default=0.0)
    return LeaseTrack(
        renew_time=fact.renew_time,
        changed_at_s=now_s - lease_age_s,
        renewals=int(fact.renew_time is not None),  # it was renewed once: so a known boot is seen to be heard
        not_ready_since_s=None if fact.node.ready else now_s - silence_s,
    )


def _not_ready_since(node: NodeView) -> list[str | None]:
    return [taint.time_added for taint in node.taints if taint.key in NOT_READY_TAINTS]


def _age_s(text: str | None, utc: str) -> float:
    """Return the seconds since a time of the API; 0 where there is none, or one that cannot be read."""
    if text is None or parse_utc(text) == parse_utc(""):
        return 0.0
    return max(0.0, seconds_between(text, utc))
