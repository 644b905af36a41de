"""What a command writes becomes a picture that plays it: all of it, in columns and colours, in good time."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from tests.pictures import demo
from tests.pictures.__main__ import FOLDER
from tests.pictures.terminal import COLUMNS, ROWS, Look, Run, lines, python, typed

PLAIN, BOLD = Look("ink", bold=False), Look("ink", bold=True)
LONGEST_S = 35.0
SVG = "{http://www.w3.org/2000/svg}"


def test_a_command_is_run_in_a_terminal_of_that_width():
    code = "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size().columns)"
    assert typed(python(code), {}) == f"True {COLUMNS}\n"


def test_who_wants_no_colours_elsewhere_still_draws_them(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert typed(python("import os; print(os.environ.get('NO_COLOR'))"), {}) == "None\n"


def test_a_command_that_fails_is_no_picture():
    with pytest.raises(RuntimeError, match=r"ended with 3:\nalas"):
        typed(python("print('alas'); raise SystemExit(3)"), {})


def test_letters_keep_their_columns_and_looks():
    text = "\x1b[90m  0:30\x1b[0m  \x1b[31mworld\x1b[0m    it ends\n\x1b[1mthe end\x1b[0m\n"
    assert lines(text) == [
        [
            Run(2, "0:30", Look("muted", bold=False)),
            Run(8, "world", Look("red", bold=False)),
            Run(17, "it ends", PLAIN),
        ],
        [Run(0, "the end", BOLD)],
    ]


def test_a_longer_line_is_broken_where_a_terminal_does():
    assert lines("x" * COLUMNS + "yz") == [[Run(0, "x" * COLUMNS, PLAIN)], [Run(0, "yz", PLAIN)]]


@pytest.mark.parametrize("text", ["\x1b[2J", "\x1b[45mground\x1b[0m", "a\tb", "up\r"])
def test_what_the_picture_does_not_know_is_refused(text):
    with pytest.raises(ValueError, match="not known to the picture"):
        lines(text)


def test_the_demo_takes_half_a_minute_and_nobody_waits_for_long():
    waits = demo.waits_s(demo.recorded())
    assert 20 < sum(waits) <= LONGEST_S
    assert max(waits) <= demo.READ_S


@pytest.mark.parametrize("file", ["demo.svg", "demo-still.svg"])
def test_every_word_of_the_demo_is_in_its_picture(file):
    root = ET.parse(FOLDER / file).getroot()  # noqa: S314 - of our own making
    shown = [one.text for one in root.iter(f"{SVG}tspan")]
    assert shown == [run.text for runs in demo.recorded() for run in runs]
    assert any("double writers 0" in text for text in shown)


def test_it_ends_on_its_last_screen_and_stays_there():
    text = (FOLDER / "demo.svg").read_text()
    up = max(0, len(demo.recorded()) - ROWS) * 18
    assert f'class="roll" transform="translate(0 {-up})"' in text
    assert re.search(r"100%\{transform:translateY\((-\d+)px\)\} \}", text)[1] == str(-up)
    assert "infinite" not in text
    assert text.count('class="later"') > 20


def test_less_motion_is_the_whole_story_at_once():
    still = (FOLDER / "demo-still.svg").read_text()
    assert "animation" not in still
    moving = re.search(
        r"@media \(prefers-reduced-motion: no-preference\) \{\n(.*?)\n\}",
        (FOLDER / "demo.svg").read_text(),
        re.DOTALL,
    )
    assert moving[1].count("animation:") == 2
