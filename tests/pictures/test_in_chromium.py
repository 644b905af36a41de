"""The drawn pictures in a real browser: no word is cut off, touches another one, or leaves the box it is in.

One browser for all: each picture is opened once, and looked at in both modes.
"""

from __future__ import annotations

import pytest

from tests.pictures.__main__ import DRAWN, FOLDER
from tests.pictures.paper import svg, words
from tests.support.chromium import chromium

FILES = [file for drawn in DRAWN.values() for file in drawn]

SIZE = "['width', 'height'].map(it => Number(document.documentElement.getAttribute(it)))"

WORDS = """const words = [...document.querySelectorAll("text")].map(one => {
    const frame = one.ownerSVGElement
    const [x, y, wide, high] = ["x", "y", "width", "height"].map(it => Number(frame.getAttribute(it)))
    const screen = {left: x, top: y, right: x + wide, bottom: y + high}
    return {one, at: one.getBoundingClientRect(), screen, told: one.textContent}
}).filter(({at, screen}) => at.top >= screen.top - 1 && at.bottom <= screen.bottom + 1)
"""
"""All words; of those in a window of their own, the ones that are in it."""

UNDER = """const under = (one, share = 0.5) => {
    const at = one.getBoundingClientRect()
    return document.elementsFromPoint(at.left + share * at.width, (at.top + at.bottom) / 2)
        .find(other => /^(rect|circle|path|ellipse)$/.test(other.tagName)
            && getComputedStyle(other).fill !== "none")
}
"""
"""What words stand on: in their middle, or elsewhere between left and right."""

CUT_OFF = f"""(() => {{ {WORDS}
    return words.filter(({{at, screen}}) => at.left < screen.left || at.right > screen.right
        || at.top < 0 || at.bottom > innerHeight).map(({{told}}) => told)
}})()"""

TOUCHING = f"""(() => {{ {WORDS}
    return words.flatMap((one, place) => words.slice(place + 1)
        .filter(({{at}}) => one.at.left < at.right - 0.5 && at.left < one.at.right - 0.5
            && one.at.top < at.bottom - 2 && at.top < one.at.bottom - 2)
        .map(({{told}}) => [one.told, told]))
}})()"""

OUTSIDE = f"""(() => {{ {WORDS} {UNDER}
    return words.filter(({{one, at}}) => {{
        const box = under(one)?.getBoundingClientRect()
        return !box || at.top < box.top - 3 || at.bottom > box.bottom + 3
            || under(one, 0) !== under(one) || under(one, 1) !== under(one)
    }}).map(({{told}}) => told)
}})()"""

FAINT = f"""(() => {{ {WORDS} {UNDER}
    const light = colour => colour.match(/[0-9.]+/g).slice(0, 3).map(one => one / 255)
        .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
        .reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0)
    return words.flatMap(({{one}}) => [one, ...one.querySelectorAll("tspan")].map(part => {{
        const ink = light(getComputedStyle(part).fill), paper = light(getComputedStyle(under(one)).fill)
        return [(Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05), part.textContent]
    }})).filter(([contrast]) => contrast < 4.5).map(([, told]) => told)
}})()"""
"""Words with less contrast to what they stand on than 4.5. Source: https://www.w3.org/TR/WCAG22/#contrast-minimum."""


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module", params=FILES)
def opened(request, browser):
    """One picture after the other, in its own size; the one that plays, at its end."""
    browser.shows(still=True)
    browser.open(FOLDER / request.param)
    width_px, height_px = browser.value(SIZE)

    def show(dark):
        browser.shows(width_px=width_px, height_px=height_px, dark=dark, still=True)
        return browser

    return show


def test_the_browser_complains_of_nothing_and_asks_nobody(opened):
    browser = opened(dark=False)
    assert browser.complaints == []
    assert len(browser.requests) == 1


def test_no_word_is_cut_off_or_touches_another_or_leaves_its_box(opened):
    browser = opened(dark=False)
    assert browser.value("document.querySelectorAll('text').length") > 10
    assert browser.value(CUT_OFF) == []
    assert browser.value(TOUCHING) == []
    assert browser.value(OUTSIDE) == []


@pytest.mark.parametrize("dark", [False, True])
def test_every_word_can_be_read_where_it_stands(opened, dark):
    browser = opened(dark=dark)
    assert browser.value(FAINT) == []
    ground = browser.value("getComputedStyle(document.querySelector('.page')).fill")
    assert ground == ("rgb(18, 22, 28)" if dark else "rgb(255, 255, 255)")


def test_what_plays_begins_with_the_command_and_shows_the_rest_later(browser):
    browser.shows()
    browser.open(FOLDER / "demo.svg")
    browser.value("document.getAnimations().forEach(one => { one.pause(); one.currentTime = 0 })")
    lines = "[...document.querySelectorAll('.roll text')]"
    hidden = f"{lines}.filter(one => getComputedStyle(one).visibility === 'hidden').length"
    shown = f"{lines}.find(one => getComputedStyle(one).visibility !== 'hidden')"
    all_lines = browser.value(f"{lines}.length")
    assert browser.value(hidden) == all_lines - 1
    assert browser.value(f"{shown}.textContent.trim()").endswith("fencer demo")
    browser.value("document.getAnimations().forEach(one => one.finish())")
    assert browser.value(hidden) == 0
    last = browser.value(f"{lines}.at(-1).getBoundingClientRect().bottom")
    assert last < browser.value(SIZE)[1]
    browser.shows(still=True)
    assert browser.value("document.getAnimations().length") == 0


def test_words_that_leave_their_box_touch_or_are_faint_are_found(browser, tmp_path):
    """Or the tests above would show nothing."""
    bad = tmp_path / "bad.svg"
    drawn = [
        '<rect class="panel" x="10" y="10" width="40" height="30"/>',
        words("much too long for its box", 14, 30),
        words("one upon", 100, 80),
        words("another", 120, 82),
        words("faint", 10, 120, "line"),
        words("beyond the side", 240, 160),
    ]
    bad.write_text(svg(("Bad", "A picture with mistakes"), (300, 200), drawn))
    browser.shows(width_px=300, height_px=200)
    browser.open(bad)
    assert browser.value(CUT_OFF) == ["beyond the side"]
    assert browser.value(TOUCHING) == [["one upon", "another"]]
    assert "much too long for its box" in browser.value(OUTSIDE)
    assert browser.value(FAINT) == ["faint"]
