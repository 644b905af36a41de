"""What any `Asker` and any `Clock` must do, whether time is real or virtual.

A run gives three fixtures: `asker`, `clock`, and `calls`, a `Calls` that makes calls which behave in a
certain way on an endpoint of this asker.
"""

from collections.abc import Callable
from typing import Protocol

import pytest

from fencer.errors import FencerError, HypervisorDenied, HypervisorUnreachable
from fencer.ports import Asker, Clock

SHORT_S = 0.05
ENOUGH_S = 5.0
"""For an answer that is given at once, on a busy machine too; and yet waited through where none comes."""
LONG_S = 30.0


class Calls(Protocol):
    """Makes calls to be asked."""

    def well(self, endpoint: str) -> Callable[[], str]:
        """A call that answers ``well`` at once."""
        ...

    def hanging(self, endpoint: str) -> Callable[[], str]:
        """A call that does not answer while the test runs."""
        ...


def denied():
    """A call that raises."""
    raise HypervisorDenied("no")


class AskerContract:
    """Calls under deadlines."""

    def test_an_answer_comes_through(self, asker: Asker, calls: Calls):
        assert asker.ask("lab", calls.well("lab"), LONG_S) == "well"

    def test_an_error_comes_through(self, asker: Asker, calls: Calls):
        calls.well("lab")
        with pytest.raises(HypervisorDenied):
            asker.ask("lab", denied, LONG_S)

    def test_a_late_answer_reads_unreachable_and_names_the_endpoint(self, asker: Asker, calls: Calls):
        with pytest.raises(HypervisorUnreachable, match="lab"):
            asker.ask("lab", calls.hanging("lab"), SHORT_S)

    def test_after_a_call_that_hung_the_endpoint_is_asked_again(self, asker: Asker, calls: Calls):
        with pytest.raises(HypervisorUnreachable):
            asker.ask("lab", calls.hanging("lab"), SHORT_S)
        assert asker.ask("lab", calls.well("lab"), LONG_S) == "well"

    @pytest.mark.slow  # a real one is given as long as others may need
    def test_of_many_each_gets_its_own_answer_or_its_own_error(self, asker: Asker, calls: Calls):
        answers = asker.ask_all(
            {"one": calls.well("one"), "two": denied, "three": calls.hanging("three")}, ENOUGH_S
        )
        assert answers.keys() == {"one", "two", "three"}  # in which order, nobody may rely on
        assert answers["one"] == "well"
        assert isinstance(answers["two"], HypervisorDenied)
        assert isinstance(answers["three"], HypervisorUnreachable)

    def test_errors_are_ours_whatever_happens(self, asker: Asker, calls: Calls):
        answers = asker.ask_all({"hung": calls.hanging("hung")}, SHORT_S)
        assert all(isinstance(answer, FencerError) for answer in answers.values())


class ClockContract:
    """Time, and waiting."""

    def test_a_wait_without_a_wake_up_lasts_and_says_so(self, clock: Clock):
        began_s = clock.now_s()
        assert clock.wait(SHORT_S) is False
        assert clock.now_s() - began_s >= SHORT_S

    def test_a_wake_up_before_a_wait_ends_it_and_is_used_up(self, clock: Clock):
        clock.wake()
        assert clock.wait(LONG_S) is True
        assert clock.wait(SHORT_S) is False

    def test_many_wake_ups_end_one_wait(self, clock: Clock):
        clock.wake()
        clock.wake()
        assert clock.wait(LONG_S) is True
        assert clock.wait(SHORT_S) is False

    def test_time_goes_forward(self, clock: Clock):
        first_s = clock.now_s()
        clock.wait(SHORT_S)
        assert clock.now_s() > first_s
