"""``fencer setup hook``, where `pvesh`, `qm` and `ssh` are stand-ins that share one cluster's state."""

import json
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.errors import ConfigError
from fencer.setup.hook import carry_out, make_plan

HOOK = Path(__file__).parents[2] / "config" / "proxmox" / "fencer-hook"
VOLUME = "nas:snippets/fencer-hook"

TOOL = f"""#!{sys.executable} -IS
"""  # as little as a start can cost
TOOL += """import json, os, pathlib, shlex, sys
place = pathlib.Path(os.environ["CLUSTER"])
state = json.loads(place.read_text())
tool, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
state["calls"].append([tool, *words])
place.write_text(json.dumps(state))
here = "pve1"
if tool == "ssh":
    here, (tool, *words) = words[-2].removeprefix("root@"), shlex.split(words[-1])
    if here in state["dead"]:
        sys.exit("ssh: connect to host: No route to host")
if pathlib.Path(tool).name == "fencer-hook":
    sys.exit(here not in state["with_hook"])
if tool == "pvesh":
    found = state["api"].get(words[1])
    if found is None:
        sys.exit(f"{words[1]} does not exist")
    assert words[0] == "get" and words[-2:] == ["--output-format", "json"], words
    print(json.dumps(found))
if tool == "qm":
    verb, vmid, option, value = words
    assert (verb, option) == ("set", "--hookscript"), words
    config = state["api"].get(f"/nodes/{here}/qemu/{vmid}/config")
    if config is None:
        sys.exit(f"Configuration file 'nodes/{here}/qemu-server/{vmid}.conf' does not exist")
    if not state["deaf"]:
        config["hookscript"] = value
    place.write_text(json.dumps(state))
"""


class Cluster:
    """Three hosts; this is pve1. Guests 101 here, 102 on pve2, and the container 200."""

    def __init__(self, folder, monkeypatch):
        self.path = folder / "nas"
        self.path.mkdir()
        self._state = folder / "cluster.json"
        for tool in ("pvesh", "qm", "ssh"):
            (folder / "bin").mkdir(exist_ok=True)
            (folder / "bin" / tool).write_text(TOOL)
            (folder / "bin" / tool).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setenv("CLUSTER", str(self._state))
        self.write(
            calls=[],
            dead=[],
            with_hook=[],
            deaf=False,
            api={
                "/storage/nas": {
                    "storage": "nas",
                    "type": "nfs",
                    "path": str(self.path),
                    "content": "iso,snippets",
                    "shared": 1,
                },
                "/cluster/status": [
                    {"type": "cluster", "name": "home", "quorate": 1},
                    *({"type": "node", "name": f"pve{n}", "local": int(n == 1)} for n in (1, 2, 3)),
                ],
                "/cluster/resources": [
                    {"type": "qemu", "vmid": 101, "node": "pve1"},
                    {"type": "qemu", "vmid": 102, "node": "pve2"},
                    {"type": "lxc", "vmid": 200, "node": "pve1"},
                ],
                "/nodes/pve1/qemu/101/config": {"name": "k8s-1"},
                "/nodes/pve2/qemu/102/config": {"name": "k8s-2"},
            },
        )

    def write(self, **state):
        self._state.write_text(json.dumps(state))

    def change(self, **state):
        self.write(**self.state | state)

    def storage(self, **traits):
        api = self.state["api"]
        api["/storage/nas"] = {
            key: value for key, value in (api["/storage/nas"] | traits).items() if value is not None
        }
        self.change(api=api)

    @property
    def state(self):
        return json.loads(self._state.read_text())

    @property
    def hooks(self):
        return {
            path.split("/")[4]: config["hookscript"]
            for path, config in self.state["api"].items()
            if path.endswith("/config") and "hookscript" in config
        }

    @property
    def file(self):
        return self.path / "snippets" / "fencer-hook"


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    return Cluster(tmp_path, monkeypatch)


