"""One look at an endpoint through one API server: which cluster, with what majority, where the guests are."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from fencer.errors import HypervisorDenied, HypervisorProtocol
from fencer.hypervisors.proxmox.api import Api
from fencer.hypervisors.proxmox.errors import HostSilent, ServerUnfit
from fencer.hypervisors.proxmox.ha import HaView, fold
from fencer.hypervisors.proxmox.ha_read import read_ha, read_quorate
from fencer.hypervisors.proxmox.memory import Memory
from fencer.hypervisors.proxmox.parse import (
    Config,
    Listing,
    Members,
    Status,
    Task,
    read_config,
    read_device,
    read_listing,
    read_members,
    read_status,
    read_tasks,
)
from fencer.hypervisors.proxmox.settings import ProxmoxSettings

TASKS_LISTED = 100
"""How many tasks of one guest to list; the newest come first."""
TASKS_ACTIVE = 500
"""How many tasks of a host to list."""
PATIENCE_S = 3.0
"""How long to wait for an answer that only confirms, or that one of several hosts may give."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one server, quorate and of the right cluster, said at the beginning of a piece of work.

    Attributes:
        api: The server.
        members: `cluster/status`.
        listing: `cluster/resources`.
        began_s: When it began, on our clock.
        utc_s: The server's clock then, Unix seconds; None: it did not tell.
        ha: What HA's manager said then, unread; None of a standalone host.
        outvoted: Why hosts that are missing may go on with a quorum of their own; empty: they cannot.
    """

    api: Api
    members: Members
    listing: Listing
    began_s: float
    utc_s: float | None
    ha: Any = None
    outvoted: str = ""

    @property
    def witness(self) -> str:
        """The name of the one that answers: a cluster, or a host that is in none."""
        return f"proxmox:{self.members.name or ','.join(sorted(self.members.online))}"

    def online(self, host: str) -> bool:
        """Whether corosync counts a host as a member."""
        return self.members.online.get(host, False)

    def alone_missing(self, host: str) -> bool:
        """Whether no other host is missing that could have taken over this one's guests."""
        return self.members.missing == (host,)

    def status(self, host: str, vmid: int) -> Status:
        """Ask a guest's own host for its `status/current`."""
        return read_status(self.api.get("nodes", host, "qemu", str(vmid), "status", "current").data)

    def config(self, host: str, vmid: int, snapshot: str | None = None) -> Config:
        """Read a guest's configuration as it is, or that of one of its snapshots.

        Without ``current`` the answer is what its next start will make of it: a guest whose UUID is edited
        while it runs would be taken for another. A snapshot has only one, and refuses to be asked for it.

        Source: qemu-server PVE/API2/Qemu.pm, vm_config; pve-guest-common PVE/AbstractConfig.pm,
        load_current_config.
        """
        params: dict[str, str | int] = {"current": 1} if snapshot is None else {"snapshot": snapshot}
        return read_config(self.api.get("nodes", host, "qemu", str(vmid), "config", **params).data)

    def tasks(self, host: str, vmid: int) -> tuple[Task, ...]:
        """List a guest's newest tasks on a host."""
        reply = self.api.get("nodes", host, "tasks", vmid=vmid, source="all", limit=TASKS_LISTED)
        return read_tasks(reply.data)

    def tasks_anywhere(self, vmid: int, *, leave_out_silent: bool = True) -> list[Task]:
        """List a guest's newest tasks on all hosts that are counted in.

        Args:
            vmid: The guest's number.
            leave_out_silent: For callers to whom a missing task can only prove less.

        Raises:
            HostSilent: one does not answer, and may not be left out.
            HypervisorError: something could not be asked.
        """
        found: list[Task] = []
        hurried = replace(self, api=self.api.within(PATIENCE_S))
        left_out = (HostSilent,) if leave_out_silent else ()
        for host, online in self.members.online.items():
            if online:
                with suppress(*left_out):
                    found.extend(hurried.tasks(host, vmid))
        return found

    def tasks_of_kind(self, host: str, kind: str) -> tuple[Task, ...]:
        """List the newest tasks of a kind on a host, whatever guests they are about."""
        reply = self.api.get("nodes", host, "tasks", typefilter=kind, source="all", limit=TASKS_LISTED)
        return read_tasks(reply.data)

    def active_tasks(self, host: str) -> tuple[Task, ...]:
        """List what runs on a host."""
        reply = self.api.get("nodes", host, "tasks", source="active", limit=TASKS_ACTIVE)
        return tuple(task for task in read_tasks(reply.data) if task.runs)


