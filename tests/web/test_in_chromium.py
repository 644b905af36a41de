"""The page in a real browser: at any width, in both modes, with any names, and when nobody loads it again.

One browser for all: each page is opened once, under its own policy, and then looked at.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from fencer.web.lately import Lately
from fencer.web.page import page
from fencer.web.site import policy
from fencer.web.style import STYLE_HASH
from tests.support import wait_until
from tests.support.chromium import chromium
from tests.web.picture import PICTURES, taken
from tests.web.worlds import (
    HOSTILE,
    LONG,
    Watched,
    api_down,
    fenced,
    many,
    observed,
    sick,
    spoiled,
    spoiled_past,
    well,
)

WIDTHS_PX = (360, 760, 1280)
POLICY = policy((STYLE_HASH,)).replace("; frame-ancestors 'none'", "")
"""Without what only a header can say."""

WIDER = """[...document.querySelectorAll("body *:not(.old)")]
    .filter(one => one.getBoundingClientRect().right > innerWidth + 0.5)
    .map(one => one.tagName + " " + one.textContent.slice(0, 40))"""
"""What reaches over the right side."""

OVERLAPPING = """[...document.querySelectorAll("tr")].filter(row => {
    const cells = [...row.children].filter(one => one.getClientRects().length === 1)
        .map(one => { const range = document.createRange(); range.selectNodeContents(one); return range })
        .map(range => range.getBoundingClientRect()).filter(one => one.width > 0)
    const before = place => cells[place]
    return cells.slice(1).filter((one, place) => one.left < before(place).right - 0.5
        && one.top < before(place).bottom - 0.5 && before(place).top < one.bottom - 0.5).length
}).map(row => row.innerText)"""
"""Rows in which the words of one cell reach into the next."""

FAINT = """(() => {
    const rgb = text => text.match(/[0-9.]+/g).map(Number)
    const light = colour => rgb(colour).slice(0, 3).map(one => one / 255)
        .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
        .reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0)
    const behind = one => {
        for (; one; one = one.parentElement) {
            const colour = getComputedStyle(one).backgroundColor
            if ((rgb(colour)[3] ?? 1) > 0) return colour
        }
    }
    return [...document.querySelectorAll("body *")]
        .filter(one => [...one.childNodes].some(part => part.nodeType === 3 && part.data.trim()))
        .map(one => [light(getComputedStyle(one).color), light(behind(one)), one.textContent.trim()])
        .filter(([ink, paper]) => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05) < 4.5)
        .map(([, , words]) => words)
})()"""
"""Words with less contrast than 4.5. Source: https://www.w3.org/TR/WCAG22/#contrast-minimum."""

GET_OLD = "document.getAnimations().forEach(one => one.finish())"
IS_TOLD = "document.querySelector('.old').checkVisibility({visibilityProperty: true})"
ROLES = """[...document.querySelectorAll("tbody tr")]
    .every(row => row.role === "row" && [...row.children].every(one => one.role))"""
