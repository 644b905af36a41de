"""docs/deploy.md: its steps can be run in the order in which they are written, and its overlay builds."""

import re
import shutil
import subprocess
from ipaddress import ip_network
from pathlib import Path

import pytest
import yaml

from tests.deploy.kit import FOLDER, only

PAGE = (FOLDER.parents[1] / "docs" / "deploy.md").read_text()
STEPS = PAGE.partition("## Step by step")[2].partition("\nBy hand")[0]
SEVERAL = PAGE.partition("## Several fenced clusters")[2].partition("\n## ")[0]
IN_THE_POD = "kubectl -n fencer exec deploy/fencer -- "


def typed():
    """Return the commands of all steps, in order, a line each."""
    return re.findall(r"(?m)^ {4}(.+)$", re.sub(r"\s*\\\n\s*", " ", STEPS))


def overlay():
    """Return the text of the overlay for a further cluster."""
    block = re.search(r"(?m)(?:^    .*\n)+", SEVERAL)
    assert block is not None
    return re.sub(r"(?m)^    ", "", block.group())


def test_each_step_has_what_it_needs_from_those_before():
    commands = typed()
    begins = [
        "fencer setup kubernetes | kubectl --kubeconfig ADMINS apply",
        "fencer setup kubernetes --kubeconfig ADMINS --output kubeconfig",
        "fencer setup proxmox",
        "kubectl apply -f config/deploy/namespace.yaml",
        "kubectl -n fencer create secret generic fencer",
        "kubectl apply -k config/deploy",
        f"{IN_THE_POD}fencer setup kubernetes -c /etc/fencer/config.yaml | kubectl --kubeconfig ADMINS apply",
        f"{IN_THE_POD}fencer check -c /etc/fencer/config.yaml",
        "kubectl -n fencer rollout restart deployment/fencer",
    ]
    places = [next(i for i, one in enumerate(commands) if one.startswith(begin)) for begin in begins]
    assert places == sorted(places)


def test_a_configuration_is_read_only_where_it_is():
    """It is in the ConfigMap, with paths as they are in the pod."""
    for command in typed():
        assert ("config.yaml" in command) == command.startswith(f"{IN_THE_POD}fencer"), command


def test_the_secret_is_made_of_what_the_configuration_names_and_of_files_that_were_made():
    [secret] = [one for one in typed() if "create secret" in one]
    files = re.findall(r"--from-file=(\S+)", secret)
    named = re.findall(r"/run/fencer-credentials/(\S+)", only("configuration.yaml")["data"]["config.yaml"])
    assert sorted(files) == sorted(named)
    made = " ".join(typed()[: typed().index(secret)])
    assert all(re.search(rf"(--output|>) {file}\b", made) for file in files)


def test_the_overlay_changes_what_is_there():
    written = yaml.safe_load(overlay())
    [generated], [patch], [image] = written["configMapGenerator"], written["patches"], written["images"]
    configuration, policy = only("configuration.yaml"), only("network-policy.yaml")
    assert {key: generated[key] for key in ("name", "namespace")} == {
        key: configuration["metadata"][key] for key in ("name", "namespace")
    }
    assert generated["files"] == list(configuration["data"])
    assert written["namespace"] != configuration["metadata"]["namespace"]
    assert only("deployment.yaml")["spec"]["template"]["spec"]["containers"][0]["image"].startswith(
        f"{image['name']}:"
    )
    changes = yaml.safe_load(patch["patch"])
    replaced = {change["path"]: change["value"] for change in changes}
    ranges = {
        f"/spec/egress/{i}/to/{j}/ipBlock/cidr": to["ipBlock"]["cidr"]
        for i, rule in enumerate(policy["spec"]["egress"])
        for j, to in enumerate(rule["to"])
        if "ipBlock" in to
    }
    assert replaced.keys() == ranges.keys(), "each range of the base is another cluster's"
    assert all(ip_network(new) and new != ranges[path] for path, new in replaced.items())


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl here, which has kustomize in it")
def test_kubectl_builds_the_overlay_with_a_namespace_of_its_own_and_without_a_secret(tmp_path: Path):
    shutil.copytree(FOLDER, tmp_path / "config" / "deploy")
    folder = tmp_path / "overlays" / "home"
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text(overlay())
    (folder / "config.yaml").write_text("mode: observe\n")
    done = subprocess.run(
        ["kubectl", "kustomize", folder], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    built = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    assert built.keys() == {
        "Namespace",
        "ConfigMap",
        "Deployment",
        "PodDisruptionBudget",
        "NetworkPolicy",
    }
    assert built.pop("Namespace")["metadata"]["name"] == "fencer-home"
    assert {one["metadata"]["namespace"] for one in built.values()} == {"fencer-home"}
    assert built["ConfigMap"]["data"] == {"config.yaml": "mode: observe\n"}
    pod = built["Deployment"]["spec"]["template"]["spec"]
    assert {"name": "fencer", "defaultMode": 0o444} in [one.get("configMap") for one in pod["volumes"]]
    assert pod["containers"][0]["image"] == "registry.example/fencer:0.1.0"
    asked = [
        to["ipBlock"]["cidr"]
        for rule in built["NetworkPolicy"]["spec"]["egress"]
        for to in rule["to"][:1]
        if "ipBlock" in to
    ]
    assert asked == ["192.0.2.16/28", "203.0.113.0/24"]


def test_a_pause_is_not_typed_in_a_pod():
    """Its account may not write one."""
    for line in re.findall(r"(?m)^ +.*fencer (?:pause|resume).*$", PAGE):
        assert "exec" not in line
        assert "--kubeconfig" in line
