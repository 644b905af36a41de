"""What waits for one receiver, and what it was told: without threads, by a clock that only tests move."""

import pytest

from fencer.notify.lane import Lane, Last, Pace
from fencer.notify.receiver import Manner
from fencer.notify.settings import ALL
from fencer.notify.summary import AT_ONCE
from fencer.wording.occasions import Occasion
from tests.notify.boxes import SEVERAL, message, over

RENEWING = Manner(replaces=True, several=True, renew_s=60.0)
FENCED, REFUSED, BACK = Occasion.FENCED, Occasion.REFUSED, Occasion.BACK


def lane(manner=None, *on):
    return Lane(manner or Manner(), frozenset(on) or ALL, Pace())


def told(one, now_s=100.0):
    """Return what it would be told now, and let it get there."""
    found = [(sent.about, sent.number, sent.over) for sent in one.take(now_s)]
    one.sent(now_s)
    return found


def test_of_each_incident_only_the_newest_message_waits():
    one = lane()
    for number in (1, 2, 3):
        one.offer(message(number=number), 0.0)
    assert told(one) == [("k8s-2", 3, False)]
    assert one.take(100.0) == ()


def test_what_has_begun_and_ended_before_it_could_be_told_is_told_once():
    one = lane(
        None, FENCED
    )  # who wants no ends is told this one all the same: there is no other message of it
    one.offer(message(), 0.0)
    one.offer(over(), 0.0)
    assert told(one) == [("k8s-2", 2, True)]
    assert one.known().told == {}


def test_who_was_told_of_the_beginning_is_told_of_the_end():
    one = lane()
    one.offer(message(), 0.0)
    told(one)
    one.offer(over(), 0.0)
    assert told(one) == [("k8s-2", 2, True)]


def test_who_wants_no_ends_is_told_of_none():
    one = lane(None, FENCED)
    one.offer(message(), 0.0)
    told(one)
    one.offer(over(), 0.0)
    assert told(one) == []
    assert one.known().told == {}


def test_who_was_not_told_of_the_beginning_is_not_told_of_the_end():
    one = lane(None, REFUSED, BACK)
    one.offer(message(), 0.0)
    one.offer(over(), 0.0)
    assert told(one) == []


def test_an_end_that_comes_while_the_beginning_is_on_its_way_is_told_to_who_wants_ends():
    for on, then in ((ALL, [("k8s-2", 2, True)]), (frozenset({FENCED}), [])):
        one = Lane(Manner(), on, Pace())
        one.offer(message(), 0.0)
        one.take(5.0)
        one.offer(over(), 5.0)
        one.sent(6.0)
        assert told(one) == then
    one = lane(None, FENCED)  # and if the beginning did not get there, to everybody
    one.offer(message(), 0.0)
    one.take(5.0)
    one.offer(over(), 5.0)
    one.failed(6.0, None)
    assert told(one) == [("k8s-2", 2, True)]


def test_who_was_told_of_something_is_told_that_it_is_something_else_now():
    """A mailbox that is told of refusals only: "down and not fenced" must not be its last word for days."""
    one = lane(None, REFUSED, Occasion.BACK)
    one.offer(message(occasion=REFUSED, title="k8s-2 is down and not fenced"), 0.0)
    told(one, 10.0)
    one.offer(message(number=2, title="k8s-2 is fenced"), 20.0)
    [end] = one.take(30.0)
    assert (end.title, end.over, end.loud) == ("k8s-2 is fenced", True, True)
    one.sent(30.0)
    one.offer(over(number=3), 40.0)
    assert one.due_s(50.0) is None, "it knows"
    one.offer(message(number=4, occasion=REFUSED), 60.0)
    assert one.take(70.0)[0].occasion is REFUSED


def test_what_became_something_else_that_nobody_asked_for_is_not_told_as_what_it_was():
    one = lane(None, REFUSED, BACK)
    one.offer(message(occasion=REFUSED), 0.0)
    one.offer(message(number=2), 0.0)
    assert told(one) == []
    one.offer(message("k8s-3", occasion=REFUSED), 0.0)
    one.take(5.0)
    one.offer(message("k8s-3", number=2), 5.0)
    one.failed(6.0, None)
    assert told(one) == []


