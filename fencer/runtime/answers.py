"""Answers whoever asks for a node by a FencerRemediation: beside the passes, by what they have shown."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

from fencer.core.answering import DONE, answer, answers, done, may_go
from fencer.core.model import Judged, NodeView
from fencer.core.requests import Progress, Request
from fencer.core.text import age
from fencer.errors import ClusterConflict, ClusterError, ClusterNotFound
from fencer.ports import Reporter, Requests, Sight
from fencer.wording.reasons import NOTHING, TEXTS, change, says

STEP_S = 1.0
"""How soon after a pass what it has shown is written."""

log = logging.getLogger(__name__)


LASTS_S = 5.0
"""What a pass has shown may be told for so long: two polls. After that the next pass knows better."""


@dataclass(frozen=True, slots=True)
class _Stands:
    """Since when a request's node has been judged for one reason."""

    reason: object
    since_s: float


@dataclass(frozen=True, slots=True)
class _Due:
    """What is to be written about a request, and when the pass ended that has shown it."""

    request: Request
    deed: Callable[[], object]
    at_s: float


class Answers:
    """A `fencer.ports.Viewer` that tells those who have asked what becomes of it. Only for an armed agent.

    Args:
        requests: Where they ask.
        reporter: Is told of every request, and of every final answer.
        now_s: The agent's clock.
        look: Reads a node live. What a pass has shown may be late, and a final answer is not taken back.
    """

    def __init__(
        self,
        requests: Requests,
        reporter: Reporter,
        now_s: Callable[[], float],
        look: Callable[[str], NodeView],
    ) -> None:
        self._requests, self._reporter, self._now_s, self._look = requests, reporter, now_s, look
        self._stands: dict[str, _Stands] = {}
        self._due: list[_Due] = []
        self._shown: Mapping[str, Judged] = {}
        """What the last pass has shown, by node."""
        self._written_s: dict[str, float] = {}
        self._cleared: set[str] = set()
        """Nodes, by UID, that were fenced and cleared: their hypervisor may be gone when somebody asks."""
        self._failed: dict[str, str] = {}
        """Why a request, by UID, could not be answered the last time."""
        self._waiting: set[str] = set()
        """Requests, by UID, of which was told that they were taken back."""
        self._news: deque[tuple[str, bool]] = deque()
        self._utc = ""

    def passed(self, seen: Sight) -> None:
        """See `fencer.ports.Viewer.passed`: find out what is due."""
        while self._news:  # reporters are told from one thread
            text, warning = self._news.popleft()
            self._reporter.said(text, warning=warning)
        due = []
        self._utc = seen.utc
        self._note_cleared(seen.judged.values())
        for request in seen.requests:
            judged = seen.judged.get(request.node)
            if request.node in seen.pursued and judged is self._shown.get(request.node):
                continue  # that was so before the last pass, and may be so no longer
            stood_s = self._stood_s(request, judged, seen.at_s)
            deed = self._deed(request, judged, stood_s) if answers(judged) else None
            if deed is not None:
                due.append(_Due(request, deed, seen.at_s))
        memories: tuple[dict[str, Any], ...] = (self._stands, self._written_s, self._failed)
        for known in memories:
            for gone in known.keys() - {request.uid for request in seen.requests}:
                known.pop(gone, None)
        self._shown = seen.judged
        self._waiting &= {request.uid for request in seen.requests}
        self._due = sorted(due, key=partial(self._rank, seen), reverse=True)

    def failed(self, why: str) -> None:  # noqa: ARG002 - nothing new is said, whatever the reason
        """See `fencer.ports.Viewer.failed`."""
        self._due = []

    def step(self) -> float:
        """Write what is due; return in how many seconds to come again."""
        while due := self._due:  # of the newest pass, whatever has ended meanwhile
            one = due.pop()
            if self._now_s() - one.at_s > LASTS_S:
                continue
            self._written_s[one.request.uid] = self._now_s()
            try:
                one.deed()
            except (ClusterConflict, ClusterNotFound):
                continue  # it is read anew in the next pass
            except ClusterError as error:
                if self._failed.get(one.request.uid) != str(error):  # once
                    log.warning("%s: could not be answered: %s", one.request, error)
                self._failed[one.request.uid] = str(error)
            else:
                self._failed.pop(one.request.uid, None)
        return STEP_S

    def _note_cleared(self, judged: Iterable[Judged]) -> None:
        fenced = [one for one in judged if one.observation.node.fenced]
        before = self._cleared & {one.observation.node.uid for one in fenced}
        self._cleared = before | {one.observation.node.uid for one in fenced if done(one)}

    def _rank(self, seen: Sight, due: _Due) -> tuple[bool, float]:
        """Return whose turn it is: first those about nodes that there are, and who waits longest."""
        return due.request.node not in seen.judged, self._written_s.get(due.request.uid, -inf)

    def _stood_s(self, request: Request, judged: Judged | None, now_s: float) -> float:
        reason = request.problem or (judged.decision.reason if judged is not None else None)
        stands = self._stands.get(request.uid)
        if stands is None or stands.reason != reason:
            stands = self._stands[request.uid] = _Stands(reason, now_s)
        return now_s - stands.since_s

    def _deed(self, request: Request, judged: Judged | None, stood_s: float) -> Callable[[], object] | None:
        """Return the one thing that is due for a request; what follows from it is due after the next pass."""
        if request.deleting:
            node = judged.observation.node if judged is not None else None
            gone = request.adopted and may_go(request, node)
            if request.adopted and not gone and request.uid not in self._waiting:
                self._waiting.add(request.uid)
                text = f"{request.node}: {request} was taken back: it stays until the fence is lifted"
                self._reporter.said(text, warning=False)
            return partial(self._release, request) if gone else None
        cleared = judged is not None and judged.observation.node.uid in self._cleared
        progress = answer(request, judged, stood_s, cleared=cleared)
        refused = request.refused or (progress is not None and progress.succeeded is False)
        if request.live and not (request.adopted or refused):
            return partial(self._adopt, request)
        if progress is None:
            return None
        return partial(
            self._answer, request, replace(progress, message=_message(request, judged, progress, stood_s))
        )

    def _adopt(self, request: Request) -> None:
        self._requests.adopt(request)
        self._news.append((f"{request.node}: {request} asks for it: {request.strategy.value}", False))

    def _answer(self, request: Request, progress: Progress) -> None:
        if progress.final and not request.given_up:
            node = self._live(request)
            if node is not None and node.fenced is not progress.succeeded:
                return  # the next pass knows better
        self._requests.answer(request, progress, self._utc)
        if progress.final:
            word = "is done" if progress.succeeded else "is told no"
            text = f"{request.node or request.name}: {request} {word}: {progress.message}"
            self._news.append((text, not progress.succeeded))

    def _release(self, request: Request) -> None:
        if not may_go(request, self._live(request)):
            return
        self._requests.release(request)
        self._news.append((f"{request.node or request.name}: {request} is over", False))

    def _live(self, request: Request) -> NodeView | None:
        """Read the node that it is about; None: there is none.

        Raises:
            ClusterError: it cannot be read.
        """
        if not request.node:
            return None
        try:
            return self._look(request.node)
        except ClusterNotFound:
            return None


def _message(request: Request, judged: Judged | None, progress: Progress, stood_s: float) -> str:
    """Tell people why."""
    if request.given_up:
        return "its owner gave it up: fencer does nothing more for it"
    if request.problem:
        return request.problem
    if judged is None:
        return f"there is no node {request.node}, for {age(stood_s)}"
    if progress.succeeded:
        return TEXTS[DONE].says
    told, helps = says(judged.decision), change(judged.decision)
    return told if helps == NOTHING else f"{told}; what would change this: {helps}"
