"""Every command that README and docs/ show is typed by a test, or listed as one that none can type."""

import re
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from fencer.cli.main import cli
from tests.cli.transcript import Replay
from tests.docs.blocks import lines, spoken, typed
from tests.docs.citations import ROOT
from tests.support.debs import program

LIST = Path(__file__).with_name("commands.txt")
_SECTION = re.compile(r"^\[(lab|jq|shell|test|not)(?: ([^\]]+))?\]$")


@dataclass
class Section:
    """Lines that are held alike.

    Attributes:
        kind: lab, jq, shell, test or not.
        about: The exit code, the test, or the reason.
        lines: What stands there: lines to type, and what happens between them.
    """

    kind: str
    about: str
    lines: list[str] = field(default_factory=list)

    def shown(self):
        """Return the lines as the pages show them."""
        return [line.partition(" => ")[0] for line in self.lines if not line.startswith("> ")]

    def meant(self):
        """Return the lines as they are typed here, with what happens between them."""
        return [line.partition(" => ")[2] or line for line in self.lines]


def sections(text):
    found = []
    for line in text.split("\n\n", 1)[1].splitlines():
        if heading := _SECTION.match(line):
            found.append(Section(heading[1], heading[2] or ""))
        elif line and found:
            found[-1].lines.append(line)
    return [one for one in found if one.lines]


ALL = sections(LIST.read_text(encoding="utf-8").partition("What stands behind =>")[2])


def of(kind):
    return [pytest.param(one, id=f"{one.about} {one.shown()[0]}".strip()) for one in ALL if one.kind == kind]


def test_each_command_that_a_page_shows_is_in_the_list():
    listed = {line for one in ALL for line in one.shown()}
    assert sorted({f"{one.page}: {one.line}" for one in typed() if one.line not in listed}) == []


def test_nothing_is_listed_that_no_page_shows():
    shown = {one.line for one in typed()}
    assert [line for one in ALL for line in one.shown() if line not in shown] == []


@pytest.mark.parametrize("section", of("lab"))
def test_it_does_what_it_is_for_in_the_simulated_cluster(section):
    said = replayed(section.meant())
    assert [(line, text) for line, text, code in said if code != (section.about or "0")] == []
    assert [line for line, _, _ in said] == [line for line in section.meant() if not line.startswith("> ")]


@pytest.mark.e2e
@pytest.mark.parametrize("section", of("jq"))
def test_what_it_says_is_what_its_reader_expects(section):
    jq = program("gojq", "usr/bin/gojq")
    happens = [line for line in section.lines if line.startswith("> ")]
    for line in section.shown():
        command, _, reader = line.partition(" | jq ")
        [(_, text, code)] = replayed([*happens, command])
        done = subprocess.run(
            [jq, *shlex.split(reader)], input=text, capture_output=True, text=True, check=False
        )
        assert (code, done.returncode, done.stderr) == ("0", 0, ""), (line, done.stdout)


def replayed(lines):
    """Return each command with what it said and its exit code."""
    text = "\n".join(line if line.startswith("> ") else f"$ {line}\n[0]" for line in lines)
    return re.findall(r"(?ms)^\$ (.*?)\n(.*?)^\[(\d+)\]$", Replay().replay(text))


@pytest.mark.parametrize("section", of("test"))
def test_what_types_it_is_there(section):
    path, _, name = section.about.partition("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    assert not name or f"def {name}(" in text
    assert [line for line in section.shown() if any(word not in text for word in heart(line))] == []


def heart(line):
    """Return the words of a line without which nobody types it: the program and what it is to do."""
    words = [word.removeprefix("./") for word in line.split("|")[0].split() if not word.startswith("-")]
    over = words[0] in {"ssh", "scp", "sudo"}
    return [word for word in words[over:] if re.fullmatch(r"[A-Za-z][A-Za-z-]*", word)][:2]


@pytest.mark.parametrize("command", sorted({one.line for one in spoken()}))
def test_a_command_within_a_sentence_has_these_options(command):
    place, options = cli, []
    for word in re.split(r"[\s|]+", re.sub(r"[\[\]]", " ", command))[1:]:
        if isinstance(place, click.Group):
            below = place.get_command(click.Context(place), word)
            assert below is not None or not re.fullmatch("[a-z][a-z-]*", word), word
            place = below or place
        options += re.findall(r"^(--[a-z][a-z-]*)", word)
    known = {name for one in place.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
    assert [name for name in options if name not in known] == []


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("text\n\n    fencer status   # a comment\n    out\n", ["fencer status"]),
        ("    $ fencer history\n    fencer 0.1\n", ["fencer history"]),
        ("    kubectl annotate node a \\\n        b-\n", ["kubectl annotate node a b-"]),
        ("```sh\nfencer check\n```\n", ["fencer check"]),
        ("    ./dev deb &&\n    fencer init\n", ["./dev deb", "fencer init"]),
        ("    mode: armed\n", []),
    ],
)
def test_what_a_page_shows_is_found(page, shown):
    assert [*lines(page)] == shown
