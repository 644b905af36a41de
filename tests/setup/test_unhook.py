"""``fencer setup hook --remove``, where `pvesh` is a stand-in and the Kubernetes cluster a simulated one."""

import pytest

from fencer.core.model import Cordon
from fencer.errors import ClusterUnreachable
from tests.cli.lab import Lab, Otherwise
from tests.setup.proxmox_tools import Cluster

VOLUME = "nas:snippets/fencer-hook"
HOSTS = {101: "pve1", 102: "pve2"}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Both guests have the script, by the API and by their configurations in /etc/pve."""
    cluster = Cluster(tmp_path)
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    for vmid, host in HOSTS.items():
        cluster.answer(f"/nodes/{host}/qemu/{vmid}/config", hookscript=VOLUME)
        configure(cluster, vmid, f"name: k8s\nhookscript: {VOLUME}\n")
    return cluster


def configure(cluster, vmid, text):
    folder = cluster.etc_pve / "nodes" / HOSTS.get(vmid, "pve1") / "qemu-server"
    folder.mkdir(exist_ok=True)
    (folder / f"{vmid}.conf").write_text(text)


def remove(cluster, *words, lab=None):
    return (lab or Lab()).run("setup", "hook", "--remove", "--etc-pve", str(cluster.etc_pve), *words)


def test_all_that_have_it_lose_it_wherever_they_are(cluster):
    result = remove(cluster)
    assert (result.exit_code, cluster.hooks) == (0, {})
    assert result.stdout.splitlines() == [
        "101: has no hookscript any more",
        "102: has no hookscript any more",
        "no guest names it any more; backups may. nas:snippets/fencer-hook may go",
    ]


def test_of_some_only_they_and_the_others_are_named(cluster):
    result = remove(cluster, "--vmid", "102")
    assert (result.exit_code, cluster.hooks) == (0, {"101": VOLUME})
    assert "still named by 101: none of them can start where the script is missing" in result.stdout


def test_a_snapshot_that_brings_it_back_is_named(cluster):
    configure(cluster, 101, f"name: k8s\nhookscript: {VOLUME}\n\n[before]\nhookscript: {VOLUME}\n")
    result = remove(cluster)
    assert (result.exit_code, cluster.hooks) == (0, {})
    assert "still named by 101, snapshot before:" in result.stdout


def test_another_hookscript_is_left_alone(cluster):
    other = "local:snippets/gpu.pl"
    cluster.answer("/nodes/pve2/qemu/102/config", hookscript=other)
    configure(cluster, 102, f"hookscript: {other}\n")
    assert remove(cluster).exit_code == 0
    assert cluster.hooks == {"102": other}


def test_twice_is_once(cluster):
    remove(cluster)
    for vmid in HOSTS:
        configure(cluster, vmid, "name: k8s\n")
    cluster.change(calls=[])
    result = remove(cluster)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "no guest has it")
    assert "may go" not in result.stdout
    assert {words[0] for words in cluster.calls("pvesh")} == {"get"}


def test_print_changes_nothing_and_prints_what_does_it(cluster):
    result = remove(cluster, "--print")
    assert (result.exit_code, len(cluster.hooks)) == (0, 2)
    assert result.stdout.splitlines() == [
        "# simulation, as fencer: 3 nodes, and nothing that fencer set is left there",
        "# As root on this host; pasted line by line, or piped into `sh -e`, which stops at a failure.",
        "pvesh set /nodes/pve1/qemu/101/config --delete hookscript",
        "pvesh set /nodes/pve2/qemu/102/config --delete hookscript",
    ]


@pytest.mark.parametrize(
    ("by", "code", "left"), [("hook", 1, 2), ("drain", 0, 0)], ids=["its own", "a drain's"]
)
def test_only_a_cordon_that_the_hookscript_asked_for_is_in_its_way(cluster, by, code, left):
    lab = Lab()
    node = lab.simulation.cluster.fact("k8s-2").node
    lab.simulation.cluster.cordon(node, Cordon(by, node.boot_id, lab.simulation.clock.utc()))
    result = remove(cluster, lab=lab)
    assert (result.exit_code, len(cluster.hooks)) == (code, left)
    assert ("ends it: kubectl uncordon k8s-2" in result.stderr) is bool(code)


def test_a_cluster_that_cannot_be_asked_needs_a_persons_word(cluster):
    def unreachable():
        raise ClusterUnreachable("no answer")

    lab = Otherwise(list_nodes=unreachable)
    assert (remove(cluster, lab=lab).exit_code, len(cluster.hooks)) == (3, 2)
    assert remove(cluster, "--nothing-stands", "it is gone", lab=lab).exit_code == 0
    assert cluster.hooks == {}


def test_a_guest_that_is_locked_or_on_a_host_offline_is_named_before_anything_is_changed(cluster):
    cluster.answer("/nodes/pve2/qemu/102/config", lock="backup")
    result = remove(cluster)
    assert (result.exit_code, len(cluster.hooks)) == (2, 2)
    assert "102 is locked (backup)" in result.stderr
    cluster.host("pve2", online=0)
    result = remove(cluster)
    assert (result.exit_code, len(cluster.hooks)) == (2, 2)
    assert "102 is on pve2, which is offline" in result.stderr
    assert remove(cluster, "--vmid", "101").exit_code == 0


def test_a_guest_that_keeps_it_is_named(cluster):
    cluster.change(deaf=["102"])
    result = remove(cluster)
    assert result.exit_code == 3
    assert f"102: its hookscript reads '{VOLUME}' after it was deleted" in result.stderr
    assert "101: has no hookscript any more" in result.stdout


@pytest.mark.parametrize("words", [["--storage", "nas"], ["--replace"], ["--copy"], ["--vmid", "x"]], ids=str)
def test_what_belongs_to_installing_is_refused(cluster, words):
    assert (remove(cluster, *words).exit_code, len(cluster.hooks)) == (2, 2)


@pytest.mark.parametrize("words", [[], ["--vmid", "101"], ["--storage", "nas"]], ids=str)
def test_to_install_it_guests_and_storage_have_to_be_named(cluster, words):
    result = Lab().run("setup", "hook", *words)
    assert result.exit_code == 2
    assert "Name the guests with --vmid" in result.stderr
