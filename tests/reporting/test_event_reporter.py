"""Node Events: what is written, and that a lost one costs nothing."""

import logging

from fencer.core.done import Happened
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


def test_decisions_and_actions_are_told_in_the_words_of_the_log():
    cluster = EventsOnly()
    events = EventReporter(cluster, InlineAsker())
    events.decided(NODE, REFUSED)
    events.decided(NODE, FENCE)
    events.acted(NODE, TAINT, Happened("tainted"))
    events.acted(NODE, CLEAR, Happened("0 of 1 pods cleared", ok=False))
    events.acted(NODE, ALARM, Happened("old memory is back"))
    events.decided(NODE, HEALTHY)
    events.said("lab: lost", warning=True)
    assert cluster.events == [
        ("k8s-4", "GuestRunning", REFUSED_TEXT, True),
        ("k8s-4", "ProvenOff", decision_text(FENCE), True),
        ("k8s-4", "TaintNode", "tainted", False),
        ("k8s-4", "ClearPodsFailed", "0 of 1 pods cleared", True),
        ("k8s-4", "Alarm", "old memory is back", True),
        ("k8s-4", "NodeHealthy", "healthy", False),
    ]


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
