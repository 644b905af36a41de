"""What goes into the journal, and when whoever acts waits for it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fencer.core.done import GuestStopped, Happened, PodsCleared, Tainted
from fencer.core.model import (
    Alarm,
    Binding,
    BindNode,
    PowerState,
    Proof,
    Reason,
    RecordDoubts,
    StopGuest,
    Verdict,
)
from fencer.core.policy import Mode, Policy
from fencer.core.wire import name_of
from fencer.errors import HypervisorUnreachable
from fencer.journal.codec import policy_from
from fencer.journal.rows import Kind
from fencer.reporting.journal import MOST_ROWS, PATIENCE_S, JournalReporter
from tests.core.build import observation
from tests.reporting.stand_ins import CLEAR, EVIL, GUEST, NODE, REFUSED, REFUSED_TEXT, TAINT

AT = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
SEEN = observation(node=NODE, incident="5a5ca47e")
STOP = StopGuest(GUEST, "run-1")


class Kept:
    """A journal that remembers what it was given, and what was waited for."""

    def __init__(self):
        self.rows, self.waited = [], []

    def put(self, row):
        self.rows.append(row)
        return len(self.rows)

    def written(self, ticket, patience_s):
        self.waited.append((ticket, patience_s))
        return True


class Calls:
    """An asker that makes calls at once, or has no worker left."""

    def __init__(self):
        self.asked, self.lost = [], False

    def ask(self, endpoint, call, deadline_s):
        if self.lost:
            raise HypervisorUnreachable("no worker left")
        self.asked.append((endpoint, deadline_s))
        return call()


class Time:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def kept():
    return Kept()


@pytest.fixture
def calls():
    return Calls()


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def journal(kept, calls, time):
    return JournalReporter(kept, calls, time, lambda: AT)


def bodies(kept):
    return [row.body() for row in kept.rows]


def test_a_decision_is_kept_with_its_whole_ladder_and_all_that_was_known(journal, kept):
    journal.judged(SEEN, REFUSED)
    [row] = kept.rows
    assert (row.kind, row.node, row.uid, row.incident) == (Kind.DECISION, "k8s-4", "uid-4", "5a5ca47e")
    assert (row.at_utc, row.at_s, row.seen) == ("2026-11-20T10:00:00.000Z", 100.0, SEEN)
    assert row.body() == {
        "intent": "watch",
        "verdict": "refuse",
        "reason": "guest_running",
        "text": REFUSED_TEXT,
        "guest": "lab/k8s-4",
        "ready": None,
        "checks": [
            {"name": "silent", "outcome": "passed", "seen": "lease 52 s old", "needs": "40 s"},
            {"name": "off", "outcome": "failed", "seen": "running (state 1)", "needs": "stopped"},
        ],
        "actions": [],
    }


def test_what_is_meant_is_on_the_disk_before_it_is_done(journal, kept, calls):
    journal.intends(SEEN, TAINT)
    [row] = kept.rows
    assert (row.kind, row.body()["action"], row.body()["on"]["type"]) == (
        Kind.INTENT,
        "TaintNode",
        "TaintNode",
    )
    assert kept.waited == [(1, PATIENCE_S)]
    assert calls.asked == [("journal", 2 * PATIENCE_S)]


@pytest.mark.parametrize("note", [BindNode(Binding(GUEST, ("boot-1",))), RecordDoubts(()), Alarm("x")])
def test_nothing_waits_for_the_row_of_a_note(journal, kept, note):
    journal.intends(SEEN, note)
    assert len(kept.rows) == 1
    assert kept.waited == []


def test_an_asker_without_a_worker_keeps_nobody_from_acting(journal, kept, calls):
    calls.lost = True
    journal.intends(SEEN, TAINT)
    assert len(kept.rows) == 1


def test_all_that_was_known_is_kept_once(journal, kept):
    journal.judged(SEEN, REFUSED)
    journal.intends(SEEN, TAINT)
    later = replace(SEEN, now_s=SEEN.now_s + 1)
    journal.intends(later, CLEAR)
    assert [row.seen for row in kept.rows] == [SEEN, None, later]


@pytest.mark.parametrize(
    ("action", "done", "facts"),
    [
        (TAINT, Tainted(PowerState.PAUSED, Proof.POWER, 65.0, 8, 3), {"power_state": "paused", "pods": 8}),
        (
            CLEAR,
            PodsCleared(("db/db-1",), {"db/db-2": "held"}),
            {"gone": ["db/db-1"], "held": {"db/db-2": "held"}},
        ),
        (
            STOP,
            GuestStopped(GUEST, PowerState.STOPPED, "shut off", ok=True),
            {"raw": "shut off", "sent": True},
        ),
        (TAINT, Happened("no", ok=False, changed=True), {"text": "no", "changed": True}),
    ],
)
def test_what_was_done_is_kept_by_its_facts(journal, kept, action, done, facts):
    journal.judged(SEEN, REFUSED)
    journal.acted(NODE, action, done)
    body = bodies(kept)[-1]
    assert (body["ok"], body["text"], body["done"]["type"]) == (done.ok, str(done), name_of(type(done)))
    assert facts.items() <= body["done"].items()
    assert kept.rows[-1].incident == "5a5ca47e"


def test_pods_and_volumes_are_kept_by_their_names(journal, kept):
    journal.acted(NODE, CLEAR, Happened("done"))
    assert bodies(kept)[-1]["on"] == {"type": "ClearPods", "pods": ["db/db-1"]}


def test_what_fails_again_and_again_is_kept_more_and_more_seldom(journal, kept, time):
    for _ in range(1000):
        journal.intends(SEEN, TAINT)
        journal.acted(NODE, TAINT, Happened("no answer within 10 s", ok=False))
        time.now += 2.0
    failures = [row.body()["text"] for row in kept.rows if row.kind is Kind.ACTION]
    intents = [row for row in kept.rows if row.kind is Kind.INTENT]
    assert len(failures) < 12
    assert len(intents) < 12
    assert failures[-1].startswith("no answer within 10 s (said ")


def test_after_a_success_a_failure_is_news_again(journal, kept):
    for ok in (False, True, False):
        journal.intends(SEEN, TAINT)
        journal.acted(NODE, TAINT, Happened("x", ok=ok))
    assert [row.kind for row in kept.rows] == [Kind.INTENT, Kind.ACTION] * 3


def test_troubles_that_go_on_are_kept_seldom_and_are_news_once_they_were_over(journal, kept):
    for _ in range(50):
        journal.said("lab: does not answer", warning=True)
    journal.said("lab: answers again", warning=False)
    journal.said("lab: does not answer", warning=True)
    assert [body["text"] for body in bodies(kept)] == [
        "lab: does not answer",
        "lab: answers again",
        "lab: does not answer",
    ]


def test_who_begins_is_kept_with_a_policy_that_can_be_read_again(journal, kept):
    policy = Policy(mode=Mode.ARMED, lease_silent_s=20.0)
    journal.began("watch", "0.1.0", policy, ("lab", "home"))
    [body] = bodies(kept)
    assert {
        "what": "watch",
        "fencer": "0.1.0",
        "endpoints": ["lab", "home"],
        "mode": "armed",
    }.items() <= body.items()
    assert policy_from(body["policy"]) == policy


def test_a_command_is_kept_with_its_words_before_it_begins(journal, kept):
    journal.asked("fence k8s-2 --over-brake 'rack is gone'", ("k8s-2",), {"over-brake": "rack is gone"})
    journal.ended(1)
    assert [row.kind for row in kept.rows] == [Kind.COMMAND, Kind.ENDED]
    assert kept.waited == [(1, PATIENCE_S)]
    assert bodies(kept)[0]["why"] == {"over-brake": "rack is gone"}
    assert bodies(kept)[1] == {"code": 1}


def test_names_that_would_be_lines_of_their_own_are_kept_as_they_are(journal, kept):
    journal.judged(replace(SEEN, node=replace(NODE, name=EVIL)), REFUSED)
    assert kept.rows[0].node == EVIL


def test_work_beside_keeps_the_same_journal(journal, kept, calls, time):
    journal.beside(calls, time).said("drained", warning=False)
    journal.said("lab: lost", warning=True)
    assert len(kept.rows) == 2


def test_a_node_that_changes_all_the_time_does_not_push_other_nights_out(journal, kept, time):
    healthy = replace(REFUSED, verdict=Verdict.HEALTHY, reason=Reason.NODE_HEALTHY, checks=())
    for _ in range(2000):
        journal.judged(SEEN, REFUSED)
        journal.judged(SEEN, healthy)
        journal.intends(SEEN, BindNode(Binding(GUEST, ("boot-1",))))
        journal.acted(NODE, BindNode(Binding(GUEST, ("boot-1",))), Happened("bound"))
        time.now += 2.0
    assert len(kept.rows) < 600
    kept.rows.clear()
    journal.judged(SEEN, replace(REFUSED, verdict=Verdict.FENCE, actions=(TAINT,)))
    journal.intends(SEEN, TAINT)
    journal.acted(NODE, TAINT, Happened("tainted"))
    assert [row.kind for row in kept.rows] == [Kind.DECISION, Kind.INTENT, Kind.ACTION]


def in_alarm(text="old memory is back", *, boot="boot-1", incident="5a5ca47e"):
    """What is seen, and decided, where an alarm is raised."""
    seen = replace(SEEN, incident=incident, node=replace(NODE, boot_id=boot))
    return seen, replace(REFUSED, actions=(Alarm(text),))


def flood(journal, kept):
    """As many rows of one node in a day as are kept of all that happens to it."""
    for number in range(MOST_ROWS):
        journal.acted(NODE, TAINT, Happened(str(number)))
    kept.rows.clear()


def raised(journal, seen, decision):
    journal.judged(seen, decision)
    journal.acted(seen.node, decision.actions[0], Happened(decision.actions[0].text))


def test_the_first_alarm_of_each_incident_is_kept_however_many_rows_there_are(journal, kept):
    flood(journal, kept)
    for incident in ("5a5ca47e", "d85b8036"):
        for _ in range(3):
            raised(journal, *in_alarm(incident=incident))
    assert [(row.kind, row.incident) for row in kept.rows] == [
        (Kind.DECISION, "5a5ca47e"),
        (Kind.ACTION, "5a5ca47e"),
        (Kind.DECISION, "d85b8036"),
        (Kind.ACTION, "d85b8036"),
    ]


def test_nor_does_another_alarm_of_it_count_as_the_same(journal, kept):
    flood(journal, kept)
    raised(journal, *in_alarm())
    raised(journal, *in_alarm("it was fenced wrongly"))
    assert [row.kind for row in kept.rows] == [Kind.DECISION, Kind.ACTION] * 2


def test_a_decision_with_an_alarm_has_what_was_known_in_its_own_row_though_an_intent_had_it(journal, kept):
    """Otherwise `replay` could not make it again: a note that failed was meant on the same."""
    seen, decision = in_alarm()
    journal.intends(seen, TAINT)
    journal.judged(seen, decision)
    journal.judged(seen, decision)
    assert [row.seen for row in kept.rows] == [seen, seen, None]
