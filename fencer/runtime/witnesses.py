"""Asks power witnesses of hosts that are silent, and keeps what they last said.

A witness is asked only while its host is silent, together with the sweeps and on a worker of its own: a board
that hangs costs a pass no more than an endpoint that hangs, and a later pass takes its late answer. Each
answer is kept with the time of its question; core judges whether it is fresh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from fencer.core.model import Evidence, HostReading
from fencer.errors import FencerError
from fencer.ports import Clock, HostPower

Host: TypeAlias = tuple[str, str]
"""Endpoint and host, as the endpoint names it."""

WORDS = {True: "off", False: "on", None: "neither on nor off for all of it"}


class Witnesses:
    """All power witnesses of an agent.

    Args:
        ports: Which host each one watches.
        clock: To date what they say.
        max_age_s: How long an answer outlives an error.
    """

    def __init__(self, ports: Mapping[Host, HostPower], clock: Clock, max_age_s: float) -> None:
        self._ports = ports
        self._clock = clock
        self._max_age_s = max_age_s
        self._silent: set[Host] = set()
        self._asked: set[Host] = set()
        self._said: dict[Host, HostReading] = {}

    def watch(self, endpoint: str, host: str | None) -> bool:
        """Whether there is a witness for a host."""
        return host is not None and (endpoint, host) in self._ports

    def reading(self, evidence: Evidence) -> HostReading | None:
        """Return what was last said of a guest's host; None: nothing."""
        guest = evidence.guest
        return None if guest.host is None else self._said.get((guest.endpoint, guest.host))

    def notice(self, evidence: Iterable[Evidence]) -> None:
        """Take note of the hosts that a look finds silent."""
        for reading in evidence:
            guest = reading.guest
            if reading.host_silent and guest.host is not None and self.watch(guest.endpoint, guest.host):
                self._silent.add((guest.endpoint, guest.host))

    def notice_endpoints(self, endpoints: Iterable[str]) -> None:
        """Take note of endpoints of one host each that do not answer."""
        lost = set(endpoints)
        self._silent |= {host for host in self._ports if host[0] in lost}

    def questions(self) -> dict[str, Callable[[], HostReading]]:
        """Return what to ask, by worker: about hosts known to be silent that this look did not ask about."""
        due = self._silent - self._asked
        self._asked |= due
        return {_worker(host): partial(self._ask, self._ports[host]) for host in sorted(due)}

    def begin(self) -> dict[str, Callable[[], HostReading]]:
        """Begin a look; return what to ask at once: about hosts that were silent in the last, or since."""
        self._asked = set()
        questions = self.questions()
        self._silent = set()
        return questions

    def end(self, answers: Mapping[str, object]) -> None:
        """Keep the answers of a look, and forget hosts that were not found silent in it any more.

        An error is no reading: the answer before it counts while it is fresh.
        """
        now_s = self._clock.now_s()
        for host in self._ports:
            answer, before = answers.get(_worker(host)), self._said.get(host)
            if isinstance(answer, HostReading):
                self._said[host] = answer
            elif isinstance(answer, FencerError) and (
                before is None or now_s - before.observed_at_s > self._max_age_s
            ):
                self._said[host] = HostReading(off=None, words=f"nothing: {answer}", observed_at_s=now_s)
            elif host not in self._asked:
                self._said.pop(host, None)

    def _ask(self, port: HostPower) -> HostReading:
        began_s = self._clock.now_s()
        off = port.is_off()
        return HostReading(off, WORDS[off], began_s)


def _worker(host: Host) -> str:
    return "/".join(host)
