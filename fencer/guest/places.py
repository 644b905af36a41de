"""Where the known installers put a kubelet's credentials and settings, and what they call its unit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """One installer.

    Attributes:
        name: As people call it.
        kubeconfig: The kubelet's own.
        units: One of them runs the kubelet.
        config: The kubelet's configuration file, where the command line names none.
        drop_ins: The folder whose ``*.conf`` add to it.
        settings: The installer's own file, which may name more (k3s and RKE2: ``kubelet-arg``).
        arguments: The file that holds the kubelet's command line (MicroK8s).
    """

    name: str
    kubeconfig: str
    units: tuple[str, ...]
    config: str = ""
    drop_ins: str = ""
    settings: str = ""
    arguments: str = ""


PLACES = (
    Place(
        "k3s",
        "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
        ("k3s.service", "k3s-agent.service"),
        drop_ins="/var/lib/rancher/k3s/agent/etc/kubelet.conf.d",
        settings="/etc/rancher/k3s/config.yaml",
    ),
    Place(
        "RKE2",
        "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
        ("rke2-server.service", "rke2-agent.service"),
        drop_ins="/var/lib/rancher/rke2/agent/etc/kubelet.conf.d",
        settings="/etc/rancher/rke2/config.yaml",
    ),
    Place("k0s", "/var/lib/k0s/kubelet.conf", ("k0scontroller.service", "k0sworker.service")),
    Place(
        "kubeadm",
        "/etc/kubernetes/kubelet.conf",
        ("kubelet.service",),
        config="/var/lib/kubelet/config.yaml",
    ),
    Place(
        "MicroK8s",
        "/var/snap/microk8s/current/credentials/kubelet.config",
        ("snap.microk8s.daemon-kubelite.service",),
        arguments="/var/snap/microk8s/current/args/kubelet",
    ),
)
"""Source: the installers' documentation; k0s pkg/constant; k3s pkg/daemons (config-dir since v1.32); microk8s
microk8s-resources/default-args."""

UNITS = tuple(unit for place in PLACES for unit in place.units)

TOKENS = ("/etc/kubernetes", "/var/lib/kubelet", "/var/lib/rancher", "/var/lib/k0s")
"""Where a kubelet's token may lie: these installers keep there what is its own, and root no other secret."""
