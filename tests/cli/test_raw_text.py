"""Nobody drives a terminal or a shell through fencer: not by a name, a server's word, or an option."""

from __future__ import annotations

import io
import logging
import os
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fencer.cli.main import cli
from fencer.cli.render import Cell, complain, say, table, tell
from fencer.reporting.log import PlainFormatter

CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
DIRECTIONS = [*"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"]
BREAKS = [*"\u2028\u2029\ufeff\u200b\u00ad"]
NASTY = st.sampled_from([*CONTROLS, *DIRECTIONS, *BREAKS, "\udcff", "\x1b[2J", "\x1b]0;title\x07", "\x1b[8m"])
TEXTS = st.lists(NASTY | st.text(max_size=5), max_size=8).map("".join)
COLOURS = ("\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[90m")


def said(write) -> str:
    """Return what reaches a terminal, without our own colours."""
    screen = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    screen.isatty = lambda: True
    with redirect_stdout(screen), redirect_stderr(screen):
        write()
    screen.flush()
    text = screen.buffer.getvalue().decode()
    for colour in COLOURS:
        text = text.replace(colour, "")
    return text


def is_one_visible_line(text: str) -> bool:
    return text.endswith("\n") and text[:-1].isprintable()


@given(TEXTS)
def test_a_line_is_one_line_that_a_person_can_see(text):
    assert is_one_visible_line(said(lambda: say(text)))
    assert is_one_visible_line(said(lambda: say(click.style(text, fg="red", bold=True), err=True)))


@given(TEXTS)
def test_errors_paragraphs_and_tables_are_lines_that_a_person_can_see(text):
    for write in (
        lambda: complain(text),
        lambda: tell(text, bold=True),
        lambda: [say(line) for line in table([["a", Cell(text, "red")], [text, "b"]])],
    ):
        assert all(line.isprintable() for line in said(write).split("\n"))


@given(TEXTS)
def test_what_libraries_log_is_one_line_that_a_person_can_see(text):
    """urllib3 logs a header that it cannot read, with a traceback."""
    error = ValueError(text)
    known = (ValueError, error, None)
    record = logging.LogRecord("urllib3", logging.WARNING, "", 0, "header: %s", (text,), known)
    assert PlainFormatter().format(record).isprintable()


def test_colours_stay():
    assert said(lambda: say(click.style("NODE", bold=True))) == "NODE\n"


# -- what is printed for a shell --------------------------------------------------------------------------

OPTIONS = [
    ("proxmox", "--token-file", "/etc/fencer/token{}"),
    ("proxmox", "--token-id", "fencer{}@pve!agent"),
    ("proxmox", "--power", "--pool", "k8s{}"),
    ("proxmox", "--remove", "--nothing-stands", "why", "--token-file", "/etc/fencer/token{}"),
    ("kubernetes", "--namespace", "fencer{}"),
    ("kubernetes", "--admission-policy", "--namespace", "fencer{}"),
    ("kubernetes", "--remove", "--admission-policy", "--namespace", "fencer{}"),
    ("hook", "--print", "--vmid", "101", "--storage", "nas{}"),
    ("hook", "--print", "--vmid", "101{}", "--storage", "nas"),
]


@pytest.fixture
def toolbox(tmp_path) -> dict[str, str]:
    """Only such programs as say nothing and do nothing."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("pveum", "install", "grep", "mv", "rm", "umask"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    (folder / "touch").symlink_to("/usr/bin/touch")
    return {**os.environ, "PATH": str(folder)}


@pytest.mark.parametrize("option", OPTIONS, ids=" ".join)
def test_no_option_adds_a_line_to_what_a_shell_is_given(option, toolbox, tmp_path):
    """What comes out is run, as the examples say; the line would leave a mark."""
    mark = tmp_path / "mark"
    words = [word.format(f"\ntouch {mark} #") for word in option]
    result = CliRunner().invoke(cli, ["setup", *words])
    subprocess.run(["/bin/sh"], input=result.stdout, text=True, env=toolbox, check=False, capture_output=True)
    assert not mark.exists()
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize("character", [*"\x07\t\r\x1b\x7f\x85\u202e\u2066"])
def test_nothing_that_nobody_sees_is_printed_for_a_shell(character):
    words = ["setup", "proxmox", "--token-file", f"/etc/fencer/to{character}ken"]
    result = CliRunner().invoke(cli, words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--token-file: " in result.stderr
    assert character not in result.stderr


@pytest.mark.parametrize("file", ["", "-x", "token", "~/token", "./token"])
@pytest.mark.parametrize("rest", [(), ("--remove", "--nothing-stands", "why")], ids=["make", "remove"])
def test_a_file_is_named_from_the_root_because_root_will_be_elsewhere(file, rest):
    result = CliRunner().invoke(cli, ["setup", "proxmox", *rest, "--token-file", file])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is not an absolute path" in result.stderr


def test_a_name_with_what_a_shell_would_read_is_only_a_name(toolbox, tmp_path):
    mark = tmp_path / "mark"
    file = Path(f"/etc/fencer/$(touch {mark})'`touch {mark}`\"; touch {mark} #")
    result = CliRunner().invoke(cli, ["setup", "proxmox", "--token-file", str(file)])
    assert result.exit_code == 0
    subprocess.run(["/bin/sh"], input=result.stdout, text=True, env=toolbox, check=False, capture_output=True)
    assert not mark.exists()
