"""Commands with a hypervisor whose adapter another package brings: the example's, with real cells."""

import json
from contextlib import contextmanager

import pytest
import yaml
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.cli.wire import Wiring
from tests.cluster.conftest import write_kubeconfig
from tests.cluster.standin import StandIn, answer, listing, namespace, node, routes
from tests.support.adapters import install_example, on_path


@pytest.fixture
def installed(tmp_path):
    """The example beside fencer."""
    with on_path(*install_example(tmp_path / "site")):
        yield


@pytest.fixture
def lab(tmp_path, installed):
    """A farm of cells."""
    from fencer_cells.lab import CellLab  # noqa: PLC0415 - it is installed for this test alone

    (tmp_path / "lab").mkdir()
    lab = CellLab(tmp_path / "lab")
    lab.endpoint = "farm"
    yield lab
    lab.close()


@pytest.fixture
def config(tmp_path):
    """Writes a configuration with one endpoint of the type cells, and that much of it besides."""
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    kubeconfig.chmod(0o600)

    def written(**endpoint):
        content = {
            "mode": "observe",
            "kubernetes": {"kubeconfig": str(kubeconfig), "unauthenticated": True},
            "hypervisors": [{"name": "farm", "type": "cells", **endpoint}],
        }
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(content))
        return path

    return written


@contextmanager
def cluster(config, guest):
    """An API server that knows one node, with this guest's UUID."""
    its = {
        **node("k8s-1"),
        "status": {"nodeInfo": {"systemUUID": guest.uuid, "bootID": "b"}, "conditions": []},
    }
    answers = {
        "/kube-system": namespace(),
        "/version": answer({"gitVersion": "v1.36.2"}),
        "/leases": listing("LeaseList"),
        "/nodes": listing("NodeList", its),
        "/nodes/k8s-1": answer(its),
        "/leases/k8s-1": answer("none", status=404),
        "/pods": listing("PodList"),
        "/volumeattachments": listing("VolumeAttachmentList"),
    }
    with StandIn(routes(answers)) as api:
        write_kubeconfig(config.parent / "kubeconfig", api.url)
        yield


def run(*words):
    return CliRunner().invoke(cli, [str(word) for word in words], obj=Wiring(), prog_name="fencer")


def shown(config):
    """What `fencer status` says of the one node: which guest it is, and how that reads."""
    done = run("status", "-c", config, "-o", "json")
    assert done.exit_code == 0, done.output
    (told,) = json.loads(done.stdout)["nodes"]
    return told["guest"]["uuid"], told["guest_state"]


def test_the_file_is_right_where_the_package_is_installed(installed, config):
    done = run("config", "check", "-c", config(settings={"farm": "/srv/farm"}))
    assert (done.exit_code, done.output.rpartition(": ")[2]) == (0, "ok (mode observe, 1 hypervisor)\n")


def test_and_wrong_where_it_is_not(config):
    done = run("config", "check", "-c", config(settings={"farm": "/srv/farm"}))
    assert done.exit_code == 2
    assert (
        'must be libvirt or proxmox or virtualbox, not "cells"; no adapter of another package' in done.stderr
    )


@pytest.mark.parametrize("command", ["status", "watch", "fence"])
def test_what_the_adapter_says_of_its_settings_is_said_as_any_error_of_the_file(installed, config, command):
    words = {"fence": ["fence", "k8s-1", "--yes"], "watch": ["watch", "--once"]}.get(command, [command])
    done = run(*words, "-c", config(settings={"farm": "/srv/farm", "fram": 1}))
    assert done.exit_code == 2
    assert (
        done.stderr
        == "fencer: farm: unknown: fram; a farm of cells takes one setting, farm, which is an absolute path\n"
    )


def test_check_names_the_endpoint_and_what_its_adapter_says(config, lab):
    done = run("check", "-c", config(settings=dict(lab.settings)), "-o", "json")
    rows = {row["what"]: row for row in json.loads(done.stdout)["findings"]}
    assert rows["farm"]["level"] == "ok"
    assert rows["farm"]["about"].startswith("cells: ")
    lab.cut()
    done = run("check", "-c", config(settings=dict(lab.settings)), "-o", "json")
    rows = {row["what"]: row for row in json.loads(done.stdout)["findings"]}
    assert rows["farm"]["level"] == "fail"
    assert rows["farm"]["note"].startswith("farm: ")
    assert "is no farm" in rows["farm"]["note"]


def test_check_looks_at_its_secret_files(config, lab, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o644)
    done = run("check", "-c", config(settings=dict(lab.settings), secret_files={"token": str(token)}))
    assert f"{token}: can be read by everybody (mode 0644)" in done.stdout


def test_status_tells_what_a_guest_reads(config, lab):
    guest = lab.make_guest()
    path = config(settings=dict(lab.settings))
    with cluster(path, guest):
        assert shown(path) == (guest.uuid, "running")
        lab.pause(guest)
        assert shown(path) == (guest.uuid, "paused")
        lab.destroy(guest)
        assert shown(path) == (guest.uuid, "stopped")
        lab.spoil(guest)
        assert shown(path) == (guest.uuid, "unknown")


def test_status_names_an_endpoint_that_cannot_be_asked(config, lab):
    guest = lab.make_guest()
    path = config(settings=dict(lab.settings))
    with cluster(path, guest):
        lab.cut()
        done = run("status", "-c", path)
    assert done.exit_code == 3, done.output
    assert "farm: " in done.output
    assert "is no farm" in done.output
