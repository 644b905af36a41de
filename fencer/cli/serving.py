"""Metrics, health and the status page, while the agent runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from fencer import DISTRIBUTION
from fencer.cli.wire import Parts, Wiring
from fencer.core.policy import Policy
from fencer.ports import Credential, Reporter, Viewer
from fencer.runtime.world import API
from fencer.web.board import Board
from fencer.web.settings import WebSettings
from fencer.web.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Served:
    """What has to be fed for what is served.

    Attributes:
        board: Keeps what is shown; None: nothing is served.
    """

    board: Board | None = None

    @property
    def reporters(self) -> tuple[Reporter, ...]:
        """Are told what the agent decides and does."""
        return () if self.board is None else (self.board,)

    @property
    def viewers(self) -> tuple[Viewer, ...]:
        """Are shown every pass."""
        return () if self.board is None else (self.board,)

    def alive(self) -> None:
        """Take note of a sign of life from the agent."""
        if self.board is not None:
            self.board.alive()

    def holds(self, credentials: Sequence[Credential]) -> None:
        """Take note of when the credentials for the cluster end."""
        if self.board is not None:
            self.board.ends(min((one.ends for one in credentials if one.ends is not None), default=None))


@contextmanager
def served(wiring: Wiring, parts: Parts, policy: Policy) -> Iterator[Served]:
    """Serve what there is to look at, as the configuration says; it ends with this.

    Args:
        wiring: Knows this host and the time.
        parts: The working parts, with the configuration.
        policy: With the mode that is in force.
    """
    settings, journal = parts.config.web, parts.config.journal
    if settings is None:
        yield Served()
        return
    host = wiring.host()
    board = Board(
        version(DISTRIBUTION),
        f"fencer@{host}",
        policy,
        API,
        tuple(parts.hypervisors),
        parts.clock.now_s,
        wiring.wall,
        None if journal is None else journal.file,
    )
    with _listening(settings, board, host, wiring, parts.path):
        yield Served(board)


@contextmanager
def _listening(
    settings: WebSettings, board: Board, host: str, wiring: Wiring, configuration: Path
) -> Iterator[None]:
    """Answer on the port, until this ends."""
    from fencer.web.lately import LatelyReader  # noqa: PLC0415 - a server and its libraries: no other command needs them
    from fencer.web.names import Names  # noqa: PLC0415 - as above
    from fencer.web.server import Server  # noqa: PLC0415 - as above
    from fencer.web.site import Site  # noqa: PLC0415 - as above
    from fencer.web.style import STYLE_HASH  # noqa: PLC0415 - as above

    lately = LatelyReader(board.snapshot().journal, wiring.looking_back, time.monotonic)

    def made(shown: Snapshot, *, every: bool) -> bytes:
        from fencer.web.page import page  # noqa: PLC0415 - six MiB, where anybody looks

        now = wiring.looking_back()
        return page(shown, lately.look(), now, every=every, path=str(configuration.absolute())).encode()

    pages = {"/": partial(made, every=False), "/all": partial(made, every=True)}
    names = Names((host, host.partition(".")[0]), settings.names)
    server = Server(settings, Site(board.snapshot, pages, names, time.monotonic, (STYLE_HASH,)))
    lately.begin()
    try:
        yield
    finally:
        server.close()
        lately.end()
