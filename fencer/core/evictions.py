"""Evictions: what the API's answers mean, and the state of many as a fold. Pure: the time is handed in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fencer.core.model import PodView

BUDGET_RETRY_S = 1.0
"""After a refusal by a budget without Retry-After. Only one pod of a budget asks, so it may ask more often
than kubectl, which has every pod ask every 5 s."""
PASSING_RETRY_S = 2.0
"""After what should pass by itself: a conflict, an overloaded server, a lost answer."""
NAMESPACE_RETRY_S = 5.0
"""While a namespace is being deleted its controller deletes the pods; we only look again."""
RETRY_AT_MOST_S = 30.0
"""However long a server asks to wait."""
WIDEST = 8
"""So many pods of one budget are asked for at once at most: as many as requests are sent in parallel."""
LEAST_GRACE_S = 1.0
"""A pod that is deleted with 0 s is gone from the API at once, and a StatefulSet starts its replacement
beside a container that still runs: two writers. With 1 s the API waits for the kubelet to say that it ended.

Source: kubernetes apiserver pkg/registry/rest/delete.go, BeforeDelete; pkg/registry/core/pod/strategy.go."""
_AT_ONCE = 0.0
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Answer:
    """How the API answered an eviction.

    Attributes:
        status: The HTTP status.
        message: The Status object's message.
        causes: Its causes: reason and message of each.
        retry_after_s: The header Retry-After.
    """

    status: int
    message: str = ""
    causes: tuple[tuple[str, str], ...] = ()
    retry_after_s: float | None = None


class Meaning(StrEnum):
    """What an answer to an eviction means."""

    GOING = "going"
    """Accepted: its grace period runs."""
    GONE = "gone"
    """Not found. A cache may say so of a pod that is quite new: while it is listed, it is asked for again."""
    BUDGET = "budget"
    """A budget does not allow it now."""
    NAMESPACE = "namespace"
    """Its namespace is being deleted, and it with it."""
    PASSING = "passing"
    """Not this time; whether it was done may not be known. Look, and ask again."""
    NEVER = "never"
    """Asking again changes nothing."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to an eviction, understood.

    Attributes:
        meaning: What it means.
        retry_s: Seconds to wait before the next try; None: there is none.
        text: For people: what stands in the way.
        budget: The budget that stands in the way, where it is named.
    """

    meaning: Meaning
    retry_s: float | None = None
    text: str = ""
    budget: str = ""


_FORBIDDEN, _NOT_FOUND, _TOO_MANY, _FAULT = 403, 404, 429, 500
_SUCCESS = 2
_TWO_BUDGETS = "more than one budget selects it, and then the API never evicts"
_PASSING = (408, 409)
_CACHE_LAGS = "can only evict pods with spec.nodeName set to itself"
"""To who evicts with a kubelet's rights, of a pod whose binding the server's admission has not seen yet.