HEADINGS = """[...document.querySelectorAll("h1, h2, h3")].map(one => Number(one.tagName[1]))"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    world = fenced(tmp_path_factory.mktemp("journal") / "journal.db")
    seen, lately, now = world.board.snapshot(), world.lately(), world.now()
    lots = sick(many(1000, 30), 40)
    return {
        "well": well().page(),
        "incidents": world.page(),
        "observed": observed().page(),
        "api down": api_down().page(),
        "no pass yet": Watched().page(),
        "stale": well().stands_still(300).page(),
        "hostile": page(spoiled(seen, HOSTILE), spoiled_past(lately, HOSTILE), now),
        "long": page(spoiled(seen, LONG), spoiled_past(lately, LONG), now),
        "many": page(lots, Lately(), lots.now),
        "all of many": page(replace(lots, failing="no answer"), Lately(), lots.now, every=True),
    }


def opened(browser, folder, text, *, again_s=None):
    """Open a page under its policy; it is not loaded again meanwhile, unless that is asked for."""
    again = "" if again_s is None else f'<meta http-equiv="refresh" content="{again_s}">'
    policy = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    text = re.sub(r'<meta http-equiv="refresh" content="\d+">', again, text)
    path = folder / "page.html"
    path.write_text(text.replace('<meta charset="utf-8">', policy))
    browser.shows()
    browser.open(path)
    return path.as_uri()


@pytest.fixture(
    scope="module",
    params=[
        *("well", "incidents", "observed", "api down", "no pass yet", "stale", "hostile", "long", "many"),
        "all of many",
    ],
)
def shown(request, browser, pages, tmp_path_factory):
    """One page after the other, in the browser."""
    return browser, opened(browser, tmp_path_factory.mktemp("page"), pages[request.param])


def test_the_browser_complains_of_nothing_and_asks_nobody(shown):
    browser, address = shown
    assert browser.complaints == []
    assert [one for one in browser.requests if not one.startswith("data:")] == [address]


def test_the_policy_lets_the_style_pass(shown):
    browser, _ = shown
    assert browser.value("getComputedStyle(document.querySelector('header')).borderLeftWidth") == "6px"


def test_nothing_that_others_have_named_is_run_or_is_an_element(shown):
    browser, _ = shown
    assert browser.value("typeof window.owned") == "undefined"
    assert browser.value("document.querySelectorAll('script, img, body style').length") == 0
    assert browser.value("document.title").endswith("fencer")


@pytest.mark.parametrize("width_px", WIDTHS_PX)
def test_nothing_overflows_or_overlaps_at_any_width(shown, width_px):
    browser, _ = shown
    browser.shows(width_px=width_px)
    for unfolded in ("false", "true"):
        browser.value(f"document.querySelectorAll('details').forEach(one => one.open = {unfolded})")
        assert browser.value("document.documentElement.scrollWidth") <= width_px
        assert browser.value(WIDER) == []
        assert browser.value(OVERLAPPING) == []


@pytest.mark.parametrize("dark", [False, True])
def test_all_words_can_be_read_in_both_modes(shown, dark):
    browser, _ = shown
    browser.shows(dark=dark)
    assert browser.value("getComputedStyle(document.body).backgroundColor") == (
        "rgb(18, 22, 28)" if dark else "rgb(255, 255, 255)"
    )
    assert browser.value(FAINT) == []


def test_a_screen_reader_finds_its_way(shown):
    browser, _ = shown
    assert (
        browser.value("['header', 'main', 'footer'].map(one => document.querySelectorAll(one).length)")
        == [1] * 3
    )
    headings = browser.value(HEADINGS)
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(headings))
    assert browser.value(ROLES)
    assert browser.value(
        "[...document.querySelectorAll('table')].every(one => one.caption?.textContent.trim())"
    )
    assert browser.value("document.documentElement.lang") == "en"


def test_on_paper_everything_is_unfolded_and_nothing_is_cut_off(shown):
    browser, _ = shown
    browser.value("document.querySelectorAll('details').forEach(one => one.open = false)")
    browser.shows(width_px=703, printed=True, dark=True)
    assert browser.value(
        "[...document.querySelectorAll('details > summary')].every(one => one.checkVisibility())"
    )
    heights = browser.value("[...document.querySelectorAll('details')].map(one => one.offsetHeight)")
    assert browser.value(WIDER) == []
    browser.shows(width_px=703)
    folded = browser.value("[...document.querySelectorAll('details')].map(one => one.offsetHeight)")
    assert all(printed > one for printed, one in zip(heights, folded, strict=True))


def test_a_page_that_nobody_loads_again_says_that_it_is_old(browser, pages, tmp_path):
    opened(browser, tmp_path, pages["well"])
    browser.shows(width_px=360)
    assert not browser.value(IS_TOLD)
    assert browser.value("document.querySelector('.old').getBoundingClientRect().height") == 0
    browser.value(GET_OLD)
    assert browser.value(IS_TOLD)
    assert browser.value("document.querySelector('.old').getBoundingClientRect().height") > 40
    assert browser.value(FAINT) == []
    assert browser.value("document.documentElement.scrollWidth") <= 360
    browser.value("scrollTo(0, 1e6)")
    assert browser.value("document.querySelector('.old').getBoundingClientRect().top") == 0


def test_the_page_loads_itself_again_without_a_script(browser, pages, tmp_path):
    address = opened(browser, tmp_path, pages["well"], again_s=1)
    wait_until(lambda: browser.value("1") and browser.requests.count(address) > 1, "it was not loaded again")


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_for_the_documentation_can_be_taken(browser, name, tmp_path):
    image = taken(browser, name, "webp", tmp_path)
    assert (image[:4], image[8:12]) == (b"RIFF", b"WEBP")
    assert len(image) > 5_000  # of an empty page it would be less
