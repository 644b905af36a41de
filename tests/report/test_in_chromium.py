"""The page in a real browser: nothing overflows, nothing is complained of, and both modes can be read.

One browser for all: each page is opened once, and then looked at in several sizes and modes.
"""

from __future__ import annotations

import pytest

from fencer.report.html import page
from tests.report.build import HOSTILE, LONG, by_hand, crashed, spoiled, told
from tests.report.picture import taken
from tests.support.chromium import chromium

WIDTHS_PX = (380, 760, 1200)
PAPER_PX = 703
"""A4 between margins of 12 mm."""

WIDER = """[...document.querySelectorAll("body *")]
    .filter(one => !one.closest("svg") && one.getBoundingClientRect().right > innerWidth + 0.5)
    .map(one => one.tagName + " " + one.textContent.slice(0, 40))"""
"""What reaches over the right side."""

WORDS_OUT = """[...document.querySelectorAll("svg g")].flatMap(bar => {
    const words = bar.querySelector("text"), box = bar.querySelector("rect").getBoundingClientRect()
    if (getComputedStyle(words).display === "none") return []
    const at = words.getBoundingClientRect()
    return at.left < box.left - 0.5 || at.right > box.right + 0.5 ? [words.textContent] : []
})"""
"""Words on bars that are too short for them."""

OVERLAPPING = """(() => {
    const shown = [...document.querySelectorAll("svg text.time")]
        .filter(one => getComputedStyle(one).display !== "none").map(one => one.getBoundingClientRect())
    shown.sort((one, other) => one.left - other.left)
    return shown.slice(1).filter((one, place) => one.left < shown[place].right).length
})()"""
"""Times on the axis that touch each other."""

PINS_OVER_PINS = """(() => {
    const shown = [...document.querySelectorAll("svg.pin")]
        .filter(one => getComputedStyle(one).display !== "none")
        .map(one => one.querySelector("rect").getBoundingClientRect())
    return [shown.length, shown.slice(1).filter((one, place) => one.left < shown[place].right).length]
})()"""
"""How many pins there are, and how many of them touch another one."""

SHADES = """[...new Set([...document.querySelectorAll("svg g rect")]
    .map(one => getComputedStyle(one).fill))].sort()"""

FOLD = "document.querySelectorAll('details').forEach(one => one.open = false)"

FOLDED = """[...document.querySelectorAll("details:not(.raw):not(.raw *)")]
    .filter(one => [...one.children].slice(1).some(part => !part.classList.contains("raw")
        && !part.closest(".raw") && !part.checkVisibility())).length"""
"""Folded parts whose inside cannot be seen."""

CUT_OFF = """[...document.querySelectorAll("svg, svg *")]
    .filter(one => one.getBoundingClientRect().right > innerWidth
        || one.getBoundingClientRect().left < 0).map(one => one.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module", params=["plain", "hostile", "long", "by hand"])
def opened(request, browser, tmp_path_factory):
    """One page after the other, in the browser."""
    journals = {
        "plain": crashed,
        "hostile": lambda: spoiled(crashed(), HOSTILE),
        "long": lambda: spoiled(by_hand(), LONG),
        "by hand": by_hand,
    }
    path = tmp_path_factory.mktemp("page") / "incident.html"
    path.write_text(page(told(journals[request.param]())))
    browser.shows()
    browser.open(path)
    return browser, path.as_uri()


def test_the_browser_complains_of_nothing_and_asks_nobody(opened):
    browser, address = opened
    assert browser.complaints == []
    assert browser.requests == [address]


def test_nothing_that_others_have_named_is_run_or_is_an_element(opened):
    browser, _ = opened
    assert browser.value("typeof window.owned") == "undefined"
    assert browser.value("document.querySelectorAll('script, body img, body style').length") == 0
    assert browser.value("document.title").startswith("k8s-2")


@pytest.mark.parametrize("width_px", WIDTHS_PX)
def test_nothing_overflows_at_any_width_folded_or_not(opened, width_px):
    browser, _ = opened
    browser.shows(width_px=width_px)
    for folded in (True, False):
        browser.value(FOLD if folded else FOLD.replace("false", "true"))
        assert browser.value("document.documentElement.scrollWidth") <= width_px
        assert browser.value(WIDER) == []


@pytest.mark.parametrize("width_px", WIDTHS_PX)
def test_words_of_the_picture_have_room(opened, width_px):
    browser, _ = opened
    browser.shows(width_px=width_px)
    assert browser.value(WORDS_OUT) == []
    assert browser.value(OVERLAPPING) == 0
    pins, over = browser.value(PINS_OVER_PINS)
    assert (pins > 1, over) == (True, 0)
    assert browser.value(
        "[...document.querySelectorAll('svg g text')].some(one => getComputedStyle(one).display !== 'none')"
    )


def test_light_and_dark_are_two_looks_of_the_same_page(opened):
    browser, _ = opened
    looks = []
    for dark in (False, True):
        browser.shows(dark=dark)
        looks.append(
            (browser.value("getComputedStyle(document.body).backgroundColor"), browser.value(SHADES))
        )
    light, dark = looks
    assert (light[0], dark[0]) == ("rgb(255, 255, 255)", "rgb(18, 22, 28)")
    assert len(light[1]) == len(dark[1]) > 3
    assert not set(light[1]) & set(dark[1])


def test_on_paper_everything_is_unfolded_but_raw_rows_and_no_lane_is_cut_off(opened):
    browser, _ = opened
    browser.value(FOLD)
    browser.shows(width_px=PAPER_PX, printed=True, dark=True)
    assert browser.value(FOLDED) == 0
    assert browser.value(CUT_OFF) == []
    assert browser.value(
        "[...document.querySelectorAll('.raw')].every(one => one.getClientRects().length === 0)"
    )
    browser.shows()
    assert browser.value(FOLDED) > 0  # or this would show nothing


def test_the_picture_for_the_documentation_is_of_the_pages_top(opened):
    browser, _ = opened
    image = taken(browser, "webp")
    assert (image[:4], image[8:12]) == (b"RIFF", b"WEBP")
    assert len(image) > 10_000  # of an empty page it would be less