Source: kubernetes plugin/pkg/admission/noderestriction/admission.go, admitPodEviction."""
_BUDGET = re.compile(r"[Tt]he disruption budget (\S+)")


def understand(answer: Answer) -> Reply:
    """Understand an answer to an eviction.

    Source: kubernetes pkg/registry/core/pod/storage/eviction.go: 429 with the cause DisruptionBudget and
    mostly no Retry-After; 500 for a pod in two budgets; conflicts are tried again there for up to 10 s.
    """
    status, message = answer.status, " ".join(answer.message.split()) or f"HTTP {answer.status}"
    fault = status >= _FAULT
    ending = any(reason == "NamespaceTerminating" for reason, _ in answer.causes)
    replies = (
        (status // 100 == _SUCCESS, Reply(Meaning.GOING)),
        (status == _NOT_FOUND, Reply(Meaning.GONE, PASSING_RETRY_S)),
        (status == _TOO_MANY, _too_many(answer, message)),
        (
            status == _FORBIDDEN and ending,
            Reply(Meaning.NAMESPACE, NAMESPACE_RETRY_S, "its namespace is being deleted"),
        ),
        (fault and "more than one PodDisruptionBudget" in message, Reply(Meaning.NEVER, text=_TWO_BUDGETS)),
        (
            fault or status in _PASSING or (status == _FORBIDDEN and _CACHE_LAGS in message),
            Reply(Meaning.PASSING, _bounded(answer.retry_after_s, PASSING_RETRY_S), message),
        ),
    )
    return next((reply for applies, reply in replies if applies), Reply(Meaning.NEVER, text=message))


def unanswered(why: str) -> Reply:
    """Return what it means that no answer came: it may have been done."""
    return Reply(Meaning.PASSING, PASSING_RETRY_S, why)


def _too_many(answer: Answer, message: str) -> Reply:
    budgets = [text for reason, text in answer.causes if reason == "DisruptionBudget"]
    if not budgets and "disruption budget" not in message:
        return Reply(Meaning.PASSING, _bounded(answer.retry_after_s, PASSING_RETRY_S), message)
    text = " ".join((budgets[0] if budgets else "").split()) or message
    named = _BUDGET.search(text)
    retry_s = _bounded(answer.retry_after_s, BUDGET_RETRY_S)
    return Reply(Meaning.BUDGET, retry_s, text, named.group(1) if named else "")


def grace_for(pod: PodView, asked_s: float | None) -> float | None:
    """Return with which grace period a pod is evicted; None: with its own.

    Args:
        pod: The pod; its own spec may say 0 s, too.
        asked_s: What a person asked for; None: nothing.
    """
    wanted_s = pod.grace_s if asked_s is None else asked_s
    return LEAST_GRACE_S if wanted_s < LEAST_GRACE_S else asked_s


def _bounded(asked_s: float | None, default_s: float) -> float:
    return default_s if asked_s is None else min(max(asked_s, default_s), RETRY_AT_MOST_S)


class Evictions:
    """Which pods still have to go, which may be asked for now, and what stands in whose way.

    Of the pods that one budget holds back only one is asked for; each that may go doubles how many are asked
    for at once, and a refusal begins anew. A pod that was not asked for yet is taken to be behind the budget
    that holds back another of its controller: if it is not, it only takes its turn.

    Attributes:
        gone: Pods that were on the node and are not any more: same name and another UID counts.
    """

    def __init__(self) -> None:
        self.gone: list[PodView] = []
        self._waiting: dict[str, PodView] = {}
        self._open: set[str] = set()
        self._next_s: dict[str, float] = {}
        self._blocked: dict[str, str] = {}
        self._budgets: dict[str, tuple[str, str]] = {}
        self._widths: dict[tuple[str, str], int] = {}
        self._tries: Counter[str] = Counter()
        self._looked = False

    def saw(self, to_evict: Iterable[PodView], leaving: Iterable[PodView], barred: Iterable[PodView]) -> None:
        """Take note of the pods on the node that have to go.

        Args:
            to_evict: To be asked for.
            leaving: Deleted already, and waited for.
            barred: Came meanwhile, and may not be evicted without an option that was not given.
        """
        evict, stuck = {pod.uid: pod for pod in to_evict}, {pod.uid: pod for pod in barred}
        there = {**evict, **{pod.uid: pod for pod in leaving}, **stuck}
        self.gone += [pod for uid, pod in self._waiting.items() if uid not in there]
        self._waiting, self._open = there, set(evict)
        for uid in stuck:
            self._next_s[uid] = _NEVER
            self._blocked[uid] = "it came meanwhile, and no option given lets it be evicted"
        self._blocked = {
            uid: text for uid, text in self._blocked.items() if uid in self._open or uid in stuck
        }
        self._looked = True

    def due(self, now_s: float) -> list[PodView]:
        """Return the pods to ask for now, the longest waiting first."""
        found = [self._waiting[uid] for uid in self._open if self._next_s.get(uid, _AT_ONCE) <= now_s]
        found.sort(key=lambda pod: (self._next_s.get(pod.uid, _AT_ONCE), self._tries[pod.uid], str(pod)))
        behind: Counter[tuple[str, str]] = Counter()
        asked = []
        for pod in found:
            budget = self._budgets.get(pod.uid)
            if budget is None or behind[budget] < self._widths.get(budget, 1):
                asked.append(pod)
            if budget is not None:
                behind[budget] += 1
        return asked

    def answered(self, pod: PodView, reply: Reply, now_s: float) -> bool:
        """Take note of an answer; tell whether what stands in the pod's way is news."""
        uid = pod.uid
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
        times = [self._next_s.get(uid, _AT_ONCE) for uid in self._open]
        return min((time for time in times if time != _NEVER), default=None)

    def left(self) -> list[tuple[PodView, str]]:
        """Return the pods that still have to go, with what stands in the way or why we wait."""
        pods = sorted(self._waiting.values(), key=str)
        return [(pod, self._blocked.get(pod.uid) or self._awaited(pod)) for pod in pods]

    def _awaited(self, pod: PodView) -> str:
        """Say why a pod that nobody refused is still there."""
        budget = self._budgets.get(pod.uid)
        return "still ending" if budget is None else f"waits its turn behind the budget {budget[1]}"

    def _hold(self, pod: PodView, budget: tuple[str, str]) -> None:
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
            self._widths[budget] = min(2 * self._widths.get(budget, 1), WIDEST)
            for uid, other in self._budgets.items():
                if other == budget:
                    self._next_s[uid] = now_s


def _alike(one: PodView, other: PodView) -> bool:
    """Whether two pods have the same controller, and so most probably the same budgets."""
    return bool(one.controller) and (one.namespace, one.controller) == (other.namespace, other.controller)
