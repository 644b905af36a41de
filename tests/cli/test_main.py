"""The entrance: help, what is imported, errors as lines and exit codes, what terminals get to see."""

import json
import subprocess
import sys

import click
import pytest
import yaml
from click.testing import CliRunner

from fencer.cli.main import COMMANDS, cli
from fencer.core.model import Reason
from fencer.simulation.faults import What
from tests.cli.lab import Lab

HEAVY = ("jinja2", "kubernetes", "libvirt", "pydantic", "tenacity", "urllib3", "yaml")


def every_command():
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield (name,), command
        for below in getattr(command, "commands", {}):
            yield (name, below), command.commands[below]


@pytest.mark.parametrize("words", [words for words, _ in every_command()], ids=" ".join)
def test_help_of_each_command_ends_with_an_example_of_it(words):
    said = Lab().run(*words, "--help").output
    _, _, examples = said.partition("Example")
    assert f"  fencer {' '.join(words)}" in examples
    assert said.rstrip().splitlines()[-1].startswith("  ")


def test_no_command_leaves_it_to_click_to_say_that_a_configuration_or_kubeconfig_cannot_be_read():
    """It would print how the command is used, and not whom the file has to belong to."""
    params = [param for _, command in every_command() for param in command.params]
    read = [param for param in params if {"--config", "--kubeconfig"} & set(param.opts)]
    assert read
    assert not any(param.type.readable for param in read)


def test_help_names_every_exit_code():
    said = Lab().run("--help").output.partition("Exit codes:")[2]
    assert [line.split()[0] for line in said.splitlines()[1:6]] == ["0", "1", "2", "3", "130"]


@pytest.mark.parametrize("words", [[], ["config"], ["setup"]], ids=" ".join)
def test_a_list_of_commands_tells_each_whole(words):
    assert "..." not in Lab().run(*words, "--help").output.partition("Commands:")[2]


@pytest.mark.parametrize(
    "words", [["--help"], ["demo", "nic-off"], ["demo", "drain"], ["demo", "-o", "json"]], ids=" ".join
)
def test_what_a_newcomer_runs_first_imports_nothing_heavy(words):
    """A bare install without libraries that work must be enough, and it must be quick."""
    code = (
        "import sys; from fencer.cli.main import cli; "
        f"code = cli.main({words!r}, standalone_mode=False); "
        "print([name for name in sys.modules if name.partition('.')[0] in "
        f"{HEAVY!r}], code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() in {"[] None", "[] 0"}


def test_the_version_is_that_of_the_package():
    assert Lab().run("--version").output.startswith("fencer 0.")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["status", "k8s-9"], 2),
        (["status", "-c", "/nowhere.yaml"], 2),
        (["fence", "k8s-2"], 2),
        (["fence", "k8s-2", "--yes"], 1),
        (["fence", "k8s-9", "--yes"], 2),
        (["unfence", "k8s-9", "--yes"], 2),
        (["explain", "k8s-9"], 2),
        (["explain"], 2),
        (["nonsense"], 2),
        (["fence", "k8s-2", "--yes", "--timeout", "-1"], 2),
        (["fence", "k8s-2", "--yes", "--timeout", "nan"], 2),
        (["unfence", "k8s-2", "--yes", "--same-boot", ""], 2),
        (["unfence", "k8s-2", "--yes"], 0),
    ],
    ids=str,
)
def test_exit_codes(words, code):
    assert Lab().run(*words).exit_code == code


@pytest.mark.parametrize(
    "words", [["status"], ["explain", "k8s-1"], ["fence", "k8s-1", "--yes"], ["watch", "--once"]]
)
def test_a_cluster_that_does_not_answer_is_one_line_and_code_3(words):
    lab = Lab()
    lab.breaks(What.API_DOWN)
    result = lab.run(*words)
    assert result.exit_code == 3
    assert result.stderr == "fencer: the API server does not answer: connection refused; try: fencer check\n"


class Interrupted(Lab):
    """A lab where somebody presses Ctrl-C as soon as a clock is asked for."""

    def clock(self):
        raise KeyboardInterrupt


def test_an_interrupt_is_quiet_and_has_the_code_that_shells_expect():
    result = CliRunner().invoke(cli, ["status", "-c", "/etc/fencer/config.yaml"], obj=Interrupted())
    assert result.exit_code == 130
    assert "Traceback" not in result.output
    assert "Abort" not in result.output


def test_the_path_of_the_configuration_comes_from_the_environment_where_no_option_says_otherwise():
    result = CliRunner().invoke(cli, ["status"], obj=Lab(), env={"FENCER_CONFIG": "/elsewhere.yaml"})
    assert "/elsewhere.yaml" in result.stderr
    result = CliRunner().invoke(
        cli, ["status", "-c", "/etc/fencer/config.yaml"], obj=Lab(), env={"FENCER_CONFIG": "/elsewhere.yaml"}
    )
    assert result.exit_code == 0


def test_names_from_outside_cannot_drive_the_terminal():
    """A guest may call itself anything; escape codes in it are shown, not obeyed."""
    lab = Lab()
    guest = lab.simulation.guest("k8s-2")
    guest.host = "lab1\x1b[2J\nk8s-9  yes"
    lab.simulation.cluster.malformed = ("node \x1b]0;owned\x07",)
    said = lab.run("status").output
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "lab1\\x1b[2J\\nk8s-9" in said
    assert len(said.splitlines()) == 11


def test_colour_only_where_it_is_wanted():
    lab = Lab()
    coloured = CliRunner().invoke(cli, ["status"], obj=lab, color=True).output
    assert "\x1b[" in coloured
    plain = CliRunner().invoke(cli, ["status"], obj=lab, color=True, env={"NO_COLOR": "1"}).output
    assert "\x1b" not in plain
    assert "\x1b" not in lab.run("status").output
    assert click.unstyle(coloured).split() == plain.split()


@pytest.mark.parametrize("words", [["status"], ["explain", "k8s-2"], ["demo", "nic-off"]], ids=str)
def test_a_terminal_without_unicode_gets_the_same_in_other_signs(words):
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.NIC_OFF, "k8s-2")
    lab.passes(70)
    said = lab.run(*words, charset="ascii")
    assert said.exit_code == 0
    assert said.output.isascii()
    assert "its guest runs" in said.output


def test_signs_are_words_where_they_cannot_be_shown():
    lines = Lab().run("explain", "k8s-1", charset="ascii").output.splitlines()
    assert "  ok  wanted      neither paused nor excluded" in lines


@pytest.mark.parametrize("words", [["status"], ["explain", "k8s-2"], ["check"]], ids=str)
def test_what_prints_a_table_speaks_yaml_and_json_as_well(words):
    as_json = json.loads(Lab().run(*words, "-o", "json").output)
    as_yaml = yaml.safe_load(Lab().run(*words, "-o", "yaml").output)
    assert as_yaml == as_json


def test_status_as_json_has_what_a_script_needs():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(100, watched=True)
    status = json.loads(lab.run("status", "-o", "json").output)
    assert (status["mode"], status["fenced_count"], status["brake_at"]) == ("armed", 1, 1)
    nodes = {node["node"]: node for node in status["nodes"]}
    assert nodes["k8s-2"]["fenced"] is True
    assert nodes["k8s-2"]["guest"]["name"] == "k8s-2"
    assert nodes["k8s-2"]["guest_state"] == "stopped"
    assert nodes["k8s-1"]["verdict"] == "healthy"
    assert {node["reason"] for node in status["nodes"]} <= {reason.value for reason in Reason}
