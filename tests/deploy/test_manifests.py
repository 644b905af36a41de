"""fencer in a management cluster: what its manifests promise."""

import re
from ipaddress import ip_network
from pathlib import Path

import pytest
import yaml

from fencer.cli.watch import ENDING_S
from fencer.config.load import load
from fencer.web.settings import PORT
from tests.deploy.kit import EXAMPLE, FOLDER, KUSTOMIZATION, documents, only, pod

PODS = {
    "runAsNonRoot": True,
    "runAsUser": 64000,
    "runAsGroup": 64000,
    "fsGroup": 64000,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINERS = {
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
"""What must hold for each container, and nothing else."""


def containers():
    return [*pod()["containers"], *pod().get("initContainers", [])]


def test_the_kustomization_names_every_manifest_but_the_example_of_the_secret():
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml", EXAMPLE}
    assert sorted(KUSTOMIZATION["resources"]) == sorted(files)
    assert "Secret" not in {one["kind"] for file in files for one in documents(file)}


def test_a_pod_is_nobody_in_particular():
    assert pod()["securityContext"] == PODS
    assert pod()["automountServiceAccountToken"] is False
    for shared in ("hostNetwork", "hostPID", "hostIPC", "serviceAccountName"):
        assert shared not in pod()


@pytest.mark.parametrize("container", containers(), ids=lambda one: one["name"])
def test_a_container_may_nothing(container):
    assert container["securityContext"] == CONTAINERS
    assert all("hostPort" not in port for port in container.get("ports", []))
    assert container["resources"]["limits"]["memory"] == "512Mi"
    assert "cpu" not in container["resources"]["limits"]


def test_its_image_runs_as_the_same_user():
    said = (FOLDER / "image" / "Containerfile").read_text()
    assert re.search(r"^USER 64000:64000$", said, re.MULTILINE)


def test_what_it_writes_is_its_own_and_all_else_is_read_only():
    [container] = containers()
    written = {one["mountPath"] for one in container["volumeMounts"] if not one.get("readOnly")}
    assert written == {"/var/lib/fencer", "/tmp"}  # noqa: S108 - in the pod
    volumes = {one["name"]: one for one in pod()["volumes"]}
    assert all("hostPath" not in one for one in volumes.values())
    assert volumes["credentials"]["secret"]["defaultMode"] == 0o400
    assert {name for name, one in volumes.items() if "emptyDir" in one} == {"state", "tmp"}


def test_two_agents_are_never_on_one_machine_and_a_rollout_takes_one_at_a_time():
    spec = only("deployment.yaml")["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    labels = spec["template"]["metadata"]["labels"]
    [apart] = pod()["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert (apart["topologyKey"], apart["labelSelector"]) == (
        "kubernetes.io/hostname",
        {"matchLabels": labels},
    )
    budget = only("disruption-budget.yaml")["spec"]
    assert (budget["maxUnavailable"], budget["selector"]) == (1, {"matchLabels": labels})
    assert only("network-policy.yaml")["spec"]["podSelector"] == {"matchLabels": labels}


def test_it_has_the_time_that_the_agent_takes_to_end():
    assert pod()["terminationGracePeriodSeconds"] >= 2 * ENDING_S


def test_probes_ask_what_the_configuration_serves(tmp_path: Path):
    [container] = containers()
    asked = {name: container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
    assert {name: one["path"] for name, one in asked.items()} == {
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    assert {one["port"] for one in asked.values()} == {"web"}
    assert container["ports"] == [{"name": "web", "containerPort": PORT, "protocol": "TCP"}]
    file = tmp_path / "config.yaml"
    file.write_text(only("configuration.yaml")["data"]["config.yaml"])
    web = load(file).web
    assert web is not None
    assert (web.port, web.on_loopback) == (PORT, False)


def test_its_configuration_is_right_and_names_what_the_secret_has(tmp_path: Path):
    file = tmp_path / "config.yaml"
    file.write_text(only("configuration.yaml")["data"]["config.yaml"])
    [mount] = [one for one in containers()[0]["volumeMounts"] if one["name"] == "credentials"]
    named = re.findall(rf"{mount['mountPath']}/(\S+)", file.read_text())
    assert sorted(named) == sorted(only(EXAMPLE)["stringData"])
    assert load(file).journal.file.parent.name != "lib"
    args = containers()[0]["args"]
    assert args[args.index("--config") + 1] == "/etc/fencer/config.yaml"


def test_the_network_lets_it_ask_only_whom_it_has_to():
    spec = only("network-policy.yaml")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    [scraped] = spec["ingress"]
    assert scraped["ports"] == [{"port": PORT, "protocol": "TCP"}]
    names, *others = spec["egress"]
    assert {port["port"] for port in names["ports"]} == {53}
    blocks = [ip_network(to["ipBlock"]["cidr"]) for one in others for to in one["to"]]
    assert blocks
    assert all(block.prefixlen >= 24 for block in blocks)
    assert all(one["ports"] for one in others)
    servers = yaml.safe_load(only("configuration.yaml")["data"]["config.yaml"])["hypervisors"][0]["servers"]
    assert all(
        any(ip_network(re.findall(r"//([\d.]+)", url)[0]).subnet_of(b) for b in blocks) for url in servers
    )
