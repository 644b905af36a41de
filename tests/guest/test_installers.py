"""Nodes as their installers make them: unit, processes, files and modes; read in their sources, not run here.

Source: k3s.service and cmd/k3s/main.go; rke2 bundle/lib/systemd/system and pkg/executor/staticpod; k0s
pkg/install, pkg/component/worker/kubelet.go and pkg/config/cfgvars.go; kubeadm's kubelet.service and its
10-kubeadm.conf; microk8s snap/snapcraft.yaml, snap/hooks/configure and microk8s-resources.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fencer.guest import kubeconfig, kubelets
from fencer.guest.collect import collect
from fencer.guest.errors import Unusable
from fencer.guest.facts import Kubelet
from fencer.guest.places import PLACES
from fencer.guest.system import Ran
from tests.guest.machine import Machine

UNITS = Path(__file__).parents[2] / "systemd"
GRACEFUL = "shutdownGracePeriod: 1m0s\n"
MICROK8S = "var/snap/microk8s/6571"
KUBELITE = "snap.microk8s.daemon-kubelite.service"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.active = []
    return machine


def _kubeconfig(machine: Machine, name: str) -> Path:
    content = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    return machine.write(name, json.dumps(content))


def _k3s(machine: Machine, unit: str) -> None:
    """K3s has the kubelet inside, and hides its options."""
    machine.kubelet(unit, f"/usr/local/bin/k3s {'agent' if 'agent' in unit else 'server'}")
    machine.write("var/lib/rancher/k3s/agent/etc/kubelet.conf.d/10-mine.conf", GRACEFUL)
    _kubeconfig(machine, "var/lib/rancher/k3s/agent/kubelet.kubeconfig")


def _rke2(machine: Machine, unit: str) -> None:
    """RKE2 hides its options too, and starts `kubelet` by this name alone."""
    drop_ins = "var/lib/rancher/rke2/agent/etc/kubelet.conf.d"
    machine.kubelet(unit, f"/usr/local/bin/rke2 {'agent' if 'agent' in unit else 'server'}")
    machine.process(900, ["kubelet", f"--config-dir=/{drop_ins}"], PPid="812")
    machine.write(f"{drop_ins}/10-mine.conf", GRACEFUL)
    _kubeconfig(machine, "var/lib/rancher/rke2/agent/kubelet.kubeconfig")


def _k0s(machine: Machine, unit: str) -> None:
    """k0s writes the kubelet's configuration anew at each start, and names it."""
    machine.kubelet(unit, "/usr/local/bin/k0s", unit[3:-8], "--data-dir=/var/lib/k0s")
    config, kube = "run/k0s/kubelet/config.yaml", "var/lib/k0s/kubelet.conf"
    machine.process(
        900, ["/var/lib/k0s/bin/kubelet", f"--config=/{config}", f"--kubeconfig=/{kube}"], PPid="812"
    )
    machine.write(config, GRACEFUL)
    _kubeconfig(machine, kube)


def _kubeadm(machine: Machine, unit: str) -> None:
    config, kube = "var/lib/kubelet/config.yaml", "etc/kubernetes/kubelet.conf"
    machine.kubelet(unit, "/usr/bin/kubelet", f"--kubeconfig=/{kube}", f"--config=/{config}")
    machine.write(config, GRACEFUL)
    _kubeconfig(machine, kube)


def _microk8s(machine: Machine, unit: str) -> None:
    """MicroK8s has all of Kubernetes in one process; what it keeps, with the CIS hardening: root's alone."""
    arguments = f"--kubelet-args-file=/{MICROK8S}/args/kubelet"
    machine.kubelet(unit, "/snap/microk8s/6571/kubelite", arguments, "--start-control-plane=true")
    machine.write(
        f"{MICROK8S}/args/kubelet",
        "--kubeconfig=${SNAP_DATA}/credentials/kubelet.config\n# --config=/no\n"
        '--eviction-hard="memory.available<100Mi"\n\n--config="${SNAP_DATA}/args/kubelet.yaml" --v=2\n',
    )
    machine.write(f"{MICROK8S}/args/kubelet.yaml", GRACEFUL)
    _kubeconfig(machine, f"{MICROK8S}/credentials/kubelet.config")
    (machine.root / "var/snap/microk8s/current").symlink_to("6571")


@pytest.mark.parametrize(
    ("prepare", "unit"),
    [
        (_k3s, "k3s.service"),
        (_k3s, "k3s-agent.service"),
        (_rke2, "rke2-server.service"),
        (_rke2, "rke2-agent.service"),
        (_k0s, "k0scontroller.service"),
        (_k0s, "k0sworker.service"),
        (_kubeadm, "kubelet.service"),
        (_microk8s, KUBELITE),
    ],
)
def test_kubelet_credentials_and_configuration_are_found(
    machine: Machine, prepare: Callable[[Machine, str], None], unit: str
) -> None:
    prepare(machine, unit)
    running = kubelets.running(machine.root, machine.run)
    assert [it.unit for it in running.processes] == [unit]
    assert running.units == (unit,)
    found = kubeconfig.find(machine.root, running)
    assert kubeconfig.read(found, machine.run, machine.root).url == "https://127.0.0.1:6443"
    assert collect(machine.root, machine.run).kubelet == Kubelet(unit, grace_s=60)


def test_microk8s_as_it_comes_is_refused_with_what_would_change_it(machine: Machine) -> None:
    """Its group may write all that it keeps: who is in it could choose the server that gets the token."""
    _microk8s(machine, KUBELITE)
    for name in ("credentials", "args"):
        (machine.root / MICROK8S / name).chmod(0o770)
    step = rf"{MICROK8S}/credentials has owner 0 and mode 0770; .*chmod go-w .*--kubeconfig FILE"
    with pytest.raises(Unusable, match=step):
        kubeconfig.read(kubeconfig.find(machine.root, kubelets.Running((), ())), _no, machine.root)
    kubelet = collect(machine.root, machine.run).kubelet
    assert kubelet.trouble.startswith("/var/snap/microk8s/current/args/kubelet: others than root may change")


def _no(_: object) -> Ran:
    return Ran(None)


def _after(name: str) -> set[str]:
    lines = (UNITS / name).read_text().splitlines()
    return {word for line in lines if line.startswith("After=") for word in line[6:].split()}


def test_the_uncordon_comes_after_every_installers_unit() -> None:
    """As the drain does."""
    assert {unit for place in PLACES for unit in place.units} <= _after("fencer-guest-uncordon.service")


def test_the_drain_comes_before_the_stop_of_what_microk8s_is_made_of() -> None:
    """Its API server is in the kubelet's process; its store, and a worker's way to it, are other units."""
    assert {f"snap.microk8s.daemon-{part}.service" for part in ("k8s-dqlite", "etcd", "apiserver-proxy")} <= (
        _after("fencer-guest-drain.service")
    )
