"""TAB: commands, options, and names from the cluster and the journal; and never a word of complaint."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class
from click.testing import CliRunner

from fencer.cli import completing
from fencer.cli.main import cli
from fencer.errors import ClusterUnreachable
from fencer.ports import Nodes
from fencer.simulation.faults import What
from fencer.simulation.scenarios import SCENARIOS
from tests.cli.lab import Lab

CHECKOUT = Path(__file__).parents[2]
FILES = {"bash": "fencer.bash", "zsh": "_fencer", "fish": "fencer.fish"}
NODES = ["k8s-1", "k8s-2", "k8s-3"]


def completed(lab, line, shell="bash"):
    """Return the values for a line that ends where the cursor is, and all that was said on stderr."""
    words = shlex.split(line)
    if line.endswith(" "):
        words.append("")
    asks = {"COMP_WORDS": shlex.join(words), "COMP_CWORD": str(len(words) - 1)}
    runner = CliRunner(env={**asks, completing.ASKED_BY: f"{shell}_complete"})
    done = runner.invoke(cli, [], obj=lab, prog_name="fencer")
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    return [one.partition(",")[2] for one in done.stdout.splitlines() if one]


@pytest.mark.parametrize("shell", FILES)
def test_the_files_are_what_the_installed_click_makes(shell):
    """After an update of click: `_FENCER_COMPLETE=bash_source fencer > config/completions/fencer.bash`."""
    made = get_completion_class(shell)(cli, {}, "fencer", completing.ASKED_BY).source()
    assert (CHECKOUT / "config/completions" / FILES[shell]).read_text().rstrip() == made.rstrip()


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("fencer st", ["status", "start"]),
        ("fencer setup v", ["vagrant"]),
        ("fencer fence --dry", ["--dry-run"]),
        ("fencer status -o j", ["json"]),
        ("fencer nonsense st", ["status", "start"]),
        ("fencer status k8s-1 k8s-2 ", []),
    ],
)
def test_commands_and_options(line, values):
    assert completed(Lab(), line)[: len(values) or None] == values


@pytest.mark.parametrize(
    "line",
    [
        *(f"fencer {one} " for one in ("status", "explain", "fence", "unfence", "plan", "drain", "shutdown")),
        *(f"fencer {one} " for one in ("start", "drill", "resume")),
        "fencer pause --why storage ",
        "fencer history --node ",
        "fencer status -o json ",
    ],
)
def test_nodes_come_from_the_cluster(line):
    assert completed(Lab(), line) == NODES


def test_only_what_begins_so_and_is_not_there_yet():
    assert completed(Lab(nodes=12), "fencer explain k8s-1") == ["k8s-1", "k8s-10", "k8s-11", "k8s-12"]
    assert completed(Lab(), "fencer drain k8s-2 ") == ["k8s-1", "k8s-3"]


def test_a_pause_asks_with_the_persons_own_kubeconfig():
    lab, asked = Lab(), []
    led = lab.cluster
    lab.cluster = lambda config: asked.append(config.kubernetes) or led(config)
    assert completed(lab, "fencer pause --kubeconfig /mine --context lab ") == NODES
    [settings] = asked
    assert (str(settings.kubeconfig), settings.context, settings.borrowed) == ("/mine", "lab", True)


class Odd:
    """A cluster with names that a shell would take for something else."""

    def __init__(self, cluster, names):
        self.cluster, self.names = cluster, names

    def list_nodes(self):
        first, *_ = self.cluster.list_nodes().views
        return Nodes(tuple(_named(first, name) for name in self.names))


def _named(view, name):
    return replace(view, name=name)


def test_names_that_could_mean_more_to_a_shell_are_no_values():
    lab = Lab()
    cluster = Odd(
        lab.simulation.cluster, ["$(reboot)", "a b", "a\nplain,b", "--yes", "*", "", "x;y", "k8s.de-1"]
    )
    lab.cluster = lambda _config: cluster
    assert completed(lab, "fencer explain ") == ["k8s.de-1"]


@pytest.mark.parametrize("words", ["status", "status -c /nowhere.yaml", "history", "report", "resume"])
def test_nobody_there_is_no_value_and_no_word(words):
    lab = Lab()
    lab.breaks(What.API_DOWN)
    assert completed(lab, f"fencer {words} ") == []


def test_one_who_does_not_answer_is_waited_for_shortly():
    asked = []

    class Hurried(Lab):
        def asker(self, _clock, patience_s):
            class Asker:
                def ask(self, _endpoint, _call, deadline_s):
                    asked.append((patience_s, deadline_s))
                    raise ClusterUnreachable("late")

            return Asker()

    assert completed(Hurried(), "fencer status ") == []
    assert asked == [(2.0, 2.0)]


def test_hosts_come_from_hypervisors_that_one_call_reaches():
    lab = Lab()
    lab.uri = "qemu:///system"
    found = completed(lab, "fencer status --host ")
    assert found
    assert completed(lab, f"fencer drain --host {found[0][0]}") == [
        one for one in found if one[0] == found[0][0]
    ]
    where = {guest.guest.host for port in lab.simulation.hypervisors.values() for guest in port.sweep()}
    assert where <= {one.rpartition("/")[2] for one in found}


def test_no_ssh_is_started_for_a_host():
    """It could ask for a password in the middle of the line."""
    lab = Lab()
    lab.hypervisor = None
    assert completed(lab, "fencer status --host ") == []


def test_scenarios():
    assert completed(Lab(), "fencer demo ") == list(SCENARIOS)
    assert completed(Lab(), "fencer demo nic") == ["nic-off"]


def test_incidents_newest_first_each_with_its_node(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    for node in ("k8s-2", "k8s-3"):
        lab.breaks(What.PAUSE, node)
        lab.passes(120, watched=True)
    told = json.loads(lab.run("history", "--all", "-o", "json").stdout)
    known = [one["id"] for one in sorted(told, key=lambda one: one["last_at"], reverse=True)]
    assert len(known) > 1
    for command in ("history", "report", "replay"):
        # What has not become an incident yet may come as well.
        assert [one for one in completed(lab, f"fencer {command} ") if one in known] == known
        assert completed(lab, f"fencer {command} {known[0][:6]}") == known[:1]


def test_zsh_and_fish_tell_what_a_value_is(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    lab.breaks(What.PAUSE, "k8s-2")
    lab.passes(120, watched=True)
    asks = {"COMP_WORDS": "fencer history ", "COMP_CWORD": "2", completing.ASKED_BY: "zsh_complete"}
    said = CliRunner(env=asks).invoke(cli, [], obj=lab, prog_name="fencer").stdout
    assert "\nk8s-2, 2026-01-01" in said


# -- as shells do it ----------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path):
    """A folder with a `fencer` that is this one."""
    file = tmp_path / "fencer"
    file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fencer.cli.main "$@"\n')
    file.chmod(0o755)
    return tmp_path


def test_a_bug_shows_no_traceback(program):
    asks = {"COMP_WORDS": "fencer st", "COMP_CWORD": "no number", completing.ASKED_BY: "bash_complete"}
    done = subprocess.run(
        [program / "fencer"], env=os.environ | asks, cwd=CHECKOUT, capture_output=True, check=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here: apt-get install bash")
@pytest.mark.parametrize(
    ("line", "replies"), [("fencer unf", "unfence"), ("fencer demo nic", "nic-off"), ("fencer status k", "")]
)
def test_in_bash(program, line, replies):
    words = shlex.split(line)
    script = f"""
        source config/completions/fencer.bash
        COMP_WORDS=({line}) COMP_CWORD={len(words) - 1}
        _fencer_completion fencer {words[-1]} {words[-2]}
        printf %s "${{COMPREPLY[*]}}"
        complete -p fencer >/dev/null
    """
    path = f"{program}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=CHECKOUT,
        env=os.environ | {"PATH": path, "FENCER_CONFIG": "/nowhere.yaml"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == (replies, "")


@pytest.mark.parametrize("line", ["fencer st", "fencer status --o"])
def test_commands_and_options_are_completed_without_anything_heavy(line):
    code = (
        "import sys; from fencer.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: print([name for name in sys.modules if name.partition('.')[0] in "
        "('kubernetes', 'libvirt', 'pydantic', 'yaml', 'requests')], file=sys.stdout)"
    )
    last = len(shlex.split(line)) - 1
    asks = {"COMP_WORDS": line, "COMP_CWORD": str(last), completing.ASKED_BY: "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | asks,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"
