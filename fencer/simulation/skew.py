"""Several API servers behind one address, whose clocks differ: each answer has the time of one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from fencer.core.election import LeaseRecord
from fencer.core.times import parse_utc, write_utc
from fencer.ports import LeaseStore
from fencer.simulation.scenario import ServerClock
from fencer.simulation.timeline import Timeline


class Balancer:
    """Picks, for each answer to one agent, the API server that gives it.

    Args:
        clocks: Of all API servers.
        timeline: What time it really is in the story.
        chance: Picks.
    """

    def __init__(self, clocks: tuple[ServerClock, ...], timeline: Timeline, chance: Random) -> None:
        self._clocks, self._timeline, self._chance = clocks, timeline, chance

    def shown(self, utc: str) -> str:
        """Return what the clock of the next server shows at a time; empty, where an answer has none."""
        ahead_s = self._chance.choice(self._clocks).ahead_at(self._timeline.now_s())
        return write_utc(parse_utc(utc) + timedelta(seconds=ahead_s)) if utc else ""


class SkewedCluster:
    """The cluster's port: each answer that has a time has that of one server."""

    def __init__(self, cluster: object, balancer: Balancer) -> None:
        self._cluster, self._balancer = cluster, balancer

    def __getattr__(self, name: str) -> object:
        """Return what the port has; of a method, one that answers so."""
        found = getattr(self._cluster, name)
        return self._skewed(found) if callable(found) else found

    def _skewed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def skewed(*args: object, **options: object) -> Any:
            answer = call(*args, **options)
            utc = getattr(answer, "utc", None)
            return answer if utc is None else replace(answer, utc=self._balancer.shown(utc))

        return skewed


class SkewedLeases:
    """The Leases: as `SkewedCluster`."""

    def __init__(self, leases: LeaseStore, balancer: Balancer) -> None:
        self._leases, self._balancer = leases, balancer

    def read_lease(self, name: str) -> LeaseRecord:
        """See `fencer.ports.LeaseStore.read_lease`."""
        return self._skewed(self._leases.read_lease(name))

    def write_lease(self, record: LeaseRecord) -> LeaseRecord:
        """See `fencer.ports.LeaseStore.write_lease`."""
        return self._skewed(self._leases.write_lease(record))

    def _skewed(self, record: LeaseRecord) -> LeaseRecord:
        return replace(record, utc=self._balancer.shown(record.utc))
