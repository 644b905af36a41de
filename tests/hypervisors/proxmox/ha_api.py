"""What the API would say at any second of a recorded HA trace: of the hosts that are there, and of HA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fencer.hypervisors.proxmox.api import Api, Reply
from fencer.hypervisors.proxmox.errors import HostSilent, NotThere, ServerUnfit
from tests.hypervisors.proxmox.ha_trace import Guest, Trace

FORGOTTEN_S = 300
"""So long the cluster repeats what a host last said of a guest."""


class TraceApi:
    """The API of whichever host has quorum at the moment; implements `Api`."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def where(self) -> str:
        return f"home ({self._trace.name})"

    def within(self, _limit_s: float) -> Api:
        return self

    def peers(self) -> Sequence[Api]:
        return ()

    def post(self, *path: str, **params: str | int) -> Reply:
        raise AssertionError(f"a test that only reads ordered {path} {params}")

    def get(self, *path: str, **params: str | int) -> Reply:
        if not any(host.there for host in self._trace.hosts.values()):
            raise ServerUnfit(f"{self.where}: no answer")
        return Reply(self._data(path, params), float(self._trace.now_s))

    def _data(self, path: tuple[str, ...], params: Mapping[str, Any]) -> Any:  # noqa: PLR0911 - one row a path
        trace = self._trace
        match path:
            case ("cluster", "status"):
                cluster = {"type": "cluster", "name": "sim", "quorate": int(trace.quorate)}
                hosts, here = trace.hosts.items(), self._here()
                return [cluster] + [
                    {"type": "node", "name": it, "online": int(host.there), "local": int(it == here)}
                    for it, host in hosts
                ]
            case ("access", "permissions"):
                return {"/": {"Sys.Audit": 1, "VM.Audit": 1}}
            case ("cluster", "config", "qdevice"):
                return {}
            case ("cluster", "resources"):
                rows = [self._row(sid, guest) for sid, guest in trace.guests.items()]
                return [*rows, *(self._host_row(name) for name in trace.hosts)]
            case ("cluster", "ha", "status", "manager_status"):
                quorum = {"quorate": "1" if trace.quorate else ""}
                return {"manager_status": trace.manager, "lrm_status": trace.agents, "quorum": quorum}
            case ("cluster", "ha", "status", "current"):
                armed = "disarmed" if "disarm" in trace.manager else "armed"
                return [{"type": "fencing", "armed-state": armed}]
            case ("nodes", name, *rest):
                if not trace.hosts[name].there:
                    raise HostSilent(f"{self.where}: {name} did not answer", name)
                return self._on_host(name, tuple(rest), params)
        raise AssertionError(f"{path} is not prepared")

    def _here(self) -> str:
        return next(name for name, host in self._trace.hosts.items() if host.there)

    def _host_row(self, name: str) -> dict[str, Any]:
        host = self._trace.hosts[name]
        if not host.there:
            return {"type": "node", "node": name, "status": "offline"}
        uptime_s = self._trace.now_s - host.booted_s
        return {"type": "node", "node": name, "status": "online", "uptime": uptime_s}

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
        ha = {"managed": 1, "state": service.get("state")} if service else {"managed": 0}
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
            row
            | ({} if old else {"uptime": uptime_s})
            | ({"hastate": service.get("state")} if service else {})
        )


def uuid_of(vmid: int) -> str:
    """Return the UUID of a guest."""
    return f"00000000-0000-4000-8000-{vmid:012d}"
