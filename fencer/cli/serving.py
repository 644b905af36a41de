"""Metrics, health and the status page, while the agent runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from fencer.cli.wire import Parts, Wiring
from fencer.core.policy import Policy
from fencer.ports import Credential, Reporter, Viewer


@dataclass(frozen=True, slots=True)
class Served:
    """What has to be fed for what is served.

    Attributes:
        reporters: Are told what the agent decides and does.
        viewers: Are shown every pass.
    """

    reporters: tuple[Reporter, ...] = ()
    viewers: tuple[Viewer, ...] = ()

    def holds(self, credentials: Sequence[Credential]) -> None:
        """Take note of when the credentials for the cluster end."""


@contextmanager
def served(_wiring: Wiring, _parts: Parts, _policy: Policy) -> Iterator[Served]:
    """Serve what there is to look at, as the configuration says; it ends with this.

    Args:
        wiring: Builds what listens.
        parts: The working parts, with the configuration.
        policy: With the mode that is in force.
    """
    yield Served()
