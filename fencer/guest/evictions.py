"""The state of a drain: a fold over what was seen and answered. Pure: the time is handed in."""

from __future__ import annotations

from typing import Sequence

from fencer.guest.rules import KEPT, Lot, Meaning, Pod, Reply

_FIRST = 0.0


class Evictions:
    """Which pods still have to go, which may be asked for now, and what stands in whose way.

    Attributes:
        kept: Pods that stay, by UID.
        gone: How many pods have left the node.
    """

    def __init__(self) -> None:
        self.kept: dict[str, Pod] = {}
        self.gone = 0
        self._waiting: dict[str, Pod] = {}
        self._asking: set[str] = set()
        self._next_s: dict[str, float] = {}
        self._blocked: dict[str, str] = {}
        self._looked = False

    def saw(self, pods: Sequence[Pod]) -> None:
        """Take note of all pods that are on the node at present."""
        there = {pod.uid: pod for pod in pods}
        self.gone += sum(uid not in there for uid in self._waiting)
        self.kept = {uid: pod for uid, pod in there.items() if pod.lot in KEPT}
        self._waiting = {uid: pod for uid, pod in there.items() if pod.lot not in KEPT}
        self._blocked = {
            uid: text
            for uid, text in self._blocked.items()
            if uid in self._waiting and self._waiting[uid].lot is Lot.EVICT
        }
        self._looked = True

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
