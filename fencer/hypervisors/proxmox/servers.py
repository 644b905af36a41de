"""Several API servers of one endpoint, tried in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fencer.errors import HypervisorUnreachable
from fencer.hypervisors.proxmox.api import Api, HostCalls
from fencer.hypervisors.proxmox.errors import ServerUnfit
from fencer.hypervisors.proxmox.server import Server
from fencer.hypervisors.proxmox.settings import ProxmoxSettings, Token

T = TypeVar("T")


class Servers:
    """All API servers of an endpoint: a piece of work is done with one of them, the next if that is unfit.

    Args:
        settings: Of the endpoint.

    Raises:
        ConfigError: the token cannot be read.
    """

    def __init__(self, settings: ProxmoxSettings) -> None:
        token, calls = Token(settings), HostCalls()
        self._endpoint = settings.endpoint
        self._all = [Server(settings, place, token, calls) for place in range(len(settings.servers))]
        for server in self._all:
            server.siblings = tuple(other for other in self._all if other is not server)
        self._place = 0

    def work(self, job: Callable[[Api], T]) -> T:
        """Do a piece of work that only reads, from its beginning on each server until one is fit for it.

        Raises:
            HypervisorUnreachable: none of them is.
            HypervisorError: what the work raised.
        """
        found: dict[str, list[str]] = {}
        first = self._place
        for step in range(len(self._all)):
            place = (first + step) % len(self._all)
            try:
                return job(self._all[place])
            except ServerUnfit as error:
                server = self._all[place]
                found.setdefault(str(error).removeprefix(server.where), []).append(server.url)
                self._place = (place + 1) % len(self._all)
        told = [f"{self._endpoint} ({', '.join(urls)}){why}" for why, urls in found.items()]
        raise HypervisorUnreachable("; ".join(told))

    def close(self) -> None:
        """Give idle connections back."""
        for server in self._all:
            server.close()
