"""docs/safety.md has the table of what holds fencer back as the code has it."""

from fencer.core.holds import HOLDS
from tests.docs import tables
from tests.support.pages import DOCS, hold

PAGE = DOCS / "safety.md"


def test_it_has_each_hold_and_what_is_done_under_it():
    hold(PAGE, "holds", tables.holds())


def test_no_hold_is_left_out():
    assert [row.name for row in HOLDS if f"| {row.name} | {row.whom} |" not in tables.holds()] == []
