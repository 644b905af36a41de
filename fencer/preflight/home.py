"""Judges where fencer itself runs: never in the cluster that it fences, nor on one of its nodes.

A node's boot id is random, and the kernel's: every container on a machine reads the machine's own. So a pod
of the fenced cluster, whatever it may ask there, finds its boot id on one of that cluster's Nodes.
Source: random(4), /proc/sys/kernel/random/boot_id; kubelet, status.nodeInfo.bootID.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from fencer.core.model import NodeView
from fencer.core.text import printable
from fencer.preflight.finding import Finding, Level

SERVICE = "kubernetes.default"
"""The API server's name within every cluster. Source: Kubernetes, the Service that each API server makes."""
HTTPS = 443

_URL = re.compile(
    r"https://(?P<host>\[[0-9A-Fa-f:.]+\]|[^/:\[\]]+)(?::(?P<port>[0-9]{1,5}))?(?:/|$)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Home:
    """Where this process runs, as far as it knows without asking anybody.

    Attributes:
        host: The machine's name; in a pod, the pod's.
        boot_id: The kernel's, of this boot; empty: it cannot be read.
        api: ``HOST:PORT`` of the API server of the cluster in which we are a pod; empty: we are none.
    """

    host: str
    boot_id: str = ""
    api: str = ""


def read_home(host: str, boot_id: str, environment: Mapping[str, str]) -> Home:
    """Return where we run.

    Args:
        host: The machine's name.
        boot_id: What the kernel says of its boot.
        environment: Of this process. Source: Kubernetes, "Accessing the API from a Pod": the kubelet sets
            both variables in every container, whether or not it has a token.
    """
    api = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", str(HTTPS))
    return Home(host, boot_id.strip().lower(), f"{_bare(api)}:{port}" if api else "")


def why_at_home(home: Home, servers: Collection[str], nodes: Collection[NodeView]) -> str:
    """Say what shows that we would fence ourselves.

    Args:
        home: Where we run.
        servers: URLs of the fenced cluster's API servers.
        nodes: Its nodes.

    Returns:
        A sentence; empty: nothing does.
    """
    # An excluded node is never fenced; perhaps it is a container, which has its host's boot id. A pod on it
    # is in this cluster all the same.
    same = sorted(one.name for one in nodes if _boots_as(one, home) and (home.api or not one.excluded))
    if same and home.api:
        return (
            f"fencer runs in the cluster that it fences: its pod {printable(home.host)} is on node "
            f"{printable(same[0])}, by their boot id"
        )
    if same:
        return f"fencer runs on a node that it fences: this machine is {printable(same[0])}, by its boot id"
    if home.api:
        for server in sorted(servers):
            if _address(server) == home.api or _is_service(server):
                return (
                    f"fencer runs in the cluster that it fences: {printable(server)} is the API server of "
                    "the cluster that this pod is in"
                )
    return ""


def judge(home: Home, servers: Collection[str], nodes: Collection[NodeView] | None) -> Finding:
    """Say where fencer runs, and refuse a place that goes down with what it fences.

    Args:
        home: Where we run.
        servers: URLs of the fenced cluster's API servers.
        nodes: Its nodes; None: they could not be asked for.
    """
    about = f"pod {printable(home.host)}" if home.api else printable(home.host)
    if why := why_at_home(home, servers, nodes or ()):
        text = f"{why}. It would be gone with that node, when it is needed"
        tries = ("run it outside: on a hypervisor's host, a machine of its own, or in another cluster",)
        return Finding("place", about, Level.FAIL, text, tries)
    if nodes is None:
        return Finding("place", about, Level.NOTE, "whether it is one of the nodes is not known")
    if not home.boot_id:
        text = "whether it is one of the nodes is not known: /proc/sys/kernel/random/boot_id cannot be read"
        return Finding("place", about, Level.WARN, text)
    return Finding("place", about, Level.OK, "fencer runs outside the cluster that it fences")


def _boots_as(node: NodeView, home: Home) -> bool:
    return bool(home.boot_id) and node.boot_id.strip().lower() == home.boot_id


def _address(url: str) -> str:
    """Return ``HOST:PORT`` of a URL; empty: it has none."""
    found = _URL.match(url)
    return f"{_bare(found['host'])}:{found['port'] or HTTPS}" if found else ""


def _is_service(url: str) -> bool:
    """Whether a URL leads to the API server of whichever cluster it is resolved in."""
    host = _address(url).rpartition(":")[0]
    return host in {"kubernetes", SERVICE} or host.startswith(f"{SERVICE}.")


def _bare(host: str) -> str:
    return host.strip("[]").lower().removesuffix(".")
