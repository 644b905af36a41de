"""What other controllers of the cluster ask of fencer, and how it answers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fencer.core.requests import Asked, Progress, Request


class Requests(Protocol):
    """FencerRemediations, where the cluster knows that kind. No method retries a write."""

    def asked(self) -> Asked | None:
        """Read all requests live, and which nodes medik8s' controllers work on.

        Returns:
            None: the cluster does not know that kind. Nobody can ask, and no right is needed.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol. A malformed request never hides the others.
        """
        ...

    def adopt(self, request: Request) -> None:
        """Put fencer's finalizer on it, guarded: once deleted, it stays until `release`.

        Raises:
            ClusterConflict: it changed since it was read.
            ClusterNotFound, ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...

    def answer(self, request: Request, progress: Progress, utc: str) -> None:
        """Write its status, guarded.

        Args:
            request: As it was read.
            progress: What to tell.
            utc: The API server's clock, RFC 3339: when what changes has changed.

        Raises:
            As `adopt`.
        """
        ...

    def release(self, request: Request) -> None:
        """Take fencer's finalizer off, guarded; other finalizers stay.

        Raises:
            As `adopt`.
        """
        ...

    def missing_rights(self) -> Sequence[str]:
        """Name the rights that this needs and we do not have. Empty: all there, or the kind is not known.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        ...