@pytest.mark.parametrize(("manner", "then"), [(Manner(), []), (SEVERAL, [("k8s-2", 2, False)])])
def test_details_are_for_those_whom_they_do_not_disturb(manner, then):
    one = lane(manner)
    one.offer(message(), 0.0)
    told(one)
    one.offer(message(number=2, loud=False), 0.0)
    assert told(one) == then


def test_details_bring_up_to_date_what_waits_and_do_not_make_it_quiet():
    one = lane()
    one.offer(message(), 0.0)
    one.offer(message(number=2, loud=False), 0.0)
    [sent] = one.take(100.0)
    assert (sent.number, sent.loud) == (2, True)


def test_the_first_message_waits_for_others():
    one = lane()
    assert one.due_s(0.0) is None
    one.offer(message(), 10.0)
    assert one.due_s(10.0) == 2.0
    one.offer(message("k8s-3"), 11.9)
    assert one.due_s(12.0) == 0.0  # nobody can hold it back by saying more and more


def test_of_many_that_wait_one_message_is_made():
    one = lane()
    for number in range(AT_ONCE + 1):
        one.offer(message(f"k8s-{number}"), 0.0)
    [sent] = one.take(100.0)
    assert sent.title == "6 incidents: 6 fenced"
    one.sent(100.0)
    assert len(one.known().told) == AT_ONCE + 1
    one.offer(over("k8s-3"), 0.0)
    assert told(one) == [("k8s-3", 2, True)]


def test_a_few_are_told_one_by_one_and_others_take_all_at_once():
    one, other = lane(), lane(SEVERAL)
    for number in range(AT_ONCE):
        one.offer(message(f"k8s-{number}"), 0.0)
        other.offer(message(f"k8s-{number}"), 0.0)
    assert [told(one) for _ in range(AT_ONCE)] == [[(f"k8s-{number}", 1, False)] for number in range(AT_ONCE)]
    assert len(told(other)) == AT_ONCE


def test_one_that_a_receiver_does_not_like_keeps_no_other_back():
    one = lane()
    one.offer(message("bad"), 0.0)
    one.offer(message("good"), 0.0)
    assert one.take(5.0)[0].about == "bad"
    assert one.failed(5.0, None)
    assert one.take(100.0)[0].about == "good"
    assert not one.sent(100.0)  # that is no end of the trouble
    assert one.take(100.0)[0].about == "bad"
    assert one.sent(100.0)


def test_what_is_refused_is_tried_less_often_and_alone_waits():
    one = lane()
    one.offer(message("bad"), 0.0)
    pauses, now_s = [], 10.0
    for number in range(1, 9):
        assert [sent.about for sent in one.take(now_s)] == ["bad"]
        assert one.refused(now_s) is (number == 1)
        one.offer(message("good", number), now_s)
        assert one.due_s(now_s) == 2.0  # gathered as ever
        assert told(one, now_s + 2.0) == [("good", number, False)]
        pauses.append(one.due_s(now_s))
        now_s += pauses[-1]
    assert pauses == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]
    assert one.take(now_s)
    assert one.sent(now_s)
    assert one.late == 1


def test_what_was_refused_is_tried_at_once_if_it_is_something_else_now():
    one = lane(SEVERAL)
    one.offer(message(), 0.0)
    one.take(10.0)
    one.refused(10.0)
    one.offer(message(number=2, loud=False), 10.0)
    assert one.take(12.0) == ()
    one.offer(message(number=3, occasion=Occasion.ALARM), 12.0)
    [sent] = one.take(14.0)
    assert sent.number == 3
    one.offer(message(number=4, occasion=Occasion.ALARM), 14.0)  # while it is on its way
    one.refused(14.0)
    [sent] = one.take(14.0)
    assert sent.number == 4


def test_several_that_were_refused_together_are_tried_one_by_one():
    one = lane(RENEWING)
    one.offer(message("good"), 0.0)
    one.offer(message("bad"), 0.0)
    assert len(one.take(10.0)) == 2
    one.refused(10.0)
    assert told(one, 20.0) == [("good", 1, False)]
    assert [sent.about for sent in one.take(20.0)] == ["bad"]
    one.refused(20.0)
    assert told(one, 80.0) == [("good", 1, False)]  # renewed


