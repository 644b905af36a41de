"""The documentation's table of reasons."""

from fencer.wording.reasons import table
from tests.support.pages import DOCS, hold


def test_the_page_holds_the_table_as_the_code_has_it():
    hold(DOCS / "reasons.md", "reasons", table())
