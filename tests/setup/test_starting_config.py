"""The configuration that `fencer init` writes is one that fencer takes, and means what was wished."""

from pathlib import Path

import pytest

from fencer.config.load import load
from fencer.core.policy import Mode
from fencer.errors import ConfigError
from fencer.setup.starting_config import Start, written

UUID = "6f1c2ad0-7b1e-4d39-9a5f-3f0d6f1c2ae2"
LIBVIRT = {"type": "libvirt", "uri": "qemu:///system"}
PROXMOX = {
    "type": "proxmox",
    "servers": ["https://10.0.0.11:8006", "https://10.0.0.12:8006"],
    "cluster": "home",
    "quorum_device": True,
    "token_id": "fencer@pve!agent",
    "token_file": "/etc/fencer/proxmox-token",
    "ca_file": "/etc/fencer/pve-root-ca.pem",
}


def taken(tmp_path, **facts):
    start = Start(
        **{"kubeconfig": tmp_path / "kubeconfig", "servers": (), "endpoint": "lab", "keys": LIBVIRT} | facts
    )
    path = tmp_path / "config.yaml"
    path.write_text(written(start))
    return load(path)


def test_it_observes_and_the_mode_is_a_word_on_a_line_of_its_own(tmp_path):
    config = taken(tmp_path)
    assert config.policy.mode is Mode.OBSERVE
    lines = (tmp_path / "config.yaml").read_text().splitlines()
    assert lines.count("mode: observe") == 1
    (tmp_path / "config.yaml").write_text("\n".join(lines).replace("mode: observe", "mode: armed"))
    assert load(tmp_path / "config.yaml").policy.mode is Mode.ARMED


@pytest.mark.parametrize(
    ("unit", "then"),
    [("fencer@home", "systemctl reload fencer@home"), (None, "end `fencer watch`, and start it again")],
)
def test_it_says_how_its_own_agent_hears_of_the_new_word(tmp_path, unit, then):
    taken(tmp_path, unit=unit)
    assert f"#   {then}\nmode: observe\n" in (tmp_path / "config.yaml").read_text()


def test_guests_that_are_nodes_are_admitted_by_their_uuids(tmp_path):
    [endpoint] = taken(tmp_path, uuids={UUID: "k8s-2"}).endpoints
    assert endpoint.power.uuids == {UUID}


def test_without_power_nobody_is_admitted(tmp_path):
    [endpoint] = taken(tmp_path).endpoints
    assert endpoint.power.nobody


def test_a_pool_is_admitted_in_their_place(tmp_path):
    [endpoint] = taken(tmp_path, keys=PROXMOX, power={"pool": "k8s"}).endpoints
    assert endpoint.power.groups == {"pool:k8s"}
    assert (endpoint.cluster, endpoint.quorum_device, len(endpoint.servers)) == ("home", True, 2)


def test_further_servers_and_the_journal_are_in_it(tmp_path):
    config = taken(tmp_path, servers=("https://10.0.0.22:6443",))
    assert config.kubernetes.servers == ("https://10.0.0.22:6443",)
    assert config.journal is not None


def test_paths_that_yaml_would_take_for_something_else_stay_paths(tmp_path):
    odd = Path('/srv/a: b #c/"kube" config')
    assert taken(tmp_path, kubeconfig=odd).kubernetes.kubeconfig == odd


@pytest.mark.parametrize(
    "name",
    [
        "k8s-1\n  - name: box\n    type: virtualbox\n    command: [sh]\n    #",
        "k8s-1\n\nmode: armed\n#",
        "k8s-1\x85mode: armed\x85#",
        "k8s-1\u2028mode: armed\u2028#",
    ],
)
def test_no_name_of_a_node_or_a_guest_becomes_a_line(tmp_path, name):
    config = taken(tmp_path, uuids={UUID: name})
    assert config.policy.mode is Mode.OBSERVE
    assert [endpoint.name for endpoint in config.endpoints] == ["lab"]


@pytest.mark.parametrize("odd", ["\x85mode: armed", "\u2028", "\x7f", '"\n- '])
def test_a_value_that_no_configuration_may_have_is_refused_as_a_value(tmp_path, odd):
    with pytest.raises(ConfigError, match=r"kubernetes\.kubeconfig: must be the path of a file"):
        taken(tmp_path, kubeconfig=Path(f"/srv/{odd}"))
