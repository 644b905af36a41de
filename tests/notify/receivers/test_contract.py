"""What every receiver does, whoever is behind it."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from fencer.wording.occasions import Occasion
from tests.notify.receivers.labs import LABS, REAL, message

WITH_ALERTMANAGER = [
    *LABS,
    *(
        pytest.param(name, marks=pytest.mark.e2e)
        for name in REAL
        if name == "real alertmanager" or os.environ.get("FENCER_NTFY")
    ),
]
OF_PEOPLE = [one for one in WITH_ALERTMANAGER if getattr(one, "values", [one])[0] != "real alertmanager"]
EVIL = "k8s-2\n\x1b[31mALL IS WELL\x1b[0m\r\nBcc: everybody@example.com\u202e<script>alert(1)</script> *b* 🔥"


@pytest.fixture
def lab(request, tmp_path):
    with ExitStack() as stack:
        yield stack.enter_context({**LABS, **REAL}[request.param](tmp_path))


@pytest.mark.parametrize("lab", WITH_ALERTMANAGER, indirect=True)
def test_an_incident_that_begins_is_told(lab):
    lab.receiver.send([message()])
    [told] = lab.told()
    assert "k8s-2 is fenced" in told.title
    assert "home/102: stopped, confirmed twice\n3 pods cleared" in told.text.replace("\r\n", "\n")


@pytest.mark.parametrize("lab", WITH_ALERTMANAGER, indirect=True)
def test_names_that_others_chose_stay_on_their_line_and_do_nothing(lab):
    lab.receiver.send(
        [message(about=EVIL, title=f"{EVIL} is fenced", text=f"guest {EVIL}\nnext", guest=EVIL)]
    )
    [told] = lab.told()
    assert "\n" not in told.title
    for text in (told.title, told.text.replace("\r\n", "\n").replace("\n", "")):
        assert text.isprintable()
        assert r"\x1b[31mALL IS WELL" in text
        assert "🔥" in text
    assert r"k8s-2\n\x1b[31mALL IS WELL\x1b[0m\r\nBcc: everybody@example.com\u202e<script>" in told.title
    assert r"\x1b[31mALL IS WELL\x1b[0m\r" in told.text


@pytest.mark.parametrize("lab", WITH_ALERTMANAGER, indirect=True)
@pytest.mark.parametrize("piece", ["x", '"', "\\", "é", "🔥", "\x00", "word "])
def test_what_is_too_long_is_cut_and_taken_all_the_same(lab, piece):
    lab.receiver.send([message(title=piece * 30_000, text=f"{piece * 500}\n" * 100, about=piece * 300)])
    [told] = lab.told()
    assert told.title.rstrip().endswith("…")
    assert "…" in told.text
    assert len(told.text.encode()) < 40_000


@pytest.mark.parametrize("lab", OF_PEOPLE, indirect=True)
def test_each_turn_of_an_incident_is_told_in_order(lab):
    lab.receiver.send([message()])
    lab.receiver.send([message(number=2, text="home/102: stopped\n2 pods left")])
    lab.receiver.send([message(number=3, occasion=Occasion.ALARM, title="k8s-2 runs again under its fence")])
    lab.receiver.send([message(number=4, occasion=Occasion.ALARM, title="k8s-2 is back", over=True)])
    titles = [told.title for told in lab.told()]
    assert [title.removeprefix("[lab] ") for title in titles] == [
        "k8s-2 is fenced",
        "k8s-2 is fenced",
        "k8s-2 runs again under its fence",
        "k8s-2 is back",
    ]


@pytest.mark.parametrize("lab", OF_PEOPLE, indirect=True)
def test_it_is_said_which_fencer_speaks(lab):
    lab.receiver.send([message()])
    [told] = lab.told()
    assert "[lab]" in told.title or told.raw["source"] == "lab"
