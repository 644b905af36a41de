"""What goes into the journal: what was known at each change, what was meant, done and asked for.

It is a `Reporter` and a `Recorder` in one: what reporters are told, it keeps; and it is told before anything
is done, so that the disk has what was about to be done when an agent ends in the middle of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from datetime import datetime
from typing import Any

from fencer.core.done import Done
from fencer.core.model import (
    Action,
    Alarm,
    AttachmentView,
    BindNode,
    Decision,
    Deed,
    ForgetMark,
    NodeView,
    Observation,
    PodView,
    RecordDoubts,
)
from fencer.core.policy import Policy
from fencer.core.wire import dump_by_keys, keys_of, name_of
from fencer.errors import FencerError
from fencer.journal.codec import policy_text
from fencer.journal.rows import Journal, Kind, Row, text_of
from fencer.ports import Asker
from fencer.reporting.repeats import Repeats
from fencer.wording.reports import action_word, decision_text

PATIENCE_S = 0.1
"""So long, at most, an action waits until it is on the disk that it is meant."""

DAY_S, MOST_ROWS = 86_400.0, 500
"""So many rows of one node in a day. Of more, those that take nothing from anybody are kept more and more
seldom: a kubelet that lies must not push older nights out of the journal."""

NOTES = (Alarm, BindNode, RecordDoubts, ForgetMark)
"""Notes on the Node: nothing is taken from anybody by them, and nothing waits for their rows."""


class JournalReporter:
    """`Reporter` and `Recorder` that keeps everything.

    What fails is tried again and again: that is kept like the log tells it, more and more seldom.

    Args:
        journal: Where rows go.
        asker: Waits for rows, so that other nodes' fences go on meanwhile.
        now_s: The monotonic clock of whoever acts.
        utc: Tells the time of day.
    """

    WORKER = "journal"

    def __init__(
        self, journal: Journal, asker: Asker, now_s: Callable[[], float], utc: Callable[[], datetime]
    ) -> None:
        self._journal, self._asker, self._now_s, self._utc = journal, asker, now_s, utc
        self._incidents: dict[str, str] = {}
        """By the UID of the node: the incident that it was last told about."""
        self._kept: Observation | None = None
        self._kept_with: Kind | None = None
        self._again = Repeats(now_s)
        self._failing: set[tuple[str, type[Deed]]] = set()
        self._rows: dict[str, deque[float]] = {}
        """By the UID of the node: when its newest rows were written."""

    def beside(self, asker: Asker, now_s: Callable[[], float]) -> JournalReporter:
        """Return another one with the same journal, for work that goes on beside.

        Args:
            asker: That work's own.
            now_s: Its clock.
        """
        return JournalReporter(self._journal, asker, now_s, self._utc)

    def began(self, what: str, version: str, policy: Policy, endpoints: Sequence[str]) -> None:
        """Keep who begins.

        Args:
            what: The command, like ``watch``.
            version: Of fencer.
            policy: How careful it is; by this its decisions can be made again.
            endpoints: Names of the hypervisors.
        """
        told = {"what": what, "fencer": version, "endpoints": list(endpoints), "mode": policy.mode.value}
        self._put(Kind.SESSION, lambda: {**told, "policy": policy_text(policy)})

    def asked(self, words: str, nodes: tuple[str, ...], why: Mapping[str, str]) -> None:
        """Keep what a person asks for; comes back once that is on the disk, or cannot be soon.

        Args:
            words: The command, as it was typed.
            nodes: Which nodes it is about, as far as that is known.
            why: Their words for what is recorded, by option.
        """
        self._wait(self._put(Kind.COMMAND, lambda: {"words": words, "nodes": list(nodes), "why": dict(why)}))

    def ended(self, code: int) -> None:
        """Keep how a command has ended: with this exit code."""
        self._put(Kind.ENDED, lambda: {"code": code})

    def judged(self, seen: Observation, decision: Decision) -> None:
        """See `fencer.ports.Recorder.judged`."""
        harmless = all(isinstance(action, NOTES) for action in decision.actions)
        alarms = " ".join(action.text for action in decision.actions if isinstance(action, Alarm))
        about = _about(seen.node.uid, seen.incident if alarms else "")
        text = f"{decision.verdict}/{decision.reason} {alarms}".rstrip()
        if not (harmless and self._is_too_much(seen.node.uid, text, about)):
            if alarms and self._kept_with is Kind.INTENT:
                self._kept = None  # `replay` reads what was known in rows of decisions
            self._put(Kind.DECISION, lambda: of_decision(seen, decision), seen)

    def intends(self, seen: Observation, action: Deed) -> None:
        """See `fencer.ports.Recorder.intends`."""
        word = action_word(action, ok=True)
        if (seen.node.uid, type(action)) in self._failing and self._again.told(seen.node.uid, word) is None:
            return
        if isinstance(action, NOTES) and self._is_too_much(seen.node.uid, f"meant {word}"):
            return
        row = self._put(Kind.INTENT, lambda: {"action": word, "on": plain(action)}, seen)
        if not isinstance(action, NOTES):
            self._wait(row)

    def decided(self, node: NodeView, decision: Decision) -> None:
        """See `fencer.ports.Reporter.decided`. It is kept already, with all that was known."""

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """See `fencer.ports.Reporter.acted`."""
        failing, text = (node.uid, type(action)), str(done)
        if done.ok:
            self._failing.discard(failing)
        elif failing in self._failing:
            told = self._again.told(node.uid, text)
            if told is None:
                return
            text = told
        else:
            self._failing.add(failing)
        if isinstance(action, NOTES) and self._is_too_much(*self._repetition(node, action, done)):
            return
        body = {"action": action_word(action, ok=True), "ok": done.ok, "text": text}
        self._put(Kind.ACTION, lambda: {**body, "on": plain(action), "done": plain(done)}, node=node)

    def said(self, text: str, *, warning: bool) -> None:
        """See `fencer.ports.Reporter.said`."""
        if not warning:
            self._again.forget()
        elif self._again.told(text.partition(": ")[0], text) is None:
            return
        self._put(Kind.NOTICE, lambda: {"text": text, "warning": warning})

    def _put(
        self,
        kind: Kind,
        body: Callable[[], Mapping[str, Any]],
        seen: Observation | None = None,
        node: NodeView | None = None,
    ) -> int:
        if seen is not None:
            node = seen.node
            self._incidents[node.uid] = seen.incident
            if seen is self._kept:  # once is enough
                seen = None
            else:
                self._kept, self._kept_with = seen, kind
        name, uid = (node.name, node.uid) if node is not None else ("", "")
        incident = self._incidents.get(uid, "")
        if uid:
            self._rows.setdefault(uid, deque(maxlen=MOST_ROWS)).append(self._now_s())
        row = Row(text_of(self._utc()), self._now_s(), kind, body, name, uid, incident, seen)
        return self._journal.put(row)

    def _repetition(self, node: NodeView, action: Deed, done: Done) -> tuple[str, str, str]:
        """Return what identifies a note that is done again, for `_is_too_much`; an alarm by its incident."""
        text = f"did {action_word(action, ok=done.ok)}"
        if not isinstance(action, Alarm):
            return node.uid, text, node.uid
        return node.uid, f"{text} {action.text}", _about(node.uid, self._incidents.get(node.uid, ""))

    def _is_too_much(self, uid: str, told: str, about: str = "") -> bool:
        """Whether there are many rows of this node already, and one that tells the same was kept lately.

        Args:
            uid: The UID of the node.
            told: What the row is about to record.
            about: The node, or the node in an incident: so the first alarm of each incident is kept. Empty:
                the node.
        """
        times = self._rows.get(uid)
        many = times is not None and len(times) == MOST_ROWS and self._now_s() - times[0] < DAY_S
        return many and self._again.told(about or uid, told) is None

    def _wait(self, ticket: int) -> None:
        with suppress(FencerError):  # then it does not take calls, either
            self._asker.ask(self.WORKER, lambda: self._journal.written(ticket, PATIENCE_S), 2 * PATIENCE_S)


def _about(uid: str, incident: str) -> str:
    """Return what a row is about: a node, or a node in an incident."""
    return f"{uid}/{incident}" if incident else uid


def of_decision(seen: Observation, decision: Decision) -> dict[str, Any]:
    """Return a decision as its row has it, and as it is compared when it is made again."""
    return {
        "intent": seen.intent.value,
        "verdict": decision.verdict.value,
        "reason": decision.reason.value,
        "text": decision_text(decision),
        "guest": str(decision.guest) if decision.guest else None,
        "ready": seen.node.ready,
        "checks": [dump_by_keys(check) for check in decision.checks],
        "actions": [action_word(action, ok=True) for action in decision.actions],
    }


def plain(value: Action | Deed | Done) -> dict[str, Any]:
    """Return an action, or its result, by its keys; pods and volumes by their names."""
    return {"type": name_of(type(value)), **_plain(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | frozenset | list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, PodView):
        return str(value)
    if isinstance(value, AttachmentView):
        return value.volume
    if is_dataclass(value):
        return {key: _plain(getattr(value, field)) for field, key in keys_of(type(value)).items()}
    return value