def test_what_was_refused_is_in_no_summary_with_what_is_new():
    one = lane()
    for number in range(AT_ONCE):
        one.offer(message(f"old-{number}"), 0.0)
    for _ in range(AT_ONCE):
        one.take(10.0)
        one.refused(10.0)
    one.offer(message("new"), 11.0)
    assert told(one) == [("new", 1, False)]


def test_who_does_not_work_any_more_after_a_refusal_is_news():
    one = lane()
    one.offer(message("bad"), 0.0)
    one.take(10.0)
    assert one.refused(10.0)
    one.offer(message("good"), 10.0)
    one.take(12.0)
    assert one.failed(12.0, None)
    assert told(one, 17.0) == [("good", 1, False)]
    assert one.take(17.0)
    assert one.failed(17.0, None)


@pytest.mark.parametrize("fails", [lambda one: one.failed(30.0, None), lambda one: one.refused(30.0)])
def test_what_failed_and_is_to_be_told_no_more_is_no_trouble_any_more(fails):
    one = lane(None, REFUSED)
    one.offer(message(occasion=REFUSED), 0.0)
    told(one, 10.0)
    one.offer(message(number=2, occasion=REFUSED), 10.0)
    one.take(20.0)
    fails(one)
    one.take(400.0)
    one.offer(message(number=3), 400.0)  # nobody asked for that
    fails(one)
    one.offer(message("k8s-3", occasion=REFUSED), 400.0)
    one.take(800.0)
    assert fails(one)


def test_who_refuses_works_again_and_its_next_failure_is_news():
    one = lane()
    one.offer(message("bad"), 0.0)
    one.take(10.0)
    assert one.failed(10.0, None)
    one.take(15.0)
    assert one.refused(15.0)
    assert one.due_s(15.0) == 5.0
    one.take(20.0)
    assert one.failed(20.0, None)


def test_what_matters_most_goes_first_and_an_alarm_alone():
    one = lane()
    for number in range(AT_ONCE + 1):
        one.offer(message(f"k8s-{number}"), 0.0)
    one.offer(message("worst", occasion=Occasion.ALARM), 0.0)
    assert told(one) == [("worst", 1, False)]
    [sent] = one.take(100.0)
    assert sent.title == "6 incidents: 6 fenced"
    for about, kind in (("b", REFUSED), ("a", Occasion.ALARM)):
        one.offer(message(about, occasion=kind), 0.0)
    one.sent(100.0)
    assert [told(one), told(one)] == [[("a", 1, False)], [("b", 1, False)]]


def test_a_program_gets_each():
    one = lane(Manner(replaces=True, each=True))
    for number in range(AT_ONCE + 1):
        one.offer(message(f"k8s-{number}"), 0.0)
    assert [told(one) for _ in range(AT_ONCE + 1)] == [[(f"k8s-{n}", 1, False)] for n in range(AT_ONCE + 1)]


def test_a_summary_counts_what_was_lost_until_it_gets_there():
    one = lane()
    for _ in range(2):
        for number in range(AT_ONCE + 2):
            one.offer(message(f"k8s-{number}"), 0.0)
        one.forget("k8s-0-1")
        for _ in range(2):
            [sent] = one.take(100.0)
            assert sent.title == "6 incidents: 6 fenced, and 1 more that was not kept"
            one.failed(100.0, None)
        one.take(100.0)
        one.sent(100.0)
        assert one.lost == 0


def test_after_failures_it_is_tried_less_often_and_never_given_up():
    one = lane()
    one.offer(message(), 0.0)
    pauses, now_s = [], 10.0
    for number in range(1, 2000):
        assert one.take(now_s)
        assert one.failed(now_s, None) is (number == 1)
        pauses.append(one.due_s(now_s))
        now_s += pauses[-1]
    assert pauses[:8] == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]
    assert pauses[-1] == 300.0
    assert told(one, now_s) == [("k8s-2", 1, False)]


@pytest.mark.parametrize(("asked_s", "pause_s"), [(None, 5.0), (1.0, 5.0), (60.0, 60.0), (1e9, 3600.0)])
def test_a_receiver_that_wants_to_be_left_alone_is_but_not_for_ever(asked_s, pause_s):
    one = lane()
    one.offer(message(), 0.0)
    one.take(10.0)
    one.failed(10.0, asked_s)
    assert one.due_s(10.0) == pause_s


