"""HA's manager (CRM): decides on one host for all, in rounds, and writes manager_status.

A dead host is noticed at once by corosync, fenced by the manager after a minute, and its guests are started
elsewhere once the lock of its agent has run out: by then its watchdog must have reset it. An agent that held
no lock is acknowledged at once, whatever its host does.

Source: pve-ha-manager's PVE/HA/Manager.pm and NodeStatus.pm; seconds as recorded on three real hosts.
"""

from __future__ import annotations

import base64
import random
from typing import TYPE_CHECKING, Any

from tests.support.pve.ha.lrm import ROUND_S, Agents
from tests.support.pve.model import Host, vmid_of

if TYPE_CHECKING:
    from tests.support.pve.cluster import PveCluster

FENCE_DELAY_S = 60.0
LOCK_FREE_S = 130.0  # 120 s after the last renewal that anyone saw; recorded: 138.8 s with its round
MANAGER_LOCK_S = 120.0
_FENCED_IN = frozenset({"started", "request_stop", "migrate"})


class Uids:
    """Unique ids as HA makes them, the same in each run."""

    def __init__(self) -> None:
        self._chance = random.Random(1)  # noqa: S311 - they are no secrets

    def fresh(self) -> str:
        """Return another one."""
        return base64.b64encode(self._chance.randbytes(16)).decode().rstrip("=")


class Manager:
    """The manager, on whichever host it is.

    Attributes:
        commands: Stops that were asked for: service and timeout.
        linger_in_recovery: Services stay in the state `recovery` for a round.
    """

    def __init__(self, pve: PveCluster, agents: Agents, uids: Uids) -> None:
        self.commands: list[tuple[str, int]] = []
        self.linger_in_recovery = False
        self._pve, self._agents, self._uids = pve, agents, uids
        self._lock_s = 0.0
        self._seen_s: dict[str, float] = {}
        self._relocations: dict[str, int] = {}

    @property
    def _status(self) -> dict[str, Any]:
        return self._pve.files.manager

    @property
    def _services(self) -> dict[str, dict[str, Any]]:
        services: dict[str, dict[str, Any]] = self._status["service_status"]
        return services

    def begin(self) -> None:
        """Take office for the first time."""
        if "master_node" in self._status:
            return
        self._lock_s = self._pve.clock.now_s()
        self._seen_s = dict.fromkeys(self._pve.hosts, self._lock_s)
        self._status.update(
            master_node=next(name for name in self._pve.hosts if self._able(name)),
            timestamp=self._pve.clock.unix_s(),
            node_status=dict.fromkeys(self._pve.hosts, "online"),
            service_status={},
        )

    def begin_rounds(self) -> None:
        """Start the daemons."""
        self._pve.clock.after(ROUND_S - 2, self._round)

    def _round(self) -> None:
        self._pve.clock.after(ROUND_S, self._round)
        now_s = self._pve.clock.now_s()
        if not self._pve.files.resources:
            return
        if not self._able(self._status["master_node"]):
            others = [name for name in self._pve.hosts if self._able(name)]
            if not others or now_s - self._lock_s < MANAGER_LOCK_S:
                return
            self._status["master_node"] = others[0]
            self._seen_s = dict.fromkeys(self._pve.hosts, now_s)
        self._lock_s = now_s
        master = self._pve.hosts[self._status["master_node"]]
        self._judge_hosts(master)
        for sid, service in self._services.items():
            if service["state"] == "recovery":
                self._recover(sid, service, master)
        self._acknowledge(master)
        self._take_commands()
        for sid, service in self._services.items():
            self._follow(sid, service, master)
        self._status["timestamp"] = self._pve.clock.unix_s()

    # -- hosts --------------------------------------------------------------------------------------------

    def _judge_hosts(self, master: Host) -> None:
        now_s, states = self._pve.clock.now_s(), self._status["node_status"]
        for name in self._pve.hosts:
            if name in master.members:
                self._seen_s[name] = now_s
                if states[name] == "unknown":
                    states[name] = "online"
            elif states[name] == "online":
                states[name] = "unknown"
            elif states[name] == "unknown" and now_s - self._seen_s.get(name, 0.0) > FENCE_DELAY_S:
                for service in self._services.values():
                    if service["node"] == name and service["state"] in _FENCED_IN:
                        self._enter(service, "fence")
                        states[name] = "fence"

    def _acknowledge(self, master: Host) -> None:
        now_s, states = self._pve.clock.now_s(), self._status["node_status"]
        for name in [it for it, state in states.items() if state == "fence"]:
            if now_s - self._agents.locks_s.get(name, -LOCK_FREE_S) < LOCK_FREE_S:
                continue
            states[name] = "unknown"
            self._agents.locks_s.pop(name, None)
            for sid, service in self._services.items():
                if service["node"] == name and service["state"] == "fence":
                    self._enter(service, "recovery")
                    if not self.linger_in_recovery:
                        self._recover(sid, service, master)

    # -- services -----------------------------------------------------------------------------------------

    def _recover(self, sid: str, service: dict[str, Any], master: Host) -> None:
        """Take a guest off its host, locks and all."""
        able = [name for name in self._pve.hosts if name in master.members and self._able(name)]
        if not able:
            return
        load = [it["node"] for it in self._services.values()]
        new = min(able, key=load.count)
        conf = self._pve.confs[vmid_of(sid)]
        conf.host, conf.lock = new, None
        self._enter(service, "started", node=new)

    def _take_commands(self) -> None:
        for sid, timeout_s in self.commands:
            if sid in self._pve.files.resources:
                self._pve.files.resources[sid]["state"] = "stopped"
                self._enter(self._services[sid], "request_stop", timeout=timeout_s)
        self.commands.clear()

    def _follow(self, sid: str, service: dict[str, Any], master: Host) -> None:
        """Take in what the service's agent reported, and what is wanted of the service now."""
        results = self._pve.files.lrm.get(service["node"], {}).get("results", {})
        exit_code = results.get(service["uid"], {}).get("exit_code")
        match service["state"], self._pve.files.resources[sid]["state"], exit_code:
            case "started", "started", 0:
                self._relocations.pop(sid, None)
                service.update(running=1, uid=self._uids.fresh())
            case "started", "started", 1:
                self._give_up(sid, service, master)
            case "started", "stopped", _:
                self._enter(service, "request_stop")
            case "request_stop", _, 0:
                self._enter(service, "stopped")
            case "stopped", "started", _:
                self._enter(service, "started")

    def _give_up(self, sid: str, service: dict[str, Any], master: Host) -> None:
        """Try another host for a guest that does not start, or none any more."""
        self._relocations[sid] = self._relocations.get(sid, 0) + 1
        others = [it for it in sorted(master.members) if self._able(it) and it != service["node"]]
        if not others or self._relocations[sid] > self._pve.files.resources[sid]["max_relocate"]:
            self._enter(service, "error")
            return
        self._enter(service, "started")
        self._pve.qm.migrate(vmid_of(sid), others[0])

    def _enter(self, service: dict[str, Any], state: str, **more: Any) -> None:
        service.pop("running", None)
        service.pop("timeout", None)
        service.update(state=state, uid=self._uids.fresh(), **more)

    def _able(self, name: str) -> bool:
        return self._pve.corosync.quorate(self._pve.hosts[name])
