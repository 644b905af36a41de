"""What the API's answers to evictions mean, and with which grace period a pod is evicted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from fencer.evicting.lots import Pod

BUDGET_RETRY_S = 1.0
"""After a refusal by a budget without Retry-After. Only one pod of a budget asks, so it may ask more often
than kubectl, which has every pod ask every 5 s."""
PASSING_RETRY_S = 2.0
"""After what should pass by itself: a conflict, an overloaded server, a lost answer."""
NAMESPACE_RETRY_S = 5.0
"""While a namespace is being deleted its controller deletes the pods; we only look again."""
RETRY_AT_MOST_S = 30.0
"""At most, even if a server asks to wait longer."""
LEAST_GRACE_S = 1.0
"""A pod that is deleted with 0 s is gone from the API at once, and a StatefulSet starts its replacement
while the old container still runs: two writers. With 1 s the API waits for the kubelet to say that it ended.

Source: kubernetes apiserver pkg/registry/rest/delete.go, BeforeDelete; pkg/registry/core/pod/strategy.go."""


@dataclass(frozen=True)
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


class Meaning(str, Enum):
    """What an answer to an eviction means."""

    GOING = "going"
    """Accepted: its grace period runs."""
    GONE = "gone"
    """Not found. A cache may say so of a very new pod: while it is listed, its eviction is asked for
    again."""
    BUDGET = "budget"
    """A budget does not allow it now."""
    NAMESPACE = "namespace"
    """Its namespace is being deleted, and it with it."""
    PASSING = "passing"
    """Not this time, or perhaps done. Look, and ask again."""
    NEVER = "never"
    """Asking again changes nothing."""


@dataclass(frozen=True)
class Reply:
    """An answer to an eviction, understood.

    Attributes:
        meaning: What it means.
        retry_s: Seconds to wait before the next try; None: there is none.
        text: For people: what is in the way.
        budget: The budget that is in the way, if it is named.
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
"""Refuses an eviction with a kubelet's rights if the server's admission has not seen the pod's binding yet.

Source: kubernetes plugin/pkg/admission/noderestriction/admission.go, admitPodEviction."""
_BUDGET = re.compile(r"[Tt]he disruption budget (\S+)")


def understand(answer: Answer, at_most_s: float = RETRY_AT_MOST_S) -> Reply:
    """Understand an answer to an eviction.

    Args:
        answer: The answer.
        at_most_s: At most, even if a server asks to wait longer before the next try.

    Source: kubernetes pkg/registry/core/pod/storage/eviction.go: 429 with the cause DisruptionBudget and
    mostly no Retry-After; 500 for a pod in two budgets; conflicts are tried again there for up to 10 s.
    """
    status, message = answer.status, " ".join(answer.message.split()) or f"HTTP {answer.status}"
    fault = status >= _FAULT
    ending = any(reason == "NamespaceTerminating" for reason, _ in answer.causes)
    replies = (
        (status // 100 == _SUCCESS, Reply(Meaning.GOING)),
        (status == _NOT_FOUND, Reply(Meaning.GONE, PASSING_RETRY_S)),
        (status == _TOO_MANY, _too_many(answer, message, at_most_s)),
        (
            status == _FORBIDDEN and ending,
            Reply(Meaning.NAMESPACE, NAMESPACE_RETRY_S, "its namespace is being deleted"),
        ),
        (fault and "more than one PodDisruptionBudget" in message, Reply(Meaning.NEVER, text=_TWO_BUDGETS)),
        (
            fault or status in _PASSING or (status == _FORBIDDEN and _CACHE_LAGS in message),
            Reply(Meaning.PASSING, _wait_s(answer, PASSING_RETRY_S, at_most_s), message),
        ),
    )
    return next((reply for applies, reply in replies if applies), Reply(Meaning.NEVER, text=message))


def unanswered(why: str) -> Reply:
    """Return the meaning of no answer: it may have been done."""
    return Reply(Meaning.PASSING, PASSING_RETRY_S, why)


def _too_many(answer: Answer, message: str, at_most_s: float) -> Reply:
    budgets = [text for reason, text in answer.causes if reason == "DisruptionBudget"]
    if not budgets and "disruption budget" not in message:
        return Reply(Meaning.PASSING, _wait_s(answer, PASSING_RETRY_S, at_most_s), message)
    text = " ".join((budgets[0] if budgets else "").split()) or message
    named = _BUDGET.search(text)
    retry_s = _wait_s(answer, BUDGET_RETRY_S, at_most_s)
    return Reply(Meaning.BUDGET, retry_s, text, named.group(1) if named else "")


def grace_for(pod: Pod, asked_s: float | None) -> float | None:
    """Return the grace period to evict a pod with; None: its own.

    Args:
        pod: The pod; its own spec may say 0 s, too.
        asked_s: What a person asked for; None: nothing.
    """
    wanted_s = pod.grace_s if asked_s is None else asked_s
    return LEAST_GRACE_S if wanted_s < LEAST_GRACE_S else asked_s


def _wait_s(answer: Answer, default_s: float, at_most_s: float) -> float:
    asked_s = answer.retry_after_s
    return default_s if asked_s is None else min(max(asked_s, default_s), at_most_s)
