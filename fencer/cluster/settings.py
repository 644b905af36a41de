"""How to reach the Kubernetes API. Cheap to import: the client itself is loaded only when it is built."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Where the API is and who we are there.

    Attributes:
        kubeconfig: File with the API server's address and fencer's credentials. There is no default: root's
            own is never taken silently.
        context: Which of its contexts; None: its current one.
        servers: Further API servers of the same cluster, as URLs, tried in turn after the kubeconfig's own
            when that one does not answer. Same CA, same credentials, same kube-system.
        unauthenticated: Take a kubeconfig that does not verify its server, by https and a CA.
        borrowed: It is an administrator's, for one command: fencer renews nothing in it.
        connect_timeout_s: Longest wait for a connection, TLS included.
        read_timeout_s: Longest time for an answer, from its first byte to its last, whatever its status is.
    """

    kubeconfig: Path
    context: str | None = None
    servers: tuple[str, ...] = ()
    unauthenticated: bool = False
    borrowed: bool = False
    connect_timeout_s: float = 3.0
    read_timeout_s: float = 7.0
