"""The documentation's table of reasons."""

from pathlib import Path

from fencer.wording.reasons import table

PAGE = Path(__file__).parents[2] / "docs" / "reasons.md"


def test_the_page_holds_the_table_as_the_code_has_it():
    text = PAGE.read_text()
    assert text.endswith(table()), f"write the table of fencer.wording.reasons.table() into {PAGE}"
