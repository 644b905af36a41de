"""How to reach the Kubernetes API. Cheap to import: the client itself is loaded only when it is built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Where the API is and who we are there.

    Attributes:
        kubeconfig: Path of the kubeconfig file. There is no default: root's own is never taken silently.
        context: Which of its contexts; None: its current one.
        servers: Further API servers of the same cluster, as URLs, tried in turn after the kubeconfig's own
            when that one does not answer. Same CA, same credentials, same kube-system.
        in_cluster: Use the service account of the pod that we run in, instead of a kubeconfig.
        unauthenticated: Take a kubeconfig that does not verify its server, by https and a CA.
        borrowed: It is an administrator's, for one errand: fencer renews nothing in it.
        connect_timeout_s: Longest wait for a connection, TLS included.
        read_timeout_s: Longest time for an answer, from its first byte to its last, whatever its status is.
    """

    kubeconfig: str | None
    context: str | None = None
    servers: tuple[str, ...] = ()
    in_cluster: bool = False
    unauthenticated: bool = False
    borrowed: bool = False
    connect_timeout_s: float = 3.0
    read_timeout_s: float = 7.0
