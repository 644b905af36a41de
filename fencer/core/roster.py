"""Whom a drain moves: the pods that are there when it begins, and later ones where that comes to an end.

`kubectl drain` fixes the pods once, and leaves whatever comes later, even a pod that was on its way as the
node was cordoned. To evict all that comes has no end where a controller's pods tolerate the cordon, or where
their template names the node: each eviction brings the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fencer.core.model import PodView

TOLERATES = "tolerates the cordon"
BOUND_AGAIN = "is bound here again and again, past the cordon"


class Roster:
    """The pods of one drain.

    Attributes:
        returned: Later pods that are left where they are, each with why: UID → pod and reason. Those that are
            on the node.
    """

    def __init__(self) -> None:
        self.returned: dict[str, tuple[PodView, str]] = {}
        self._known: set[str] = set()
        self._chances: Counter[tuple[str, str]] = Counter()
        self._fixed = False

    def mine(self, pods: Iterable[PodView]) -> tuple[PodView, ...]:
        """Return those that the drain moves; the first call fixes whom.

        Of one controller as many later pods are moved as it had at first, and one at least: who was on the
        way comes once, who is bound here past the scheduler comes as often as it is moved.

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
        family = _family(pod)
        if pod.tolerates_cordon:
            self.returned[pod.uid] = (pod, TOLERATES)
        elif family in self._chances and self._chances[family] <= 0:
            self.returned[pod.uid] = (pod, BOUND_AGAIN)
        else:
            self._chances[family] = self._chances.get(family, 1) - 1


def _family(pod: PodView) -> tuple[str, str]:
    """What a pod has in common with those that come in its place."""
    return pod.namespace, pod.controller or pod.name
