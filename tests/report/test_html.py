"""The page as text: it needs nothing from outside, runs nothing, and its colours can be read."""

import re
from importlib.resources import files

import pytest

from fencer.journal.folding import incidents
from fencer.report.html import page
from fencer.report.markdown import markdown
from fencer.report.spans import Tone
from fencer.report.story import report
from fencer.report.workloads import Replacement
from tests.report.build import HOSTILE, LONG, by_hand, crashed, cut_off, journal_of, later, spoiled, told
from tests.support.outline import Outline

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@pytest.fixture(scope="module")
def plain():
    return Outline(page(told(crashed())))


@pytest.fixture(scope="module")
def hostile():
    return Outline(page(told(spoiled(crashed(), HOSTILE))))


def test_it_runs_nothing_and_loads_nothing(plain):
    assert set(plain.tags) & {"script", "link", "iframe", "img", "object", "embed", "base", "form"} == set()
    assert [one for one in plain.attributes if one[1] in {"src", "href", "srcset", "action"}] == []
    assert [one for one in plain.attributes if one[1].startswith("on")] == []
    assert ("meta", "content", POLICY) in plain.attributes


def test_the_style_sheet_loads_nothing_either():
    style = page(told(crashed())).partition("<style>")[2].partition("</style>")[0]
    assert re.findall(r"url\((?!#)|@import|https?:", style) == []


def test_headings_are_in_order(plain):
    headings = [tag for tag in plain.tags if re.fullmatch(r"h\d", tag)]
    assert headings[0] == "h1"
    assert set(headings[1:]) == {"h2"}


def test_times_are_local_with_the_zone_told_once_and_utc_is_in_their_titles(plain):
    assert "all times are CET (UTC+01:00)" in plain.text
    assert ("time", "title", "2026-01-01 00:02:06.480 UTC") in plain.attributes
    assert ("time", "datetime", "2026-01-01T00:02:06.480Z") in plain.attributes


def test_everything_that_the_picture_tells_is_in_a_table_too(plain):
    for words in ("silent, not Ready", "3 attached", "none left", "pods cleared"):
        assert words in plain.text
    assert any(tag == "svg" and name == "aria-label" for tag, name, _ in plain.attributes)


@pytest.mark.parametrize("journal", [crashed, cut_off, by_hand], ids=lambda one: one.__name__)
@pytest.mark.parametrize("words", [HOSTILE, LONG], ids=["hostile", "long"])
def test_names_from_outside_change_nothing_but_words(journal, words):
    assert Outline(page(told(spoiled(journal(), words)))).tags == Outline(page(told(journal()))).tags


def test_a_name_is_shown_as_it_is_and_what_cannot_be_seen_is_shown_escaped(hostile):
    assert "<script>window.owned=1</script>" in hostile.text
    assert "{{7*7}}{% raw %}]]></style></title>" in hostile.text
    assert "\\u202egnp.\\u2066\\x1b[31m\\n#" in hostile.text
    everything = "".join((*hostile.words, *(value or "" for *_, value in hostile.attributes)))
    assert not {"\u202e", "\u2066", "\x1b"} & set(everything)


def test_what_one_types_is_set_apart(plain):
    asked = Outline(page(told(by_hand())))
    assert asked.tags.count("code") > plain.tags.count("code")


def test_who_took_a_pods_place_is_told_where_the_cluster_was_asked(plain):
    now = [Replacement("demo/db-1", "StatefulSet/db", "k8s-3", "2026-01-01T00:02:07Z", ready=True)]
    asked = Outline(page(told(crashed(), now=now))).text
    assert "In its place now" not in plain.text
    assert "demo/db-1 on k8s-3, made at 01:02:07 , Ready when this was written" in asked
    assert asked.count("nobody yet") == 3


def test_pods_that_were_asked_to_leave_are_named():
    text = Outline(page(told(journal_of(lambda lab: lab.run("drain", "k8s-2", "-y"))))).text
    assert "Asked to leave, as far as budgets allow: demo/db-1, demo/db-4, demo/db-7, demo/web-3." in text


@pytest.mark.parametrize("journal", [crashed, cut_off, by_hand], ids=lambda one: one.__name__)
def test_a_journal_that_ends_anywhere_can_be_told(journal):
    rows = journal()
    for number in range(1, len(rows) + 1):
        for one in incidents(rows[:number]):
            so_far = report(one, later(one), rows[:number])
            assert Outline(page(so_far)).tags.count("h2") == 8
            assert markdown(so_far).startswith("# ")


@pytest.mark.parametrize("journal", [crashed, by_hand], ids=lambda one: one.__name__)
def test_a_journal_whose_beginning_is_dropped_can_be_told(journal):
    rows = journal()
    for number in range(len(rows)):
        for one in incidents(rows[number:]):
            assert "</html>" in page(report(one, later(one), rows[number:]))


def style():
    return files("fencer.report").joinpath("templates/style.css").read_text()


def colours(dark):
    blocks = re.findall(r":root \{([^}]*--page[^}]*)\}", style())
    named = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[0]))
    return named | (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[1])) if dark else {})


def luminance(colour):
    """Source: WCAG 2.2, relative luminance."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


PAIRS = (
    *((words, below) for words in ("ink", "muted", "link") for below in ("page", "panel")),
    ("page", "ink"),
    *((f"on-{tone}", tone.value) for tone in Tone),
)
"""Words, and what is below them."""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("words", "below"), PAIRS)
def test_words_can_be_read_on_what_is_below_them(words, below, dark):
    named = colours(dark)
    assert contrast(named[words], named[below]) >= 4.5


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_each_tone_has_its_own_colour(dark):
    named = colours(dark)
    assert len({named[tone] for tone in Tone}) == len(Tone)


def test_the_contrast_is_reckoned_as_the_guideline_has_it():
    assert round(contrast("#000000", "#ffffff"), 2) == 21.0
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48
