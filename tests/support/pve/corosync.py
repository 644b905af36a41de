"""Corosync and quorum: which hosts hear each other, and what those without a majority go on believing."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING

from tests.support.pve.model import Daemon, Host, Pmxcfs

if TYPE_CHECKING:
    from tests.support.pve.cluster import PveCluster

BELIEVED_S = 60.0
"""Old workers of pvedaemon call a cluster quorate for so long after corosync ended."""


class Corosync:
    """The corosync of all hosts.

    Attributes:
        enough: So many hosts have a quorum (`two_node: 1`, `pvecm expected`); None: more than half.
        device: A quorum device votes with whoever is most, and with any half.
        device_told: The API may ask it.
    """

    def __init__(self, pve: PveCluster) -> None:
        self._pve = pve
        self.enough: int | None = None
        self.device, self.device_told = False, False

    def quorate(self, host: Host) -> bool:
        """Whether a host may write into the cluster file system. The truth."""
        works = host.up and host.pmxcfs is Pmxcfs.OK and host.corosync is Daemon.OK
        return works and self._enough(host.members)

    def seems_quorate(self, host: Host, *, worker: bool = False) -> bool:
        """Whether a host is called quorate by its cluster file system, or by a worker of pvedaemon."""
        if host.corosync is Daemon.FROZEN:
            return host.pmxcfs is Pmxcfs.OK and self._enough(host.members)
        believed = worker and host.corosync is Daemon.DEAD and self._pve.clock.now_s() < host.believed_until_s
        return believed or self.quorate(host)

    def hears(self, host: Host, other: Host) -> bool:
        """Whether what a host says over corosync reaches another one."""
        works = host.corosync is Daemon.OK and other.corosync is Daemon.OK
        return host is other or (host.up and other.up and works and host.group == other.group)

    def set_daemon(self, host: Host, state: Daemon) -> None:
        """Kill or freeze a host's corosync, or start it again; its files stay as they are now."""
        host.believed_until_s = self._pve.clock.now_s() + BELIEVED_S
        host.stale = host.stale or (deepcopy(self._pve.files) if state is not Daemon.OK else None)
        host.corosync = state

    def reform(self) -> None:
        """Let every corosync see who is there; who loses quorum keeps the files as they are now."""
        had = {host.name: self.quorate(host) for host in self._pve.hosts.values()}
        for host in self._pve.hosts.values():
            if host.up and host.corosync is not Daemon.OK:
                continue
            heard = {it.name for it in self._pve.hosts.values() if self.hears(host, it)}
            host.members = frozenset(heard if host.up else ())
            if not self._enough(host.members):
                host.stale = host.stale or (deepcopy(self._pve.files) if had[host.name] else None)
            else:
                host.stale = None

    def _enough(self, members: Iterable[str]) -> bool:
        votes, hosts = len(list(members)), len(self._pve.hosts)
        if self.enough is not None:
            return votes >= self.enough
        return 2 * votes > hosts or (self.device and 2 * votes == hosts)
