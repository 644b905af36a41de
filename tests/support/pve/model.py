"""What a cluster is made of: hosts, configuration files, kvm processes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any


class Daemon(StrEnum):
    """How a daemon of a host is."""

    OK = auto()
    DEAD = auto()
    FROZEN = auto()
    """Stopped by a signal: connections are taken and never answered."""


class Pmxcfs(StrEnum):
    """How the cluster file system of a host is."""

    OK = auto()
    STOPPED = auto()
    FROZEN = auto()
    ALONE = auto()
    """The race in which it looks like a single host without guests."""


@dataclass(slots=True)
class Conf:
    """A guest's configuration file.

    Attributes:
        host: In whose folder it is.
        vmstate: The volume that holds saved memory; what is in it is in `saved`.
        saved: Name of the memory that the next start goes on with.
        snapshots: Name → memory saved with it, or None.
        pending: What was edited while it ran, as ``GET config`` shows it: what its next cold start
            applies, or its stop through Proxmox. Source: qemu-server, vm_start and vm_stop_cleanup.
    """

    vmid: int
    name: str
    host: str
    uuid: str
    vmgenid: str
    kind: str = "qemu"
    tags: tuple[str, ...] = ()
    template: bool = False
    lock: str | None = None
    vmstate: str | None = None
    saved: str | None = None
    parent: str | None = None
    agent: bool = False
    onboot: bool = False
    hookscript: str | None = None
    startup: str | None = None
    pool: str | None = None
    snapshots: dict[str, str | None] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)
    memory_mib: int = 2048
    cores: int = 2

    def apply_pending(self) -> None:
        """Take in what was edited while it ran, as a cold start and a stop do."""
        self.uuid = self.pending.get("smbios1", self.uuid).removeprefix("uuid=")
        self.pending = {}

    def listing(self) -> dict[str, Any]:
        """Return what ``GET config`` shows with ``current``, types as there."""
        said: dict[str, Any] = {
            "name": self.name,
            "memory": str(self.memory_mib),
            "cores": self.cores,
            "ostype": "l26",
            "boot": "order=virtio0",
            "virtio0": f"local:{self.vmid}/vm-{self.vmid}-disk-0.raw,size=1M",
            "smbios1": f"uuid={self.uuid}",
            "vmgenid": self.vmgenid,
            "meta": "creation-qemu=10.0.2,ctime=1795190000",
        }
        if self.tags:
            said["tags"] = ";".join(self.tags)
        if self.agent:
            said["agent"] = "1"
        for key in ("lock", "vmstate", "parent", "hookscript", "startup"):
            if getattr(self, key) is not None:
                said[key] = getattr(self, key)
        for key in ("template", "onboot"):
            if getattr(self, key):
                said[key] = 1
        said["digest"] = hashlib.sha1(repr(sorted(said.items())).encode(), usedforsecurity=False).hexdigest()
        return said


@dataclass(slots=True)
class Inside:
    """How a guest behaves, whatever its configuration says.

    Attributes:
        obeys_after_s: How long it takes to shut down when asked; None: it is deaf.
        agent_answers: A guest agent runs in it.
    """

    obeys_after_s: float | None = 0.3
    agent_answers: bool = False


@dataclass(slots=True, eq=False)
class Kvm:
    """A kvm process.

    Attributes:
        memory: Names what is in its RAM: new after each boot, the same after a resume.
        qmp: What ``query-status`` says.
        frozen: Stopped by a signal; QMP does not answer.
        lingers: Killed and not gone yet: nobody sees it, and it can still write.
    """

    vmid: int
    host: str
    pid: int
    started_s: float
    memory: str
    qmp: str = "running"
    frozen: bool = False
    lingers: bool = False

    @property
    def qmpstatus(self) -> str:
        """What the API tells of it: a process that does not answer counts as running."""
        return "running" if self.frozen else self.qmp

    @property
    def runs(self) -> bool:
        """Whether a vCPU runs."""
        return self.qmp == "running" and not self.frozen and not self.lingers


@dataclass(slots=True)
class Files:
    """What the cluster file system holds.

    Attributes:
        confs: Guests by VMID.
        manager: HA's manager_status.
        lrm: HA's lrm_status by host.
        resources: HA's resources.cfg by service id.
    """

    confs: dict[int, Conf] = field(default_factory=dict)
    manager: dict[str, Any] = field(default_factory=lambda: {"node_status": {}})
    lrm: dict[str, dict[str, Any]] = field(default_factory=dict)
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)

    def service(self, vmid: int) -> dict[str, Any] | None:
        """Return what HA's manager writes of a guest; None: it is not under HA."""
        found: dict[str, Any] | None = self.manager.get("service_status", {}).get(service_id(vmid))
        return found


@dataclass(slots=True, eq=False)
class Host:
    """A host, as it really is.

    Attributes:
        number: From 1, in the order of the cluster.
        up: It has power.
        up_since_s: Since when.
        died_s: When it last lost its power.
        silent: A dead host swallows packets, instead of refusing them.
        link: Packets reach it.
        group: Hosts whose corosync hears each other.
        members: Whom its corosync believes to be online.
        authority: Its certificate authority's file is there.
        lacks_hook: Hookscripts that guests ask for are not there.
        corosync: How its corosync is; one that does not work leaves `members` as they were.
        believed_until_s: Until when workers of pvedaemon repeat `quorate: 1`, after corosync ended.
        stale: Its copy of the files since it lost quorum; None: it has quorum.
        kvms: Its processes by VMID.
        flocks: VMIDs whose configuration lock is held.
        starts_again: VMIDs for which a reboot was asked: whoever cleans up starts them.
        uncleaned: VMIDs whose process nobody has cleaned up after yet: whoever does runs post-stop.
        stats: What pvestatd of any host last said, by kind and id, and when.
    """

    name: str
    number: int
    members: frozenset[str]
    up: bool = True
    up_since_s: float = 0.0
    died_s: float = 0.0
    silent: bool = False
    link: bool = True
    group: int = 0
    pveproxy: Daemon = Daemon.OK
    pvedaemon: Daemon = Daemon.OK
    pvestatd: Daemon = Daemon.OK
    pmxcfs: Pmxcfs = Pmxcfs.OK
    corosync: Daemon = Daemon.OK
    believed_until_s: float = 0.0
    authority: bool = True
    lacks_hook: bool = False
    stale: Files | None = None
    kvms: dict[int, Kvm] = field(default_factory=dict)
    flocks: set[int] = field(default_factory=set)
    starts_again: set[int] = field(default_factory=set)
    uncleaned: set[int] = field(default_factory=set)
    stats: dict[tuple[str, str], tuple[float, dict[str, Any]]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Its address in the cluster's network, for people only."""
        return f"10.77.0.{10 + self.number}"

    @property
    def door(self) -> str:
        """What a client meets at its port: ``open``, ``refused`` or ``silent``."""
        if not self.up:
            return "silent" if self.silent else "refused"
        if not self.link or self.pveproxy is Daemon.FROZEN:
            return "silent"
        return "refused" if self.pveproxy is Daemon.DEAD else "open"

    def kvm(self, vmid: int) -> Kvm | None:
        """Return the process that the API sees."""
        found = self.kvms.get(vmid)
        return None if found is None or found.lingers else found


def service_id(vmid: int) -> str:
    """Return what HA calls a guest."""
    return f"vm:{vmid}"


def vmid_of(sid: str) -> int:
    """Return the guest that HA calls so."""
    return int(sid.partition(":")[2])
