"""Where the known installers put a kubelet's credentials and settings, and the name of its unit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """One installer.

    Attributes:
        name: As people call it.
        kubeconfig: The kubelet's own.
        units: One of them runs the kubelet.
        config: The kubelet's configuration file, if the command line names none.
        drop_ins: The folder whose ``*.conf`` add to it.
        settings: The installer's own file, which may name more (k3s and RKE2: ``kubelet-arg``).
        arguments: The file that holds the kubelet's command line (MicroK8s).
        servers: Files that list API servers.
    """

    name: str
    kubeconfig: str
    units: tuple[str, ...]
    config: str = ""
    drop_ins: str = ""
    settings: str = ""
    arguments: str = ""
    servers: tuple[str, ...] = ()


_AGENT = "/var/lib/rancher/{0}/agent"


def _rancher(name: str, program: str, *units: str) -> Place:
    return Place(
        name,
        f"{_AGENT}/kubelet.kubeconfig".format(program),
        units,
        drop_ins=f"{_AGENT}/etc/kubelet.conf.d".format(program),
        settings=f"/etc/rancher/{program}/config.yaml",
        servers=tuple(
            f"{_AGENT}/etc/{{0}}-{of}agent-load-balancer.json".format(program) for of in ("api-server-", "")
        ),
    )


PLACES = (
    _rancher("k3s", "k3s", "k3s.service", "k3s-agent.service"),
    _rancher("RKE2", "rke2", "rke2-server.service", "rke2-agent.service"),
    Place(
        "k0s",
        "/var/lib/k0s/kubelet.conf",
        ("k0scontroller.service", "k0sworker.service"),
        servers=(
            "/run/k0s/nllb/envoy/cds.yaml",
            "/run/k0s/nllb/traefik/routing.yaml",
            "/run/k0s/kubelet-direct.conf",
        ),
    ),
    Place(
        "kubeadm",
        "/etc/kubernetes/kubelet.conf",
        ("kubelet.service",),
        config="/var/lib/kubelet/config.yaml",
        servers=("/etc/kubernetes/admin.conf",),
    ),
    Place(
        "MicroK8s",
        "/var/snap/microk8s/current/credentials/kubelet.config",
        ("snap.microk8s.daemon-kubelite.service",),
        arguments="/var/snap/microk8s/current/args/kubelet",
        servers=("/var/snap/microk8s/current/args/traefik/provider.yaml",),
    ),
)
"""Source: the installers' documentation; k0s pkg/constant; k3s pkg/daemons (config-dir since v1.32); microk8s
microk8s-resources/default-args; of the lists of servers, see `fencer.guest.servers`."""

UNITS = tuple(unit for place in PLACES for unit in place.units)

TOKENS = ("/etc/kubernetes", "/var/lib/kubelet", "/var/lib/rancher", "/var/lib/k0s")
"""Where a kubelet's token may be: these installers keep only the kubelet's secrets there."""
