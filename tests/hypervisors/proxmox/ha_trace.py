"""A run of HA's manager in its upstream simulator, second by second: what the API would say, and the truth.

The traces hold what manager and agents persisted, and their logs. The logs tell the truth about guests and
hosts: when a start began, a stop was over, a migration ended, or a host lost its power or network.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencer.hypervisors.proxmox.api import Api, Reply
from fencer.hypervisors.proxmox.errors import HostSilent, NotThere, ServerUnfit

FORGOTTEN_S = 300
"""So long the cluster repeats what a host last said of a guest."""
TOLD_EVERY_S = 10

_SHARED = Path(__file__).parents[4] / "shared" / "data" / "proxmox" / "ha-traces"


def traces() -> Path:
    """Return the folder of traces, whether it is there or not: `FENCER_HA_TRACES`, or beside the project."""
    return Path(os.environ.get("FENCER_HA_TRACES") or _SHARED)


@dataclass
class Host:
    """The truth about a host."""

    powered: bool = False
    network: bool = False
    booted_s: int = 0
    lost_power_s: int | None = None

    @property
    def there(self) -> bool:
        return self.powered and self.network


@dataclass
class Guest:
    """The truth about a service's guest.

    Attributes:
        conf: Where its configuration is.
        runs: Host → since when. Two of them are two writers.
        ended_s: When it last ended anywhere.
    """

    vmid: int
    conf: str
    runs: dict[str, int] = field(default_factory=dict)
    ended_s: int | None = None
    starts: int = 0
    told: tuple[str, int, int] = ("stopped", 0, 0)

    def ends(self, host: str, now_s: int) -> None:
        """It is off there from now on."""
        if self.runs.pop(host, None) is not None:
            self.ended_s = now_s


@dataclass
class Trace:
    """A trace, played up to a second.

    Attributes:
        name: Of the scenario.
        now_s: The second.
        stolen: Service, host, second: taken by the manager off a host.
        alive_when_lost: Service and host: its guest ran there when the power went.
        disarmed: HA was ever disarmed.
        by_hand: Guests were started by hand when their host booted, before HA began.
    """

    name: str
    rows: list[dict[str, Any]]
    hosts: dict[str, Host]
    guests: dict[str, Guest]
    now_s: int = -1
    manager: dict[str, Any] = field(default_factory=dict)
    agents: dict[str, Any] = field(default_factory=dict)
    tasks: list[dict[str, Any]] = field(default_factory=list)
    logs: dict[str, str] = field(default_factory=dict)
    stolen: list[tuple[str, str, int]] = field(default_factory=list)
    alive_when_lost: set[tuple[str, str]] = field(default_factory=set)
    disarmed: bool = False
    by_hand: bool = False

    @property
    def ends_s(self) -> int:
        return int(self.rows[-1]["t"]) if self.rows else 0

    @property
    def quorate(self) -> bool:
        return 2 * sum(host.there for host in self.hosts.values()) > len(self.hosts)

    def play(self, until_s: int) -> None:
        """Let time pass."""
        self.now_s = until_s
        while self.rows and self.rows[0]["t"] <= until_s:
            self._happen(self.rows.pop(0))
        if until_s % TOLD_EVERY_S == 0:
            for guest in self.guests.values():
                if self.hosts[guest.conf].there:
                    since_s = guest.runs.get(guest.conf)
                    uptime_s = 0 if since_s is None else until_s - since_s
                    guest.told = ("stopped" if since_s is None else "running", until_s, uptime_s)

    def _happen(self, row: Mapping[str, Any]) -> None:
        match row["kind"]:
            case "manager_status":
                self.manager = row["data"]
                self.disarmed = self.disarmed or "disarm" in row["data"]
            case "lrm_status":
                self.agents[row["node"]] = row["data"]
            case "steal_service":
                if row["sid"] in self.guests:
                    self.stolen.append((row["sid"], row["from"], row["t"]))
                    self.guests[row["sid"]].conf = row["to"]
            case "log":
                self._logged(row["t"], row["by"], row["text"])

    def _logged(self, t: int, by: str, text: str) -> None:
        if by in {"cmdlist", "reboot", "shutdown", "watchdog"}:
            self._commanded(t, text)
        elif by.endswith("/lrm"):
            self._agent_did(t, by.removesuffix("/lrm"), text)

    def _commanded(self, t: int, text: str) -> None:
        match text.removeprefix("execute ").split():
            case ["power", name, "on"] if not self.hosts[name].powered:
                self._power_on(t, name)
            case ["power", name, "off"]:
                self._power_off(t, name)
            case ["network", name, state]:
                self.hosts[name].network = state == "on"
            case ["service", sid, "add", name, *_] if sid.startswith("vm:"):
                self.guests[sid] = Guest(int(sid[3:]), name)
            case ["service", sid, "manual-migrate", name] if sid in self.guests:
                self._migrate(t, sid, self.guests[sid].conf, name)

    def _power_on(self, t: int, name: str) -> None:
        self.hosts[name] = Host(powered=True, network=True, booted_s=t)
        for guest in self.guests.values() if self.by_hand else ():
            if guest.conf == name:
                guest.runs[name] = t

    def _power_off(self, t: int, name: str) -> None:
        host = self.hosts[name]
        host.powered, host.network, host.lost_power_s = False, False, t
        for sid, guest in self.guests.items():
            if name in guest.runs:
                self.alive_when_lost.add((sid, name))
                guest.ends(name, t)

    def _agent_did(self, t: int, host: str, text: str) -> None:
        if (found := re.search(r"(vm:\d+)", text)) is None or found[1] not in self.guests:
            return
        sid, guest = found[1], self.guests[found[1]]
        if text.startswith("starting service"):
            if host not in guest.runs:
                guest.runs[host] = t
                guest.starts += 1
                self._task(t, host, guest, "qmstart")
        elif text == f"service status {sid} stopped" or text.startswith("unable to start service"):
            guest.ends(host, t)
        elif (
            moved := re.fullmatch(rf"service {sid} - end (migrate|relocate) to node '(\S+)'", text)
        ) is not None:
            self._migrate(t, sid, host, moved[2], stopped=moved[1] == "relocate")

    def _migrate(self, t: int, sid: str, host: str, target: str, *, stopped: bool = False) -> None:
        guest = self.guests[sid]
        guest.conf = target
        if stopped:
            guest.ends(host, t)
        elif guest.runs.pop(host, None) is not None:
            guest.runs[target] = t
        upid = self._task(t, host, guest, "qmigrate")
        self.logs[upid] = f"starting migration of VM {guest.vmid} to node '{target}' (10.0.0.1)"

    def _task(self, t: int, host: str, guest: Guest, kind: str) -> str:
        upid = f"UPID:{host}:{len(self.tasks) + 1:08X}:00000001:{t:08X}:{kind}:{guest.vmid}:root@pam:"
        self.tasks.append({"upid": upid, "endtime": t, "status": "OK"})
        return upid


def load(path: Path, *, by_hand: bool = False) -> Trace:
    """Read a trace; `by_hand`: its guests ran before HA took them on."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    scenario = rows[0]
    guests = {
        sid: Guest(int(sid[3:]), service["node"])
        for sid, service in scenario["service_config"].items()
        if sid.startswith("vm:")
    }
    hosts = {name: Host() for name in scenario["hardware_status"]}
    return Trace(scenario["name"], rows[1:], hosts, guests, by_hand=by_hand)


