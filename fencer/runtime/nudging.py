"""Nudges for another agent: a hook runs where its guest does, and that need not be where the holder is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from fencer.core.election import Seat
from fencer.core.nudges import MOST, can_travel, sent
from fencer.core.text import printable
from fencer.errors import ClusterConflict, ClusterError
from fencer.ports import Election, LeaseStore

LOOK_S = 0.5
"""Between two looks whether a hook has nudged; a write takes place at most so often."""

log = logging.getLogger(__name__)


class Forwarding:
    """Writes what hooks say on the Leases of hypervisors to which another agent gives the orders.

    Args:
        leases: The Leases.
        election: Who holds them.
        endpoints: All hypervisors, by name: a hook does not say whose guest it is.
        by: This agent, as it calls itself.
    """

    def __init__(self, leases: LeaseStore, election: Election, endpoints: Sequence[str], by: str) -> None:
        self._leases, self._election, self._by = leases, election, by
        self._endpoints = tuple(endpoints)
        self._lock = threading.Lock()
        self._pending: set[str] = set()

    def hear(self, guest: str) -> None:
        """Take a nudge from a hook of this host, from any thread; it waits for nobody.

        Args:
            guest: Its id, as the hook named it: anybody's text.
        """
        with self._lock:
            if can_travel(guest) and len(self._pending) < MOST:
                self._pending.add(guest)

    def step(self) -> float:
        """Pass on what was heard; return in how many seconds to come again."""
        with self._lock:
            guests, self._pending = self._pending, set()
        if guests:
            tenures = [self._election.tenure(endpoint) for endpoint in self._endpoints]
            for lease in sorted({one.lease for one in tenures if one.seat is Seat.STANDBY}):
                self._send(lease, guests)
        return LOOK_S

    def _send(self, lease: str, guests: set[str]) -> None:
        """Write nudges on a Lease; once more, if its holder has just renewed it."""
        for _ in range(2):
            try:
                wanted = sent(self._leases.read_lease(lease), guests, self._by)
                if wanted is not None:
                    self._leases.write_lease(wanted)
            except ClusterConflict:
                continue
            except ClusterError as error:
                told = printable(", ".join(sorted(guests)))
                log.debug("nudges of %s were not passed on with lease %s: %s", told, lease, error)
            return
