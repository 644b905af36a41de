"""A small journal by fencer's own Store: an agent fences a node, and a person drains another one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fencer.core.done import GuestStopped, Happened, PodsCleared, Tainted
from fencer.core.model import (
    Action,
    Alarm,
    Check,
    ClearPods,
    Decision,
    EvictPods,
    Intent,
    Outcome,
    PowerState,
    Proof,
    Reason,
    StopGuest,
    Taint,
    TaintNode,
    UntaintNode,
    Verdict,
)
from fencer.journal.rows import Kind, Row, text_of
from fencer.journal.store import Store
from fencer.reporting.journal import JournalReporter
from tests.frozen.cases import FENCED_AT, GUEST, MARK, NODE
from tests.frozen.samples import BARE_OBSERVATION, EVIDENCE, PODS, POLICIES

START = datetime(2026, 11, 29, 2, 14, tzinfo=UTC)
EVIDENCE_OFF = replace(EVIDENCE[2], guest=GUEST, power_state=PowerState.PAUSED)
SEEN = replace(BARE_OBSERVATION, node=NODE, incident="5a5ca47e", evidence=EVIDENCE_OFF)
TAINT = Taint("node.kubernetes.io/out-of-service", "nodeshutdown", "NoExecute", FENCED_AT)
FENCED_NODE = replace(NODE, taints=(TAINT,), mark=MARK)
FENCED = replace(SEEN, node=FENCED_NODE)
DRAINED_NODE = replace(NODE, name="k8s-3", uid="node-uid-3", ready=True)
DRAINED = replace(SEEN, node=DRAINED_NODE, incident="d0d0d0d0", evidence=None, intent=Intent.WATCH)


class Clock:
    """Ten seconds pass before each row."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic_s(self) -> float:
        """Return the time in seconds."""
        return self.now_s

    def utc(self) -> datetime:
        """Return the time of day of the next row."""
        self.now_s += 10
        return START + timedelta(seconds=self.now_s - 1000)


class Writer:
    """Writes each row at once: a journal, and an asker.

    Args:
        path: The journal's file.
        session: Which run this is.
        by: Who runs it.
    """

    def __init__(self, path: Path, session: str, by: str) -> None:
        self.store, self._ticket = Store(path, session, by), 0

    def put(self, row: Row) -> int:
        """Write a row."""
        self.store.append([row])
        self._ticket += 1
        return self._ticket

    def written(self, ticket: int, patience_s: float) -> bool:
        """Return whether a row is written."""
        return ticket <= self._ticket and patience_s > 0

    def ask(self, _endpoint, call, _deadline_s):
        """Make a call at once."""
        return call()


def decide(verdict: Verdict, reason: Reason, *actions: Action) -> Decision:
    """Return a decision with one check."""
    checks = (Check("off", Outcome.PASSED, "stopped", "stopped twice"), Check("armed", Outcome.NOT_ASKED))
    return Decision(verdict, reason, checks, actions, guest=GUEST)


def write_journal(path: Path) -> None:
    """Write the journal into a file that does not exist yet."""
    clock = Clock()
    agent = Writer(path, "5e55105a", "fencer@pve1")
    reporter = JournalReporter(agent, agent, clock.monotonic_s, clock.utc)
    reporter.began("watch", "0.1.0", POLICIES[0], ["home", "lab"])
    reporter.said("lab: no answer", warning=True)
    reporter.judged(SEEN, decide(Verdict.WAIT, Reason.PAUSE_TOO_SHORT))
    stop = StopGuest(GUEST, "run-7")
    reporter.judged(replace(SEEN, close=True), decide(Verdict.STOP_FIRST, Reason.GUEST_PAUSED, stop))
    reporter.intends(SEEN, stop)
    reporter.acted(NODE, stop, GuestStopped(GUEST, PowerState.STOPPED, "stopped (destroyed)", ok=True))
    taint = TaintNode(MARK)
    reporter.judged(SEEN, decide(Verdict.FENCE, Reason.PROVEN_OFF, taint))
    reporter.intends(SEEN, taint)
    reporter.acted(NODE, taint, Tainted(PowerState.STOPPED, Proof.POWER, 5.5, pods=3, volumes=2))
    clear = ClearPods(PODS)
    reporter.judged(FENCED, decide(Verdict.FENCED, Reason.CLEARING_PODS, clear))
    reporter.intends(FENCED, clear)
    cleared = PodsCleared(("db/a",), {"db/b": "a finalizer"}, ("db/c",), {"db/d": "refused"})
    reporter.acted(FENCED_NODE, clear, cleared)
    reporter.judged(FENCED, decide(Verdict.FENCED, Reason.PODS_CLEARED, Alarm("look")))
    reporter.acted(FENCED_NODE, Alarm("look"), Happened("look"))
    untaint = UntaintNode(None)
    reporter.judged(FENCED, decide(Verdict.UNFENCE, Reason.BOOTED_ANEW, untaint))
    reporter.acted(FENCED_NODE, untaint, Happened("changed meanwhile", ok=False, changed=True))
    reporter.acted(FENCED_NODE, untaint, Happened("out-of-service taint taken off"))
    reporter.judged(SEEN, decide(Verdict.HEALTHY, Reason.NODE_HEALTHY))
    agent.put(Row(text_of(clock.utc()), clock.now_s, Kind.LOST, lambda: {"rows": 7}))
    agent.store.close()
    _write_drain(path, clock)


def _write_drain(path: Path, clock: Clock) -> None:
    person = Writer(path, "c0ffee00", "anna@box (by hand)")
    reporter = JournalReporter(person, person, clock.monotonic_s, clock.utc)
    reporter.began("drain", "0.1.0", POLICIES[1], ["home"])
    reporter.asked("drain k8s-3", ("k8s-3",), {"over-brake": "I know"})
    evict = EvictPods(PODS[:1], grace_s=30.0)
    reporter.intends(DRAINED, evict)
    reporter.acted(DRAINED_NODE, evict, Happened("evicted db/a"))
    reporter.ended(0)
    person.store.close()
