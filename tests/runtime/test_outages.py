"""What is told of those who give no answer: what it means, each cause, and its end; never a stream."""

from types import SimpleNamespace

import pytest

from fencer.runtime.outages import Outages
from tests.runtime.stagehand import Notebook

API = "kubernetes"
HANGS = "no answer within 2 s"


class Scene:
    """Outages, and time that only the test moves on: a look every five seconds."""

    def __init__(self):
        self.now_s = 0.0
        self.notes = Notebook()
        world = SimpleNamespace(reporter=self.notes, clock=SimpleNamespace(now_s=lambda: self.now_s))
        self.outages = Outages(world, 5.0)

    def look(self, *whys, name=API, times=1):
        """Look so often at one who fails in one of these ways after the other; none: it answers."""
        for why in (whys or (None,)) * times:
            self.outages.look({} if why is None else {name: f"{name}: {why}"}, {name})
            self.now_s += 5.0

    @property
    def said(self):
        return [text for text, _ in self.notes.said_]


@pytest.fixture
def scene():
    return Scene()


def test_an_outage_is_told_with_what_it_means_and_its_end_with_how_long_it_was(scene):
    scene.look("connection refused", times=15)
    scene.look()
    assert scene.notes.said_ == [
        (
            "kubernetes: no usable answer: connection refused; nothing is fenced until it answers; "
            "asked again every 5 s",
            True,
        ),
        ("kubernetes: answers again after 1m15s", False),
    ]


def test_of_an_endpoint_it_means_that_its_nodes_are_not_fenced(scene):
    scene.look("permission denied", name="lab", times=3)
    scene.look(name="lab")
    assert scene.said == [
        "lab: no usable answer: permission denied; its nodes are not fenced meanwhile; asked again every 5 s",
        "lab: answers again after 15 s",
    ]


def test_one_late_answer_of_an_endpoint_is_no_outage(scene):
    """A sweep that takes 3 s is late in every second pass, and the pass in between has its answer."""
    for _ in range(50):
        scene.look(HANGS, name="lab")
        scene.look(name="lab")
    assert scene.said == []


def test_one_that_hangs_is_one_cause_however_long_and_however_often_it_is_asked(scene):
    hangs = [HANGS, HANGS, "no answer within 10 s", "3 calls hang there; it is not asked until one returns"]
    scene.look(*hangs, name="lab", times=50)
    scene.look(name="lab")
    assert scene.said == [
        "lab: no answer within 2 s; its nodes are not fenced meanwhile; asked again every 5 s",
        "lab: answers again after 16m40s",
    ]


def test_another_cause_is_told_a_minute_later(scene):
    scene.look("401 Unauthorized")
    scene.look("500 boom", HANGS, HANGS, times=10)
    assert scene.said[1:] == [
        "kubernetes: still no usable answer, for 1m00s now: 500 boom, then no answer within 2 s"
    ]
    scene.look()
    assert scene.said[-1] == "kubernetes: answers again after 2m35s; meanwhile: 500 boom, then " + HANGS


def test_a_cause_that_came_a_moment_before_the_end_is_told_with_the_end(scene):
    scene.look("401 Unauthorized", "500 boom", None)
    assert scene.said[1:] == ["kubernetes: answers again after 10 s; meanwhile: 500 boom"]


def test_what_differs_in_numbers_alone_is_no_other_cause(scene):
    for number in range(600):
        scene.look(f"nothing was told for {number} s: request 6f1c8c{number:02x}")
    assert len(scene.said) == 1


def test_two_causes_in_turn_are_told_more_and_more_seldom(scene):
    """Two servers that fail in two ways, for a day."""
    scene.look("401 Unauthorized", HANGS, times=8640)
    assert len(scene.said) < 32
    assert scene.said[-1].endswith(("401 Unauthorized, then " + HANGS, HANGS + ", then 401 Unauthorized"))


def test_many_causes_are_told_in_a_line_of_some(scene):
    scene.look("first", *(f"cause {chr(97 + number)}" for number in range(26)))
    assert scene.said[1].endswith(": cause i, then cause j, then cause k, then cause l")


def test_the_next_outage_is_told_anew(scene):
    scene.look("refused", None, "refused", None)
    assert len(scene.said) == 4
