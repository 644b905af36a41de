"""Other API servers in the installer's lists, in case the kubeconfig's own does not answer.

Kubelets of a node with an API server ask only that one: k3s, RKE2 and k0s by loopback, kubeadm by the node's
address. If static pods, the unit or the store stop first, a drain would end there.

Only addresses are taken from these files. A server has to show a certificate of the same authority for the
name `kubernetes`, which all of these installers give only to API servers. A certificate for its address is
not enough: k3s, RKE2 and MicroK8s sign kubelets' certificates for their addresses with the same authority.

Source: k3s pkg/cli/server (no load balancer beside an API server), pkg/agent/loadbalancer (ServerURL,
ServerAddresses), pkg/cluster/https.go and pkg/daemons/control/deps (names), pkg/cli/cmds/agent.go (K3S_URL),
install.sh (the unit's EnvironmentFile); rke2 pkg/cli/defaults (ports), bundle/lib/systemd/system (the same);
kubeadm 1.36 app/cmd/phases/join/kubelet.go (a control plane's kubelet: its own), phases/kubeconfig
(admin.conf: the endpoint of all), util/pkiutil; k0s 1.37 pkg/component/worker/nllb (Envoy's cds.yaml,
Traefik's routing.yaml), worker/utils.go (kubelet-direct.conf), cmd/controller/certificates.go; microk8s
scripts/wrappers/join.py (provider.yaml), microk8s-resources/certs/csr.conf.template.
"""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Callable, Iterator

from fencer.guest import files
from fencer.guest.errors import Unusable
from fencer.guest.fields import items, mapping
from fencer.guest.kubeconfig import Access, address
from fencer.guest.kubelet_config import read_found, settings_files
from fencer.guest.little_yaml import document
from fencer.guest.places import Place

MOST = 16
"""At most this many are asked; clusters have three to seven."""
_NAME = "kubernetes"
_SUPERVISOR, _API = 9345, 6443
"""Nodes join RKE2's servers by another port than that of their API servers."""
_SERVER = re.compile(
    r"(?: (?:--server|-s)[= ]|^(?:Environment=(?:.* )?)?(?:K3S|RKE2)_URL=)['\"]?(https:[^\s'\";]+)",
    re.MULTILINE,
)
_ENVIRONMENT = re.compile(r"^EnvironmentFiles?=(.+) \(ignore", re.MULTILINE)
"""As systemctl tells them, since 240 in the plural. Source: systemd src/systemctl/systemctl-show.c."""
_TRAEFIK = "tcp.services.{}.loadBalancer.servers.*.address"
_WAYS = (
    "ServerAddresses.*",
    "server",
    "clusters.*.cluster.server",
    # The first cluster is the API servers'; konnectivity's is the next.
    "resources.0.load_assignment.endpoints.*.lb_endpoints.*.endpoint.address.socket_address",
    _TRAEFIK.format("apiserver"),
    _TRAEFIK.format("kube-apiserver"),
)


def others(root: Path, place: Place, own: Access, command: str = "") -> tuple[list[Access], list[str]]:
    """Read the listed servers; `MOST` at most. Root must own the files, as the kubeconfig (`files.found`).

    Args:
        root: Of the file system.
        place: The installer.
        own: The kubeconfig's server: listed ones are asked in the same way.
        command: The units' ExecStart, Environment and EnvironmentFiles, which tell what a server of k3s or
            RKE2 joined by.

    Returns:
        The servers, and why files could not be read.
    """
    entries: list[str] = _SERVER.findall(command)
    troubles: list[str] = []
    readers: dict[Path, Callable[[str], Any]] = {root / name.lstrip("/"): _listed for name in place.servers}
    readers.update((path, _listed) for path in settings_files(root, place))
    readers.update((root / name.lstrip("/"), _SERVER.findall) for name in _ENVIRONMENT.findall(command))
    for path in filter(files.there, readers):
        entries += read_found(root, path, readers[path], troubles) or ()
    found: dict[str, Access] = {}
    for entry in entries:
        access = another(own, entry)
        if access and len(found) < MOST:
            found.setdefault(access.url, access)
    return list(found.values()), troubles


def another(own: Access, entry: str) -> Access | None:
    """Return the way to a server listed as `https://HOST:PORT` or `HOST:PORT`; None: neither."""
    try:
        host, port, prefix = address(own.source, entry if "://" in entry else f"https://{entry}")
    except Unusable:
        return None
    if prefix:
        return None
    port = _API if port == _SUPERVISOR else port
    return replace(own, host=host, port=port, server_name=own.server_name or _NAME)


def on_this_machine(host: str) -> bool:
    """Whether an address, or a name, leads only to this machine."""
    owns = []
    with suppress(OSError, ValueError):  # an unknown or invalid name
        for family, kind, _, _, at in socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM):
            with suppress(OSError), socket.socket(family, kind) as probe:
                probe.connect(at)  # sends nothing: the kernel only chooses from where it would
                to = probe.getpeername()[0]
                owns.append(to == probe.getsockname()[0] or ip_address(to).is_loopback)
    return bool(owns) and all(owns)


def _listed(text: str) -> list[str]:
    content = document(text)
    return [entry for way in _WAYS for entry in _entries(content, way)]


def _entries(content: Any, way: str) -> Iterator[str]:
    values = [content]
    for step in way.split("."):
        values = [inner for value in values for inner in _step(value, step)]
    for value in values:
        if isinstance(value, dict):
            host = str(value.get("address"))
            yield (f"[{host}]" if ":" in host else host) + f":{value.get('port_value')}"
        elif isinstance(value, str):
            yield value


def _step(value: Any, step: str) -> list[Any]:
    if step == "*":
        return items(value)
    return items(value)[:1] if step == "0" else [mapping(value).get(step)]
