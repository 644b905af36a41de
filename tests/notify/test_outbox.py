"""Messages on their way: real threads, receivers in memory."""

import logging
import threading
import time

import pytest

from fencer.errors import ReceiverError
from fencer.notify.lane import Pace
from fencer.notify.outbox import MOST, Outbox
from fencer.notify.receiver import Manner
from fencer.notify.settings import ALL
from fencer.wording.occasions import Occasion
from tests.notify.boxes import SEVERAL, WITHIN_S, Box, message, over

AT_ONCE = Pace(gather_s=0.0, retry_s=0.001, longest_s=0.002)
PATIENT = Pace(gather_s=3600.0, retry_s=3600.0, longest_s=3600.0)


@pytest.fixture
def outbox():
    """Make outboxes that are closed in the end."""
    made = []

    def make(*boxes, on=ALL, pace=AT_ONCE, now_s=time.monotonic):
        made.append(Outbox([(box, on) for box in boxes], None, now_s, pace))
        return made[-1]

    yield make
    for one in made:
        one.close(0.0)


def test_each_receiver_is_told(outbox):
    boxes = [Box("a"), Box("b", SEVERAL)]
    out = outbox(*boxes)
    out.put(message())
    assert [box.next() for box in boxes] == [[("k8s-2", 1, False)]] * 2
    out.put(over())
    assert [box.next() for box in boxes] == [[("k8s-2", 2, True)]] * 2


def test_a_receiver_that_hangs_keeps_no_other_back_and_nobody_who_tells(outbox):
    hung, quick = Box("hung"), Box("quick")
    hung.opened.clear()
    out = outbox(hung, quick)
    out.put(message())
    hung.tried.get(timeout=WITHIN_S)  # it hangs in its call now
    for number in range(2, 50):
        out.put(message(number=number))
    while quick.next() != [("k8s-2", 49, False)]:
        pass
    assert hung.got.empty()
    hung.opened.set()
    assert hung.next() == [("k8s-2", 1, False)]
    assert hung.next() == [("k8s-2", 49, False)]  # and of all that came meanwhile the newest


def test_nobody_who_tells_waits_for_a_lock(outbox):
    """Not even for one that is only held to look at what waits."""
    box = Box()
    out = outbox(box)
    with out._lock:
        out.put(message())
        out.put(over())
    while box.next() != [("k8s-2", 2, True)]:
        pass


def test_a_receiver_that_fails_is_told_in_the_end_and_both_is_logged_once(outbox, caplog):
    caplog.set_level(logging.INFO)
    box = Box("phone", fails=[ReceiverError("503 from https://ntfy.example: try later")] * 5)
    out = outbox(box)
    out.put(message())
    assert box.next() == [("k8s-2", 1, False)]
    out.put(message("k8s-3"))
    assert box.next() == [("k8s-3", 1, False)]
    assert [record.getMessage() for record in caplog.records] == [
        "phone is not told: 503 from https://ntfy.example: try later; tried again until it is, 1 message "
        "waits. Fencing goes on",
        "phone is told again; 1 message was late",
    ]


def test_a_bug_in_a_receiver_is_named_and_it_goes_on(outbox, caplog):
    box = Box("phone", fails=[ZeroDivisionError("secret")])
    outbox(box).put(message())
    assert box.next() == [("k8s-2", 1, False)]
    [bug] = [record for record in caplog.records if record.exc_info]
    assert bug.getMessage() == "phone: messages could not be sent: a bug in fencer"


def test_after_1000_incidents_at_a_dead_receiver_it_gets_the_newest_and_nothing_grows(outbox, caplog):
    caplog.set_level(logging.INFO)
    box = Box("alerts", SEVERAL)
    box.dead = ReceiverError("no answer")
    box.opened.clear()
    out = outbox(box)
    out.put(message("first"))
    box.tried.get(timeout=WITHIN_S)
    for number in range(MOST + 500):
        out.put(message(f"k8s-{number}"))
    out.put(message("last"))
    while "last-1" not in out._snapshot().incidents:
        pass
    assert len(out._snapshot().incidents) == MOST
    box.dead = None
    box.opened.set()
    while "last" not in (got := {about for about, _, _ in box.next()}):
        pass
    assert len(got) <= MOST
    assert "k8s-0" not in got


def test_of_too_many_incidents_those_go_that_matter_least_and_it_is_logged(outbox, caplog):
    caplog.set_level(logging.INFO)
    phone = Box("phone")
    alerts = Box("alerts", Manner(replaces=True, several=True, renew_s=0.001))
    began_s, all_came = time.monotonic(), threading.Event()

    def now_s():
        """A clock that stands still until all of them came, however slow the machine is."""
        return time.monotonic() if all_came.is_set() else began_s

    out = outbox(phone, alerts, pace=Pace(gather_s=0.001), now_s=now_s)
    with out._lock:  # so that all of them come at once
        out.put(message("worst", occasion=Occasion.ALARM))
        out.put(message("worst", 2, occasion=Occasion.ALARM, loud=False))  # the alarm stands all the same
        out.put(message("fenced"))
        out.put(message("quiet", occasion=Occasion.BLIND, loud=False))
        for number in range(MOST + 200):
            out.put(message(f"k8s-{number}", occasion=Occasion.REFUSED))
    while f"k8s-{MOST + 199}" not in out_keys(out):  # the last: nothing goes out before it is sorted
        pass
    all_came.set()
    assert phone.next() == [("worst", 2, False)]
    [sent] = phone.got.get(timeout=WITHIN_S)
    assert (
        sent.title == "999 incidents: 999 refused, and 202 more that were not kept"
    )  # details are not for it
    assert {"worst", "k8s-201", "k8s-1199"} <= {*out_keys(out)}
    for _ in range(3):
        assert ("worst", 2, False) in alerts.next()
    for number in range(MOST + 200):
        out.put(over(f"k8s-{number}"))
    out.close(WITHIN_S)
    assert [text for text in caplog.messages if "incidents" in text] == [
        "there are more than 1,000 incidents: nobody is told of 203 incidents, that matter least. "
        "Fencing goes on",
        "there are fewer incidents again; nobody was told of 203 incidents",
    ]


