"""Whom a drain moves: the pods that are there when it begins, and later ones where that comes to an end.

`kubectl drain` fixes the pods once, and leaves whatever comes later, even a pod that was on its way as the
node was cordoned. To evict all that comes has no end where a controller's pods tolerate the cordon, or where
their template names the node: each eviction brings the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fencer.core.model import PodView
from fencer.core.pods import seconds_between

TOLERATES = "tolerates the cordon"
BOUND_PAST = "is bound here past the cordon"
LAG_S = 10.0
"""So long a scheduler may go by a Node as it was before the cordon. Ours was milliseconds late."""


class Roster:
    """The pods of one drain.

    Args:
        since_utc: When it began, by the API server's clock.

    Attributes:
        returned: Later pods that are left where they are, each with why: UID → pod and reason. Those that are
            on the node.
    """

    def __init__(self, since_utc: str) -> None:
        self.returned: dict[str, tuple[PodView, str]] = {}
        self._since_utc = since_utc
        self._known: set[str] = set()
        self._chances: Counter[tuple[str, str]] = Counter()
        self._fixed = False

    def mine(self, pods: Iterable[PodView]) -> tuple[PodView, ...]:
        """Return those that the drain moves; the first call fixes whom.

        Who was made before the drain began was on the way, and is moved. Who is made long after it was bound
        past the scheduler, and so is the next one. In between that cannot be told: of one controller as many
        are moved as it had at first, and one at least.

        Args:
            pods: On the node now, without those that a drain leaves anyway.
        """
        pods = tuple(pods)
        if not self._fixed:
            self._fixed = True
            self._known = {pod.uid for pod in pods}
            self._chances.update(_family(pod) for pod in pods)
        for pod in pods:
            if pod.uid not in self._known:
                self._known.add(pod.uid)
                self._meet(pod)
        there = {pod.uid: pod for pod in pods}
        self.returned = {uid: (there[uid], why) for uid, (_, why) in self.returned.items() if uid in there}
        return tuple(pod for pod in pods if pod.uid not in self.returned)

    def _meet(self, pod: PodView) -> None:
        """Decide about a pod that came later."""
        family, age_s = _family(pod), seconds_between(self._since_utc, pod.created_utc)
        if pod.tolerates_cordon:
            self.returned[pod.uid] = (pod, TOLERATES)
        elif age_s > LAG_S or (age_s > 0 and self._chances.get(family, 1) <= 0):
            self.returned[pod.uid] = (pod, BOUND_PAST)
        elif age_s > 0:
            self._chances[family] = self._chances.get(family, 1) - 1


def _family(pod: PodView) -> tuple[str, str]:
    """What a pod has in common with those that come in its place."""
    return pod.namespace, pod.controller or pod.name
