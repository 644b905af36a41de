"""Several threads of one agent: one goes on at a time, but while it waits for something."""

import threading

from fencer.runtime.clock import SystemClock
from fencer.runtime.turns import Turns
from fencer.runtime.workers import ThreadAsker
from tests.support import wait_until

LONG_S = 30.0


def test_of_many_one_goes_on_at_a_time():
    turns, inside, most = Turns(), [], []

    def run():
        for _ in range(200):
            inside.append(1)
            most.append(len(inside))
            inside.pop()
            with turns.given_away():
                pass

    threads = [turns.begin(run, f"run-{number}") for number in range(8)]
    for thread in threads:
        thread.join(LONG_S)
    assert len(most) == 1600
    assert set(most) == {1}


def test_while_one_waits_others_go_on():
    turns, come = Turns(), threading.Event()

    def wait():
        with turns.given_away():
            assert come.wait(LONG_S)

    waiting = turns.begin(wait, "waits")
    turns.begin(come.set, "comes").join(LONG_S)
    waiting.join(LONG_S)
    assert not waiting.is_alive()


def test_who_is_alone_at_something_keeps_only_those_out_who_are_at_it_too():
    turns, order = Turns(), []
    first_is_in, second_waits, over = threading.Event(), threading.Event(), threading.Event()

    def first():
        with turns.alone("counting"):
            first_is_in.set()
            with turns.given_away():
                assert over.wait(LONG_S)
            order.append("first")

    def second():
        second_waits.set()
        with turns.alone("counting"):
            order.append("second")

    threads = [turns.begin(first, "first")]
    assert first_is_in.wait(LONG_S)
    threads.append(turns.begin(second, "second"))
    assert second_waits.wait(LONG_S)
    turns.begin(lambda: order.append("another"), "another").join(LONG_S)
    over.set()
    for thread in threads:
        thread.join(LONG_S)
    assert order == ["another", "first", "second"]


def test_a_bug_in_one_ends_that_one_alone(caplog):
    asker, ran = ThreadAsker(SystemClock(), patience_s=LONG_S), []
    asker.side_by_side([lambda: 1 / 0, lambda: ran.append(1)], LONG_S)
    assert ran == [1]
    assert "ZeroDivisionError" in caplog.text
    with asker.turn():  # nobody kept it
        pass


def test_one_that_hangs_is_not_waited_for_any_longer_and_goes_on():
    asker, gate, ended = ThreadAsker(SystemClock(), patience_s=LONG_S), threading.Event(), []

    def hang():
        asker.ask("lab", gate.wait, LONG_S)
        ended.append(1)

    with asker.turn():
        asker.side_by_side([hang], 0.02)
        assert not ended
        gate.set()
        asker.side_by_side([], 0.0)
        asker.ask("other", lambda: None, LONG_S)
    wait_until(lambda: ended, "end of the run", timeout_s=LONG_S)
