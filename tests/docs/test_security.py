"""docs/security.md: its table of what fencer's account may do is the one that is tried."""

from tests.cluster.attacks import ROWS, table
from tests.support.pages import DOCS, hold

PAGE = DOCS / "security.md"


def test_it_tells_what_the_account_may_do():
    hold(PAGE, "account", table())


def test_no_row_is_there_twice():
    told = [(row.right, row.tried) for row in ROWS]
    assert sorted(told) == sorted(set(told))


def test_each_row_is_either_allowed_or_refused():
    assert [row for row in ROWS if bool(row.why) is bool(row.by)] == []
