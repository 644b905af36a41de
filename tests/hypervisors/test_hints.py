"""Wake-ups of adapters of others: none is lost, and a loop of them lets fencer rest."""

import pytest

from fencer.hints import REST_S, Hints


class Bell:
    """A clock, what is to be called later, and the wake-ups by when they came."""

    def __init__(self):
        self.now_s = 100.0
        self.later = []
        self.woken_s = []
        self.hints = Hints(
            lambda: self.woken_s.append(self.now_s),
            lambda: self.now_s,
            lambda wait_s, call: self.later.append((self.now_s + wait_s, call)),
        )

    def pass_by(self, seconds):
        until_s = self.now_s + seconds
        while self.later and self.later[0][0] <= until_s:
            self.now_s, call = self.later.pop(0)
            call()
        self.now_s = until_s


@pytest.fixture
def bell():
    return Bell()


def test_the_first_wakes_at_once(bell):
    bell.hints()
    assert bell.woken_s == [100.0]


def test_whatever_comes_soon_after_it_wakes_once_more_and_later(bell):
    for _ in range(1000):
        bell.hints()
    assert bell.woken_s == [100.0]
    bell.pass_by(10 * REST_S)
    assert bell.woken_s == [100.0, 100.0 + REST_S]


def test_a_loop_without_end_wakes_once_in_that_time(bell):
    for _ in range(80):
        bell.hints()
        bell.pass_by(REST_S / 8)
    assert bell.woken_s == [100.0 + second * REST_S for second in range(11)]


def test_hints_that_are_far_between_wake_each_at_once(bell):
    for _ in range(3):
        bell.hints()
        bell.pass_by(REST_S)
    assert bell.woken_s == [100.0, 100.0 + REST_S, 100.0 + 2 * REST_S]
