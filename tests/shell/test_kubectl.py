"""`kubectl fencer`: what kubectl finds by name, and what it asks when TAB is pressed."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "config/kubectl"


@pytest.fixture
def run(tmp_path):
    """Run a program with these two on PATH, and a `fencer` that is this one."""
    file = tmp_path / "fencer"
    file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fencer.cli.main "$@"\n')
    file.chmod(0o755)
    path = f"{tmp_path}:{FOLDER}:{os.environ['PATH']}"

    def run_(*words):
        environment = os.environ | {
            "PATH": path,
            "FENCER_CONFIG": "/nowhere.yaml",
            "KUBECACHEDIR": str(tmp_path),
        }
        return subprocess.run(
            words, env=environment, cwd=FOLDER.parents[1], capture_output=True, text=True, check=False
        )

    return run_


def test_both_can_be_run():
    assert {file.name: os.access(file, os.X_OK) for file in FOLDER.iterdir()} == {
        "kubectl-fencer": True,
        "kubectl_complete-fencer": True,
    }


def test_it_is_fencer_with_its_words_and_its_exit_code(run):
    assert run("kubectl-fencer", "demo", "--list").stdout == run("fencer", "demo", "--list").stdout
    assert run("kubectl-fencer", "status").returncode == 2


@pytest.mark.parametrize(
    "words", [("--context", "lab"), ("-n", "kube-system"), ("--kubeconfig", "/mine")], ids=str
)
def test_options_of_kubectl_are_refused_and_not_left_out(run, words):
    """A person who names another cluster must not be shown this one."""
    done = run("kubectl-fencer", "status", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such option" in done.stderr
    assert words[0] in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("st",), "status\tShow all nodes in one table, each with the reason.\nstart\tStart a node"),
        (("demo", "nic"), "nic-off\t"),
        (("status", "-o", "j"), "json\n:4\n"),
        (("pause", "--why", "it's so", "--kube"), "--kubeconfig\t"),
        (("status", "-c", ""), ":0\n"),
        (("status", ""), ":4\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_tab(run, words, said):
    done = run("kubectl_complete-fencer", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(said)
    assert done.stdout.splitlines()[-1] in {":0", ":4"}


def test_tab_without_a_word_lists_the_commands(run):
    assert run("kubectl_complete-fencer").stdout == run("kubectl_complete-fencer", "").stdout
    assert "check\t" in run("kubectl_complete-fencer").stdout


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl here: put one on PATH")
def test_the_real_kubectl_finds_both(run):
    assert run("kubectl", "fencer", "demo", "--list").stdout == run("fencer", "demo", "--list").stdout
    assert (
        run("kubectl", "__complete", "fencer", "unf").stdout
        == "unfence\tLift the fence of a node by hand.\n:4\n"
    )
