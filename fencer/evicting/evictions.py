"""The evictions of one node as a fold over what was seen and answered. Pure: the caller passes the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Generic

from fencer.evicting.answers import Reply
from fencer.evicting.lots import P, Pod

WIDEST = 8
"""At most this many pods of one budget are asked for at once: as many as requests are sent in parallel."""
_AT_ONCE = 0.0
_NEVER = float("inf")


class Evictions(Generic[P]):
    """Which pods still have to go, which may be asked for now, and what is in the way of each.

    Of the pods that one budget holds back only one is asked for; each that may go doubles how many are asked
    for at once, and a refusal starts from one again. A pod that was not asked for yet is assumed to be behind
    the budget that holds back another pod of its controller: if it is not, it only waits for its turn.

    Attributes:
        gone: Pods that were on the node and are not any more: same name and another UID counts.
    """

    def __init__(self) -> None:
        self.gone: list[P] = []
        self._waiting: dict[str, P] = {}
        self._open: set[str] = set()
        self._asking: set[str] = set()
        self._next_s: dict[str, float] = {}
        self._blocked: dict[str, str] = {}
        self._budgets: dict[str, tuple[str, str]] = {}
        self._widths: dict[tuple[str, str], int] = {}
        self._tries: Counter[str] = Counter()
        self._looked = False

    def saw(self, to_evict: Iterable[P], leaving: Iterable[P], barred: Iterable[P]) -> None:
        """Take note of the pods on the node that have to go.

        Args:
            to_evict: Their eviction has to be asked for.
            leaving: Deleted already, and waited for.
            barred: They came during the drain, and need an option that was not given.
        """
        evict, stuck = {pod.uid: pod for pod in to_evict}, {pod.uid: pod for pod in barred}
        there = {**evict, **{pod.uid: pod for pod in leaving}, **stuck}
        self.gone += [pod for uid, pod in self._waiting.items() if uid not in there]
        self._waiting, self._open = there, set(evict)
        for uid in stuck:
            self._next_s[uid] = _NEVER
            self._blocked[uid] = "it came during the drain, and no given option lets it be evicted"
        self._blocked = {
            uid: text for uid, text in self._blocked.items() if uid in self._open or uid in stuck
        }
        self._looked = True

    def due(self, now_s: float) -> list[P]:
        """Return the pods to ask for now, the longest waiting first."""
        ready = (uid for uid in self._open - self._asking if self._next_s.get(uid, _AT_ONCE) <= now_s)
        found = [self._waiting[uid] for uid in ready]
        found.sort(key=lambda pod: (self._next_s.get(pod.uid, _AT_ONCE), self._tries[pod.uid], str(pod)))
        behind = self._under_way()
        asked = []
        for pod in found:
            budget = self._budgets.get(pod.uid)
            if budget is None or behind[budget] < self._widths[budget]:
                asked.append(pod)
            if budget is not None:
                behind[budget] += 1
        return asked

    def asked(self, pod: P) -> None:
        """Take note that an eviction is under way without waiting for its answer."""
        self._asking.add(pod.uid)

    def answered(self, pod: P, reply: Reply, now_s: float) -> bool:
        """Take note of an answer; return whether the obstacle is new."""
        uid = pod.uid
        self._asking.discard(uid)
        self._tries[uid] += 1
        held_by = self._budgets.pop(uid, None)
        self._next_s[uid] = _NEVER if reply.retry_s is None else now_s + reply.retry_s
        if not reply.text:
            self._blocked.pop(uid, None)
            self._let_next(held_by, now_s)
            return False
        if reply.budget:
            self._hold(pod, (pod.namespace, reply.budget))
        text = reply.text + ("" if reply.retry_s is not None else " (not asked again)")
        news = self._blocked.get(uid) != text
        self._blocked[uid] = text
        return news

    @property
    def done(self) -> bool:
        """Nothing is left that has to go."""
        return self._looked and not self._waiting

    @property
    def hopeless(self) -> bool:
        """Only pods are left that are refused for good."""
        return bool(self._waiting) and all(
            uid in self._blocked and self._next_s.get(uid) == _NEVER for uid in self._waiting
        )

    def next_s(self) -> float | None:
        """Return when the next pod may be asked for; None: there is none."""
        behind = self._under_way()
        times = [
            self._next_s.get(uid, _AT_ONCE)
            for uid in self._open - self._asking
            if (budget := self._budgets.get(uid)) is None or behind[budget] < self._widths[budget]
        ]
        return min((time for time in times if time != _NEVER), default=None)

    def left(self) -> list[tuple[P, str]]:
        """Return the pods that still have to go, with what is in the way or why we wait."""
        pods = sorted(self._waiting.values(), key=str)
        return [(pod, self._blocked.get(pod.uid) or self._awaited(pod)) for pod in pods]

    def behind(self) -> Counter[str]:
        """Count the pods that a budget holds back, by ``namespace/name`` of the budget."""
        held = (self._budgets[uid] for uid in self._open & self._budgets.keys())
        return Counter(f"{namespace}/{name}" for namespace, name in held)

    def _awaited(self, pod: P) -> str:
        """Say why a pod that nobody refused is still there."""
        budget = self._budgets.get(pod.uid)
        return "still ending" if budget is None else f"waits its turn behind the budget {budget[1]}"

    def _under_way(self) -> Counter[tuple[str, str]]:
        """Count the evictions whose answer is not here yet, by the budget that held their pod back."""
        return Counter(self._budgets[uid] for uid in self._asking if uid in self._budgets)

    def _hold(self, pod: P, budget: tuple[str, str]) -> None:
        """The pods behind a budget wait together, and take turns: one that is not Ready may go sooner."""
        self._budgets[pod.uid] = budget
        self._widths[budget] = 1
        for uid in self._open - self._budgets.keys():
            if not self._tries[uid] and _alike(self._waiting[uid], pod):
                self._budgets[uid] = budget
                self._next_s[uid] = self._next_s[pod.uid]
        for uid, other in self._budgets.items():
            if other == budget:
                self._next_s[uid] = max(self._next_s[uid], self._next_s[pod.uid])

    def _let_next(self, budget: tuple[str, str] | None, now_s: float) -> None:
        """A budget let one go: the others may try at once."""
        if budget is not None:
            self._widths[budget] = min(2 * self._widths[budget], WIDEST)
            for uid, other in self._budgets.items():
                if other == budget:
                    self._next_s[uid] = now_s


def _alike(one: Pod, other: Pod) -> bool:
    """Whether two pods have the same controller, and so most probably the same budgets."""
    return bool(one.controller) and (one.namespace, one.controller) == (other.namespace, other.controller)
