"""Keeps in memory what is shown: the newest pass, and what is counted over time.

The agent's threads only put values in, under a lock that nobody holds while waiting for anybody. Whoever
shows something takes a `Snapshot`, and works on that.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from fencer.core.done import Done, Tainted
from fencer.core.model import Decision, Deed, NodeView, Reason, Verdict
from fencer.core.policy import Policy
from fencer.core.text import printable
from fencer.core.wire import name_of
from fencer.ports.runtime import Sight
from fencer.web.snapshot import Durations, EndpointSeen, Phase, Result, Snapshot, Step
from fencer.wording.conditions import AT_EASE
from fencer.wording.events import ACTIONS, NO_CASE
from fencer.wording.reports import is_alarming, is_link, is_loud, links, told_action, told_decision

STEPS_KEPT, RECENT_KEPT = 20, 40
"""So many steps are kept of each incident that goes on, and of everything."""


@dataclass(slots=True)
class _Case:
    """A node that is suspected or fenced.

    Attributes:
        suspected_s: Since when it is suspected; None: this agent did not see that.
        tainted_s: When this agent set the taint; None: it did not.
        cleared_s: When no pod was left on it.
        refused: Why it is refused now; None: it is not.
        steps: What was told of it.
    """

    suspected_s: float | None = None
    tainted_s: float | None = None
    cleared_s: float | None = None
    refused: Reason | None = None
    steps: deque[Step] = field(default_factory=lambda: deque(maxlen=STEPS_KEPT))


DONE, FAILED = "done", "failed"
"""Outcomes of an action."""

NO_SUSPICION = frozenset({Verdict.HEALTHY, Verdict.OFF, Verdict.ASK, Verdict.START})
"""Verdicts on nodes of which nothing bad is supposed."""


class Board:
    """A `Reporter` and `Viewer` that keeps what is shown.

    What it keeps is bounded: lists that are closed, and the nodes of the newest pass.

    Args:
        version: Of fencer.
        by: Which agent it is.
        policy: What is in force.
        api: What the API server is called.
        endpoints: Names of the endpoints.
        now_s: The agent's monotonic clock.
        wall: The time of day.
        journal: The journal's file. None: none is kept.
    """

    def __init__(
        self,
        version: str,
        by: str,
        policy: Policy,
        api: str,
        endpoints: Sequence[str],
        now_s: Callable[[], float],
        wall: Callable[[], datetime],
        journal: Path | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._version, self._by, self._policy, self._journal = version, by, policy, journal
        self._api, self._names = api, tuple(dict.fromkeys((api, *endpoints)))
        self._now_s, self._wall, self._began = now_s, wall, wall()
        self._sight: Sight | None = None
        self._nodes: dict[str, str] = {}
        self._alive_s = now_s()
        self._passed_s: float | None = None
        self._failing, self._tried = "", False
        self._errors: dict[str, str] = {}
        self._answered: dict[str, tuple[float, datetime]] = {}
        self._passes = Counter(dict.fromkeys(Result, 0))
        self._actions = Counter({(name_of(one), how): 0 for one in ACTIONS for how in (DONE, FAILED)})
        self._refusals: Counter[Reason] = Counter()
        self._durations = {phase: Durations() for phase in Phase}
        self._ends: datetime | None = None
        self._cases: dict[str, _Case] = {}
        """By the UID of the node."""
        self._recent: deque[Step] = deque(maxlen=RECENT_KEPT)

    def alive(self) -> None:
        """Take note that the agent is at work: a pass over many nodes takes long."""
        self._alive_s = self._now_s()

    def passed(self, seen: Sight) -> None:
        """See `fencer.ports.Viewer.passed`."""
        now_s, now = self._now_s(), self._wall()
        nodes = {judged.observation.node.uid: name for name, judged in seen.judged.items()}
        with self._lock:
            self._sight, self._nodes, self._passed_s, self._alive_s = seen, nodes, now_s, now_s
            self._failing, self._tried = "", True
            self._passes[Result.PARTIAL if seen.errors else Result.OK] += 1
            self._errors = {name: seen.errors.get(name, "") for name in self._names}
            for name, error in self._errors.items():
                if not error:
                    self._answered[name] = now_s, now
            for forgotten in self._cases.keys() - nodes.keys():
                del self._cases[forgotten]

    def failed(self, why: str) -> None:
        """See `fencer.ports.Viewer.failed`."""
        with self._lock:
            self._alive_s = self._now_s()
            self._failing, self._tried = why or "no answer", True
            self._passes[Result.FAILED] += 1
            self._errors[self._api] = self._failing

    def decided(self, node: NodeView, decision: Decision) -> None:
        """See `fencer.ports.Reporter.decided`."""
        now_s, now = self._now_s(), self._wall()
        text, loud = printable(told_decision(decision, node)), is_loud(decision)
        with self._lock:
            self._alive_s = now_s
            known = self._cases.get(node.uid)
            if decision.verdict is Verdict.HEALTHY:
                if known is not None and known.steps:
                    self._recent.append(Step(now, node.name, text, loud))
                self._cases.pop(node.uid, None)
                return
            case = known or self._cases.setdefault(node.uid, _Case())
            self._count_refusal(case, node, decision)
            self._time(case, node, decision, now_s)
            unheard = decision.reason is Reason.NODE_READY and not case.steps
            if not (is_link(decision, node) or unheard or decision.reason in NO_CASE):
                self._told(Step(now, node.name, text, loud), case)

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """See `fencer.ports.Reporter.acted`."""
        now_s, now = self._now_s(), self._wall()
        text = printable(told_action(action, done))
        loud = not done.ok or isinstance(done, Tainted) or is_alarming(action)
        with self._lock:
            self._alive_s = now_s
            self._actions[name_of(type(action)), DONE if done.ok else FAILED] += 1
            case = self._cases.setdefault(node.uid, _Case())
            if isinstance(done, Tainted):
                case.tainted_s, case.cleared_s = now_s, None
                self._took(Phase.PROOF, case.suspected_s, now_s)
            if not links(action, done):
                self._told(Step(now, node.name, text, loud), case)

    def said(self, text: str, *, warning: bool) -> None:
        """See `fencer.ports.Reporter.said`."""
        step = Step(self._wall(), "", printable(text), warning)
        with self._lock:
            self._told(step)

    def ends(self, when: datetime | None) -> None:
        """Take note of when the first of the credentials for the cluster ends.

        Args:
            when: None: not known, or never.
        """
        self._ends = when

    def snapshot(self) -> Snapshot:
        """Return all of it, as it is now."""
        now_s, now = self._now_s(), self._wall()
        with self._lock:
            return Snapshot(
                version=self._version,
                by=self._by,
                policy=self._policy,
                journal=self._journal,
                began=self._began,
                now=now,
                now_s=now_s,
                sight=self._sight,
                alive_age_s=max(0.0, now_s - self._alive_s),
                pass_age_s=None if self._passed_s is None else max(0.0, now_s - self._passed_s),
                failing=self._failing,
                tried=self._tried,
                api=self._api,
                endpoints=tuple(self._endpoints(now_s)),
                passes=dict(self._passes),
                actions=dict(self._actions),
                refusals=dict(self._refusals),
                durations=dict(self._durations),
                ends=self._ends,
                steps={
                    self._nodes[uid]: tuple(case.steps)
                    for uid, case in self._cases.items()
                    if uid in self._nodes and case.steps
                },
                recent=tuple(self._recent),
            )

    def _endpoints(self, now_s: float) -> Iterator[EndpointSeen]:
        for name in self._names:
            at_s, at = self._answered.get(name, (None, None))
            age_s = None if at_s is None else max(0.0, now_s - at_s)
            yield EndpointSeen(name, self._errors.get(name, ""), name in self._errors, at, age_s)

    def _count_refusal(self, case: _Case, node: NodeView, decision: Decision) -> None:
        at_ease = node.ready is True and decision.reason in AT_EASE
        refused = decision.verdict is Verdict.REFUSE and decision.reason not in NO_CASE and not at_ease
        before, case.refused = case.refused, decision.reason if refused else None
        if case.refused is not None and case.refused is not before:
            self._refusals[case.refused] += 1

    def _time(self, case: _Case, node: NodeView, decision: Decision, now_s: float) -> None:
        """Take note of where in its fence a node is."""
        only_unfit = decision.verdict is Verdict.REFUSE and node.ready
        if case.suspected_s is None and decision.verdict not in NO_SUSPICION and not only_unfit:
            case.suspected_s = now_s
        if case.tainted_s is None or not node.fenced:
            return
        cleared = decision.reason in {Reason.RELEASING_VOLUMES, Reason.PODS_CLEARED}
        if cleared and case.cleared_s is None:
            case.cleared_s = now_s
            self._took(Phase.PODS, case.tainted_s, now_s)
        if decision.reason is Reason.PODS_CLEARED:
            self._took(Phase.VOLUMES, case.cleared_s, now_s)
            self._took(Phase.TOTAL, case.suspected_s, now_s)
            case.tainted_s = None

    def _took(self, phase: Phase, since_s: float | None, now_s: float) -> None:
        if since_s is not None:
            self._durations[phase] = self._durations[phase].and_(max(0.0, now_s - since_s))

    def _told(self, step: Step, case: _Case | None = None) -> None:
        self._recent.append(step)
        if case is not None:
            case.steps.append(step)
