"""HA's agents (LRM): each carries out what the manager decided for its host, and keeps the host's watchdog.

An agent with services holds its lock and a watchdog; one that loses quorum cannot renew them, and its host
is reset after a minute. One without services holds neither.

Source: pve-ha-manager's PVE/HA/LRM.pm; upstream simulator's traces.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tests.support.pve.model import Host, Pmxcfs, vmid_of

if TYPE_CHECKING:
    from tests.support.pve.cluster import PveCluster

ROUND_S = 10.0
WATCHDOG_S = 60.0
IDLE_ROUNDS = 60
_CARRIED_OUT_S = 2.0
_LEFT_ALONE = frozenset({"stopped", "error", "fence", "recovery", "freeze", "ignored", "migrate"})


class Agents:
    """The agents of all hosts.

    Attributes:
        locks_s: Host → when its agent last renewed its lock.
        watchdogs: They work.
    """

    def __init__(self, pve: PveCluster) -> None:
        self.locks_s: dict[str, float] = {}
        self.watchdogs = True
        self._pve = pve
        self._idle_rounds: dict[str, int] = {}
        self._failed_starts: dict[str, int] = {}

    def begin_rounds(self) -> None:
        """Start them all."""
        for host in self._pve.hosts.values():
            self._pve.clock.after(2.0 + host.number, partial(self._round, host))

    def settle(self, name: str, sid: str, service: dict[str, Any]) -> None:
        """Let all agents have written, and one have reported a service as it is."""
        if service["state"] == "started":
            self.locks_s[name] = self._pve.clock.now_s()
        for host in self._pve.hosts.values():
            if self._pve.corosync.quorate(host):
                old = self._pve.files.lrm.get(host.name, {}).get("results", {})
                new = {service["uid"]: _result(sid, service["state"])} if host.name == name else {}
                self._write(host, {**old, **new})

    def _round(self, host: Host) -> None:
        self._pve.clock.after(ROUND_S, partial(self._round, host))
        if not host.up or not self._pve.files.resources or host.pmxcfs is not Pmxcfs.OK:
            return
        now_s, held_s = self._pve.clock.now_s(), self.locks_s.get(host.name)
        if not self._pve.corosync.quorate(host):
            if held_s is not None and now_s - held_s >= WATCHDOG_S and self.watchdogs:
                self._pve.host_dies(host.name)
            return
        services = {
            sid: service
            for sid, service in self._pve.files.manager["service_status"].items()
            if service["node"] == host.name and service["state"] not in _LEFT_ALONE
        }
        self._keep_lock(host, busy=bool(services))
        old = self._pve.files.lrm.get(host.name, {}).get("results", {})
        results = {it["uid"]: old[it["uid"]] for it in services.values() if it["uid"] in old}
        self._write(host, results)
        for sid, service in services.items():
            if service["uid"] not in results:
                self._carry_out(host, sid, service)

    def _keep_lock(self, host: Host, *, busy: bool) -> None:
        self._idle_rounds[host.name] = 0 if busy else self._idle_rounds.get(host.name, 0) + 1
        if busy or (host.name in self.locks_s and self._idle_rounds[host.name] < IDLE_ROUNDS):
            self.locks_s[host.name] = self._pve.clock.now_s()
        else:
            self.locks_s.pop(host.name, None)

    def _carry_out(self, host: Host, sid: str, service: dict[str, Any]) -> None:
        vmid = vmid_of(sid)
        running = self._runs(host, vmid)
        if service["state"] == "started" and not running:
            self._pve.qm.start(vmid, host.name, by_ha=True)
        elif service["state"] == "request_stop" and running:
            self._pve.qm.stop(vmid, host.name, by_ha=True)
        self._pve.clock.after(
            _CARRIED_OUT_S, partial(self._report, host, sid, service["uid"], service["state"])
        )

    def _report(self, host: Host, sid: str, uid: str, state: str) -> None:
        """Say what became of it; a start that failed is tried again, as often as the service allows."""
        if not self._pve.corosync.quorate(host) or sid not in self._pve.files.resources:
            return
        exit_code = 0
        if state == "started" and not self._runs(host, vmid_of(sid)):
            self._failed_starts[sid] = self._failed_starts.get(sid, 0) + 1
            if self._failed_starts[sid] <= self._pve.files.resources[sid]["max_restart"]:
                return
            exit_code = 1
        self._failed_starts.pop(sid, None)
        results = self._pve.files.lrm[host.name]["results"]
        self._write(host, {**results, uid: _result(sid, state, exit_code)})

    def _runs(self, host: Host, vmid: int) -> bool:
        """Whether a guest runs, to HA. Source: pve-ha-manager, PVE/HA/Resources/PVEVM.pm, check_running."""
        kvm, conf = host.kvm(vmid), self._pve.confs.get(vmid)
        idle = kvm is not None and kvm.qmp == "prelaunch" and conf is not None and conf.lock == "backup"
        return kvm is not None and not idle

    def _write(self, host: Host, results: dict[str, Any]) -> None:
        self._pve.files.lrm[host.name] = {
            "state": "active" if host.name in self.locks_s else "wait_for_agent_lock",
            "mode": "active",
            "timestamp": self._pve.clock.unix_s(),
            "results": results,
        }


def _result(sid: str, state: str, exit_code: int = 0) -> dict[str, Any]:
    return {"sid": sid, "state": state, "exit_code": exit_code}
