"""Whatever is cited is there: by pages, by code, by tests. What these tests cannot find they do not hold."""

import pytest

from tests.docs.citations import PAGES, ROOT, lost, lost_in_page, sources

HERE = ROOT / "docs"


def test_nothing_cites_a_page_or_a_decision_that_is_not_there():
    found = {str(path.relative_to(ROOT)): [*lost(path.read_text(errors="replace"))] for path in sources()}
    assert {path: cited for path, cited in found.items() if cited} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_whatever_a_page_cites_is_there(page):
    assert [*lost_in_page(page.read_text(), page.parent)] == []


@pytest.mark.parametrize(
    "text",
    [
        "see docs/nosuch" + ".md",
        "as docs/design" + ".md, Z99 has it",
        "as design" + ".md has it",
        "(design, decision" + " 16)",
        "Source: fact" + "s of Proxmox VE",
        "see facts" + "/proxmox",
    ],
)
def test_a_citation_that_leads_nowhere_is_found(text):
    assert [*lost(text)] != []


@pytest.mark.parametrize(
    "text",
    [
        "`core/nosuch.py`",
        "`fencer/core/proof.py:NOSUCH`",
        "`core/model.py:NodeView.nosuch`",
        "`tests/nosuch/`",
        "stories `many-off`, `no-such-story`",
        "[a page](nosuch)",
        "[a heading](design.md#nosuch)",
        "[a heading of this page](#nosuch)",
    ],
)
def test_what_a_page_cites_and_is_not_there_is_found(text):
    assert [*lost_in_page(text, HERE)] != []


@pytest.mark.parametrize(
    "text",
    [
        "`core/proof.py:PROOF`, `fencer/core/model.py:NodeView.fenced`, `planned/plan/`",
        "`fencer/hypervisors/*/parse.py`",
        "`cluster/status` is a call of Proxmox' API, `a/b` is nothing",
        "story `many-off`",
        "[Times](design.md#times), [elsewhere](https://example.com/#nosuch)",
        "`tests/core/test_doubt.py`",
    ],
)
def test_what_is_there_is_not(text):
    assert [*lost_in_page(text, HERE)] == []


def test_each_threat_has_a_test():
    """Their paths are looked up like all others; here: that there is one in each row, by name."""
    table = (HERE / "security.md").read_text().partition("## Threats")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 10
    assert [row for row in rows if len(row) != 4 or "`tests/" not in row[3]] == []
