"""Bars laid out of single looks: what is known, how long it is taken to last, and where nothing is known."""

import pytest

from fencer.journal.rows import Kind
from fencer.report import spans
from fencer.report.sights import Watch, watches
from fencer.report.spans import Span, Tone, laid
from tests.journal.build import Told
from tests.report.build import at


def fact(begin, end, says):
    return Span(at(begin), at(end), Tone.GOOD, says)


def bars(facts, watched, begin=0, end=100):
    laid_out = laid(
        [fact(*one) for one in facts],
        [Watch(at(first), at(last)) for first, last in watched],
        at(begin),
        at(end),
    )
    return [
        ((one.begin - at(0)).total_seconds(), (one.end - at(0)).total_seconds(), one.says) for one in laid_out
    ]


@pytest.mark.parametrize(
    ("facts", "watched", "expected"),
    [
        pytest.param([(10, 10, "on")], [(0, 100)], [(10, 100, "on")], id="lasts while somebody looks"),
        pytest.param([(10, 12, "on")], [], [(10, 12, "on")], id="no longer than seen where nobody does"),
        pytest.param(
            [(10, 10, "on"), (40, 40, "off")],
            [(0, 100)],
            [(10, 40, "on"), (40, 100, "off")],
            id="next",
        ),
        pytest.param(
            [(10, 10, "on"), (70, 70, "off")],
            [(0, 30), (60, 100)],
            [(10, 30, "on"), (70, 100, "off")],
            id="a gap where nobody looked",
        ),
        pytest.param(
            [(10, 50, "on"), (30, 60, "off")],
            [],
            [(10, 30, "on"), (30, 60, "off")],
            id="what was found out later counts",
        ),
        pytest.param(
            [(10, 20, "on"), (5, 30, "off")], [], [(5, 30, "off")], id="and hides what it begins before"
        ),
        pytest.param(
            [(10, 10, "on"), (20, 20, "on")], [(0, 100)], [(10, 100, "on")], id="two of the same are one"
        ),
        pytest.param(
            [(10, 10, "on"), (70, 70, "on")],
            [(0, 30), (60, 100)],
            [(10, 30, "on"), (70, 100, "on")],
            id="but not over a gap",
        ),
        pytest.param([(-50, 10, "on"), (90, 200, "off")], [], [(0, 10, "on"), (90, 100, "off")], id="cut"),
        pytest.param([], [(0, 100)], [], id="nothing is made up"),
    ],
)
def test_bars_last_as_long_as_somebody_looks_and_says_nothing_else(facts, watched, expected):
    assert bars(facts, watched) == expected


def test_an_agent_that_was_started_again_looked_until_its_last_row_and_the_newest_goes_on():
    told = Told().tell(Kind.SESSION, 0, session="a", what="watch").seen(20, "wait", "x", session="a")
    told.tell(Kind.SESSION, 60, session="b", what="watch").seen(70, "wait", "y", session="b")
    looked = watches(told.entries, told.entries[-1], at(100))
    assert looked == (Watch(at(0), at(20)), Watch(at(60), at(100)))


def test_an_agent_that_said_nothing_while_a_person_acted_may_have_ended():
    told = Told().tell(Kind.SESSION, 0, session="a", what="watch").seen(20, "wait", "x", session="a")
    told.tell(Kind.SESSION, 50, session="c", what="fence").seen(60, "fence", "y", session="c")
    looked = watches(told.entries, told.entries[-1], at(100))
    assert looked == (Watch(at(0), at(20)), Watch(at(50), at(60)))


def test_of_an_agent_whose_first_rows_are_dropped_it_is_known_what_it_is():
    told = Told().seen(20, "wait", "x", session="a")
    assert watches(told.entries, told.entries[-1], at(100)) == (Watch(at(20), at(100)),)


def test_many_looks_are_laid_out_one_after_the_other_and_not_each_beside_all(monkeypatch):
    cut = []
    until = spans._until
    monkeypatch.setattr(spans, "_until", lambda one, end: cut.append(one) or until(one, end))
    facts = [(number, number, str(number)) for number in range(500)]
    assert len(bars(facts, [(0, 500)], end=500)) == 500
    assert len(cut) < 5 * 500
