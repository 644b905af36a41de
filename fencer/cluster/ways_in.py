"""Which API servers a machine outside of a cluster should ask, and in which order. Pure.

An address that is on none of the nodes (a virtual one, or a load balancer's) comes first: it stays when a
guest dies. Of the others each dies with its node, so all of them are named.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from fencer.cluster.account import leads_here
from fencer.cluster.doors import HTTPS, Doors


def candidates(told: str, doors: Doors) -> tuple[str, ...]:
    """Return the URLs to try, best first; whether they lead there from here is for the caller to find out.

    Args:
        told: The URL in the administrator's kubeconfig, or the one that a person gave.
        doors: What the cluster tells.
    """
    port = urlsplit(told).port or HTTPS
    lasting = [name for name in doors.certified if _may_be_a_door(name, doors)]
    servers = [url_of(server, doors.port) for server in doors.servers]
    found = {
        **({told: None} if _is_lasting(told, doors) else {}),
        **dict.fromkeys(url_of(name, port) for name in lasting),
        **({} if leads_here(told) else {told: None}),
        **dict.fromkeys(url for url in servers if not leads_here(url)),
        told: None,
    }
    return tuple(found)


def url_of(host: str, port: int) -> str:
    """Write a URL."""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _is_lasting(url: str, doors: Doors) -> bool:
    host = urlsplit(url).hostname or ""
    return not leads_here(url) and host not in doors.nodes and host not in doors.servers


def _may_be_a_door(name: str, doors: Doors) -> bool:
    """Whether a name in the certificate may lead to the API from outside, and to no node in particular.

    Clusters also have the API's names within the cluster there, and those of their machines.
    """
    if leads_here(url_of(name, HTTPS)) or name in doors.nodes | doors.inside or name in doors.servers:
        return False
    first = name.partition(".")[0]
    if _is_address(name):
        return name != "0.0.0.0"  # noqa: S104 - k3s writes it there
    return "*" not in name and first != "kubernetes" and first not in doors.nodes and "." in name


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
