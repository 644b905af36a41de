"""The pods of one node's drain: which ones it moves, which ones it leaves, and its progress.

`kubectl drain` fixes the pods once, and leaves every later one, even a pod that was on its way when the node
was cordoned. Evicting every later pod would never end if a controller's pods tolerate the cordon, or if their
template names the node: each eviction brings the next one.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Generic, Iterable

from fencer.evicting.evictions import Evictions
from fencer.evicting.lots import Filters, Lot, P, Pod, lot, of_lot

TOLERATES = "tolerates the cordon"
BOUND_PAST = "is bound here past the cordon"
LAG_S = 10.0
"""This long a scheduler may see a Node as it was before the cordon. Ours was milliseconds late."""


class Evacuation(Generic[P]):
    """The pods of one drain.

    A pod created before it began was on the way, and is moved. A pod created long after it was bound past the
    scheduler, and so would be the next one. In between, or with unknown times, it is not clear: of each
    controller as many are moved as it had at first, and at least one.

    Args:
        filters: Which pods it moves.
        since_utc: When it began, by the API server's clock.

    Attributes:
        evictions: Its progress.
        staying: Pods on the node that it leaves there, returned ones too; their volumes stay attached.
        going: Pods on the node that go: not asked for yet, or deleted already.
    """

    def __init__(self, filters: Filters, since_utc: str = "") -> None:
        self.evictions: Evictions[P] = Evictions()
        self.staying: tuple[P, ...] = ()
        self.going: tuple[P, ...] = ()
        self._filters = filters
        self._since_utc = since_utc
        self._known: set[str] = set()
        self._chances: Counter[tuple[str, str]] = Counter()
        self._returned: dict[str, tuple[P, str]] = {}
        self._looked = False

    @property
    def returned(self) -> tuple[P, ...]:
        """Pods on the node that came after it began, and are left: they would only come back."""
        return tuple(pod for pod, _ in self._returned.values())

    def saw(self, pods: Iterable[P]) -> list[tuple[P, str]]:
        """Take note of all pods on the node; return those that came back since the last look, and why."""
        pods, filters = tuple(pods), self._filters
        movable = [pod for pod in pods if lot(pod, filters) not in filters.staying]
        if not self._looked:
            self._looked = True
            self._known = {pod.uid for pod in movable}
            self._chances.update(map(_family, movable))
        there = {pod.uid: pod for pod in movable}
        self._returned = {uid: (there[uid], why) for uid, (_, why) in self._returned.items() if uid in there}
        news = self._meet([pod for pod in movable if pod.uid not in self._known])
        mine = [pod for pod in movable if pod.uid not in self._returned]
        evict, leaving, barred = (
            of_lot(mine, filters, lots) for lots in ({Lot.EVICT}, {Lot.LEAVING}, filters.forbidden)
        )
        self.evictions.saw(evict, leaving, barred)
        self.going = (*evict, *leaving)
        moved = {pod.uid for pod in mine}
        self.staying = tuple(pod for pod in pods if pod.uid not in moved)
        return news

    def _meet(self, pods: Iterable[P]) -> list[tuple[P, str]]:
        """Decide about pods that came later; return those that are left, and why."""
        left = []
        for pod in pods:
            self._known.add(pod.uid)
            if why := self._why_left(pod):
                self._returned[pod.uid] = (pod, why)
                left.append((pod, why))
        return left

    def _why_left(self, pod: P) -> str:
        family, age_s = _family(pod), _seconds_between(self._since_utc, pod.created_utc)
        if pod.tolerates_cordon:
            return TOLERATES
        if age_s is not None and age_s <= 0:
            return ""
        if (age_s is not None and age_s > LAG_S) or self._chances.get(family, 1) <= 0:
            return BOUND_PAST
        self._chances[family] = self._chances.get(family, 1) - 1
        return ""


def _family(pod: Pod) -> tuple[str, str]:
    """What a pod has in common with its replacements."""
    return pod.namespace, pod.controller or pod.name


def _seconds_between(earlier_utc: str, later_utc: str) -> float | None:
    """Return the seconds from one time to another; None: one of them is unknown."""
    try:
        earlier, later = (
            datetime.fromisoformat(text.replace("Z", "+00:00")) for text in (earlier_utc, later_utc)
        )
        return (later - earlier).total_seconds()
    except (ValueError, TypeError):  # no time at all, or one without its zone
        return None
