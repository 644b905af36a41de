"""One look at an endpoint through one API server: who answers, with what majority, where the guests are."""

from __future__ import annotations

from dataclasses import dataclass

from fencer.errors import HypervisorProtocol
from fencer.hypervisors.proxmox.api import Api
from fencer.hypervisors.proxmox.errors import ServerUnfit
from fencer.hypervisors.proxmox.ha import HaView, fold
from fencer.hypervisors.proxmox.ha_read import read_ha
from fencer.hypervisors.proxmox.memory import Memory
from fencer.hypervisors.proxmox.parse import (
    Config,
    Listing,
    Members,
    Status,
    Task,
    read_config,
    read_listing,
    read_members,
    read_status,
    read_tasks,
)
from fencer.hypervisors.proxmox.settings import ProxmoxSettings

TASKS_LISTED = 100
"""Of one guest; the newest come first."""
TASKS_ACTIVE = 500
"""Of a host."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one server, quorate and of the right cluster, said at the beginning of a piece of work.

    Attributes:
        api: The server.
        members: `cluster/status`.
        listing: `cluster/resources`.
        began_s: When it began, on our clock.
        utc_s: The server's clock then, Unix seconds; None: it did not tell.
    """

    api: Api
    members: Members
    listing: Listing
    began_s: float
    utc_s: float | None

    @property
    def witness(self) -> str:
        """Who speaks here, by its own name: a cluster, or a host that is in none."""
        return f"proxmox:{self.members.name or ','.join(sorted(self.members.online))}"

    def online(self, host: str) -> bool:
        """Whether corosync counts a host in."""
        return self.members.online.get(host, False)

    def status(self, host: str, vmid: int) -> Status:
        """Ask a guest's own host for its `status/current`."""
        return read_status(self.api.get("nodes", host, "qemu", str(vmid), "status", "current").data)

    def config(self, host: str, vmid: int, snapshot: str | None = None) -> Config:
        """Read a guest's configuration, or that of one of its snapshots."""
        params = {} if snapshot is None else {"snapshot": snapshot}
        return read_config(self.api.get("nodes", host, "qemu", str(vmid), "config", **params).data)

    def tasks(self, host: str, vmid: int) -> tuple[Task, ...]:
        """List a guest's newest tasks on a host."""
        reply = self.api.get("nodes", host, "tasks", vmid=vmid, source="all", limit=TASKS_LISTED)
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
    listing = read_listing(api.get("cluster", "resources", type="vm").data)
    return Look(api, members, listing, now_s, reply.utc_s)


def refuse_strangers(api: Api, settings: ProxmoxSettings, members: Members) -> None:
    """Hold `cluster/status` against the configuration.

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
            f"believed of it. Another server, or cluster: {members.name}"
        )
    if not members.quorate:
        online = sum(members.online.values())
        raise ServerUnfit(
            f"{api.where} has no quorum: it sees {online} of {len(members.online)} hosts. What it says may "
            "be outdated"
        )


def look_at_ha(look: Look, memory: Memory) -> HaView:
    """Ask HA's manager, and fold its answer in.

    Raises:
        HypervisorError: it could not be asked.
    """
    view = read_ha(look.api.get("cluster", "ha", "status", "manager_status").data)
    with memory.lock:
        memory.ha = fold(memory.ha, view, look.began_s)
    return view