class TraceApi:
    """The API of whichever host has quorum at the moment; implements `Api`."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def where(self) -> str:
        return f"home ({self._trace.name})"

    def within(self, _limit_s: float) -> Api:
        return self

    def post(self, *path: str, **params: str | int) -> Reply:
        raise AssertionError(f"a test that only reads ordered {path} {params}")

    def get(self, *path: str, **params: str | int) -> Reply:
        if not any(host.there for host in self._trace.hosts.values()):
            raise ServerUnfit(f"{self.where}: no answer")
        return Reply(self._data(path, params), float(self._trace.now_s))

    def _data(self, path: tuple[str, ...], params: Mapping[str, Any]) -> Any:
        trace = self._trace
        match path:
            case ("cluster", "status"):
                cluster = {"type": "cluster", "name": "sim", "quorate": int(trace.quorate)}
                hosts = trace.hosts.items()
                return [cluster] + [
                    {"type": "node", "name": it, "online": int(host.there)} for it, host in hosts
                ]
            case ("cluster", "resources"):
                return [self._row(sid, guest) for sid, guest in trace.guests.items()]
            case ("cluster", "ha", "status", "manager_status"):
                quorum = {"quorate": "1" if trace.quorate else ""}
                return {"manager_status": trace.manager, "lrm_status": trace.agents, "quorum": quorum}
            case ("cluster", "ha", "status", "current"):
                armed = "disarmed" if "disarm" in trace.manager else "armed"
                return [{"type": "fencing", "armed-state": armed}]
            case ("nodes", name, *rest):
                if not trace.hosts[name].there:
                    raise HostSilent(f"{self.where}: {name} did not answer")
                return self._on_host(name, tuple(rest), params)
        raise AssertionError(f"{path} is not prepared")

    def _on_host(self, name: str, path: tuple[str, ...], params: Mapping[str, Any]) -> Any:
        trace = self._trace
        match path:
            case ("qemu", vmid, "config"):
                guest = self._guest(name, vmid)
                return {"smbios1": f"uuid={uuid_of(guest.vmid)}", "name": f"vm{vmid}"}
            case ("qemu", vmid, "status", "current"):
                return self._status(self._guest(name, vmid))
            case ("tasks",):
                if params["source"] == "active":
                    return []
                parts = f"UPID:{name}:", f":{params['vmid']}:"
                return [it for it in trace.tasks if all(part in it["upid"] for part in parts)]
            case ("tasks", upid, "log"):
                return [{"n": 1, "t": trace.logs.get(upid, "TASK OK")}]
            case ("status",):
                return {"uptime": trace.now_s - trace.hosts[name].booted_s}
        raise AssertionError(f"{name}: {path} is not prepared")

    def _guest(self, name: str, vmid: str) -> Guest:
        guest = self._trace.guests[f"vm:{vmid}"]
        if guest.conf != name:
            raise NotThere(f"Configuration file 'nodes/{name}/qemu-server/{vmid}.conf' does not exist")
        return guest

    def _status(self, guest: Guest) -> dict[str, Any]:
        service = self._trace.manager.get("service_status", {}).get(f"vm:{guest.vmid}")
        ha = {"managed": 1, "state": service["state"]} if service else {"managed": 0}
        if guest.conf not in guest.runs:
            return {"status": "stopped", "qmpstatus": "stopped", "uptime": 0, "ha": ha}
        uptime_s = self._trace.now_s - guest.runs[guest.conf]
        pid = 1000 + guest.starts
        return {"status": "running", "qmpstatus": "running", "pid": pid, "uptime": uptime_s, "ha": ha}

    def _row(self, sid: str, guest: Guest) -> dict[str, Any]:
        status, told_s, uptime_s = guest.told
        old = self._trace.now_s - told_s > FORGOTTEN_S
        row = {"type": "qemu", "vmid": guest.vmid, "node": guest.conf, "status": "unknown" if old else status}
        service = self._trace.manager.get("service_status", {}).get(sid)
        return (
            row | ({} if old else {"uptime": uptime_s}) | ({"hastate": service["state"]} if service else {})
        )


def uuid_of(vmid: int) -> str:
    """Return the UUID of a guest."""
    return f"00000000-0000-4000-8000-{vmid:012d}"
