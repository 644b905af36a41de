"""The README's quick starts can be pasted as they stand: `./dev long quickstart` pastes each of them."""

import re
import shlex
import subprocess

import pytest

from fencer.cli.main import cli
from tests.docs.quick_starts import NAMES, README, block
from tests.long.quickstart import ALL

PLACEHOLDER = re.compile(
    r"…|\.\.\.|<[^>&]+>|\b(?!FENCER_CONFIG=)[A-Z][A-Z_]{2,}\b|\b\d{1,3}(\.\d{1,3}){3}\b|\bexample\b|:\d{2,}"
)
"""What a person would have to replace: capitals, angle brackets, dots, addresses, ports."""


def commands(text):
    """Return each command's words, without what leads to it: variables, sudo, `./dev fencer`."""
    for part in re.split(r"&&|\n", text):
        words = shlex.split(part)
        if words and words[0] != "export":
            words = words[1:] if words[0] == "sudo" else words
            yield words[1:] if words[:2] == ["./dev", "fencer"] else words


def test_those_that_the_readme_has_are_those_that_are_typed():
    section = README.read_text().partition("\n## Quick starts\n")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"(?m)^### (.*)$", section)) == NAMES == tuple(ALL)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_in_it_has_to_be_replaced_first(name):
    assert not PLACEHOLDER.findall(block(name))
    assert 3 <= len(block(name).splitlines()) <= 6


@pytest.mark.parametrize("text", ["fencer init --from root@192.168.1.21", "ssh NODE", "rm <file>", "a …"])
def test_what_has_to_be_replaced_is_found(text):
    assert PLACEHOLDER.search(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_paste_is_one_command_to_the_shell(name):
    """Else apt, sudo or init would read the next line as the answer to a question."""
    lines = [line for line in block(name).splitlines() if not line.startswith("export ")]
    assert [line.endswith(" &&") for line in lines] == [True] * (len(lines) - 1) + [False]
    checked = subprocess.run(["bash", "-n"], input=block(name), text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_every_command_of_it_is_there(name):
    verbs = re.findall(r"(?m)^([a-z]+)\)$", (README.parent / "dev").read_text())
    for program, *words in commands(block(name)):
        if program == "./dev":
            assert words[0] in verbs
        elif program == "fencer":
            command = cli.get_command(None, words[0])
            assert command is not None
            options = {option for param in command.params for option in param.opts}
            assert {word for word in words if word.startswith("-")} <= options
        else:
            assert (program, *words[:2]) == ("apt-get", "install", "-y")  # which asks nothing
