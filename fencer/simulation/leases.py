"""The `LeaseStore` port over Leases in memory, guarded by version and UID as in the real API."""

from __future__ import annotations

from dataclasses import replace

from fencer.core.election import LeaseRecord
from fencer.errors import ClusterConflict, ClusterDenied, ClusterNotFound, ClusterUnreachable
from fencer.simulation.objects import Api

OURS = "fencer.dev/"


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

    def read_lease(self, name: str) -> LeaseRecord:
        """See `fencer.ports.LeaseStore.read_lease`."""
        return replace(self._found(name), utc=self._api.clock.utc())

    def write_lease(self, record: LeaseRecord) -> LeaseRecord:
        """See `fencer.ports.LeaseStore.write_lease`."""
        found = self._found(record.name)
        if (found.uid, found.version) != (record.uid, record.version):
            raise ClusterConflict(f"lease {record.name} changed since it was read")
        foreign = {key: text for key, text in found.notes.items() if not key.startswith(OURS)}
        ours = {key: text for key, text in record.notes.items() if key.startswith(OURS)}
        written = replace(record, notes={**foreign, **ours}, version=self._next())
        self._leases[record.name] = written
        return replace(written, utc=self._api.clock.utc())

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
