"""Trust: writes on Nodes that a person trusts an endpoint again that was wrong about their VMs (D1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fencer.core.decide import decide
from fencer.core.distrust import against, answered_for, distrusted
from fencer.core.model import Doubt, Evidence, Judged, NodeView, Reason, Verdict
from fencer.core.policy import Policy
from fencer.runtime.guarded_write import write_on
from fencer.runtime.onlooker import Onlooker
from fencer.runtime.world import World


class Trust:
    """One endpoint, and the nodes that prove it wrong.

    Args:
        world: The ports.
        onlooker: Looks at the nodes, once.
        endpoint: Name of the endpoint.

    Attributes:
        doubts: Node → the doubt on it that counts against the endpoint.
        error: Why the endpoint does not answer; empty: it does.

    Raises:
        ClusterError: the nodes could not be read.
    """

    def __init__(self, world: World, onlooker: Onlooker, endpoint: str) -> None:
        self._seen = onlooker.look()
        self._world, self._shared, self._scene = world, onlooker.agent.shared, self._seen.scene
        self._endpoint = endpoint
        self.doubts: Mapping[str, Doubt] = against(self._scene.nodes.values()).get(endpoint, {})
        self.error = self._scene.errors.get(endpoint, "")

    @property
    def is_needed(self) -> bool:
        """Whether the endpoint is distrusted."""
        return distrusted(self.doubts.values())

    def reading(self, name: str) -> Evidence | None:
        """Return what the endpoint reports now of the VM that it was wrong about; None: nothing."""
        return self._scene.evidence.get(self.doubts[name].guest.key)

    def renewed_s(self, name: str) -> float | None:
        """Return how long ago a node's lease was renewed, by the API server's clock; None: not known."""
        return self._scene.nodes[name].lease_age_s

    def released(self, policy: Policy) -> tuple[str, ...]:
        """Name the nodes that this distrust alone keeps from being fenced now.

        Args:
            policy: How careful an armed agent is.
        """
        return tuple(name for name, judged in self._seen.judged.items() if self._holds(judged, policy))

    def _holds(self, judged: Judged, policy: Policy) -> bool:
        seen, decision = judged.observation, judged.decision
        held = decision.verdict is Verdict.REFUSE and decision.reason is Reason.WITNESS_CONTRADICTED
        if not held or decision.guest is None or decision.guest.endpoint != self._endpoint:
            return False
        others = seen.fleet.contradicted_endpoints - {self._endpoint}
        trusting = replace(seen, fleet=replace(seen.fleet, contradicted_endpoints=others))
        return decide(trusting, policy).verdict is not Verdict.REFUSE

    def restore(self, name: str, why: str) -> None:
        """Write on a Node that the doubt on it counts no more against the endpoint, guarded.

        Args:
            name: The node.
            why: The person's words, with their name.

        Raises:
            ClusterError: it could not be written.
        """

        def write(node: NodeView) -> None:
            doubts = answered_for(node, self.doubts[name], why)
            if doubts != node.doubts:
                self._world.cluster.record_doubts(node, self._shared.names.doubts(doubts))

        # A Node that was deleted meanwhile has ended its doubt, too.
        write_on(self._world, self._shared, self._scene.nodes[name], write)
