"""Where a cluster says that its API servers are, for a kubeconfig of a machine outside. Only setup asks."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from fencer.cluster.apiclient import build_client
from fencer.cluster.client import Connection
from fencer.cluster.fields import items, number, sequence, text
from fencer.cluster.requests import KUBE_SYSTEM, NODES, get
from fencer.cluster.settings import ClusterSettings
from fencer.errors import ClusterError

HTTPS = 443
_SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
_OF_THE_API = "kubernetes.io/service-name=kubernetes"
"""Each API server writes its own address there.

Source: Kubernetes, pkg/controlplane, Controller.UpdateKubernetesService.
"""
_SERVICE = "/api/v1/namespaces/default/services/kubernetes"


@dataclass(frozen=True, slots=True)
class Doors:
    """What a cluster tells of the ways to its API.

    Attributes:
        servers: Addresses of its API servers, by their own word.
        port: Theirs.
        nodes: All addresses and names of its nodes.
        inside: Addresses that lead there from within the cluster alone.
        certified: Names and addresses in the certificate of the server that was asked.
    """

    servers: tuple[str, ...] = ()
    port: int = HTTPS
    nodes: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    certified: tuple[str, ...] = ()


def look(settings: ClusterSettings, sleep: Callable[[float], object]) -> Doors:
    """Ask a cluster where its API servers are.

    Args:
        settings: An administrator's kubeconfig.
        sleep: Pauses between two tries of a read.

    Raises:
        ConfigError: the kubeconfig cannot be used.
        ClusterError: the API server did not say.
    """
    connection = Connection(settings, sleep)
    slices = connection.read("list endpointslices of kubernetes", get(_SLICES, labelSelector=_OF_THE_API))
    nodes = connection.read("list nodes", get(NODES))
    try:
        service = connection.read("get service kubernetes", get(_SERVICE))
        told = service.read(lambda body: sequence(body, "spec", "clusterIPs"))
        inside = frozenset(_canonical(str(address)) for address in told)
    except ClusterError:  # what it tells only leaves an address out that would not answer
        inside = frozenset()
    servers, port = slices.read(_servers)
    return Doors(
        servers,
        port,
        nodes.read(_addresses),
        inside,
        certified_by(settings, connection.server),
    )


def why_not(settings: ClusterSettings, url: str, uid: str) -> str:
    """Say why a URL does not lead to a cluster from here; empty: it does.

    Args:
        settings: An administrator's kubeconfig.
        url: Asked alone, once.
        uid: Of the cluster's kube-system.

    Raises:
        ConfigError: the kubeconfig cannot be used.
    """
    connection = Connection(replace(settings, servers=()), lambda _s: None, read_tries=1, only=url)
    try:
        space = connection.read("get namespace kube-system", KUBE_SYSTEM)
        return "" if space.required("metadata", "uid") == uid else f"{url} is another cluster"
    except ClusterError as error:
        return str(error)


def certified_by(settings: ClusterSettings, url: str) -> tuple[str, ...]:
    """Return the names and addresses in a server's certificate, once it was verified; empty: it was not."""
    configuration = build_client(settings, url).configuration
    place = urlsplit(url)
    host = place.hostname or ""
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as in tls.py
        name = getattr(configuration, "tls_server_name", None) or host
        with (
            socket.create_connection((host, place.port or HTTPS), settings.connect_timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=name) as verified,
        ):
            told = verified.getpeercert() or {}
    except (OSError, ValueError):
        return ()
    # OpenSSL tells pairs of a kind and a name.
    named: Any = told.get("subjectAltName", ())
    return tuple(_canonical(str(name)) for _kind, name in named)


def _servers(body: dict[str, Any]) -> tuple[tuple[str, ...], int]:
    slices = items(body, "EndpointSliceList")
    addresses = [
        _canonical(str(address))
        for one in slices
        for endpoint in sequence(one, "endpoints")
        for address in sequence(endpoint, "addresses")
    ]
    ports = [port for one in slices for told in sequence(one, "ports") if (port := number(told, "port"))]
    return tuple(dict.fromkeys(addresses)), ports[0] if ports else HTTPS


def _addresses(body: dict[str, Any]) -> frozenset[str]:
    nodes = items(body, "NodeList")
    told = [one for node in nodes for one in sequence(node, "status", "addresses")]
    names = (text(node, "metadata", "name") for node in nodes)
    return frozenset((*names, *(_canonical(text(one, "address")) for one in told)))


def _canonical(text: str) -> str:
    """Write an address as Python does: certificates have IPv6 in capitals and without `::`."""
    try:
        return str(ip_address(text))
    except ValueError:
        return text.lower()
