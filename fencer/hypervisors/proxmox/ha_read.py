"""The answers of HA's manager as records. Pure. What cannot be read raises HypervisorProtocol."""

from __future__ import annotations

from typing import Any

from fencer.hypervisors.proxmox import fields
from fencer.hypervisors.proxmox.fields import flag, number, number_or_none, record, text
from fencer.hypervisors.proxmox.ha import Agent, HaView, Service


def read_ha(data: Any) -> HaView:
    """Read `ha/status/manager_status`.

    Raises:
        HypervisorProtocol: it cannot be read.
    """
    what = "manager_status"
    of = record(data, what)
    manager = record(of.get("manager_status") or {}, what)
    hosts = record(manager.get("node_status") or {}, f"{what}: node_status")
    services = record(manager.get("service_status") or {}, f"{what}: service_status")
    agents = record(of.get("lrm_status") or {}, f"{what}: lrm_status")
    return HaView(
        quorate=read_quorate(data),
        disarmed="disarm" in manager,
        hosts={host: text(hosts, host, what) for host in hosts},
        services={sid: _service(record(entry, f"{what}: {sid}"), sid) for sid, entry in services.items()},
        agents={host: _agent(record(entry, f"lrm_status: {host}")) for host, entry in agents.items()},
    )


def read_quorate(data: Any) -> bool:
    """Read from `ha/status/manager_status` alone whether the answering host belongs to a majority.

    Raises:
        HypervisorProtocol: it cannot be read.
    """
    what = "manager_status: quorum"
    return flag(record(record(data, "manager_status").get("quorum") or {}, what), "quorate", what)


def read_armed(data: Any) -> bool | None:
    """Read from `ha/status/current` whether HA is armed; None: this version does not tell.

    Raises:
        HypervisorProtocol: it cannot be read.
    """
    for entry in fields.items(data, "ha/status/current"):
        of = record(entry, "ha/status/current")
        if of.get("type") == "fencing":
            return text(of, "armed-state", "ha/status/current") == "armed"
    return None


def _service(of: dict[str, Any], sid: str) -> Service:
    host, order = text(of, "node", sid), text(of, "uid", sid, default="")
    return Service(text(of, "state", sid), host, flag(of, "running", sid), order)


def _agent(of: dict[str, Any]) -> Agent:
    """Read what an agent wrote. Its exit codes are -1 where a signal ended what it had begun.

    Source: pve-ha-manager, src/PVE/HA/LRM.pm, resource_command_finished().
    """
    what = "lrm_status"
    results = {uid: record(result, what) for uid, result in record(of.get("results") or {}, what).items()}
    started = {
        uid: text(result, "sid", what)
        for uid, result in results.items()
        if result.get("state") == "started" and number_or_none(result.get("exit_code")) == 0
    }
    return Agent(
        state=text(of, "state", what, default=""),
        mode=text(of, "mode", what, default="active"),
        started=started,
        written=number(of, "timestamp", what, default=0),
    )
