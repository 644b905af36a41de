"""The drawn pictures: what is kept is what is drawn now; images for everybody, legible in both modes."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from xml.etree import ElementTree as ET

import pytest

from tests.pictures import __main__ as pictures
from tests.pictures.__main__ import DRAWN, FOLDER, NAMES, differing, make
from tests.pictures.paper import TONES
from tests.support.chromium import MISSING

FILES = [file for drawn in DRAWN.values() for file in drawn]
SVG = "{http://www.w3.org/2000/svg}"
ON_A_PHONE_PX, SMALLEST_PX = 400, 9.0
"""A phone's page is so wide; no letter of the two pictures that explain fencer is smaller on it."""
ENOUGH = 4.5
"""Source: https://www.w3.org/TR/WCAG22/#contrast-minimum."""
BADGES = ("red", "green", "ink")
"""Numbers in the colour of the page are on these."""

_RULE = re.compile(r"\.([\w-]+) \{ (fill|stroke): (#[0-9a-f]{6}) \}")


@cache
def kept(file):
    return (FOLDER / file).read_text("utf-8")


def tree(file):
    return ET.fromstring(kept(file))  # noqa: S314 - of our own making


@pytest.mark.parametrize("name", NAMES)
def test_it_is_what_is_made_now(name):
    assert differing([name]) == []


def test_one_that_is_changed_or_missing_is_named_with_the_command_that_makes_it(tmp_path):
    assert make(["growth", "failover"], tmp_path) == []
    assert differing(["growth", "failover"], tmp_path) == []
    (tmp_path / "growth.svg").write_text(kept("growth.svg").replace("memory", "mammary"))
    (tmp_path / "failover.svg").unlink()
    assert differing(["growth", "failover"], tmp_path) == [
        "docs/growth.svg differs from what is drawn now: ./dev pictures growth",
        "docs/failover.svg differs from what is drawn now: ./dev pictures failover",
    ]


def test_without_a_browser_pages_are_named_and_all_others_made(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert make(["overview", "incident-report"], tmp_path) == [
        f"docs/incident-report.webp was not made: {MISSING}",
        f"docs/incident-report-dark.webp was not made: {MISSING}",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["overview.svg"]


def test_a_name_that_is_none_is_refused_with_those_that_are(capsys):
    with pytest.raises(SystemExit):
        pictures.main(["overvew"])
    assert "overvew: no such picture; there are: overview, ladder, demo," in capsys.readouterr().err


@pytest.mark.parametrize("file", FILES)
def test_a_forge_shows_it_as_an_image(file):
    names = {one.tag.removeprefix(SVG) for one in tree(file).iter()}
    assert not names & {"script", "foreignObject", "image", "use", "a", "animate", "set"}
    assert not [
        name for one in tree(file).iter() for name in one.attrib if name.startswith("on") or "href" in name
    ]
    assert "://" not in kept(file).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "@import" not in kept(file)
    assert not re.findall(r"url\((?!#)", kept(file))
    assert len(kept(file).encode()) < 150_000


@pytest.mark.parametrize("file", FILES)
def test_who_does_not_see_it_is_told(file):
    root = tree(file)
    title, about = root[0], root[1]
    assert root.get("role") == "img"
    assert (title.tag, about.tag) == (f"{SVG}title", f"{SVG}desc")
    assert root.get("aria-labelledby") == f"{title.get('id')} {about.get('id')}"
    assert len(str(title.text)) > 8
    assert len(str(about.text)) > 100


@pytest.mark.parametrize("file", FILES)
def test_words_can_be_read_in_both_modes(file):
    light, dark = rules(file)
    assert light.keys() == dark.keys()
    assert not [name for name in light if light[name] == dark[name]]
    tones = {one.get("class") for one in tree(file).iter() if one.tag in {f"{SVG}text", f"{SVG}tspan"}} - {
        None
    }
    faint = [
        (tone, ground)
        for mode, tone in product((light, dark), tones)
        for ground in grounds(tone)
        if ground in mode and contrast(mode[tone], mode[ground]) < ENOUGH
    ]
    assert "ink" in tones
    assert faint == []


def test_every_tone_for_words_has_enough_contrast_wherever_it_may_stand():
    for tone in ("ink", "muted", "red", "green", "yellow", "blue", "magenta", "cyan"):
        for ground in ("page", "panel"):
            assert contrast(TONES[tone].light, TONES[ground].light) >= ENOUGH
            assert contrast(TONES[tone].dark, TONES[ground].dark) >= ENOUGH


def test_too_little_contrast_is_noticed():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") > ENOUGH > contrast("#777777", "#ffffff")


@pytest.mark.parametrize("file", ["overview.svg", "ladder.svg"])
def test_what_explains_fencer_can_be_read_on_a_phone(file):
    root = tree(file)
    sizes = [float(one.get("font-size", 99)) for one in root.iter(f"{SVG}text")]
    sizes += map(float, re.findall(r"font-size: ([\d.]+)px", kept(file)))
    assert min(sizes) * ON_A_PHONE_PX / float(root.get("width", 0)) >= SMALLEST_PX


def rules(file):
    """Return the colours of a picture's classes, in light and in dark."""
    light, _, dark = kept(file).partition("@media (prefers-color-scheme: dark)")
    return (
        {name: colour for name, _, colour in _RULE.findall(light)},
        {name: colour for name, _, colour in _RULE.findall(dark)},
    )


def grounds(tone):
    """Return what words of a tone may stand on."""
    if tone.startswith("on-"):
        return (tone.removeprefix("on-"),)
    return BADGES if tone == "page" else ("page", "panel")


def contrast(one, other):
    lights = sorted(map(light_of, (one, other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def light_of(colour):
    """Source: https://www.w3.org/TR/WCAG22/#dfn-relative-luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
