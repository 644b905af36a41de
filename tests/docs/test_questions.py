"""docs/faq.md begins with all its questions."""

from tests.docs import tables
from tests.support.pages import DOCS, hold

PAGE = DOCS / "faq.md"


def test_its_contents_are_its_questions():
    hold(PAGE, "contents", tables.contents(PAGE.read_text(encoding="utf-8")))
