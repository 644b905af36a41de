"""The `LeaseStore` port over Leases in memory, guarded by version and UID as in the real API."""

from __future__ import annotations

import re
from dataclasses import replace

from fencer.core.election import LeaseRecord
from fencer.errors import ClusterConflict, ClusterDenied, ClusterNotFound, ClusterProtocol, ClusterUnreachable
from fencer.simulation.objects import Api

OURS = "fencer.dev/"
LONGEST_HOLDER, MOST_TRANSITIONS = 500, 2**31 - 1
"""As the adapter for the real API has it."""

_MICRO_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)?")
"""The API takes a time with six digits only. Source: apimachinery pkg/apis/meta/v1/micro_time.go."""


class SimulatedLeases:
    """The Leases of fencer in a simulated cluster. They are there once `make` was called.

    Args:
        api: The cluster's objects: for the clock, versions, and whether the API answers.
    """

    def __init__(self, api: Api) -> None:
        self.denied = False
        """Our account may neither read nor write them."""
        self._api = api
        self._leases: dict[str, LeaseRecord] = {}

    def make(self, *names: str) -> None:
        """Make Leases that are not there yet, as ``fencer setup kubernetes`` does."""
        for name in names:
            if name not in self._leases:
                version = self._next()
                self._leases[name] = LeaseRecord(name, uid=f"{name}-{version}", version=version)

    def remove(self, name: str) -> None:
        """Delete a Lease."""
        self._leases.pop(name, None)

    def annotate(self, name: str, key: str, text: str) -> None:
        """Write an annotation as a person does."""
        found = self._leases[name]
        self._leases[name] = replace(found, notes={**found.notes, key: text}, version=self._next())

    def hold(self, name: str, holder: str, transitions: int = 0) -> None:
        """Let somebody else hold a Lease, by whatever name."""
        found = self._leases[name]
        self._leases[name] = replace(
            found, holder=holder, transitions=transitions, given_back=False, version=self._next()
        )

    def holder_of(self, name: str) -> str:
        """Return who really holds a Lease, whether or not the API answers; empty: nobody."""
        found = self._leases.get(name)
        return "" if found is None else found.holder

    def read_lease(self, name: str) -> LeaseRecord:
        """See `fencer.ports.LeaseStore.read_lease`."""
        return self._told(self._found(name))

    def write_lease(self, record: LeaseRecord) -> LeaseRecord:
        """See `fencer.ports.LeaseStore.write_lease`."""
        found = self._found(record.name)
        if (found.uid, found.version) != (record.uid, record.version):
            raise ClusterConflict(f"lease {record.name} changed since it was read")
        for moment in (record.acquired, record.renewed):
            if not _MICRO_TIME.fullmatch(moment):
                raise ClusterProtocol(f"lease {record.name}: {moment!r} is no time with six digits")
        kept = {
            key: text for key, text in found.notes.items() if key not in record.noted - record.notes.keys()
        }
        ours = {key: text for key, text in record.notes.items() if key.startswith(OURS)}
        transitions = min(record.transitions, MOST_TRANSITIONS)
        written = replace(record, notes={**kept, **ours}, transitions=transitions, version=self._next())
        self._leases[record.name] = written
        return self._told(written)

    def _told(self, record: LeaseRecord) -> LeaseRecord:
        if len(record.holder) > LONGEST_HOLDER:
            raise ClusterProtocol(
                f"lease fencer/{record.name}: the holder has {len(record.holder)} characters"
            )
        noted = frozenset(key for key in record.notes if key.startswith(OURS))
        return replace(record, noted=noted, utc=self._api.clock.utc())

    def _found(self, name: str) -> LeaseRecord:
        if self._api.down_why is not None:
            raise ClusterUnreachable(self._api.down_why)
        if self.denied:
            raise ClusterDenied(f"fencer may not get leases {name} in fencer")
        if name not in self._leases:
            raise ClusterNotFound(f"no lease {name} in the namespace fencer")
        return self._leases[name]

    def _next(self) -> str:
        self._api.version += 1
        return str(self._api.version)
