"""The living line: written anew in place on a terminal, never anywhere else, and never left behind."""

import logging
import os
import subprocess
import sys
from contextlib import redirect_stdout

import pytest

from fencer.cli import living
from fencer.cli.render import say

WIPE = "\r\x1b[K"


class Screen:
    """A stdout that remembers, and may be a terminal."""

    def __init__(self, *, terminal=True, encoding="utf-8"):
        self.said, self.terminal, self.encoding = "", terminal, encoding

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.said += text
        return len(text)

    def flush(self):
        """Nothing is kept back."""


@pytest.fixture
def screen(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    yield Screen()
    living.clear()


def told(screen, *texts):
    """Show these, one after the other, on the living line."""
    with redirect_stdout(screen):
        for text in texts:
            living.show(text)


def said(screen, *texts):
    """Say these, each in an ordinary line."""
    with redirect_stdout(screen):
        for text in texts:
            say(text)


def test_it_is_written_anew_in_place_and_only_if_it_says_something_else(screen):
    told(screen, "1 of 2 gone", "1 of 2 gone", "2 of 2 gone")
    assert screen.said == f"{WIPE}  1 of 2 gone{WIPE}  2 of 2 gone"


def test_it_is_gone_before_an_ordinary_line(screen):
    told(screen, "1 of 2 gone")
    said(screen, "  evicted", "  drained")
    assert screen.said == f"{WIPE}  1 of 2 gone{WIPE}  evicted\n  drained\n"


def test_it_is_gone_before_a_line_of_the_log(screen, capsys):
    told(screen, "1 of 2 gone")
    with redirect_stdout(screen):
        living.LogHandler().emit(logging.makeLogRecord({"msg": "lab is slow"}))
    assert screen.said.endswith(f"1 of 2 gone{WIPE}")
    assert "lab is slow" in capsys.readouterr().err


def test_it_never_wraps_because_a_wrapped_line_could_not_be_taken_back(screen):
    told(screen, "x" * 200)
    assert screen.said == f"{WIPE}  {'x' * 37}"


def test_names_from_outside_do_not_drive_the_terminal(screen):
    told(screen, "1 waits for a\x1b[2J")
    assert screen.said == f"{WIPE}  1 waits for a\\x1b[2J"


def test_what_the_terminal_cannot_show_does_not_end_the_command(screen):
    screen.encoding = "ascii"
    told(screen, "1 waits for größe")
    assert screen.said == f"{WIPE}  1 waits for gr??e"


@pytest.mark.parametrize(("terminal", "term"), [(False, "xterm"), (True, "dumb"), (True, "")])
def test_there_is_none_in_a_pipe_or_on_a_dumb_terminal(screen, monkeypatch, terminal, term):
    screen.terminal = terminal
    monkeypatch.setenv("TERM", term)
    told(screen, "1 of 2 gone")
    said(screen, "drained")
    assert screen.said == "drained\n"


def test_a_terminal_that_is_gone_ends_nothing():
    ours, theirs = os.openpty()
    code = (
        "import sys; from fencer.cli import living; sys.stdin.readline()\n"
        "living.show('1 of 2 gone'); living.clear(); sys.stderr.write('went on')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.close(theirs)
        os.close(ours)
        _, words = process.communicate(b"\n", timeout=60)
    assert words.startswith(b"went on")
