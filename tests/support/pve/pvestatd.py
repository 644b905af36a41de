"""pvestatd: what each host last said of its guests, and what others still believe of it.

Every ten seconds a host tells all that hear it. The key of what it says is the guest's number, without a
host and without a time; entries are dropped after five minutes, and nothing else ever takes them back.

Source: pve-manager's PVE/Service/pvestatd.pm and PVE/API2Tools.pm, pmxcfs' status.c.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tests.support.pve.model import Conf, Daemon, Host, Pmxcfs

if TYPE_CHECKING:
    from tests.support.pve.cluster import PveCluster

EVERY_S = 10.0
KEPT_S = 300.0
HOST_MEMORY = 24 << 30
_DISK = 1 << 20


class Pvestatd:
    """The statistics daemons of all hosts, and the store each host keeps of them."""

    def __init__(self, pve: PveCluster) -> None:
        self._pve = pve

    def begin_rounds(self) -> None:
        """Start the daemons; their rounds are three seconds apart."""
        for host in self._pve.hosts.values():
            self.broadcast(host)
            self._pve.clock.after(3.0 * host.number, partial(self._round, host))

    def broadcast(self, host: Host) -> None:
        """Tell all hosts that hear this one of its guests, now."""
        said: dict[tuple[str, str], dict[str, Any]] = {("node", host.name): self._host_row(host)}
        for conf in self._pve.files_of(host).confs.values():
            if conf.host == host.name:
                said["vm", str(conf.vmid)] = self._guest_row(host, conf)
        now_s = self._pve.clock.now_s()
        for listener in self._pve.hosts.values():
            if listener.up and self._pve.corosync.hears(host, listener) and listener.pmxcfs is Pmxcfs.OK:
                listener.stats.update({key: (now_s, row) for key, row in said.items()})

    def known(self, host: Host, kind: str, name: str) -> dict[str, Any] | None:
        """Return what a host believes, if it is not too old."""
        said_s, row = host.stats.get((kind, name), (float("-inf"), {}))
        return dict(row) if self._pve.clock.now_s() - said_s <= KEPT_S else None

    def _round(self, host: Host) -> None:
        self._pve.clock.after(EVERY_S, partial(self._round, host))
        if host.up and host.pvestatd is Daemon.OK and host.pmxcfs is Pmxcfs.OK:
            self.broadcast(host)

    def _host_row(self, host: Host) -> dict[str, Any]:
        return {
            "uptime": self._pve.uptime_s(host),
            "cpu": 0.05,
            "mem": HOST_MEMORY // 4,
            "disk": 32 << 30,
            "level": "",
            "maxcpu": 2,
            "maxmem": HOST_MEMORY,
            "maxdisk": 256 << 30,
        }

    def _guest_row(self, host: Host, conf: Conf) -> dict[str, Any]:
        kvm = host.kvm(conf.vmid)
        row = {
            "uptime": 0 if kvm is None else max(1, int(self._pve.clock.now_s() - kvm.started_s)),
            "name": conf.name,
            "status": "stopped" if kvm is None else kvm.qmpstatus,
            "template": int(conf.template),
            "maxcpu": conf.cores,
            "cpu": 0 if kvm is None else 0.0078,
            "maxmem": conf.memory_mib << 20,
            "maxdisk": _DISK,
            **dict.fromkeys(("mem", "disk", "netin", "netout", "diskread", "diskwrite"), 0),
        }
        if self._pve.release >= (9, 0) and conf.kind == "qemu":
            row["memhost"] = 0
        return row
