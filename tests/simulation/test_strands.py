"""Strands of the virtual clock: whatever one waits for, all others may do anything meanwhile."""

import pytest

from fencer.simulation.clock import VirtualClock


@pytest.fixture
def clock():
    clock = VirtualClock()
    yield clock
    clock.close()


def test_strands_go_on_in_the_order_in_which_what_they_wait_for_is_due(clock):
    seen = []

    def walk(name, step_s):
        for _ in range(3):
            clock.advance(step_s)
            seen.append((name, clock.now_s()))

    clock.spawn(lambda: walk("slow", 3))
    clock.spawn(lambda: walk("quick", 2))
    clock.advance(10)
    assert seen == [("quick", 2), ("slow", 3), ("quick", 4), ("slow", 6), ("quick", 6), ("slow", 9)]
    assert clock.now_s() == 10


def test_a_strand_begins_at_the_moment_in_which_it_is_spawned_but_not_before_somebody_waits(clock):
    began = []
    clock.at(2, lambda: clock.spawn(lambda: began.append(clock.now_s())))
    assert not began
    clock.advance(5)
    assert began == [2]


def test_a_wake_up_ends_the_wait_of_every_strand_and_no_other_delay(clock):
    seen = []

    def waits():
        seen.append(("waited", clock.wait(100), clock.now_s()))

    def travels():
        clock.advance(7)
        seen.append(("arrived", clock.now_s()))

    clock.spawn(waits)
    clock.spawn(waits)
    clock.spawn(travels)
    clock.at(3, clock.wake)
    clock.advance(50)
    assert seen == [("waited", True, 3), ("waited", True, 3), ("arrived", 7)]


def test_who_is_woken_goes_on_at_once_if_it_runs_and_all_others_in_the_order_in_which_they_began(clock):
    """Not by chance: two agents that hear of the same thing must do so in the same order each time."""
    names, seen = [f"fencer-{number}" for number in range(12)], []

    def waits(name):
        clock.wait(100)
        seen.append(name)

    for name in names:
        clock.spawn(lambda name=name: waits(name))
    clock.at(3, clock.wake)
    clock.advance(50)
    assert seen == [names[-1], *names[:-1]]


def test_what_a_strand_raises_is_raised_where_the_first_one_waits(clock):
    def fails():
        clock.advance(4)
        raise LookupError("here")

    clock.spawn(fails)
    with pytest.raises(LookupError, match="here"):
        clock.advance(10)
    assert clock.now_s() == 4


def test_a_wait_in_the_midst_of_an_event_holds_up_nobody_but_who_works_it_off(clock):
    seen = []

    def slow_event():
        clock.advance(5)
        seen.append(("event over", clock.now_s()))

    clock.at(1, slow_event)
    clock.spawn(lambda: (clock.advance(3), seen.append(("one", clock.now_s()))))
    clock.spawn(lambda: (clock.advance(4), seen.append(("other", clock.now_s()))))
    clock.advance(2)
    assert clock.now_s() == 2
    clock.advance(8)
    assert sorted(seen, key=lambda line: line[1]) in (
        [("one", 3), ("event over", 6), ("other", 6)],
        [("other", 4), ("event over", 6), ("one", 6)],
    )


def test_a_closed_clock_ends_every_strand_wherever_it_stands(clock):
    ended = []

    def lives(name):
        try:
            while True:
                clock.advance(1)
        finally:
            ended.append(name)

    clock.spawn(lambda: lives("a"))
    clock.spawn(lambda: lives("b"))
    clock.advance(3)
    clock.spawn(lambda: lives("never began"))
    clock.close()
    assert sorted(ended) == ["a", "b"]
    clock.advance(1)  # the first one may go on
    assert clock.now_s() == 4


def test_an_ended_strand_cannot_wait_any_longer_while_it_cleans_up(clock):
    after = []

    def lives():
        try:
            clock.advance(100)
        finally:
            clock.wait(100)
            after.append("waited")

    clock.spawn(lives)
    clock.advance(1)
    clock.close()
    assert not after
