"""``fencer setup config`` and ``guest``: what comes with fencer, printed, or written over no file."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.cli.setup_shell import FILES
from fencer.guest.build import build
from fencer.setup import configs
from fencer.setup.files import packaged

CHECKOUT = Path(__file__).parents[2]
EXAMPLES = sorted(file.stem for file in (CHECKOUT / "config/examples").iterdir())
WHEEL = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]


def run(*words):
    return CliRunner().invoke(cli, ["setup", *map(str, words)], prog_name="fencer")


def test_it_prints_the_whole_one():
    assert run("config").stdout.rstrip() == (CHECKOUT / "config/fencer.yaml").read_text().rstrip()


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_prints_each_example(name):
    assert run("config", "--example", name).stdout.rstrip() == configs.text(name).rstrip()


def test_it_lists_all_examples_each_with_what_it_is_for():
    lines = run("config", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == EXAMPLES
    assert all(len(line.split()) > 2 for line in lines)


def test_a_name_that_is_none_is_told_the_nearest():
    result = run("config", "--example", "proxmox-clustr")
    assert result.exit_code == 2
    assert "did you mean proxmox-cluster?" in result.stderr


def test_it_writes_a_new_file_and_never_over_an_old_one(tmp_path):
    file = tmp_path / "config.yaml"
    for _ in range(2):
        result = run("config", "--example", "proxmox-cluster", "--write", file)
        assert (result.exit_code, file.read_text()) == (0, configs.text("proxmox-cluster"))
    file.write_text("mine")
    result = run("config", "--write", file)
    assert (result.exit_code, file.read_text()) == (2, "mine")
    assert "exists already, and is left alone" in result.stderr


def test_a_list_is_no_file(tmp_path):
    assert run("config", "--list", "--write", tmp_path / "x").exit_code == 2


# -- guest --------------------------------------------------------------------------------------------------


def test_the_guests_program_is_written_to_be_run(tmp_path):
    file = tmp_path / "fencer-guest"
    assert run("guest", "--write", file).stdout.startswith(f"{file}: written\n")
    assert run("guest", "--write", file).stdout.startswith(f"{file}: is there already\n")
    assert file.read_bytes() == build()
    done = subprocess.run([file, "--help"], capture_output=True, text=True, check=True)
    assert "drain" in done.stdout


def test_another_file_is_replaced_only_where_that_is_meant(tmp_path):
    file = tmp_path / "fencer-guest"
    file.write_text("an older one")
    refused = run("guest", "--write", file)
    assert (refused.exit_code, file.read_text()) == (2, "an older one")
    assert "--replace replaces it" in refused.stderr
    assert run("guest", "--write", file, "--replace").exit_code == 0
    assert file.read_bytes() == build()


def test_into_a_pipe_come_its_bytes():
    words = [sys.executable, "-m", "fencer.cli.main", "setup", "guest", "--write", "-"]
    assert subprocess.run(words, capture_output=True, check=True, cwd=CHECKOUT).stdout == build()


def test_without_a_file_it_says_what_to_name():
    result = run("guest")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--write" in result.stderr


# -- shells -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("what", "file"), FILES.items())
def test_it_prints_what_makes_it_handy(what, file):
    assert run("shell", what).stdout.rstrip() == (CHECKOUT / "config" / file).read_text().rstrip()


# -- what the wheel carries ----------------------------------------------------------------------------------

ASKED_FOR = [
    *FILES.values(),
    "fencer.yaml",
    *(f"examples/{name}.yaml" for name in EXAMPLES),
    "libvirt/qemu-hook",
    "proxmox/fencer-hook",
    "systemd/fencer.service",
    "systemd/fencer@.service",
]


@pytest.mark.parametrize("name", ASKED_FOR)
def test_the_wheel_has_what_a_checkout_has(name):
    """Under the name by which setup finds it; a folder brings all that is in it."""
    inside = {target: source for source, target in WHEEL["force-include"].items()}
    wanted = Path("fencer/setup/files") / name
    [target] = [one for one in map(str, (wanted, *wanted.parents)) if one in inside]
    source = CHECKOUT / inside[target] / wanted.relative_to(target)
    assert source.read_bytes() == packaged(name)


def test_what_is_put_into_the_wheel_exists():
    assert [source for source in WHEEL["force-include"] if not (CHECKOUT / source).exists()] == []
