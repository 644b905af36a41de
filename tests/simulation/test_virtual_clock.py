import math

import pytest

from fencer.errors import HypervisorDenied, HypervisorUnreachable
from fencer.simulation.asker import InlineAsker
from fencer.simulation.clock import Alarm, VirtualClock


@pytest.fixture
def clock():
    return VirtualClock()


def test_events_run_in_order_of_time_and_then_of_scheduling(clock):
    seen = []
    clock.at(2, lambda: seen.append("late"))
    clock.at(1, lambda: seen.append("first"))
    clock.at(1, lambda: seen.append("second"))

    assert clock.wait(5) is False
    assert seen == ["first", "second", "late"]
    assert clock.now_s() == 5


def test_an_event_sees_its_own_second(clock):
    seen = []
    clock.at(1.5, lambda: seen.append(clock.now_s()))
    clock.wait(5)
    assert seen == [1.5]


def test_a_wait_ends_early_when_woken_and_leaves_later_events_alone(clock):
    seen = []
    clock.at(1, clock.wake)
    clock.at(2, lambda: seen.append("later"))

    assert clock.wait(5) is True
    assert (clock.now_s(), seen) == (1, [])


def test_a_wake_up_that_came_before_the_wait_is_not_lost(clock):
    clock.wake()
    assert clock.wait(5) is True
    assert clock.wait(5) is False


def test_advance_keeps_a_wake_up_for_the_next_wait(clock):
    clock.at(1, clock.wake)
    clock.advance(3)
    assert clock.now_s() == 3
    assert clock.wait(5) is True


def test_an_alarm_rings_once_at_the_earliest_second_asked_for(clock):
    rung = []
    alarm = Alarm(clock, lambda: rung.append(clock.now_s()))
    for at_s in (9, 4, 7):
        alarm.by(at_s)
    clock.wait(20)
    assert rung == [4]


def test_an_alarm_set_again_while_it_rings_rings_again(clock):
    rung = []

    def ring():
        rung.append(clock.now_s())
        if clock.now_s() < 3:
            alarm.soon(1)

    alarm = Alarm(clock, ring)
    alarm.by(1)
    clock.wait(20)
    assert rung == [1, 2, 3]


def test_an_answer_in_time_is_as_old_as_the_endpoint_was_slow(clock):
    asker = InlineAsker(clock, lambda _: 3.0)
    answered_of_s = asker.ask("lab", clock.now_s, deadline_s=10)
    assert (answered_of_s, clock.now_s()) == (0, 3)


def test_a_call_that_hangs_costs_the_deadline_and_is_unreachable(clock):
    asker = InlineAsker(clock, lambda _: math.inf)
    with pytest.raises(HypervisorUnreachable, match="lab: no answer within 10 s"):
        asker.ask("lab", pytest.fail, deadline_s=10)
    assert clock.now_s() == 10


def test_a_call_given_up_on_still_happens_later(clock):
    """A power-off whose answer nobody waited for cuts the power all the same."""
    done = []
    asker = InlineAsker(clock, lambda _: 15.0)
    with pytest.raises(HypervisorUnreachable):
        asker.ask("lab", lambda: done.append(clock.now_s()), deadline_s=10)
    assert done == []
    clock.wait(20)
    assert done == [15]


def test_errors_of_a_call_are_raised_after_its_time(clock):
    def denied():
        raise HypervisorDenied("no")

    asker = InlineAsker(clock, lambda _: 2.0)
    with pytest.raises(HypervisorDenied):
        asker.ask("lab", denied, deadline_s=10)
    assert clock.now_s() == 2


def test_several_endpoints_cost_the_slowest_and_not_the_sum(clock):
    asker = InlineAsker(clock, {"a": 1.0, "b": 4.0, "hung": math.inf}.__getitem__)
    answers = asker.ask_all({"a": lambda: "A", "b": lambda: "B", "hung": lambda: "C"}, deadline_s=10)
    assert (answers["a"], answers["b"]) == ("A", "B")
    assert isinstance(answers["hung"], HypervisorUnreachable)
    assert clock.now_s() == 10


def test_time_passes_while_a_call_is_under_way(clock):
    """What happens meanwhile is not seen by the answer: readings grow old on the way."""
    seen = []
    clock.at(1, lambda: seen.append("happened"))
    assert InlineAsker(clock, lambda _: 2.0).ask("lab", lambda: list(seen), deadline_s=10) == []
    assert seen == ["happened"]
