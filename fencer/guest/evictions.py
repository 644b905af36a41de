"""The state of a drain: a fold over what was seen and answered. Pure: the time is handed in."""

from __future__ import annotations

from collections import Counter
from typing import Sequence

from fencer.guest.rules import KEPT, STAYING, Lot, Meaning, Pod, Reply

_FIRST = 0.0
TOLERATES = "tolerates the cordon"
PAST = "is bound here past the cordon"
LAG_S = 10
"""A scheduler that has not seen the cordon yet binds pods so long at most: its cache lags by seconds."""


class Evictions:
    """Which pods still have to go, which may be asked for now, and what stands in whose way.

    Who has to go is settled by the first look. What comes later goes as well, unless it would come back for
    ever: what tolerates the cordon is left, and so is what is bound to the node past the scheduler. That is
    told by when it was created: until the first look, it was on its way; more than `LAG_S` after it, no
    scheduler bound it that heeds a cordon. In between, and where times are not known, each controller may
    have as many evicted as it had at the start, and one at least.

    Attributes:
        kept: Pods that stay, by UID.
        returning: Pods that came later and are left, by UID.
        gone: How many pods have left the node.
    """

    def __init__(self) -> None:
        self.kept: dict[str, Pod] = {}
        self.returning: dict[str, Pod] = {}
        self.gone = 0
        self._waiting: dict[str, Pod] = {}
        self._asking: set[str] = set()
        self._next_s: dict[str, float] = {}
        self._blocked: dict[str, str] = {}
        self._looked = False
        self._since_s: int | None = None
        self._known: set[str] = set()
        self._room: dict[str, int] = {}
        self._named: set[str] = set()

    def saw(self, pods: Sequence[Pod], utc_s: int | None = None) -> list[tuple[Pod, str]]:
        """Take note of all pods that are on the node now; return who came back, and why it is left, once.

        Args:
            pods: All of them.
            utc_s: When they were listed, by the API server's clock; None: not known.
        """
        there = {pod.uid: pod for pod in pods}
        self.gone += sum(uid not in there for uid in self._waiting)
        if not self._looked:
            self._settle(pods)
            self._since_s = utc_s
        left = {uid: why for uid, why in ((pod.uid, self._left(pod)) for pod in pods) if why}
        self.returning = {uid: there[uid] for uid in left}
        others = {uid: pod for uid, pod in there.items() if uid not in left}
        self.kept = {uid: pod for uid, pod in others.items() if pod.lot in KEPT}
        self._waiting = {uid: pod for uid, pod in others.items() if pod.lot not in KEPT}
        self._blocked = {
            uid: text
            for uid, text in self._blocked.items()
            if uid in self._waiting and self._waiting[uid].lot is Lot.EVICT
        }
        self._looked = True
        news = [(pod, left[uid]) for uid, pod in self.returning.items() if str(pod) not in self._named]
        self._named.update(str(pod) for pod, _ in news)
        return news

    def _settle(self, pods: Sequence[Pod]) -> None:
        self._known = {pod.uid for pod in pods}
        self._room = Counter(pod.controller for pod in pods if pod.lot not in KEPT)

    def _left(self, pod: Pod) -> str:
        """Say why a pod that came later is left where it is; empty: it is not, and is known from now on."""
        if pod.uid in self._known or pod.lot in STAYING:
            return ""
        if pod.tolerates:
            return TOLERATES
        if pod.lot not in KEPT and self._past(pod):
            return PAST
        self._known.add(pod.uid)
        return ""

    def _past(self, pod: Pod) -> bool:
        """Whether a pod that came later was bound here past the scheduler, as far as can be told."""
        if pod.created_s is not None and self._since_s is not None:
            after_s = pod.created_s - self._since_s
            if after_s <= 0:
                return False
            if after_s > LAG_S:
                return True
        room = self._room.setdefault(pod.controller, 1)
        self._room[pod.controller] -= bool(room) and pod.lot is Lot.EVICT
        return not room

    def due(self, now_s: float) -> list[Pod]:
        """Return the pods to ask for now; the longest waiting first."""
        found = [pod for uid, pod in self._open().items() if self._next_s.get(uid, _FIRST) <= now_s]
        return sorted(found, key=lambda pod: (self._next_s.get(pod.uid, _FIRST), str(pod)))

    def asked(self, pod: Pod) -> None:
        """Take note that an eviction is under way."""
        self._asking.add(pod.uid)

    def answered(self, pod: Pod, reply: Reply, now_s: float) -> bool:
        """Take note of an answer; tell whether what stands in the pod's way is news."""
        self._asking.discard(pod.uid)
        again = reply.retry_s is not None
        self._next_s[pod.uid] = now_s + reply.retry_s if reply.retry_s is not None else float("inf")
        if reply.meaning in (Meaning.GOING, Meaning.GONE):
            self._blocked.pop(pod.uid, None)
            return False
        text = reply.text + ("" if again else " (not asked again)")
        news = self._blocked.get(pod.uid) != text
        self._blocked[pod.uid] = text
        return news

    @property
    def done(self) -> bool:
        """Nothing is left that has to go."""
        return self._looked and not self._waiting

    @property
    def hopeless(self) -> bool:
        """Only pods are left that are refused for good."""
        return bool(self._waiting) and all(self._refused(uid) for uid in self._waiting)

    def next_s(self) -> float | None:
        """Return when the next pod may be asked for; None: there is none."""
        times = [self._next_s.get(uid, _FIRST) for uid in self._open()]
        return min(times, default=None)

    def left(self) -> list[tuple[Pod, str]]:
        """Return the pods that still have to go, with what stands in the way or why we wait."""
        return [
            (pod, self._blocked.get(uid, "still ending"))
            for uid, pod in sorted(self._waiting.items(), key=_name)
        ]

    def _open(self) -> dict[str, Pod]:
        return {
            uid: pod
            for uid, pod in self._waiting.items()
            if pod.lot is Lot.EVICT and uid not in self._asking and self._next_s.get(uid) != float("inf")
        }

    def _refused(self, uid: str) -> bool:
        return uid in self._blocked and self._next_s.get(uid) == float("inf")


def _name(item: tuple[str, Pod]) -> str:
    return str(item[1])