def run(*words):
    result = CliRunner().invoke(cli, ["setup", "hook", "--storage", "nas", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refused(cluster, text, *words):
    result = run("--vmid", "101,102", *words)
    assert result.exit_code == 2, result.output
    assert text in result.stderr
    assert not cluster.hooks
    assert not cluster.file.exists()


def test_on_shared_storage_each_guest_gets_it_on_its_own_host(cluster):
    result = run("--vmid", "101,102")
    assert result.exit_code == 0, result.output
    assert cluster.hooks == {"101": VOLUME, "102": VOLUME}
    assert cluster.file.read_bytes() == HOOK.read_bytes()
    assert stat.S_IMODE(cluster.file.stat().st_mode) == 0o755
    assert [path.name for path in cluster.file.parent.iterdir()] == ["fencer-hook"]


def test_twice_is_once(cluster):
    run("--vmid", "101,102")
    cluster.change(calls=[])
    assert "had it already" in run("--vmid", "101,102").output
    assert not [call for call in cluster.state["calls"] if call[0] != "pvesh"]


def test_print_changes_nothing_and_names_every_step(cluster):
    result = run("--vmid", "101,102", "--print")
    assert result.exit_code == 0
    assert f"qm set 101 --hookscript {VOLUME}\n" in result.output
    assert "root@pve2" in result.output
    assert str(cluster.file) in result.output
    assert {tuple(call[:2]) for call in cluster.state["calls"]} == {("pvesh", "get")}
    assert not cluster.file.exists()


def test_a_storage_without_snippets_is_refused_with_what_would_help(cluster):
    cluster.storage(content="iso,vztmpl")
    refused(cluster, "`pvesm set nas --content iso,vztmpl,snippets`")


def test_a_storage_that_some_host_does_not_have_is_refused_although_it_is_shared(cluster):
    cluster.storage(nodes="pve1,pve2")
    refused(cluster, "does not exist on pve3")


@pytest.mark.parametrize(
    "traits", [{"disable": 1}, {"path": None}, {"content-dirs": "snippets=/hooks"}], ids=str
)
def test_a_storage_where_the_file_would_not_be_found_is_refused(cluster, traits):
    cluster.storage(**traits)
    refused(cluster, "nas: ")


def test_on_local_storage_every_other_host_must_have_it_first(cluster):
    cluster.storage(shared=None)
    cluster.change(with_hook=["pve2"])
    refused(cluster, "cannot be executed on pve3 (")
    cluster.change(with_hook=["pve2", "pve3"])
    assert run("--vmid", "101,102").exit_code == 0
    assert cluster.hooks == {"101": VOLUME, "102": VOLUME}


def test_on_local_storage_a_host_that_cannot_be_asked_does_not_count_as_having_it(cluster):
    cluster.storage(shared=0)
    cluster.change(with_hook=["pve2", "pve3"], dead=["pve3"])
    refused(cluster, "cannot be executed on pve3 (")


def test_where_the_script_does_not_run_no_guest_gets_it(cluster):
    """Its Python is not there: then each start of a guest would fail."""
    broken = HOOK.read_bytes().replace(b"#!/usr/bin/python3", b"#!/nowhere/python3", 1)
    plan = replace(make_plan([101, 102], "nas", replace=False), script=broken)
    with pytest.raises(ConfigError, match="or its Python is missing here"):
        carry_out(plan)
    assert not cluster.hooks
    assert not list(cluster.file.parent.iterdir())


def test_a_single_host_needs_no_other(cluster):
    cluster.storage(shared=None)
    api = cluster.state["api"]
    api["/cluster/status"] = [{"type": "node", "name": "pve1", "local": 1}]
    cluster.change(api=api)
    assert run("--vmid", "101").exit_code == 0
    assert cluster.hooks == {"101": VOLUME}


def test_another_hookscript_is_not_taken_away_without_a_word(cluster):
    api = cluster.state["api"]
    api["/nodes/pve2/qemu/102/config"]["hookscript"] = "local:snippets/gpu.pl"
    cluster.change(api=api)
    result = run("--vmid", "101,102")
    assert result.exit_code == 2
    assert "102 has local:snippets/gpu.pl" in result.stderr
    assert cluster.hooks == {"102": "local:snippets/gpu.pl"}
    result = run("--vmid", "101,102", "--replace")
    assert result.exit_code == 0
    assert "102: loses its hookscript local:snippets/gpu.pl" in result.output
    assert cluster.hooks["102"] == VOLUME


@pytest.mark.parametrize(
    ("vmid", "text"), [("999", "no such guest"), ("200", "is a container"), ("x", "101,102")]
)
def test_a_number_that_is_no_virtual_machine_changes_nothing(cluster, vmid, text):
    result = run("--vmid", f"101,{vmid}")
    assert result.exit_code == 2
    assert text in result.stderr
    assert not cluster.hooks


def test_a_guest_that_does_not_take_it_is_no_success(cluster):
    cluster.change(deaf=True)
    result = run("--vmid", "101")
    assert result.exit_code == 3
    assert "101: its hookscript reads '' after it was set" in result.stderr


def test_a_machine_without_proxmox_is_told_where_to_go(cluster, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    result = run("--vmid", "101")
    assert result.exit_code == 2
    assert "Run this as root on a host of the Proxmox cluster" in result.stderr
