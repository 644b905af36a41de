"""Several API servers of one endpoint, tried in turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

from fencer.errors import HypervisorUnreachable
from fencer.hypervisors.proxmox.api import Api, HostCalls
from fencer.hypervisors.proxmox.errors import HostSilent, ServerUnfit
from fencer.hypervisors.proxmox.server import Server
from fencer.hypervisors.proxmox.settings import ProxmoxSettings, Token, require_usable

T = TypeVar("T")

TRIED_ELSEWHERE = 2
"""How many other servers are asked about a silent host: its own, and one whose way may still work …"""
PATIENCE_S = 4.0
"""… each with this patience for any answer: a frozen guest's takes 3 s …"""
IN_VAIN_S = 30.0
"""… and not again for this long, if they do not reach it either: it is in vain if the host is dead."""


class Servers:
    """All API servers of an endpoint: a piece of work is done with one of them, the next if that is unfit.

    Args:
        settings: Of the endpoint.
        hosts: Server, as people read it → which host it is, as far as known.
        timer: Monotonic seconds.

    Raises:
        ConfigError: the token or the CA cannot be read.
    """

    def __init__(
        self, settings: ProxmoxSettings, hosts: Mapping[str, str], timer: Callable[[], float]
    ) -> None:
        self._hosts, self._timer = hosts, timer
        self._in_vain_s: dict[str, float] = {}
        require_usable(settings)
        token, calls = Token(settings), HostCalls()
        self._endpoint = settings.name
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
            except HostSilent as silence:
                return self._elsewhere(place, silence, job)
            except ServerUnfit as error:
                server = self._all[place]
                found.setdefault(str(error).removeprefix(server.where), []).append(server.url)
                self._place = (place + 1) % len(self._all)
        told = [f"{self._endpoint} ({', '.join(urls)}){why}" for why, urls in found.items()]
        raise HypervisorUnreachable("; ".join(told))

    def _elsewhere(self, asked: int, silence: HostSilent, job: Callable[[Api], T]) -> T:
        """Do work about a host through other servers, where the one that was asked does not reach it.

        The way between two hosts may be broken, and ours to the other is not. A few are tried, with little
        patience; and where that was in vain, nobody is for a while.

        Raises:
            HostSilent: as before: nor do they.
            HypervisorError: what the work raised.
        """
        now_s = self._timer()
        if now_s - self._in_vain_s.get(silence.host, -math.inf) < IN_VAIN_S:
            raise silence
        for server in self._others(asked, silence.host)[:TRIED_ELSEWHERE]:
            with suppress(HypervisorUnreachable):
                return job(server.within(PATIENCE_S))
        self._in_vain_s[silence.host] = now_s
        raise silence

    def _others(self, asked: int, host: str) -> list[Server]:
        """Return the other servers: a host's own first, those that are known to be others' last."""
        others = [server for place, server in enumerate(self._all) if place != asked]
        known = {server: self._hosts.get(server.where) for server in others}
        return sorted(others, key=lambda server: (known[server] != host, known[server] is not None))

    def close(self) -> None:
        """Close idle connections."""
        for server in self._all:
            server.close()
