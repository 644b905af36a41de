"""``fencer setup vagrant`` prints, or writes, and leaves everything else alone."""

import pytest
from click.testing import CliRunner

from fencer.cli.main import cli

UUID = "0f2c1d7e-7d0a-4a58-9c3e-5d1b6a2f4e01"
NODES = f"nodes:\n  k8s-1: box/{UUID}\n"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "kubespray" / ".vagrant" / "machines" / "k8s-1" / "virtualbox"
    folder.mkdir(parents=True)
    (folder / "id").write_text(UUID)
    return tmp_path / "kubespray"


def run(*words, text=None):
    return CliRunner().invoke(cli, ["setup", "vagrant", *map(str, words)], input=text, prog_name="fencer")


def status_of(*projects):
    lines = [f"1,,provider-name,virtualbox\n1,,machine-home,{project}\n" for project in projects]
    return "".join(["1,,metadata,machine-count,1\n", *lines])


def test_it_prints_the_nodes_of_a_project(project):
    result = run(project)
    assert (result.exit_code, result.stdout, result.stderr) == (0, NODES, "")


def test_without_a_project_it_takes_this_folder(project, monkeypatch):
    monkeypatch.chdir(project)
    assert run().stdout == NODES


def test_it_takes_the_hypervisors_name(project):
    assert run(project, "--hypervisor", "lab-1").stdout == NODES.replace("box", "lab-1")


def test_it_reads_a_global_status_and_says_what_it_leaves_out(project):
    result = run("--global-status", "-", text=status_of("/srv/gone", project))
    assert (result.exit_code, result.stdout) == (0, NODES)
    assert result.stderr.startswith("fencer: /srv/gone: no Vagrant project")


def test_it_writes_a_new_file_and_never_an_old_one(project, tmp_path):
    file = tmp_path / "nodes.yaml"
    result = run(project, "--write", file)
    assert (result.exit_code, file.read_text()) == (0, NODES)
    file.write_text("mine")
    result = run(project, "--write", file)
    assert (result.exit_code, file.read_text()) == (2, "mine")
    assert result.stderr == f"fencer: {file}: exists already, and is left alone: name a new file\n"


def test_a_file_that_cannot_be_written_is_said(project, tmp_path):
    result = run(project, "--write", tmp_path / "nowhere" / "nodes.yaml")
    assert result.exit_code == 2
    assert "cannot be written: No such file or directory" in result.stderr


def test_a_folder_that_is_no_project_is_an_error_of_usage(tmp_path):
    result = run(tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Name the folder with the Vagrantfile" in result.stderr


def test_a_project_and_a_status_are_one_too_many(project):
    result = run(project, "--global-status", "-", text=status_of(project))
    assert result.exit_code == 2
    assert "not both" in result.stderr
