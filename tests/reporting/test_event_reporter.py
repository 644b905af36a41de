"""Node Events: what is written, and that a lost one costs nothing."""

import logging

from fencer.core.done import Happened
from fencer.core.model import Decision, Reason, Verdict
from fencer.errors import ClusterDenied, HypervisorUnreachable
from fencer.reporting.events import EventReporter
from fencer.wording.reports import decision_text
from tests.reporting.stand_ins import (
    ALARM,
    CLEAR,
    EVIL,
    FENCE,
    HEALTHY,
    NODE,
    REFUSED,
    REFUSED_TEXT,
    TAINT,
    tell_everything,
)

CLEARED = Decision(Verdict.FENCED, Reason.PODS_CLEARED)
FAILS = Happened("forbidden: patch nodes", ok=False)


class EventsOnly:
    """The one method of `Cluster` that Events need."""

    def __init__(self):
        self.events = []
        self.error = None

    def record_event(self, node, reason, text, *, warning):
        if self.error:
            raise self.error
        self.events.append((node.name, reason, text, warning))


class InlineAsker:
    """An `Asker` that asks at once, and remembers whom and how patiently."""

    def __init__(self):
        self.asked = []
        self.error = None

    def ask(self, endpoint, call, deadline_s):
        self.asked.append((endpoint, deadline_s))
        if self.error:
            raise self.error
        return call()


def test_what_changes_something_or_needs_a_person_is_told_with_why_and_nothing_else_is():
    cluster = EventsOnly()
    events = EventReporter(cluster, InlineAsker())
    events.decided(NODE, REFUSED)
    events.decided(NODE, FENCE)
    events.acted(NODE, TAINT, Happened("tainted"))
    events.acted(NODE, CLEAR, Happened("0 of 1 pods cleared", ok=False))
    events.acted(NODE, CLEAR, Happened("1 of 1 pods cleared"))
    events.decided(NODE, CLEARED)
    events.acted(NODE, ALARM, Happened("old memory is back"))
    events.decided(NODE, HEALTHY)
    events.said("lab: lost", warning=True)
    assert cluster.events == [
        ("k8s-4", "FencerRefused", REFUSED_TEXT, True),
        ("k8s-4", "FencerFenced", f"{decision_text(FENCE)}: tainted", True),
        ("k8s-4", "FencerFailed", "could not clear its pods: 0 of 1 pods cleared", True),
        ("k8s-4", "FencerPodsCleared", decision_text(CLEARED), False),
        ("k8s-4", "FencerAlarm", "old memory is back", True),
    ]


def test_a_refusal_because_there_is_nothing_to_do_needs_nobody():
    cluster = EventsOnly()
    EventReporter(cluster, InlineAsker()).decided(NODE, Decision(Verdict.REFUSE, Reason.NOTHING_TO_CLEAR))
    assert cluster.events == []


def test_an_agent_that_finds_a_fence_complete_after_its_start_tells_nothing_new():
    cluster = EventsOnly()
    EventReporter(cluster, InlineAsker()).decided(NODE, CLEARED)
    assert cluster.events == []


def test_what_fails_again_and_again_is_told_once_and_again_after_it_was_done():
    cluster = EventsOnly()
    events = EventReporter(cluster, InlineAsker())
    for done in (FAILS, FAILS, Happened("tainted"), FAILS):
        events.acted(NODE, TAINT, done)
    assert [reason for _, reason, _, _ in cluster.events] == ["FencerFailed", "FencerFenced", "FencerFailed"]


def test_a_failure_with_other_numbers_each_time_is_no_stream_of_events():
    cluster = EventsOnly()
    events = EventReporter(cluster, InlineAsker())
    for number in range(30):
        events.acted(NODE, TAINT, Happened(f"403: webhook denied request 6f{number}a1", ok=False))
    events.acted(NODE, TAINT, Happened("500: webhook is gone", ok=False))
    assert len(cluster.events) == 2


def test_what_another_writer_changed_meanwhile_is_no_failure():
    cluster = EventsOnly()
    changed = Happened("changed meanwhile", ok=False, changed=True)
    EventReporter(cluster, InlineAsker()).acted(NODE, TAINT, changed)
    assert cluster.events == []


def test_texts_from_outside_are_escaped():
    cluster = EventsOnly()
    EventReporter(cluster, InlineAsker()).acted(NODE, TAINT, Happened(EVIL))
    assert cluster.events[0][2].isprintable()


def test_events_have_a_worker_and_a_deadline_of_their_own():
    asker = InlineAsker()
    EventReporter(EventsOnly(), asker, deadline_s=1.5).decided(NODE, REFUSED)
    assert asker.asked == [("events", 1.5)]


def test_lost_events_are_said_once_and_counted(caplog):
    caplog.set_level(logging.INFO)
    cluster, asker = EventsOnly(), InlineAsker()
    events = EventReporter(cluster, asker)
    cluster.error = ClusterDenied("403: may not create events")
    tell_everything(events)
    cluster.error, asker.error = None, HypervisorUnreachable("events: no answer within 2 s")
    tell_everything(events)
    asker.error = None
    tell_everything(events)
    assert [record.getMessage() for record in caplog.records] == [
        "Events cannot be written: 403: may not create events",
        "Events are written again; 4 were lost",
    ]
