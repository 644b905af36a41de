"""An armed agent writes itself where all agents of the cluster do, as long as it makes passes.

Nobody decides anything by that. It is for people, who ask whether anybody is there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from fencer.core.agents import WRITE_S, AgentRecord, policy_hash, without, written
from fencer.core.crash_loop import in_crash_loop
from fencer.core.election import CLUSTER_LEASE
from fencer.core.policy import Policy
from fencer.errors import ClusterConflict, ClusterError
from fencer.ports import LeaseStore, Sight

SOON_S = 1.0
"""When to come again: before the first pass, and after somebody else has written meanwhile."""

log = logging.getLogger(__name__)


class Roll:
    """A `fencer.ports.Viewer` that tells others of this agent's passes.

    Args:
        leases: Where it is written.
        by: The agent, as it calls itself.
        instance: Its process: small letters and digits.
        version: Of fencer.
        policy: Its rules.
    """

    def __init__(self, leases: LeaseStore, by: str, instance: str, version: str, policy: Policy) -> None:
        self._leases = leases
        self._blank = AgentRecord(by, instance, version, policy.mode, policy_hash(policy), "")
        self._mine: AgentRecord | None = None
        self._ended = False

    def passed(self, seen: Sight) -> None:
        """See `fencer.ports.Viewer.passed`."""
        holds = tuple(name for name, tenure in seen.tenures.items() if tenure.holds(seen.at_s))
        loops = tuple(name for name, judged in seen.judged.items() if in_crash_loop(judged.decision))
        knows = tuple(seen.endpoints)
        self._mine = replace(self._blank, passed_utc=seen.utc, holds=holds, knows=knows, loops=loops)

    def failed(self, why: str) -> None:
        """See `fencer.ports.Viewer.failed`: what is written grows old by itself."""

    def step(self) -> float:
        """Write this agent's record; return in how many seconds to come again."""
        mine = self._mine
        if self._ended or mine is None:
            return SOON_S
        try:
            self._write(lambda notes, utc: written(notes, mine, utc))
        except ClusterConflict:
            return SOON_S
        except ClusterError as error:
            log.debug("this agent could not be written on lease %s: %s", CLUSTER_LEASE, error)
        return WRITE_S

    def leave(self) -> None:
        """Take this agent's record off: it ends. If that fails, the record grows old."""
        self._ended = True
        for _ in range(2):
            try:
                self._write(lambda notes, _utc: without(notes, self._blank.instance))
            except ClusterConflict:
                continue
            except ClusterError as error:
                log.debug("this agent could not be taken off lease %s: %s", CLUSTER_LEASE, error)
            return

    def _write(self, change: Callable[[Mapping[str, str], str], Mapping[str, str]]) -> None:
        """Read the Lease, and write it once, if anything is to change.

        Raises:
            ClusterConflict: somebody else has written it meanwhile.
            ClusterError: it cannot be read or written.
        """
        record = self._leases.read_lease(CLUSTER_LEASE)
        notes = change(record.notes, record.utc)
        if notes != record.notes:
            self._leases.write_lease(replace(record, notes=notes))
