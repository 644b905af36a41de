"""What agents share through the Kubernetes API: Leases, and what one of them is to each hypervisor."""

from __future__ import annotations

from typing import Protocol

from fencer.core.election import LeaseRecord, Tenure


class LeaseStore(Protocol):
    """The Leases of fencer, in the namespace `fencer.core.election.NAMESPACE`. No method retries a write."""

    def read_lease(self, name: str) -> LeaseRecord:
        """Read a Lease live.

        Raises:
            ClusterNotFound: there is none of that name: nothing was set up for it.
            ClusterDenied: we may not read it.
            ClusterUnreachable, ClusterProtocol.
        """
        ...

    def write_lease(self, record: LeaseRecord) -> LeaseRecord:
        """Write holder, times, transitions and fencer's annotations, if it still is at ``record.version``.

        Annotations of fencer (``fencer.dev/…``) that the Lease had when it was read, and that
        ``record.notes`` has no longer, are taken off; those of others stay.

        Args:
            record: As it was read, with what is to change.

        Returns:
            The Lease as it is now.

        Raises:
            ClusterConflict: somebody has written it since, or it is another object.
            ClusterNotFound, ClusterDenied, ClusterProtocol.
            ClusterUnreachable: the outcome is unknown.
        """
        ...


class Election(Protocol):
    """What this agent is to each hypervisor. It asks nobody: the Leases are renewed beside it."""

    def tenure(self, endpoint: str) -> Tenure:
        """Return what this agent is to the hypervisor of an endpoint, as of now."""
        ...
