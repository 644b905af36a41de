"""What fails again and again is a warning now and then, and no stream; nothing else is held back."""

import pytest

from fencer.reporting.repeats import Repeats


class Scene:
    """Repeats, and time that only the test moves on."""

    def __init__(self):
        self.now_s = 0.0
        self.repeats = Repeats(lambda: self.now_s)

    def says(self, *texts, who="k8s-2", times=1, every_s=2.0):
        """Say these in turn, so often; return what is told."""
        told = []
        for text in texts * times:
            told.append(self.repeats.told(who, text))
            self.now_s += every_s
        return [text for text in told if text is not None]


@pytest.fixture
def scene():
    return Scene()


def test_what_is_said_in_each_pass_is_told_more_and_more_seldom_and_how_often_it_was(scene):
    assert scene.says("403", times=211) == [
        "403",
        "403 (said 29 times more since it was told)",
        "403 (said 59 times more since it was told)",
        "403 (said 119 times more since it was told)",
    ]
    assert len(scene.says("403", times=43200)) < 28  # a day


def test_other_numbers_are_no_other_sentence(scene):
    assert (
        len(scene.says(*(f"no answer for {number} s, request 6f1c{number:x}" for number in range(29)))) == 1
    )


def test_another_sentence_is_told_at_once_and_so_is_one_about_somebody_else(scene):
    assert scene.says("403", "500", "403") == ["403", "500"]
    assert scene.says("403", who="k8s-3") == ["403"]


def test_what_is_said_again_long_after_is_news(scene):
    scene.says("403", times=3)
    scene.now_s += 1000.0
    assert scene.says("403") == ["403"]


def test_what_was_said_seldom_is_told_as_it_is(scene):
    assert scene.says("403", times=2, every_s=61.0) == ["403", "403"]


def test_it_does_not_grow_for_ever(scene):
    for number in range(3000):
        scene.says("403", who=f"k8s-{number}", every_s=0.0)
    assert scene.says("403", who="k8s-0", every_s=0.0) == ["403"]  # forgotten meanwhile: told once more


def test_what_begins_again_after_it_was_over_is_news(scene):
    assert scene.says("403", times=3) == ["403"]
    scene.repeats.forget()
    assert scene.says("403", times=3) == ["403"]
