"""The real wiring, as far as it goes without a cluster: what is built of which setting, and what is said."""

import gc
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.cli.wire import Wiring
from fencer.config.settings import ProxmoxEndpoint
from fencer.core.kept import Kept
from fencer.core.policy import Mode
from fencer.errors import ConfigError
from fencer.hypervisors.libvirt.client import LibvirtHypervisor
from fencer.runtime.clock import SystemClock
from fencer.state.form import derive_signer
from fencer.state.reading import Reading, read_state
from tests.cluster.standin import StandIn, routes, status
from tests.support.guests import libvirt_binding
from tests.support.vbox import FakeVBox

KEY = b"the key of all agents of a cluster"
SEEN = Kept(utc="2026-11-29T02:14:30Z")
SECRETS = "/api/v1/namespaces/fencer/secrets"
SECRET = f"{SECRETS}/fencer-key"
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": "none"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "kubeconfig").write_text(json.dumps(KUBECONFIG))
    written = {
        "mode": "observe",
        "kubernetes": {"kubeconfig": str(tmp_path / "kubeconfig")},
        "hypervisors": [{"name": "lab", "type": "libvirt", "uri": "qemu:///system"}],
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(written))
    return path


def run(*words):
    return CliRunner().invoke(cli, [str(word) for word in words], prog_name="fencer")


def test_a_cluster_is_built_of_the_kubeconfig(config):
    wiring = Wiring()
    wiring.cluster(wiring.load(config))


@pytest.fixture
def keyless(config):
    """An API server of a cluster that has no key yet."""
    none = status(404, reason="NotFound", name="fencer-key")
    with StandIn(routes({"/fencer-key": none, "/secrets": none}), key=None) as server:
        (config.parent / "kubeconfig").write_text(
            json.dumps(KUBECONFIG).replace("https://127.0.0.1:1", server.url)
        )
        yield server


def stored(config, mode):
    """Return the configuration in this mode, and what keeps the state."""
    written = yaml.safe_load(config.read_text())
    written["mode"], written["kubernetes"]["unauthenticated"] = mode, True
    config.write_text(yaml.safe_dump(written))
    wiring, loaded = Wiring(), Wiring().load(config)
    return loaded, wiring.state_store(loaded, wiring.cluster(loaded))


@pytest.mark.parametrize(
    ("mode", "asked"), [("observe", [("GET", SECRET)]), ("armed", [("GET", SECRET), ("POST", SECRETS)])]
)
def test_the_state_is_signed_with_the_clusters_key_which_only_an_armed_agent_creates(
    config, keyless, mode, asked
):
    loaded, state = stored(config, mode)
    assert state.load() == Kept()
    state.save(Kept())  # with a local key
    assert keyless.asked == asked
    assert Wiring().inspect_state(loaded.state_file).size_bytes


def test_what_an_observing_agent_saw_on_a_new_cluster_survives_its_arming(config, keyless):
    loaded, state = stored(config, "observe")
    state.load()
    state.save(SEEN)
    assert state.confirm()
    del state
    gc.collect()  # the client's errors refer to themselves, and so to who asked
    keyless.key = KEY
    _, armed = stored(config, "armed")
    assert armed.load() == SEEN
    assert armed.confirm()
    assert read_state(loaded.state_file) == Reading(SEEN, derive_signer(KEY))


def test_commands_read_the_state_and_neither_create_a_key_nor_write(config, keyless):
    loaded, state = stored(config, "armed")
    keyless.key = KEY
    state.save(SEEN)
    asked = len(keyless.asked)
    wiring = Wiring()
    reader = wiring.state_reader(loaded, wiring.cluster(loaded))
    assert reader.load() == SEEN
    assert reader.confirm()
    reader.save(Kept())
    assert {method for method, _ in keyless.asked[asked:]} <= {"GET"}
    assert read_state(loaded.state_file).kept == SEEN


def test_without_a_place_no_state_is_kept(config):
    wiring = Wiring()
    loaded = replace(wiring.load(config), state_file=None)
    assert wiring.state_store(loaded, wiring.cluster(loaded)) is None
    assert wiring.state_reader(loaded, wiring.cluster(loaded)) is None


def test_a_kubeconfig_that_is_not_there_is_a_configuration_error(config):
    (config.parent / "kubeconfig").unlink()
    wiring = Wiring()
    with pytest.raises(ConfigError, match=r"kubeconfig: no such file.*fencer setup kubernetes .*--output"):
        wiring.cluster(wiring.load(config))


@pytest.mark.libvirt
def test_an_endpoint_is_built_of_its_settings(config):
    libvirt_binding()
    wiring = Wiring()
    (endpoint,) = wiring.load(config).endpoints
    hypervisor = wiring.hypervisor(endpoint, wiring.clock())
    assert isinstance(hypervisor, LibvirtHypervisor)
    assert hypervisor.endpoint == "lab"
    hypervisor.close()


def test_an_endpoint_of_virtualbox_is_built_of_its_settings(config, tmp_path):
    vbox = FakeVBox(tmp_path)
    vbox.add("k8s-1")
    written = yaml.safe_load(config.read_text())
    written["hypervisors"] = [{"name": "box", "type": "virtualbox", "command": list(vbox.command)}]
    config.write_text(yaml.safe_dump(written))
    wiring = Wiring()
    (endpoint,) = wiring.load(config).endpoints
    hypervisor = wiring.hypervisor(endpoint, wiring.clock())
    (evidence,) = hypervisor.sweep()
    assert (hypervisor.endpoint, evidence.guest.name) == ("box", "k8s-1")
    hypervisor.close()


