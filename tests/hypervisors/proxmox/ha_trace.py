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

TOLD_EVERY_S = 10
"""So often a host tells the cluster of its guests."""

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
        died_on: The host whose loss of power ended its last run; None: it runs, or ended otherwise.
    """

    vmid: int
    conf: str
    runs: dict[str, int] = field(default_factory=dict)
    ended_s: int | None = None
    died_on: str | None = None
    starts: int = 0
    told: tuple[str, int, int] = ("stopped", 0, 0)

    def begins(self, host: str, now_s: int) -> bool:
        """It runs there from now on; False: it did already."""
        if host in self.runs:
            return False
        self.runs[host], self.died_on = now_s, None
        return True

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
        recovered: Service and host: HA recovered it, after its last run had ended so.
        disarmed: HA was ever disarmed.
        by_hand: Guests were started by hand when their host had booted, before HA began.
        booting: Hosts on which they still are to be: no guest starts without quorum.
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
    recovered: set[tuple[str, str]] = field(default_factory=set)
    disarmed: bool = False
    by_hand: bool = False
    booting: set[str] = field(default_factory=set)

    @property
    def ends_s(self) -> int:
        return max((int(row["t"]) for row in self.rows), default=0)

    @property
    def quorate(self) -> bool:
        return 2 * sum(host.there for host in self.hosts.values()) > len(self.hosts)

    def play(self, until_s: int) -> None:
        """Let time pass."""
        self.now_s = until_s
        while self.rows and self.rows[0]["t"] <= until_s:
            self._happen(self.rows.pop(0))
        self._start_by_hand()
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
                for sid, service in row["data"].get("service_status", {}).items():
                    if service.get("state") == "recovery":
                        self._recovered(sid, service["node"])
            case "lrm_status":
                self.agents[row["node"]] = row["data"]
            case "steal_service":
                if row["sid"] in self.guests:
                    self.stolen.append((row["sid"], row["from"], row["t"]))
                    self._recovered(row["sid"], row["from"])
                    self.guests[row["sid"]].conf = row["to"]
            case "log":
                self._logged(row["t"], row["by"], row["text"])

    def _logged(self, t: int, by: str, text: str) -> None:
        if by.endswith("/lrm"):
            self._agent_did(t, by.removesuffix("/lrm"), text)
        elif text.startswith("execute "):  # by the list of commands, a watchdog, a shutdown, a fence agent
            self._commanded(t, text)

    def _commanded(self, t: int, text: str) -> None:
        match text.removeprefix("execute ").split():
            case ["power", name, "on"] if not self.hosts[name].powered:
                self.hosts[name] = Host(powered=True, network=True, booted_s=t)
                self.booting.add(name)
            case ["power", name, "on"]:
                self.hosts[name].network = True
            case ["power", name, "off"] if self.hosts[name].powered:
                self._power_off(t, name)
            case ["network", name, state]:
                self.hosts[name].network = state == "on"
            case ["service", sid, "add", name, *state] if sid.startswith("vm:"):
                guest = self.guests.setdefault(sid, Guest(int(sid[3:]), name))  # HA may have had it before
                guest.conf = name
                if state[1:] == ["1"]:
                    guest.begins(name, t)
            case ["service", sid, "manual-migrate", name] if sid in self.guests:
                self._migrate(t, sid, self.guests[sid].conf, name)

    def _start_by_hand(self) -> None:
        for name in sorted(self.booting):
            if self.quorate and self.hosts[name].there:
                self.booting.discard(name)
                for guest in self.guests.values() if self.by_hand else ():
                    if guest.conf == name:
                        guest.begins(name, self.now_s)

    def _power_off(self, t: int, name: str) -> None:
        host = self.hosts[name]
        host.powered, host.network, host.lost_power_s = False, False, t
        self.booting.discard(name)
        for sid, guest in self.guests.items():
            if name in guest.runs:
                self.alive_when_lost.add((sid, name))
                guest.ends(name, t)
                guest.died_on = name

    def _recovered(self, sid: str, host: str) -> None:
        if sid in self.guests and self.guests[sid].died_on == host:
            self.recovered.add((sid, host))

    def _agent_did(self, t: int, host: str, text: str) -> None:
        if (found := re.search(r"(vm:\d+)", text)) is None or found[1] not in self.guests:
            return
        sid, guest = found[1], self.guests[found[1]]
        if text.startswith("starting service"):
            if guest.begins(host, t):
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
            guest.begins(target, t)
        upid = self._task(t, host, guest, "qmigrate")
        self.logs[upid] = f"starting migration of VM {guest.vmid} to node '{target}' (10.0.0.1)"

    def _task(self, t: int, host: str, guest: Guest, kind: str) -> str:
        upid = f"UPID:{host}:{len(self.tasks) + 1:08X}:00000001:{t:08X}:{kind}:{guest.vmid}:root@pam:"
        self.tasks.append({"upid": upid, "endtime": t, "status": "OK"})
        return upid


def load(path: Path, *, by_hand: bool = False) -> Trace:
    """Read a trace; `by_hand`: its guests ran before HA took them on.

    Raises:
        ValueError: it is none. Only its last line may be cut off.
    """
    rows = read_rows(path)
    if not rows or rows[0].get("kind") != "scenario":
        raise ValueError(f"{path} does not begin with a scenario")
    scenario = rows[0]
    guests = {
        sid: Guest(int(sid[3:]), service["node"])
        for sid, service in scenario["service_config"].items()
        if sid.startswith("vm:")
    }
    hosts = {name: Host() for name in scenario["hardware_status"]}
    return Trace(scenario["name"], rows[1:], hosts, guests, by_hand=by_hand)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a trace's rows, in its order.

    Raises:
        ValueError: as `load`.
    """
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            if number < len(lines):
                raise ValueError(f"{path}, line {number}: {error}") from error
    return rows
