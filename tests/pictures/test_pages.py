"""Pages show pictures that are there, in the mode that their reader has."""

from __future__ import annotations

import re

import pytest

from tests.benchmarks import failover
from tests.benchmarks.deaths import Milestones
from tests.docs.citations import PAGES, ROOT
from tests.pictures import measured, screens
from tests.pictures.__main__ import FOLDER

_FILE = re.compile(r'(?:src|srcset)="([^"]+)"')
_SHOWN = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
_PICTURE = re.compile(r"<picture>.*?</picture>", re.DOTALL)
_IMAGE = re.compile(r"<img [^>]*>")
TAKEN = [file for name in screens.TEXTS for file in screens.files(name)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_is_there_and_says_what_it_is(page):
    text = page.read_text("utf-8")
    assert [file for file in _FILE.findall(text) if not (page.parent / file).is_file()] == []
    assert [one for one in _IMAGE.findall(text) if not re.search(r'alt="[^"]{4,}"', one)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_picture_of_a_page_is_shown_in_both_modes(page):
    text = page.read_text("utf-8")
    assert [file for file in _SHOWN.findall(text) if file.endswith(".webp")] == []
    for shown in _PICTURE.findall(text):
        source, *others = re.findall(r"<source [^>]*>", shown)
        dark, light = _FILE.findall(source)[0], _FILE.findall(_IMAGE.findall(shown)[0])[0]
        if light.endswith(".webp"):
            assert others == []
            assert 'media="(prefers-color-scheme: dark)"' in source
            assert dark == light.replace(".webp", "-dark.webp")


def test_every_picture_of_a_page_is_shown_and_is_small():
    pages = "\n".join(page.read_text("utf-8") for page in PAGES)
    assert [file for file in TAKEN if f'"{file}"' not in pages and f'"docs/{file}"' not in pages] == []
    assert {path.name for path in FOLDER.glob("*.webp")} == set(TAKEN)
    assert max((FOLDER / file).stat().st_size for file in TAKEN) <= screens.LARGEST_BYTES


def test_a_table_is_read_by_its_heading():
    text = "\n## One\n\nwords\n\n| a | b |\n| --- | --- |\n| 1 | 2 / 3 |\n| 4 | |\n\nmore\n\n## Two\n\nnone\n"
    assert measured.table(text, "## One") == [{"a": "1", "b": "2 / 3"}, {"a": "4", "b": ""}]
    for missing in ("## Two", "## Three"):
        with pytest.raises(ValueError, match="no table below"):
            measured.table(text, missing)


def test_what_is_drawn_of_runs_and_of_their_published_table_is_the_same(tmp_path):
    quick = Milestones(fenced_s=0.3, gone_s=0.5, attached_s=3.2, ready_s=9.1)
    rows = {"alone": [Milestones(not_ready_s=50.0)] * 2, "fastest": [quick] * 2}
    page, known = tmp_path / "page.md", failover.recipes()
    page.write_text(f"\n## Failover\n\nwords\n\n{failover.table(rows, known)}\n\nmore\n")
    drawn = measured.slow_and_quick(page)
    assert drawn == failover.plot(rows, known)
    assert "never (looked for 370 s)" in drawn
    assert "9.1 s" in drawn