def test_config_check_says_what_was_read(config):
    result = run("config", "check", "-c", config)
    assert (result.exit_code, result.output) == (0, f"{config}: ok (mode observe, 1 hypervisor)\n")


def test_config_check_says_every_error_with_its_line(config):
    config.write_text(config.read_text().replace("mode: observe", "mood: observe"))
    result = run("config", "check", "-c", config)
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"fencer: {config}") for line in lines)
    assert any("mood: unknown key; did you mean mode?" in line for line in lines)


def test_config_show_reads_back(config, tmp_path):
    shown = run("config", "show", "-c", config)
    again = tmp_path / "again.yaml"
    again.write_text(shown.output)
    assert Wiring().load(again).policy == Wiring().load(config).policy
    assert Wiring().load(again).policy.mode is Mode.OBSERVE


def test_config_schema_is_a_json_schema():
    assert json.loads(run("config", "schema").output)["properties"].keys() >= {"mode", "hypervisors"}


@pytest.mark.parametrize("words", [["config", "check"], ["config", "show"], ["status"]], ids=" ".join)
def test_a_file_that_is_not_there_leads_on(words):
    result = run(*words, "-c", "/nowhere/config.yaml")
    assert result.exit_code == 2
    assert "no such file" in result.stderr
    assert "`fencer demo`" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else for a while")
@pytest.mark.parametrize(
    "words", [["config", "check"], ["config", "show"], ["status"], ["check"]], ids=" ".join
)
def test_a_file_in_a_folder_that_is_closed_to_us_is_said_and_not_taken_for_missing(words, config):
    config.parent.chmod(0o700)
    os.seteuid(65534)
    try:
        result = run(*words, "-c", config)
    finally:
        os.seteuid(0)
    assert result.exit_code == 2
    assert f"{config}: cannot be read by user 65534: Permission denied" in result.stderr
    assert "fencer init" not in result.stdout


def test_check_names_what_is_missing_in_its_row_and_what_to_start_from():
    result = run("check", "-c", "/nowhere/config.yaml")
    row, fix, *_ = result.stdout.splitlines()
    assert row.split()[:4] == ["config", "/nowhere/config.yaml", "FAIL", "no"]
    assert "no such file. `fencer init` makes one" in row
    assert fix.strip().startswith("try: fencer init -c /nowhere/config.yaml ")


@pytest.mark.libvirt
def test_a_cluster_that_cannot_be_reached_is_code_3(config):
    libvirt_binding()
    result = run("status", "-c", config)
    assert result.exit_code == 3
    assert "https://127.0.0.1:1" in result.stderr
    assert "Traceback" not in result.output


def test_a_power_witness_is_built_of_its_settings_and_its_password_is_a_secret(config, tmp_path):
    agent, secret = tmp_path / "fence_ipmilan", tmp_path / "password"
    agent.write_text("#!/bin/sh\ngrep -q ^password=s3cr3t$ && echo 'Status: OFF' && exit 2\n")
    agent.chmod(0o755)
    secret.write_text("s3cr3t\n")
    written = yaml.safe_load(config.read_text())
    witness = {"host": "lab1", "agent": "fence_ipmilan", "path": str(agent), "never_sleeps": True}
    written["hypervisors"][0]["host_power"] = [{**witness, "password_file": str(secret)}]
    config.write_text(yaml.safe_dump(written))
    wiring = Wiring()
    loaded = wiring.load(config)
    assert secret in loaded.secrets
    [said] = [wiring.witness(one) for endpoint in loaded.endpoints for one in endpoint.host_power]
    assert (said.host, said.is_off()) == ("lab1", True)


def test_an_endpoint_of_proxmox_is_built_of_its_settings(tmp_path):
    token = tmp_path / "token"
    token.write_text("00000000-0000-4000-8000-000000000001\n")
    endpoint = ProxmoxEndpoint("home", ("https://127.0.0.1:9",), "home", "fencer@pve!agent", token)
    hypervisor = Wiring().hypervisor(endpoint, SystemClock())
    assert hypervisor.endpoint == "home"
    hypervisor.close()


@pytest.mark.parametrize("words", [["status"], ["explain", "k8s-1"], ["watch", "--once"], ["plan", "k8s-1"]])
def test_whichever_call_fails_first_the_server_is_named_with_why_and_what_to_try(config, tmp_path, words):
    vbox = FakeVBox(tmp_path)
    written = yaml.safe_load(config.read_text())
    written["hypervisors"] = [{"name": "box", "type": "virtualbox", "command": list(vbox.command)}]
    config.write_text(yaml.safe_dump(written))
    result = run(*words, "-c", config)
    assert result.exit_code == 3
    said = result.stderr.splitlines()[-1]
    assert said.startswith("fencer: https://127.0.0.1:1 does not answer: Connection refused (asked: ")
    assert said.endswith(f"); try: fencer check -c {config}")


def test_who_begins_again_is_the_same_process_with_the_same_words():
    code = (
        "import os, sys; from fencer.cli.wire import Wiring;"
        "print(os.getpid(), *sys.orig_argv[1:], flush=True);"
        "os.environ.setdefault('TURN', '') or (os.environ.update(TURN='2') or Wiring().begin_again())"
    )
    words = [sys.executable, "-X", "utf8", "-c", code, "watch"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run(words, capture_output=True, text=True, check=True, env=environment, cwd="/").stdout
    first, second = said.splitlines()
    assert first == second
    assert first.endswith(" watch")