def look_around(api: Api, settings: ProxmoxSettings, now_s: float) -> Look:
    """Begin a piece of work.

    Args:
        api: A server.
        settings: Of the endpoint: what it must be.
        now_s: Our clock.

    Raises:
        ServerUnfit: it has no quorum, or only looks like a standalone host: ask another.
        HypervisorProtocol: it belongs to another cluster.
        HypervisorError: what its answers say otherwise.
    """
    reply = api.get("cluster", "status")
    members = read_members(reply.data)
    refuse_strangers(api, settings, members)
    ha = None if members.name is None else _ask_ha(api)
    listing = read_listing(api.get("cluster", "resources").data)
    return Look(api, members, listing, now_s, reply.utc_s, ha, _outvoted(api, settings, members))


def _ask_ha(api: Api) -> Any:
    """Ask HA's manager, which knows at once when its host has lost its quorum.

    Raises:
        ServerUnfit: it has.
        HypervisorError: it could not be asked.
    """
    told = api.get("cluster", "ha", "status", "manager_status").data
    if not read_quorate(told):
        raise ServerUnfit(
            f"{api.where} has no quorum: HA's manager there says so, though cluster/status still calls it "
            "quorate. Has corosync ended on it (systemctl status corosync)?"
        )
    return told


def refuse_strangers(api: Api, settings: ProxmoxSettings, members: Members) -> None:
    """Compare `cluster/status` with the configuration.

    Raises:
        As `look_around`.
    """
    if settings.cluster is None and members.name is not None:
        raise HypervisorProtocol(
            f"{api.where} is a member of the cluster {members.name}, and is configured as standalone. "
            f"Write cluster: {members.name}"
        )
    if settings.cluster is None:
        return
    if members.name is None:
        raise ServerUnfit(
            f"{api.where} does not say that it belongs to the cluster {settings.cluster}. Is its cluster "
            "file system broken (systemctl status pve-cluster), or is it standalone (cluster: standalone)?"
        )
    if members.name != settings.cluster:
        raise HypervisorProtocol(
            f"{api.where} belongs to the cluster {members.name}, not to {settings.cluster}, and nothing is "
            f"believed of it. Name another server, or write cluster: {members.name}"
        )
    if not members.quorate:
        online = sum(members.online.values())
        raise ServerUnfit(
            f"{api.where} has no quorum: it sees {online} of {len(members.online)} hosts. What it says may "
            "be outdated"
        )


def look_at_ha(look: Look, memory: Memory) -> HaView:
    """Read what HA's manager said, and fold it in.

    Where the missing hosts may have a quorum of their own, it proves nothing: their watchdogs never fire.

    Raises:
        HypervisorProtocol: it cannot be read.
    """
    view = read_ha(look.ha or {})
    if look.outvoted:
        view = replace(view, quorate=False)
    with memory.lock:
        memory.ha = fold(memory.ha, view, look.began_s)
    return view


def has_device(api: Api) -> bool:
    """Ask for a quorum device.

    Its socket is root's alone in many versions, and then the API shows none: that is why there is
    `ProxmoxSettings.quorum_device`. Source: pve-cluster, PVE/API2/ClusterConfig.pm; corosync-qdevice.service.
    """
    try:
        return read_device(api.get("cluster", "config", "qdevice").data)
    except (HypervisorDenied, HypervisorProtocol):
        return False


def _outvoted(api: Api, settings: ProxmoxSettings, members: Members) -> str:
    """Say why the missing hosts may be quorate as well; empty: they cannot be.

    Half of the hosts or fewer have a quorum with `two_node: 1`, with `pvecm expected`, or by a device's vote.
    """
    if members.name is None or members.most or settings.quorum_device or has_device(api):
        return ""
    online = len(members.online) - len(members.missing)
    return (
        f"{online} of {len(members.online)} hosts are no majority, and no quorum device is known "
        f"(quorum_device): {', '.join(members.missing)} may go on, with a quorum of their own"
    )
