"""Lanes: many nodes are pursued side by side, so many of each endpoint at a time."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial

from fencer.core.model import Decision, Judged, Observation
from fencer.runtime.world import World

AT_ONCE = 16
"""So many nodes of one endpoint are pursued at a time; more would only wait for each other, while what was
read of them grows old."""
ALTOGETHER = 128
"""So many are at most, where there are many endpoints: each has its share, and takes no other's."""

Seen = tuple[Observation, Decision]
"""A node as it was seen from afar, and what was decided on it."""


class Lanes:
    """Pursues nodes; those of one endpoint delay no others.

    Args:
        world: The ports.
        pursued: Nodes, by UID, that are being pursued, with the endpoint of each: kept here.
    """

    def __init__(self, world: World, pursued: dict[str, str]) -> None:
        self._world = world
        self._pursued = pursued
        self._at_once = max(1, min(AT_ONCE, ALTOGETHER // max(1, len(world.hypervisors))))

    def pursue(
        self,
        due: Sequence[Seen],
        go_on: Callable[[Observation, Decision], Judged],
        judged: dict[str, Judged],
        patience_s: float,
    ) -> None:
        """Pursue nodes side by side; those first that nobody looked at for longest.

        Who gets no turn is due again in the next pass, which begins as soon as there is a turn to give.

        Args:
            due: Who has to be pursued.
            go_on: Takes one as far as it goes now.
            judged: By node name: where it is put what became of each.
            patience_s: How long to wait for the slowest; it goes on beside the next passes.
        """
        passed_over = set[str]()
        queues: dict[str, deque[Seen]] = defaultdict(deque)
        for seen in sorted(due, key=lambda seen: seen[0].looked_s, reverse=True):
            queues[_endpoint(seen[0])].append(seen)

        def lane(endpoint: str, queue: deque[Seen]) -> None:
            while queue:
                observation, decision = queue.popleft()
                self._pursued[observation.node.uid] = endpoint
                try:
                    judged[observation.node.name] = go_on(observation, decision)
                finally:
                    del self._pursued[observation.node.uid]
            if endpoint in passed_over:
                self._world.clock.wake()

        under_way = Counter(self._pursued.values())
        lanes = [
            partial(lane, endpoint, queue)
            for endpoint, queue in queues.items()
            for _ in range(min(len(queue), self._at_once - under_way[endpoint]))
        ]
        self._world.asker.side_by_side(lanes, patience_s)
        for endpoint, queue in queues.items():
            if queue:
                passed_over.add(endpoint)
                queue.clear()


def _endpoint(observation: Observation) -> str:
    return observation.candidates[0].guest.endpoint if observation.candidates else ""
