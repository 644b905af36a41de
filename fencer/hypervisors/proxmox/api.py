"""What reading and powering need from an API server, and which hosts are being asked through one now."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from fencer.hypervisors.proxmox.errors import HostSilent

HANGING_S = 5.0
"""A host that has not answered another call for this long is not asked a second time meanwhile."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer.

    Attributes:
        data: What the API calls `data`.
        utc_s: The answering server's clock, Unix seconds; None: it did not tell.
    """

    data: Any
    utc_s: float | None


class Api(Protocol):
    """One API server, as far as reading and powering need it. Paths are given split."""

    @property
    def where(self) -> str:
        """Endpoint and server, for people."""
        ...

    def get(self, *path: str, **params: str | int) -> Reply:
        """Ask; a read.

        Raises:
            HypervisorUnreachable, HypervisorDenied, HypervisorProtocol.
        """
        ...

    def within(self, limit_s: float) -> Api:
        """Return the same server with only this much patience for any single answer."""
        ...

    def peers(self) -> Sequence[Api]:
        """Return the endpoint's other servers."""
        ...

    def post(self, *path: str, **params: str | int) -> Reply:
        """Order; sent once. After HypervisorUnreachable the outcome is unknown.

        Raises:
            As `get`.
        """
        ...


class HostCalls:
    """Which hosts are being asked now, so that no more threads ask one that hangs.

    Through each server by itself: the way from one of them may be broken, and not from another.

    Args:
        timer: Monotonic seconds.
    """

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._lock = threading.Lock()
        self._asked: dict[int, tuple[tuple[str, str], float]] = {}
        self._count = 0

    @contextmanager
    def to(self, path: tuple[str, ...], where: str) -> Iterator[None]:
        """Note a call while it lasts.

        Raises:
            HostSilent: an earlier call to the same host, through the same server, hangs.
        """
        if len(path) < 2 or path[0] != "nodes":  # noqa: PLR2004 - /nodes/HOST
            yield
            return
        host, now_s = path[1], self._timer()
        with self._lock:
            waits = [now_s - since_s for asked, since_s in self._asked.values() if asked == (where, host)]
            if waits and max(waits) > HANGING_S:
                text = f"{where}: {host} has not answered an earlier call for {max(waits):.0f} s"
                raise HostSilent(text, host)
            self._count += 1
            number = self._count
            self._asked[number] = ((where, host), now_s)
        try:
            yield
        finally:
            with self._lock:
                del self._asked[number]
