"""What is waited for is said on a terminal's stderr after a second, and leaves nothing behind."""

import io
import threading
from contextlib import redirect_stderr

import pytest

from fencer.cli import asking, living
from fencer.cli.main import cli
from fencer.cli.render import complain
from tests.cli.lab import Lab
from tests.cli.screen import Screen


def turned(*answers, now_s=lambda: 7.0, beside=lambda: None):
    """Let it turn until an answer is yes, and return what stands on the terminal each time."""
    left = iter(answers)

    def over(_seconds):
        beside()
        return next(left)

    with redirect_stderr(Screen()) as screen:
        asking.spin(("api", "home"), now_s, over)
    return screen.getvalue().split(living.WIPE)


def test_who_is_answered_at_once_is_told_nothing():
    assert turned(True) == [""]


def test_it_turns_by_the_clock_and_goes_away():
    times = iter([7.0, 8.0, 8.2, 8.7])
    said = turned(False, False, False, True, now_s=lambda: next(times))
    assert said == ["", "| asking api, home: 1 s", "/ asking api, home: 1 s", "- asking api, home: 2 s", ""]


def test_what_is_said_meanwhile_stands_on_a_line_of_its_own():
    said = turned(False, False, True, beside=lambda: complain("lab: no answer"))
    assert said[-3:] == ["/ asking api, home: 0 s", "fencer: lab: no answer\n", ""]


class Slow(Lab):
    """A lab whose API answers only once a person was told that it is asked."""

    def __init__(self):
        super().__init__()
        self.told = threading.Event()
        list_nodes, survey = self.simulation.cluster.nodes, self.simulation.surveyor.survey
        self.simulation.cluster.nodes = lambda: self._late(list_nodes)
        self.simulation.surveyor.survey = lambda: self._late(survey)

    def _late(self, call):
        assert self.told.wait(30), "nothing was said"
        return call()


class Watched(Screen):
    """A stderr that says when something is on it."""

    def __init__(self, told):
        super().__init__()
        self._told = told

    def write(self, text):
        if "asking" in text:
            self._told.set()
        return super().write(text)


@pytest.mark.parametrize(
    "words", [["status"], ["explain", "k8s-1"], ["check"], ["plan", "k8s-1"]], ids=" ".join
)
def test_a_slow_answer_is_waited_for_with_what_is_asked(words, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    lab = Slow()
    with redirect_stderr(Watched(lab.told)) as screen, pytest.raises(SystemExit):
        cli.main(words, obj=lab, prog_name="fencer")
    assert "| asking kubernetes" in screen.getvalue()
    assert screen.getvalue().endswith(living.WIPE)
    assert "asking" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("CI", "true")])
def test_where_nobody_looks_no_thread_is_started(name, value, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv(name, value)
    with redirect_stderr(Screen()), asking.asking(("api",), lambda: 0.0):
        assert "asking" not in {thread.name for thread in threading.enumerate()}


def test_nor_in_a_pipe(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    with redirect_stderr(io.StringIO()), asking.asking(("api",), lambda: 0.0):
        assert "asking" not in {thread.name for thread in threading.enumerate()}


def test_ctrl_c_leaves_a_clean_line_and_no_thread(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    told = threading.Event()

    def press():
        with asking.asking(("api",), lambda: 0.0):
            assert told.wait(30)
            raise KeyboardInterrupt

    with redirect_stderr(Watched(told)) as screen, pytest.raises(KeyboardInterrupt):
        press()
    assert screen.getvalue().endswith(living.WIPE)
    assert "asking" not in {thread.name for thread in threading.enumerate()}