def test_what_came_meanwhile_is_sent_in_place_of_what_failed():
    one = lane()
    one.offer(message(), 0.0)
    one.take(5.0)
    one.offer(message(number=2, loud=False), 5.0)
    one.failed(6.0, None)
    [sent] = one.take(100.0)
    assert (sent.number, sent.loud) == (2, True)


def test_what_is_not_over_is_told_again_to_who_forgets():
    one = lane(RENEWING)
    one.offer(message(), 0.0)
    one.offer(message("k8s-3"), 0.0)
    told(one, 10.0)
    assert one.due_s(10.0) == 60.0
    assert told(one, 70.0) == [("k8s-2", 1, False), ("k8s-3", 1, False)]
    one.offer(over(), 80.0)
    assert told(one, 82.0) == [("k8s-2", 2, True)]
    assert one.due_s(82.0) == 48.0
    assert told(one, 130.0) == [("k8s-3", 1, False)]
    one.offer(over("k8s-3"), 131.0)
    told(one, 133.0)
    assert one.due_s(133.0) is None


def test_what_became_something_that_nobody_asked_for_is_not_told_again():
    one = lane(RENEWING, REFUSED)
    one.offer(message(occasion=REFUSED), 0.0)
    one.take(5.0)
    one.offer(message(number=2), 5.0)
    one.sent(6.0)
    assert one.due_s(6.0) is None


def test_it_goes_on_where_it_has_ended():
    before = lane()
    for about in ("told", "waits", "ended"):
        before.offer(message(about), 0.0)
    assert told(before) == [("told", 1, False)]
    before.take(100.0)  # "waits" is on its way, and nobody knows what becomes of it
    before.offer(over("ended"), 100.0)
    known = before.known()
    assert known.told == {"told-1": Last(1, FENCED)}
    assert [*known.waiting] == ["waits-1", "ended-1"]

    after = lane()
    incidents = {one.key: one for one in (message("told"), message("waits"), over("ended"))}
    after.remember(incidents, known, 0.0)
    assert [told(after), told(after), told(after)] == [[("waits", 1, False)], [("ended", 2, True)], []]
    after.offer(over("told"), 200.0)
    assert told(after) == [("told", 2, True)]


def test_a_receiver_that_is_new_is_told_what_goes_on_and_no_ends():
    one = lane(None, FENCED, BACK)
    going_on = message("a", number=4, loud=False), message("b", occasion=REFUSED)
    one.remember({it.key: it for it in (*going_on, over("c"))}, None, 0.0)
    [sent] = one.take(100.0)
    assert (sent.about, sent.loud) == ("a", True)


def test_what_was_told_before_is_told_again_to_who_forgets_at_once():
    before = lane(RENEWING)
    before.offer(message(), 0.0)
    told(before)
    after = lane(RENEWING)
    after.remember({"k8s-2-1": message()}, before.known(), 50.0)
    assert after.due_s(50.0) == 0.0
    assert told(after, 50.0) == [("k8s-2", 1, False)]


def test_what_is_forgotten_is_counted_only_if_it_waited():
    one = lane()
    one.offer(message("a"), 0.0)
    told(one)
    one.offer(message("b"), 0.0)
    one.forget("a-1")
    one.forget("b-1")
    assert (one.lost, one.known().told, one.known().waiting) == (1, {}, {})


def test_details_that_came_while_the_message_was_on_its_way_disturb_nobody():
    one = lane()
    one.offer(message(), 0.0)
    one.take(5.0)
    one.offer(message(number=2, loud=False), 5.0)
    one.sent(6.0)
    assert told(one) == []


def test_who_never_heard_of_the_part_that_it_is_told_of_is_not_told_of_the_end():
    one = lane(None, REFUSED, BACK)
    one.offer(message(occasion=REFUSED), 0.0)
    one.take(5.0)
    one.offer(message(number=2), 5.0)
    one.offer(over(number=3), 5.0)
    assert not one.known().waiting
    one.failed(6.0, None)
    assert told(one) == []
