"""A hypervisor by another name: what somebody else's configuration calls the same endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fencer.core.model import Evidence, GuestRef
from fencer.ports import Deadline, Hypervisor, StopSettings


class Renamed:
    """The `Hypervisor` port of an endpoint, under another name.

    Args:
        port: The endpoint's.
        name: What it is called here.
    """

    def __init__(self, port: Hypervisor, name: str) -> None:
        self._port = port
        self.endpoint = name

    def __getattr__(self, name: str) -> object:
        """Return what has nothing to do with names."""
        return getattr(self._port, name)

    def sweep(self) -> Sequence[Evidence]:
        """Read all guests."""
        return [self._ours(told) for told in self._port.sweep()]

    def read(self, guest: GuestRef) -> Evidence:
        """Read one guest."""
        return self._ours(self._port.read(self._theirs(guest)))

    def stop_settings(self, guest: GuestRef) -> StopSettings | None:
        """Read a guest's settings for stops."""
        return self._port.stop_settings(self._theirs(guest))

    def shutdown(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Press the power button."""
        self._port.shutdown(self._theirs(guest), incarnation, not_after)

    def stop(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Cut the power."""
        self._port.stop(self._theirs(guest), incarnation, not_after)

    def discard(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Throw the saved memory away."""
        self._port.discard(self._theirs(guest), incarnation, not_after)

    def start(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Power on."""
        self._port.start(self._theirs(guest), incarnation, not_after)

    def _ours(self, told: Evidence) -> Evidence:
        return replace(told, guest=replace(told.guest, endpoint=self.endpoint))

    def _theirs(self, guest: GuestRef) -> GuestRef:
        return replace(guest, endpoint=self._port.endpoint)
