"""Several reporters are told the same, in order."""

from fencer.core.done import Happened
from fencer.reporting.several import SeveralReporters
from tests.reporting.stand_ins import NODE, REFUSED, TAINT, Remembering, tell_everything


def test_each_is_told_everything():
    first, second = Remembering(), Remembering()
    tell_everything(SeveralReporters(first, second))
    assert first.told == [
        ("decided", NODE, REFUSED),
        ("acted", NODE, TAINT, Happened("tainted")),
        ("said", "lab: lost", True),
    ]
    assert second.told == first.told


def test_none_is_fine():
    tell_everything(SeveralReporters())
