"""Nodes as their installers make them: unit, processes, files and modes; read in their sources, not run here.

Source: k3s.service and cmd/k3s/main.go; rke2 bundle/lib/systemd/system and pkg/executor/staticpod; k0s
pkg/install, pkg/component/worker/kubelet.go and pkg/config/cfgvars.go; kubeadm's kubelet.service and its
10-kubeadm.conf; microk8s snap/snapcraft.yaml, snap/hooks/configure and microk8s-resources. Of lists of API
servers, see `fencer.guest.servers`.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fencer.guest import kubeconfig, kubelets
from fencer.guest.collect import collect
from fencer.guest.connect import connect
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


def _kubeconfig(machine: Machine, name: str, server: str = "https://127.0.0.1:6443") -> Path:
    content = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
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
    """k0s writes the kubelet's configuration again at each start, and names it.

    The kubelet itself has a copy of the kubeconfig that names the API server beside it, or the load balancer.
    """
    machine.kubelet(unit, "/usr/local/bin/k0s", unit[3:-8], "--data-dir=/var/lib/k0s")
    config = "run/k0s/kubelet/config.yaml"
    copy = "kubelet-direct.conf" if "controller" in unit else "nllb/kubeconfig.yaml"
    machine.process(
        900, ["/var/lib/k0s/bin/kubelet", f"--config=/{config}", f"--kubeconfig=/run/k0s/{copy}"], PPid="812"
    )
    machine.write(config, GRACEFUL)
    _kubeconfig(machine, f"run/k0s/{copy}", "https://[::1]:7443")
    _kubeconfig(machine, "var/lib/k0s/kubelet.conf")


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
    kubelet = collect(machine.root, machine.run).kubelet
    assert (replace(kubelet, set_in=""), bool(kubelet.set_in)) == (Kubelet(unit, grace_s=60), True)


def _joined(machine: Machine, unit: str) -> None:
    """A server of k3s that joined another one's embedded etcd has that one on its command line."""
    _k3s(machine, unit)
    machine.k3s_command = "argv[]=/usr/local/bin/k3s server --server https://10.0.0.2:6443 --token t ;"


def _joined_by_a_variable(machine: Machine, unit: str) -> None:
    """So it is where `K3S_URL=… sh -s - server` installed it."""
    _k3s(machine, unit)
    name = f"/etc/systemd/system/{unit}.env"
    machine.write(name[1:], "K3S_TOKEN='t'\nK3S_URL='https://10.0.0.2:6443'\n").chmod(0o600)
    machine.environment = ["Environment=", f"EnvironmentFiles={name} (ignore_errors=yes)"]


def _k3s_agent(machine: Machine, unit: str) -> None:
    """Its load balancer is in its own process, and keeps all servers in a file."""
    _k3s(machine, unit)
    _kubeconfig(machine, "var/lib/rancher/k3s/agent/kubelet.kubeconfig", "https://127.0.0.1:6444")
    _rancher_list(machine, "k3s/agent/etc/k3s-agent-load-balancer.json", 6443)


def _rke2_server(machine: Machine, unit: str) -> None:
    """Beside an API server there is no load balancer: no file lists the others."""
    _rke2(machine, unit)
    machine.write("etc/rancher/rke2/config.yaml", "server: https://10.0.0.2:9345\ntoken: t\n")


def _rke2_agent(machine: Machine, unit: str) -> None:
    """One load balancer for the supervisors, which are no API servers, and one for those."""
    _rke2(machine, unit)
    _rancher_list(machine, "rke2/agent/etc/rke2-api-server-agent-load-balancer.json", 6443)


def _rancher_list(machine: Machine, name: str, port: int) -> None:
    content = {"ServerURL": f"https://10.0.0.2:{port}", "ServerAddresses": [f"10.0.0.2:{port}"]}
    machine.write(f"var/lib/rancher/{name}", json.dumps(content, indent=2))


def _kubeadm_local_mode(machine: Machine, unit: str) -> None:
    """Since 1.31 by choice, since 1.36 always: a control plane's kubelet asks the API server beside it."""
    _kubeadm(machine, unit)
    _kubeconfig(machine, "etc/kubernetes/kubelet.conf", "https://10.0.0.1:6443")
    _kubeconfig(machine, "etc/kubernetes/admin.conf", "https://10.0.0.2:6443").chmod(0o600)


def _k0s_with_nllb(machine: Machine, unit: str) -> None:
    _k0s(machine, unit)
    traefik = {"services": {"apiserver": {"loadBalancer": {"servers": [{"address": "10.0.0.2:6443"}]}}}}
    machine.write("run/k0s/nllb/traefik/routing.yaml", yaml.safe_dump({"tcp": traefik}))


def _microk8s_worker(machine: Machine, unit: str) -> None:
    """A proxy on the loopback, where the API server of a control plane would be."""
    _microk8s(machine, unit)
    traefik = {"services": {"kube-apiserver": {"loadBalancer": {"servers": [{"address": "10.0.0.2:6443"}]}}}}
    machine.write(f"{MICROK8S}/args/traefik/provider.yaml", yaml.dump({"tcp": traefik}))


@pytest.mark.parametrize(
    ("prepare", "unit"),
    [
        (_joined, "k3s.service"),
        (_joined_by_a_variable, "k3s.service"),
        (_k3s_agent, "k3s-agent.service"),
        (_rke2_server, "rke2-server.service"),
        (_rke2_agent, "rke2-agent.service"),
        (_k0s_with_nllb, "k0scontroller.service"),
        (_k0s_with_nllb, "k0sworker.service"),
        (_kubeadm_local_mode, "kubelet.service"),
        (_microk8s_worker, KUBELITE),
    ],
)
def test_other_api_servers_are_found(
    machine: Machine, prepare: Callable[[Machine, str], None], unit: str
) -> None:
    prepare(machine, unit)
    found, troubles = connect(machine.root, machine.run, node="k8s-1").api.others()
    assert ("https://10.0.0.2:6443" in [it.url for it in found], troubles) == (True, [])
    kubelet = collect(machine.root, machine.run, node="k8s-1").kubelet
    assert replace(kubelet, set_in="") == Kubelet(unit, grace_s=60)


def test_the_first_server_of_k3s_has_no_list(machine: Machine) -> None:
    """It joined nobody, and keeps nowhere who joined it."""
    _k3s(machine, "k3s.service")
    machine.k3s_command = "argv[]=/usr/local/bin/k3s server --cluster-init ;"
    assert connect(machine.root, machine.run, node="k8s-1").api.others() == ([], [])


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


def test_the_drain_comes_before_the_stop_of_every_api_server() -> None:
    """Of k3s and RKE2, k0s and MicroK8s it is in the unit of the kubelet; of kubeadm it ends with containers.

    So a server that goes down by itself still has its own API server for the drain.
    """
    containers = {"containerd.service", "crio.service"}
    assert {unit for place in PLACES for unit in place.units} | containers <= (
        _after("fencer-guest-drain.service")
    )


def test_the_drain_comes_before_the_stop_of_what_microk8s_is_made_of() -> None:
    """Its API server is in the kubelet's process; its store, containers and proxy are other units."""
    parts = ("k8s-dqlite", "etcd", "apiserver-proxy", "containerd", "flanneld")
    assert {f"snap.microk8s.daemon-{part}.service" for part in parts} <= (
        _after("fencer-guest-drain.service")
    )
