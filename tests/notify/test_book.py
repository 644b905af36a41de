"""The book of what people know: when an incident is told, brought up to date, and over."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core.starts import LOOP_S
from fencer.notify.book import CALM_S, LONGEST_REST_S, MOST_REMEMBERED, Book
from fencer.notify.cases import API, Case, Look, without_api
from fencer.wording.occasions import Occasion

AT = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
FENCED = Case(Occasion.FENCED, "k8s-2", "k8s-2 is fenced", "…", "pods_cleared", "lab/k8s-2", done=True)
CLEARING = replace(FENCED, title="k8s-2 is being cleared", reason="clearing_pods", done=False, opens_s=20.0)
REFUSED = Case(Occasion.REFUSED, "k8s-2", "k8s-2 is down", "…", "guest_running", opens_s=10.0)
ALARM = Case(Occasion.ALARM, "k8s-2", "ALARM: k8s-2", "…", "old_memory")
BLIND = Case(Occasion.BLIND, "pve", "fencer is blind", "…", opens_s=60.0)
KNOWN = frozenset({("node", "k8s-1"), ("node", "k8s-2"), ("endpoint", "pve"), ("endpoint", API)})
WELL = Look({}, known=KNOWN)
UNCLEAR = Look({}, frozenset({("node", "k8s-2")}), KNOWN)


def of(*cases):
    return Look({f"id{place}{case.about[:3]}": case for place, case in enumerate(cases)}, known=KNOWN)


class Night:
    """A book, and what it says as time goes on."""

    def __init__(self, *args, **options):
        self.book = Book(*args, **options)
        self.now_s, self.told = 0.0, []

    def see(self, found, for_s=0.0):
        """Look once now, and then every second; returns what was told."""
        told = []
        for step in range(int(for_s) + 1):
            self.now_s += 1.0 if step else 0.0
            told += self.book.look(found, self.now_s, AT + timedelta(seconds=self.now_s))
        self.now_s += 1.0
        self.told += told
        return told


def short(messages):
    return [(str(message.told_as), message.about, message.loud) for message in messages]


def test_a_complete_fence_is_told_at_once_and_once():
    night = Night()
    assert short(night.see(of(FENCED), 300.0)) == [("fenced", "k8s-2", True)]
    [over] = night.see(WELL, 300.0)
    assert over.over
    assert over.number == 2
    assert over.key == night.told[0].key
    assert "5m01s" in over.text


def test_a_fence_that_completes_soon_is_one_message_and_a_slow_one_two():
    quick, slow = Night(), Night()
    assert short(quick.see(of(CLEARING), 15.0)) == []
    assert [message.title for message in quick.see(of(FENCED), 100.0)] == [FENCED.title]
    assert short(slow.see(of(CLEARING), 100.0)) == [("fenced", "k8s-2", True)]
    assert short(slow.see(of(FENCED), 100.0)) == [("fenced", "k8s-2", True)]
    assert short(slow.see(of(CLEARING), 20.0)) == [("fenced", "k8s-2", False)]  # it was complete


def test_an_outage_that_passes_is_no_news_and_a_long_one_is_reminded_of():
    night = Night(remind_s=3600.0)
    assert night.see(of(BLIND), 50.0) == []
    assert night.see(WELL, 100.0) == []
    first, *again = night.see(of(BLIND), 3 * 3600.0 + 200.0)
    assert (first.number, first.loud) == (1, True)
    assert [message.title for message in again] == [
        f"fencer is blind (for {hours}h01m now)" for hours in (1, 2, 3)
    ]
    assert all(message.key == first.key for message in again)
    [over] = night.see(WELL, CALM_S[Occasion.BLIND] + 1.0)
    assert over.over
    assert "3h03m" in over.text


def test_nothing_is_over_while_nobody_can_look_or_it_is_not_clear():
    night = Night()
    night.see(of(REFUSED), 20.0)
    told = night.see(without_api("connection refused"), 600.0)
    assert short(told) == [("blind", API, True)]
    assert night.see(UNCLEAR, 300.0)[0].about == API  # which answers
    assert short(night.see(WELL, 100.0)) == [("back", "k8s-2", True)]


@pytest.mark.parametrize("other", [FENCED, ALARM])
def test_what_becomes_something_else_is_the_same_incident_and_news(other):
    night = Night()
    first = night.see(of(REFUSED), 20.0)
    then = night.see(of(other), 20.0)
    assert short(first + then) == [("refused", "k8s-2", True), (str(other.occasion), "k8s-2", True)]
    assert len({message.key for message in night.told}) == 1


def test_another_reason_is_told_quietly_and_not_each_time():
    night = Night()
    night.see(of(REFUSED), 20.0)
    silent = replace(REFUSED, reason="evidence_missing")
    quiet = [
        message for _ in range(60) for found in (of(silent), of(REFUSED)) for message in night.see(found)
    ]
    assert {message.loud for message in quiet} == {False}
    assert len(quiet) <= 4


def test_the_end_of_an_alarm_is_told_with_what_goes_on():
    night = Night()
    night.see(of(ALARM))
    [message] = night.see(of(FENCED))
    assert message.text.startswith("The alarm is over.\n")
    [over] = night.see(WELL)
    assert "alarm" not in over.text


def test_an_incident_that_stood_before_it_was_seen_began_then():
    night = Night()
    [message] = night.see(of(replace(FENCED, for_s=90.0)))
    assert (message.at - message.began).total_seconds() == 90.0


def test_a_node_that_boots_and_falls_again_is_one_incident():
    night = Night()
    night.see(Look({"before": REFUSED}, known=KNOWN), 20.0)
    assert night.see(Look({"after": REFUSED}, known=KNOWN), 20.0) == []
    assert short(night.see(WELL, 100.0)) == [("back", "k8s-2", True)]


def test_a_node_that_is_deleted_is_told_to_be():
    night = Night()
    night.see(of(FENCED))
    [over] = night.see(Look({}, known=KNOWN - {("node", "k8s-2")}))
    assert over.title == "k8s-2 is deleted"


def test_who_flaps_is_told_more_and_more_seldom():
    """A day of a node that is down for two minutes and well for two, again and again."""
    night = Night()
    for _ in range(24 * 15):
        night.see(of(REFUSED), 118.0)
        night.see(WELL, 118.0)
    assert 4 < len(night.told) < 24 * 4


def test_a_fence_and_an_alarm_are_always_told():
    night = Night()
    for _ in range(50):
        assert short(night.see(of(FENCED))) == [("fenced", "k8s-2", True)]
        assert short(night.see(of(ALARM))) == [("alarm", "k8s-2", True)]
        assert short(night.see(WELL, 61.0))[-1] == ("back", "k8s-2", True)


def test_an_agent_after_this_one_tells_nothing_twice_and_still_tells_the_end():
    before = Night()
    told = before.see(of(FENCED, BLIND), 100.0)
    after = Night(told)
    assert after.see(of(FENCED, BLIND), 100.0) == []
    over = after.see(WELL, 100.0)
    assert short(over) == [("back", "k8s-2", True), ("back", "pve", True)]
    assert {message.key for message in over} == {message.key for message in told}
    assert {message.began for message in over} == {message.began for message in told}


def test_what_was_over_before_a_restart_is_not_gone_into_again():
    before = Night()
    before.see(of(FENCED))
    before.see(WELL, 10.0)
    assert Night(before.told[-1:]).see(WELL, 100.0) == []


def test_what_is_remembered_of_who_flaps_is_bounded():
    night = Night()
    for number in range(MOST_REMEMBERED + 1):
        night.see(Look({f"id{number}": replace(FENCED, about=f"k8s-{number}")}, known=KNOWN))
    assert sum(not message.over for message in night.told) == MOST_REMEMBERED + 1


CASES = (FENCED, CLEARING, REFUSED, ALARM, BLIND, replace(REFUSED, about="k8s-1"))
LOOKS = st.one_of(
    st.just(WELL),
    st.just(UNCLEAR),
    st.just(without_api("no answer")),
    st.lists(st.sampled_from(CASES), unique_by=lambda case: case.about).map(lambda cases: of(*cases)),
)


@given(
    st.lists(st.tuples(LOOKS, st.sampled_from((1.0, 15.0, 90.0, 4000.0))), max_size=40), st.integers(0, 40)
)
def test_whatever_comes_each_incident_is_told_in_order_and_ends_once(looks, restarted):
    book, now_s, told = Book(), 0.0, []
    for place, (found, passed_s) in enumerate(looks):
        now_s += passed_s
        if place == restarted:
            newest = {message.key: message for message in told}
            book = Book([message for message in newest.values() if not message.over])
        told += book.look(found, now_s, AT + timedelta(seconds=now_s))
    for key in {message.key for message in told}:
        of_key = [message for message in told if message.key == key]
        assert [message.number for message in of_key] == list(range(1, len(of_key) + 1))
        assert of_key[0].loud
        assert sum(message.over for message in of_key) <= 1
        assert not any(message.over for message in of_key[:-1])
        assert len({message.began for message in of_key}) == 1
        assert len(key) <= 64


@pytest.mark.parametrize("case", [BLIND, REFUSED])
def test_who_has_flapped_for_long_is_told_all_the_same_where_it_lasts(case):
    night = Night()
    for _ in range(14):
        assert len(night.see(of(case), LONGEST_REST_S[case.occasion] + 60.0)) == 1
        assert len(night.see(WELL, 60.0)) == 1


def test_a_fence_is_not_over_while_its_taint_is_on_the_node_whoever_took_its_mark_off():
    night = Night()
    night.see(of(FENCED))
    assert night.see(Look({}, known=KNOWN, tainted=frozenset({"k8s-2"})), 300.0) == []
    assert short(night.see(WELL)) == [("back", "k8s-2", True)]


def test_a_node_that_is_missing_because_it_cannot_be_read_is_not_deleted():
    night = Night()
    night.see(of(ALARM))
    gone = KNOWN - {("node", "k8s-2")}
    assert night.see(Look({}, known=gone, whole=False), 300.0) == []
    assert [message.title for message in night.see(Look({}, known=gone), 100.0)] == ["k8s-2 is deleted"]


def test_a_person_who_excludes_a_node_ends_its_incident():
    night = Night()
    night.see(of(REFUSED), 20.0)
    [over] = night.see(Look({}, known=KNOWN, excluded=frozenset({"k8s-2"})), 100.0)
    assert (over.title, over.over) == ("k8s-2 is excluded from fencing", True)


def test_a_node_named_like_an_endpoint_keeps_nothing_of_it_open():
    night = Night()
    night.see(of(BLIND), 100.0)
    down = Look({}, frozenset({("node", "pve")}), KNOWN)
    assert short(night.see(down, 100.0)) == [("back", "pve", True)]
    night.see(of(BLIND), 500.0)
    [over] = night.see(Look({}, known=KNOWN - {("endpoint", "pve")}), 100.0)
    assert over.title == "pve is not asked any more"


def test_a_clock_that_is_set_changes_no_duration():
    night = Night(remind_s=3600.0)
    night.see(of(BLIND), 100.0)
    night.now_s += 3600.0
    [again] = night.book.look(of(BLIND), night.now_s, AT - timedelta(hours=2))
    assert again.title == "fencer is blind (for 1h01m now)"
    night.now_s += 1.0
    night.book.look(WELL, night.now_s, AT - timedelta(hours=2))
    [over] = night.book.look(WELL, night.now_s + 60.0, AT + timedelta(days=2000))
    assert over.text.startswith("It lasted 1h01m at least: ")


LOOP = replace(ALARM, reason="")


def begun_again(*messages):
    """Return the night of an agent that goes on after another one."""
    return Night(standing=messages)


def test_a_crash_loop_is_not_over_because_another_agent_began_to_count():
    [told] = Night().see(of(LOOP))
    night = begun_again(told)
    assert night.see(WELL, 300.0) == night.see(of(REFUSED), LOOP_S - 310.0) == [], "it counts from the first"
    [over] = night.see(WELL, 300.0)
    assert over.over
    night = begun_again(told)
    assert night.see(WELL, 100.0) == night.see(of(LOOP), 100.0) == [], "it has seen the loop itself"
    assert [str(one.told_as) for one in night.see(of(FENCED), 30.0)] == ["fenced"], "whatever was before"


def test_another_alarm_is_over_as_ever_once_an_agent_begins_again():
    [told] = Night().see(of(ALARM))
    assert [one.over for one in begun_again(told).see(WELL, 300.0)] == [True]
