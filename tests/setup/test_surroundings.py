"""What `fencer init` finds on a machine."""

import os
import subprocess

import pytest

from fencer.setup.surroundings import (
    PLACES,
    caller,
    hypervisors,
    kubeconfigs,
    likely_kubeconfig,
    reading_there,
    vboxmanage,
)


def put(root, place):
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(place)
    return path


def test_a_bare_machine_has_neither(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(hypervisors(tmp_path)) == []
    assert list(kubeconfigs({}, tmp_path / "root", tmp_path)) == []


def test_a_proxmox_host_is_one_before_all_else_that_is_on_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    put(tmp_path, "run/libvirt/libvirt-sock")
    put(tmp_path, "run/libvirt/virtqemud-sock")
    put(tmp_path, "etc/pve/nodes/pve1/x")
    put(tmp_path, "usr/lib/virtualbox/VBoxManage")
    assert [one.type for one in hypervisors(tmp_path)] == ["proxmox", "libvirt", "virtualbox"]


def test_kubeconfigs_come_in_kubectls_order_and_then_each_distributions_own(tmp_path):
    named, usual = put(tmp_path, "named"), put(tmp_path, "root/.kube/config")
    own = [put(tmp_path, place) for place in PLACES]
    environment = {"KUBECONFIG": f"{named}{os.pathsep}{tmp_path / 'gone'}"}
    assert list(kubeconfigs(environment, tmp_path / "root", tmp_path)) == [named, usual, *own]


@pytest.mark.parametrize("place", PLACES)
def test_a_nodes_kubeconfig_is_printed_whichever_distribution_wrote_it(tmp_path, place):
    put(tmp_path, place)
    script = reading_there().replace(" /", f" {tmp_path}/").replace(f"2>{tmp_path}", "2>")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, place)


def test_a_node_without_one_says_so_by_its_exit_code(tmp_path):
    script = reading_there().replace(" /", f" {tmp_path}/")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")


def test_whose_kubectl_works_has_a_kubeconfig_that_is_likely_meant(tmp_path):
    assert likely_kubeconfig({}, tmp_path) is None
    usual = put(tmp_path, ".kube/config")
    assert likely_kubeconfig({}, tmp_path) == usual


def test_root_that_nobody_became_by_sudo_has_no_caller():
    assert caller({}) is None
    assert caller({"SUDO_USER": "root"}) is None
    assert caller({"SUDO_USER": "nobody-has-this-name"}) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody who typed sudo")
def test_who_became_root_by_sudo_is_known():
    who = caller({"SUDO_USER": "nobody"})
    assert who is not None
    assert who.pw_name == "nobody"


def test_virtualboxs_own_program_is_taken_before_what_is_on_path(tmp_path):
    assert vboxmanage(tmp_path) == "VBoxManage"
    program = put(tmp_path, "usr/lib/virtualbox/VBoxManage")
    assert vboxmanage(tmp_path) == str(program)
