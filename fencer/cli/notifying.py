"""People told without asking, while the agent runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fencer.cli.wire import Parts, Wiring
from fencer.ports import Viewer


@contextmanager
def notified(_wiring: Wiring, _parts: Parts, _by: str) -> Iterator[tuple[Viewer, ...]]:
    """Give what is shown every pass, so that people are told; it ends with this.

    Args:
        wiring: Builds the receivers.
        parts: The working parts, with the configuration.
        by: Who tells: ``fencer@pve1``.
    """
    yield ()
