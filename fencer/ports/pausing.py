"""Writing a pause, for a person: apart from `Cluster`, because fencer's own account may not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Paused:
    """What is written about a pause on the namespace kube-system or on a Node, as it was read live.

    Attributes:
        node: Name of the node; None: it is the namespace, and so the whole cluster.
        text: The annotation's text, for `fencer.core.pause`; None: there is none.
        uid: UID of the object.
        version: Its resourceVersion.
        utc: The API server's clock when it answered, RFC 3339.
    """

    node: str | None
    text: str | None
    uid: str
    version: str
    utc: str


class Pauser(Protocol):
    """The Kubernetes API with a person's credentials, reduced to the pause annotation."""

    @property
    def server(self) -> str:
        """The API server that is asked, for people."""
        ...

    def cluster_uid(self) -> str:
        """Return the UID of the namespace kube-system: the cluster's identity.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def read(self, node: str | None) -> Paused:
        """Read what is written.

        Args:
            node: On which node; None: on kube-system.

        Raises:
            ClusterNotFound: no such node.
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def write(self, before: Paused, text: str | None) -> None:
        """Write the annotation, if the object is still as it was read.

        Args:
            before: As it was read.
            text: The new text; None: take the annotation off.

        Raises:
            ClusterConflict: the object changed since it was read.
            ClusterDenied: this account may not.
            ClusterNotFound, ClusterUnreachable, ClusterProtocol.
        """
        ...
