"""Where moments are on the axis, and which words have room there."""

import pytest

from fencer.report.axis import Axis, Cut
from fencer.report.picture import NEVER, room
from tests.report.build import at


def places(*seconds):
    axis = Axis([at(one) for one in seconds])
    return [round(axis.place(at(one)), 1) for one in seconds], axis.cuts


def test_a_short_incident_is_drawn_to_scale():
    assert places(0, 20, 50, 100) == ([0.0, 20.0, 50.0, 100.0], ())


def test_a_long_stretch_without_a_change_is_drawn_short_and_marked():
    [begin, before, after, end], [cut] = places(0, 60, 36_060, 36_120)
    assert (begin, end) == (0.0, 100.0)
    assert 30 < before < 35
    assert 65 < after < 70
    assert (round(cut.place), cut.seconds) == (50, 36_000)


def test_what_lies_between_stays_in_order_and_in_proportion():
    axis = Axis([at(one) for one in (0, 60, 36_060, 36_120)])
    inside = [axis.place(at(one)) for one in (60, 18_060, 36_060)]
    assert inside == sorted(inside)
    assert inside[1] == pytest.approx((inside[0] + inside[2]) / 2)


def test_what_is_outside_is_at_its_end():
    axis = Axis([at(10), at(20)])
    assert (axis.place(at(0)), axis.place(at(30))) == (0.0, 100.0)


def test_a_single_moment_has_a_place():
    assert Axis([at(0)]).place(at(0)) == 0.0


def test_several_long_stretches_are_all_drawn_short():
    _, cuts = places(0, 10, 7_210, 7_220, 50_000, 50_010)
    assert [type(cut) for cut in cuts] == [Cut, Cut]


@pytest.mark.parametrize(
    ("text", "share", "expected"),
    [
        ("off", 1.0, "from380"),
        ("off", 0.2, "from380"),
        ("silent, not Ready", 0.5, "from380"),
        ("silent, not Ready", 0.2, "from760"),
        ("silent, not Ready", 0.1, NEVER),
        ("x" * 253, 1.0, NEVER),
    ],
)
def test_a_word_is_shown_from_the_width_on_at_which_it_fits(text, share, expected):
    assert room(text, share) == expected
