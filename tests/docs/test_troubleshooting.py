"""docs/troubleshooting.md answers "why did it not fence?" for every reason that there is."""

from fencer.core.model import Reason
from tests.docs import tables
from tests.support.pages import DOCS, hold

PAGE = DOCS / "troubleshooting.md"


def test_it_tells_what_helps_for_each_reason():
    hold(PAGE, "ways", tables.ways())


def test_no_reason_is_left_out():
    told = tables.ways()
    assert [reason for reason in Reason if f"`{reason.value}`" not in told] == []
