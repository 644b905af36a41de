"""Who fencer is in the cluster, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential for the cluster, until it ends.

    Attributes:
        what: ``token`` or ``certificate``.
        ends: When it is no longer valid. None: it does not say.
        renewal: The command that makes a kubeconfig with another token. Empty: there is no kubeconfig.
        begins: Since when it is valid. None: it does not say.
    """

    what: str
    ends: datetime | None
    renewal: str
    begins: datetime | None = None

    @property
    def life_s(self) -> float | None:
        """For how long it is valid in all, in seconds. None: it does not say."""
        return (self.ends - self.begins).total_seconds() if self.ends and self.begins else None


class Account(Protocol):
    """Who fencer is in the cluster: facts for people, which no decision needs."""

    def missing_attachment_rights(self) -> Sequence[str]:
        """Name the rights that `Cluster.delete_attachment` needs and we do not have.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def missing_lease_rights(self, lease: str) -> Sequence[str]:
        """Name the rights to one of fencer's Leases that we do not have, whether or not it is there.

        Args:
            lease: Its name, see `fencer.core.election.lease_name`.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def confined(self, node: str) -> bool:
        """Find out whether the admission policy holds for us: try a label, as a dry run that writes nothing.

        Args:
            node: Any existing node.

        Returns:
            False: we may set it.

        Raises:
            ClusterNotFound, ClusterUnreachable, ClusterDenied, ClusterProtocol: it is not known; also if
                something else than the policy refused.
        """
        ...

    def try_watch(self) -> None:
        """Watch the nodes for a moment, until one is told of: there has to be one.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol: why an agent would only list them.
        """
        ...

    def credentials(self) -> Sequence[Credential]:
        """Return our credentials, and until when they are valid, as far as they say. Asks nobody.

        Raises:
            ConfigError: the kubeconfig cannot be used any more.
        """
        ...
