"""What any `Asker` and any `Clock` must do, whether time is real or virtual.

A run gives three fixtures: `asker`, `clock`, and `calls`, a `Calls` that makes calls which behave in a
certain way on an endpoint of this asker.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
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

    def test_runs_go_on_side_by_side_where_they_ask(self, asker: Asker, calls: Calls):
        """None of them is kept waiting by one whose endpoint hangs."""
        ended: list[str] = []

        def go_on(endpoint: str, call: Callable[[], str]) -> None:
            try:
                asker.ask(endpoint, call, SHORT_S if endpoint == "hung" else LONG_S)
            except FencerError:
                ended.append(f"{endpoint} gave up")
            else:
                ended.append(endpoint)

        runs = [("hung", calls.hanging("hung")), ("one", calls.well("one")), ("two", calls.well("two"))]
        with asker.turn():
            asker.side_by_side([partial(go_on, *run) for run in runs], LONG_S)
        assert sorted(ended) == ["hung gave up", "one", "two"]

    def test_who_hangs_is_not_waited_for_longer_than_patience(self, asker: Asker, calls: Calls):
        ended: list[str] = []

        def hang() -> None:
            with suppress(FencerError):
                asker.ask("hung", calls.hanging("hung"), LONG_S)
            ended.append("hung")

        asker.side_by_side([hang], SHORT_S)
        assert ended == []

    def test_one_at_a_time_is_alone_at_something(self, asker: Asker, calls: Calls):
        at_it: list[str] = []
        seen: list[int] = []

        def count(endpoint: str) -> None:
            with asker.alone("counting"):
                at_it.append(endpoint)
                asker.ask(endpoint, calls.well(endpoint), LONG_S)
                seen.append(len(at_it))
                at_it.remove(endpoint)

        asker.side_by_side([partial(count, endpoint) for endpoint in ("one", "two", "three")], LONG_S)
        assert seen == [1, 1, 1]

    def test_many_may_ask_one_endpoint_at_a_time(self, asker: Asker, calls: Calls):
        answers: list[str] = []
        asker.side_by_side(
            [lambda: answers.append(asker.ask("lab", calls.well("lab"), LONG_S)) for _ in range(20)], LONG_S
        )
        assert answers == ["well"] * 20

    def test_who_asks_takes_no_sweep_away_from_whom_waits_for_it(self, asker: Asker, calls: Calls):
        seen: list[object] = []

        def sweep() -> None:
            for _ in range(20):
                seen.extend(asker.ask_all({"lab": calls.well("lab")}, LONG_S).values())

        def ask() -> None:
            seen.extend([asker.ask("lab", calls.well("lab"), LONG_S) for _ in range(20)])

        asker.side_by_side([sweep, ask, ask], LONG_S)
        assert seen == ["well"] * 60

    def test_of_many_that_wait_behind_one_that_hangs_none_is_lost(self, asker: Asker, calls: Calls):
        """Each gives up; the endpoint is asked again all the same."""
        given_up: list[str] = []

        def ask() -> None:
            try:
                asker.ask("lab", calls.hanging("lab"), SHORT_S)
            except FencerError as error:
                given_up.append(str(error))

        asker.side_by_side([ask, ask], LONG_S)
        assert len(given_up) == 2
        assert asker.ask("lab", calls.well("lab"), LONG_S) == "well"


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
