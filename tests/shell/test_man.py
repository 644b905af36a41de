"""Manual pages: one for each command, whole, and the same bytes each time."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from fencer.cli.main import cli

CHECKOUT = Path(__file__).parents[2]
PLUGINS = ("kubectl-fencer.1", "kubectl_complete-fencer.1")
DAY = {"SOURCE_DATE_EPOCH": "1700000000"}


def built(folder, **environment):
    words = [sys.executable, "config/man/build.py", folder]
    subprocess.run(words, cwd=CHECKOUT, env=os.environ | DAY | environment, check=True)
    return {file.name: file.read_text() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return built(tmp_path_factory.mktemp("man"))


def every_command(command=cli, parent=None, name="fencer"):
    context = click.Context(command, parent, name)
    yield context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            yield from every_command(command.get_command(context, below), context, below)


def read(page):
    """Return a page as its reader sees its letters."""
    page = re.sub(r"\\\[u([0-9A-F]{4,6})\]", lambda found: chr(int(found[1], 16)), page)
    return (
        page.replace("\\&", "")
        .replace("\\-", "-")
        .replace("\\fB", "")
        .replace("\\fP", "")
        .replace("\\e", "\\")
    )


def test_each_command_has_a_page_and_no_page_is_of_another(pages):
    commands = {f"{each.command_path.replace(' ', '-')}.1" for each in every_command()}
    assert set(pages) == commands | set(PLUGINS)


def test_the_plugins_of_kubectl_are_fencer_by_another_name(pages):
    assert {pages[name] for name in PLUGINS} == {".so man1/fencer.1\n"}
    names = {Path(one).stem for one in PLUGINS}
    assert {file.name for file in (CHECKOUT / "config/kubectl").iterdir()} == names


def test_two_runs_give_the_same_bytes_wherever_they_run(pages, tmp_path):
    assert built(tmp_path / "new" / "folder", COLUMNS="40", TERM="dumb", FENCER_CONFIG="/else.yaml") == pages


def test_its_date_is_the_one_that_is_given(pages):
    assert all('"2023-11-14"' in page for name, page in pages.items() if name not in PLUGINS)


def test_what_help_says_is_in_the_page(pages):
    for each in every_command():
        page = read(pages[f"{each.command_path.replace(' ', '-')}.1"])
        words = " ".join(page.split())
        for option in each.command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.opts[-1] in page
                assert " ".join((option.help or "").split()) in words
        for line in (each.command.epilog or "").replace("\b", "").splitlines():
            assert line in page or line.endswith(":"), f"{each.command_path}: {line}"
        for paragraph in (each.command.help or "").split("\n\n"):
            assert " ".join(paragraph.replace("\b", "").split()) in words


def test_no_letter_means_anything_to_roff_that_the_program_did_not_mean(pages):
    for name, page in pages.items():
        assert page.isascii(), name
        requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
        assert requests <= {".TH", ".SH", ".PP", ".TP", ".B", ".nf", ".fi", ".nh", ".ad", ".so"}, name
        assert not re.search(r"\\(?!e|-|&|fB|fP|\[u)", page), name
        assert "\b" not in page, name


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here: apt-get install groff")
def test_groff_has_nothing_against_them(pages, tmp_path):
    names = sorted(set(pages) - set(PLUGINS))  # they lead to where pages are installed
    for name in names:
        (tmp_path / name).write_text(pages[name])
    words = ["groff", "-man", "-Tutf8", "-ww", *names]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "See fencer" not in done.stdout
