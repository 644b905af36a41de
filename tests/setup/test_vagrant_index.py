"""Vagrant's own index leads to a user's projects; what cannot be read there counts as absent."""

import json
import os

import pytest

from fencer.setup.vagrant_index import Project, kubeconfigs, names, projects

UUID = "0f2c1d7e-7d0a-4a58-9c3e-5d1b6a2f4e01"


def entry(folder, name="k8s-1", provider="virtualbox"):
    return {
        "name": name,
        "provider": provider,
        "vagrantfile_path": str(folder),
        "local_data_path": str(folder / ".vagrant"),
        "state": "running",
    }


def write(home, *entries):
    file = home / "data" / "machine-index" / "index"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"version": 1, "machines": dict(enumerate(entries))}))


@pytest.fixture
def lab(tmp_path):
    """A project with one machine, one that is long gone, and one of another provider."""
    folder = tmp_path / "kubespray"
    record = folder / ".vagrant" / "machines" / "k8s-1" / "virtualbox" / "id"
    record.parent.mkdir(parents=True)
    record.write_text(UUID)
    gone, other = tmp_path / "gone", tmp_path / "other"
    write(
        tmp_path / ".vagrant.d",
        *(entry(gone), entry(folder), entry(folder, "k8s-2"), entry(other, provider="libvirt")),
    )
    return folder


def test_each_project_with_machines_in_virtualbox_is_named_once(lab, tmp_path):
    gone = tmp_path / "gone"
    assert projects({}, tmp_path) == (Project(gone, gone / ".vagrant"), Project(lab, lab / ".vagrant"))


def test_machines_have_the_names_of_the_vagrantfile(lab, tmp_path):
    assert names({}, tmp_path) == {UUID: "k8s-1"}


def test_kubesprays_kubeconfig_is_found_in_its_project(lab, tmp_path):
    admins = lab / "inventory" / "sample" / "artifacts" / "admin.conf"
    admins.parent.mkdir(parents=True)
    admins.write_text("")
    assert list(kubeconfigs({}, tmp_path)) == [admins]


def test_vagrants_home_may_be_elsewhere(lab, tmp_path):
    assert names({"VAGRANT_HOME": str(tmp_path / ".vagrant.d")}, tmp_path / "nobody") == {UUID: "k8s-1"}


def test_a_name_of_machines_in_two_projects_says_nothing_of_either(lab, tmp_path):
    """Else a node of one lab could claim the machine of the other, and get power over it unasked."""
    second = tmp_path / "second"
    record = second / ".vagrant" / "machines" / "k8s-1" / "virtualbox" / "id"
    record.parent.mkdir(parents=True)
    record.write_text(UUID.replace("0f2c", "1f2c"))
    write(tmp_path / ".vagrant.d", entry(lab), entry(second))
    assert names({}, tmp_path) == {}


def test_an_index_that_is_a_pipe_is_none(tmp_path):
    write(tmp_path / ".vagrant.d")
    index = tmp_path / ".vagrant.d" / "data" / "machine-index" / "index"
    index.unlink()
    os.mkfifo(index)
    assert projects({}, tmp_path) == ()


def test_a_folder_that_cannot_be_is_none(tmp_path):
    write(tmp_path / ".vagrant.d", {**entry(tmp_path), "local_data_path": "a\0b"})
    assert names({}, tmp_path) == {}


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"machines": []}', '{"machines": {"1": {"name": "a"}}}', '{"machines": ' + "[" * 100_000],
    ids=["nothing", "a list", "no machines", "no machine", "without an end"],
)
def test_an_index_that_makes_no_sense_is_none(tmp_path, text):
    write(tmp_path / ".vagrant.d")
    (tmp_path / ".vagrant.d" / "data" / "machine-index" / "index").write_text(text)
    assert names({}, tmp_path) == {}


def test_who_has_no_vagrant_has_no_projects(tmp_path):
    assert projects({}, tmp_path) == ()