def test_what_a_working_receiver_refuses_delays_nothing_else(outbox, caplog):
    caplog.set_level(logging.INFO)
    box = Box("phone")
    box.refuses = "bad"
    out = outbox(box, pace=Pace(gather_s=0.0, retry_s=3600.0))
    out.put(message("bad"))
    box.tried.get(timeout=WITHIN_S)
    for about in ("a", "b"):
        out.put(message(about, occasion=Occasion.ALARM))
        assert box.next() == [(about, 1, False)]
    assert caplog.messages == ["phone did not take a message: answered 400; it is tried again, others go out"]


def test_in_the_end_what_is_refused_keeps_nothing_else_from_being_sent(outbox):
    box = Box("phone")
    box.refuses = "bad"
    out = outbox(box, pace=PATIENT)
    out.put(message("bad", occasion=Occasion.ALARM))
    out.put(message("good"))
    out.close(WITHIN_S)
    assert box.next() == [("good", 1, False)]
    assert box.tried.qsize() == 2


def out_keys(out):
    """Return whom the incidents that are kept are about."""
    return [one.about for one in out._snapshot().incidents.values()]


def test_forty_nodes_that_die_together_are_one_notification(outbox):
    box = Box("phone")
    box.opened.clear()
    out = outbox(box)
    out.put(message("first"))
    box.tried.get(timeout=WITHIN_S)
    for number in range(40):
        out.put(message(f"k8s-{number}"))
    while "k8s-39" not in out_keys(
        out
    ):  # the last is sorted: else some would come with the next notification
        pass
    box.opened.set()
    assert box.next() == [("first", 1, False)]
    [sent] = box.got.get(timeout=WITHIN_S)
    assert sent.title == "40 incidents: 40 fenced"


def test_only_who_wants_it_is_told(outbox):
    box = Box("phone")
    out = outbox(box, on=frozenset({Occasion.ALARM}))
    out.put(message())
    out.put(message("k8s-3", occasion=Occasion.ALARM))
    assert box.next() == [("k8s-3", 1, False)]


def test_what_is_over_and_known_to_all_is_forgotten(outbox):
    boxes = [Box("a"), Box("b")]
    out = outbox(*boxes)
    out.put(message())
    for box in boxes:
        box.next()
    out.put(over())
    for box in boxes:
        box.next()
    out.close(WITHIN_S)
    assert not out._incidents


def test_what_nobody_is_told_of_is_forgotten_when_it_is_over(outbox):
    out = outbox(Box(), on=frozenset({Occasion.ALARM}))
    out.put(message())
    out.put(over())
    out.close(WITHIN_S)
    assert not out._incidents


def test_in_the_end_what_waits_is_sent_without_gathering_and_without_the_rest_of_a_pause(outbox):
    box, dead = Box("a"), Box("dead", fails=[ReceiverError("no answer")] * 2)
    out = outbox(box, dead, pace=PATIENT)
    out.put(message())
    out.close(WITHIN_S)
    assert box.next() == [("k8s-2", 1, False)]
    assert dead.tried.qsize() == 1  # once: it is over then


def test_in_the_end_a_receiver_that_hangs_is_left_behind(outbox, caplog):
    box = Box("hung")
    box.opened.clear()
    out = outbox(box)
    out.put(message())
    box.tried.get(timeout=WITHIN_S)
    out.close(0.0)
    assert "1 message for hung did not get there in time; nobody keeps them" in caplog.text
    box.opened.set()


def test_in_the_end_a_receiver_that_wants_to_be_left_alone_is():
    box = Box("busy", fails=[ReceiverError("429", retry_s=60.0)])
    out = Outbox([(box, ALL)], None, time.monotonic, AT_ONCE)
    out.put(message())
    box.tried.get(timeout=WITHIN_S)
    while not out._lanes[0].lane.asked:
        pass
    out.close(WITHIN_S)
    assert box.tried.empty()


@pytest.mark.parametrize("jump_s", [1e9, -1e9])
def test_a_clock_that_jumps_stops_nothing(jump_s):
    """A monotonic clock does not; but a machine that slept may make it look so."""
    now_s = [1000.0]
    box = Box("phone")
    out = Outbox([(box, ALL)], None, lambda: now_s[0], AT_ONCE)
    out.put(message())
    assert box.next() == [("k8s-2", 1, False)]
    now_s[0] += jump_s
    out.put(over())
    assert box.next() == [("k8s-2", 2, True)]
    out.close(0.0)


def test_it_has_one_thread_a_receiver_with_its_name(outbox):
    outbox(Box("phone"), Box("mail"))
    names = {thread.name for thread in threading.enumerate()}
    assert {"fencer-notify-phone", "fencer-notify-mail"} <= names


def test_what_is_open_is_told_again_to_who_forgets(outbox):
    box = Box("alerts", Manner(replaces=True, several=True, renew_s=0.001))
    out = outbox(box)
    out.put(message())
    for _ in range(3):
        assert box.next() == [("k8s-2", 1, False)]
    out.put(over())
    while box.next() != [("k8s-2", 2, True)]:
        pass
