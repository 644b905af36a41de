"""docs/ as a website: mkdocs builds it without a warning, and every page reads there as on a forge."""

import logging
import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt
from mkdocs.commands.build import build
from mkdocs.config import load_config

from tests.docs.citations import ROOT

SETTINGS = ROOT / "config" / "docs" / "mkdocs.yml"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHAPE = ("h2", "h3", "h4", "ul", "ol", "li", "pre", "table", "tr", "blockquote", "img")
"""What a reader sees at a glance."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    heard = Heard()
    logging.getLogger("mkdocs").addHandler(heard)
    try:
        with pytest.MonkeyPatch.context() as environment:
            environment.delenv("FENCER_SOURCES", raising=False)
            build(load_config(str(SETTINGS), site_dir=str(folder), strict=True))
    finally:
        logging.getLogger("mkdocs").removeHandler(heard)
    return folder, heard.warnings


class Heard(logging.Handler):
    """Keeps what mkdocs warns of."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.warnings = []

    def emit(self, record):
        self.warnings.append(record.getMessage())


class Shape(HTMLParser):
    """Counts the parts of a page, and what its blocks of code say."""

    def __init__(self):
        super().__init__()
        self.parts = []
        self.code = []

    def handle_starttag(self, tag, attrs):  # noqa: ARG002 - the parser's own names
        if tag in SHAPE:
            self.parts.append(tag)
        if tag == "pre":
            self.code.append("")

    def handle_endtag(self, tag):
        if tag == "pre":
            self.code.append("")

    def handle_data(self, data):
        if len(self.code) % 2:
            self.code[-1] += data


def shape(html):
    found = Shape()
    found.feed(html)
    return found.parts, [re.sub(r"\s+", " ", one).strip() for one in found.code[::2]]


def on_the_site(folder, page):
    name = {ROOT / "README.md": "index", ROOT / "docs" / "README.md": "pages"}.get(page, page.stem)
    html = (folder / f"{name}.html").read_text(encoding="utf-8")
    return html.partition('role="main">')[2].partition("<footer")[0]


def test_it_is_built_without_a_warning(site):
    assert site[1] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_reads_there_as_on_a_forge(site, page):
    """They read lists differently: below a point all is indented by four, and before one is an empty line."""
    forge = MarkdownIt("commonmark").enable("table").render(page.read_text(encoding="utf-8"))
    assert shape(on_the_site(site[0], page)) == shape(forge)


def test_a_link_out_of_the_pages_is_text_where_nobody_says_where_the_sources_are(site):
    html = on_the_site(site[0], ROOT / "docs" / "README.md")
    assert ">Contributing" in html
    assert "CONTRIBUTING.md" not in html
