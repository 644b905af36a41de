"""A long page begins with its contents, in one line: a forge shows none by itself."""

import os
import re

import pytest

from tests.docs.citations import PAGES, ROOT, anchor

LONG = [page for page in PAGES if page.parent == ROOT / "docs" and page.stem not in {"README", "faq"}]
FEW = 4
"""So many headings are seen at a glance."""
_LINE = re.compile(r"\A(# [^\n]+\n)\n(?:On this page: (?:[^\n]+\n)+\n)?")


@pytest.mark.parametrize("page", LONG, ids=lambda page: page.stem)
def test_it_begins_with_its_headings(page):
    written = page.read_text(encoding="utf-8")
    headings = [one for one in re.findall(r"(?m)^## (.+)$", written) if one != "How this page is made"]
    if len(headings) <= FEW:
        return
    contents = " ·\n".join(f"[{one}](#{anchor(one)})" for one in headings)
    now = _LINE.sub(lambda found: f"{found[1]}\nOn this page: {contents}\n\n", written)
    if os.environ.get("FENCER_WRITE_DOCS"):
        page.write_text(now, encoding="utf-8")
    else:
        assert now == written, "FENCER_WRITE_DOCS=1 writes it again"
