"""A terminal at which the long run types: a chained paste stays whole; questions are answered, or named."""

import os

import pytest

from tests.long.step import StepFailed
from tests.long.terminal import PROMPT, Terminal

SOON_S = 20.0


@pytest.fixture
def shell(tmp_path):
    known = (f"PATH={os.environ['PATH']}", f"PS1={PROMPT}", "PS2=", "TERM=dumb")
    words = ("env", "-i", *known, "bash", "--noprofile", "--norc", "-i")
    with Terminal(words, tmp_path / "log") as shell:
        yield shell


def test_what_is_pasted_as_one_chain_is_not_read_by_its_own_questions(shell):
    shell.type('read -p "name? " name &&\necho "it is $name"')
    assert "it is x\n" in shell.wait(PROMPT, SOON_S, {"name? ": "x"})


def test_what_is_pasted_as_two_commands_is(shell):
    """Why the README's blocks are chained."""
    shell.type('read -p "name? " name\necho "it is $name"')
    assert "it is x" not in shell.wait(PROMPT, SOON_S)


def test_a_question_that_nobody_asks_is_named(shell):
    shell.type("echo done")
    with pytest.raises(StepFailed, match="nobody asked name"):
        shell.wait(PROMPT, SOON_S, {"name? ": "x"})


def test_what_does_not_come_is_told_with_the_end_of_the_screen(shell):
    shell.type("echo some; exit")
    with pytest.raises(StepFailed, match=r"(?s)'never' does not come: .*some"):
        shell.wait("never", SOON_S)


def test_what_runs_can_be_interrupted(shell):
    shell.type("sh -c 'echo begun; exec cat'")  # said by what is in the foreground then
    shell.wait("\nbegun", SOON_S)
    shell.interrupt()
    assert "^C" in shell.wait(PROMPT, SOON_S)
