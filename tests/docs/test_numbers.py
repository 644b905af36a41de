"""Numbers that the README and the questions quote are those of docs/performance.md."""

import re

import pytest

from tests.docs.citations import ROOT

MEASURED = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "begin", "end"),
    [
        ("README.md", "## How fast", "\n## "),
        ("docs/faq.md", "### What does it cost? How many nodes?", "\n### "),
        ("docs/faq.md", "### How long does a failover take?", "\n### "),
    ],
)
def test_a_number_that_is_quoted_was_measured(page, begin, end):
    text = (ROOT / page).read_text(encoding="utf-8").partition(f"\n{begin}\n")[2].partition(end)[0]
    quoted = re.findall(r"\d[\d,.]*\d|\d+ (?:MiB|%)", text)
    assert len(quoted) > 1
    assert [
        number for number in quoted if not re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", MEASURED)
    ] == []
