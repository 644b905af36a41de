"""The API's answers as records. Pure. What cannot be read raises HypervisorProtocol, and nothing else."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencer.errors import HypervisorProtocol
from fencer.hypervisors.proxmox import fields
from fencer.hypervisors.proxmox.fields import flag, number, number_or_none, record, text, text_or_none
from fencer.hypervisors.proxmox.groups import read_groups

_UPID = re.compile(
    r"UPID:(?P<host>[^:\s]+):[0-9A-Fa-f]+:[0-9A-Fa-f]+:(?P<started>[0-9A-Fa-f]{1,16}):"
    r"(?P<kind>[^:\s]+):(?P<guest>[^:\s]*):(?P<user>[^:\s]+):"
)

_DOWN = re.compile(r"(?:^|,)down=([0-9]{1,9})(?:,|$)")


@dataclass(frozen=True, slots=True)
class Row:
    """A guest as `cluster/resources` lists it. Who, where and lock are current; the rest may be old or wrong.

    Attributes:
        vmid: Its number.
        kind: ``qemu``, or ``lxc`` for a container.
        host: Where its configuration is.
        status: What some host last said of it; ``unknown`` where none did for 300 s.
        name: Empty while the status is unknown.
        uptime_s: Of its process, as of then; 0: off.
        hastate: Of its service, where HA manages it.
        template: It is one, and never runs.
        groups: Its tags and pools.
    """

    vmid: int
    kind: str
    host: str
    status: str
    name: str = ""
    uptime_s: int = 0
    lock: str | None = None
    hastate: str | None = None
    template: bool = False
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Listing:
    """All guests of `cluster/resources`.

    Attributes:
        rows: By number.
        unreadable: Numbers of rows that could not be read, each with why.
        uptimes_s: Host → its uptime as it last told the cluster; only of hosts that corosync counts in.
    """

    rows: Mapping[int, Row]
    unreadable: Mapping[int, str]
    uptimes_s: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Status:
    """`status/current`: what the guest's own host says, by its process.

    Attributes:
        status: ``running`` or ``stopped``.
        qmpstatus: What its QEMU says; the same as `status` where that does not answer.
        pid: Of its process.
        uptime_s: Of its process.
        ha_state: Of its service; None: not managed by HA.
    """

    status: str
    qmpstatus: str
    pid: int | None = None
    uptime_s: int = 0
    name: str = ""
    lock: str | None = None
    template: bool = False
    ha_state: str | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """A guest's configuration, as far as it matters here.

    Attributes:
        uuid: Of its SMBIOS, lower case; empty where it has none.
        saved: It holds memory that its next start goes on from.
        parent: The snapshot that it was last rolled back to, or that was last taken.
        down_s: How long its shutdown may take when its host goes down; None: not set.
        hook: Its hookscript, as a volume; empty: none.
    """

    uuid: str
    name: str = ""
    lock: str | None = None
    saved: bool = False
    template: bool = False
    parent: str | None = None
    down_s: int | None = None
    hook: str = ""


@dataclass(frozen=True, slots=True)
class Members:
    """`cluster/status`.

    Attributes:
        name: Of the cluster; None: a standalone host, or a member whose cluster file system is broken.
        quorate: The answering host belongs to a majority.
        online: Host → whether corosync counts it in.
        here: The host that answered; empty where it did not say which one it is.
    """

    name: str | None
    quorate: bool
    online: Mapping[str, bool]
    here: str = ""

    @property
    def others(self) -> tuple[str, ...]:
        """The hosts that corosync counts in besides the one that answered."""
        return tuple(host for host, online in self.online.items() if online and host != self.here)

    @property
    def missing(self) -> tuple[str, ...]:
        """The hosts that corosync does not count in."""
        return tuple(host for host, online in self.online.items() if not online)

    @property
    def most(self) -> bool:
        """More than half of all hosts are counted in."""
        return 2 * len(self.missing) < len(self.online)


@dataclass(frozen=True, slots=True)
class Task:
    """A task.

    Attributes:
        kind: Like ``qmstop``.
        guest: Whose number it carries; empty for tasks about several.
        started_s: Unix seconds, by its host.
        ended_s: None: it runs.
        status: How it ended: ``OK``, ``WARNINGS: 1`` or an error's text.
    """

    upid: str
    host: str
    kind: str
    guest: str
    started_s: int
    ended_s: int | None = None
    status: str = ""

    @property
    def runs(self) -> bool:
        """It has not ended."""
        return self.ended_s is None

    @property
    def ok(self) -> bool:
        """It ended, and well."""
        return not self.runs and ended_well(self.status)

    @property
    def user(self) -> str:
        """Who began it, a token with its name; empty where its UPID does not tell."""
        found = _UPID.fullmatch(self.upid)
        return found["user"] if found else ""


def ended_well(status: str) -> bool:
    """Tell by a task's exit status whether it did what it was for."""
    return status == "OK" or status.startswith("WARNINGS: ")


def read_listing(data: Any) -> Listing:
    """Read `cluster/resources`; rows of other things are left out, unreadable ones kept apart."""
    rows, unreadable, uptimes_s = {}, {}, {}
    for entry in fields.items(data, "cluster/resources"):
        if isinstance(entry, dict) and entry.get("type") == "node" and entry.get("status") == "online":
            uptime_s = number_or_none(entry.get("uptime"))
            if uptime_s is not None:
                uptimes_s[str(entry.get("node"))] = uptime_s
        if not isinstance(entry, dict) or str(entry.get("type")) not in {"qemu", "lxc"}:
            continue
        try:
            row = _row(entry)
        except HypervisorProtocol as error:
            vmid = number_or_none(entry.get("vmid"))
            if vmid is not None:
                unreadable[vmid] = str(error)
            continue
        rows[row.vmid] = row
    return Listing(rows, unreadable, uptimes_s)


def read_status(data: Any) -> Status:
    """Read `status/current`."""
    what = "status/current"
    of = record(data, what)
    status = text(of, "status", what)
    ha = record(of.get("ha") or {}, f"{what}: ha")
    return Status(
        status=status,
        qmpstatus=text(of, "qmpstatus", what, default=status),
        pid=None if of.get("pid") is None else number(of, "pid", what),
        uptime_s=number(of, "uptime", what, default=0),
        name=text(of, "name", what, default=""),
        lock=text_or_none(of, "lock", what),
        template=flag(of, "template", what),
        ha_state=text(ha, "state", what, default="managed") if flag(ha, "managed", what) else None,
    )


def read_processes(data: Any) -> dict[int, int | None]:
    """Read a host's list of guests: number → its process; None: it has none. Odd rows are left out."""
    found: dict[int, int | None] = {}
    for entry in fields.items(data, "list of guests"):
        of = entry if isinstance(entry, dict) else {}
        vmid, pid = number_or_none(of.get("vmid")), number_or_none(of.get("pid"))
        if vmid is not None and of.get("status") == ("stopped" if pid is None else "running"):
            found[vmid] = pid
    return found


def read_config(data: Any) -> Config:
    """Read a guest's `config`."""
    what = "config"
    of = record(data, what)
    return Config(
        uuid=_smbios_uuid(text(of, "smbios1", what, default="")),
        name=text(of, "name", what, default=""),
        lock=text_or_none(of, "lock", what),
        saved=bool(of.get("vmstate")),
        template=flag(of, "template", what),
        parent=text_or_none(of, "parent", what),
        down_s=_down_s(of.get("startup")),
        hook=str(of.get("hookscript") or ""),
    )


def read_members(data: Any) -> Members:
    """Read `cluster/status`."""
    what = "cluster/status"
    name, quorate, here = None, False, ""
    online: dict[str, bool] = {}
    for entry in fields.items(data, what):
        of = record(entry, what)
        if of.get("type") == "cluster":
            name, quorate = text(of, "name", what), flag(of, "quorate", what)
        elif of.get("type") == "node":
            online[text(of, "name", what)] = flag(of, "online", what)
            here = text(of, "name", what) if flag(of, "local", what) else here
    if not online:
        raise HypervisorProtocol(f"{what} names no host")
    return Members(name, quorate, online, here)


def read_tasks(data: Any) -> tuple[Task, ...]:
    """Read a list of tasks, in its order."""
    return tuple(_task(record(entry, "tasks")) for entry in fields.items(data, "tasks"))


def read_task_end(data: Any) -> str | None:
    """Read a task's `status`: how it ended; None: it runs."""
    what = "task status"
    of = record(data, what)
    if text(of, "status", what) == "running":
        return None
    return text(of, "exitstatus", what, default="unexpected status")


def read_upid(data: Any) -> Task:
    """Read the UPID that an order returned: a task that runs."""
    found = _UPID.fullmatch(data) if isinstance(data, str) else None
    if found is None:
        raise HypervisorProtocol(f"no UPID came back, but {fields.brief(data)}")
    return Task(found[0], found["host"], found["kind"], found["guest"], int(found["started"], 16))


def read_uptime(data: Any) -> int:
    """Read a host's `status`: for how many seconds it has been up."""
    return number(record(data, "host status"), "uptime", "host status")


def read_device(data: Any) -> bool:
    """Read `cluster/config/qdevice`: whether a quorum device has a voice; an empty answer tells of none."""
    return record(data, "qdevice").get("State") == "Connected"


def read_log(data: Any) -> str:
    """Read a task's log as one text."""
    what = "task log"
    return "\n".join(text(record(line, what), "t", what, default="") for line in fields.items(data, what))


def read_rights(data: Any) -> dict[str, dict[str, bool]]:
    """Read `access/permissions`: path → privilege → whether it holds below that path as well."""
    what = "access/permissions"
    granted = {path: record(rights, what) for path, rights in record(data, what).items()}
    return {path: {right: flag(rights, right, what) for right in rights} for path, rights in granted.items()}


def _row(of: dict[str, Any]) -> Row:
    what = "cluster/resources"
    return Row(
        vmid=number(of, "vmid", what),
        kind=text(of, "type", what),
        host=text(of, "node", what),
        status=text(of, "status", what, default="unknown"),
        name=text(of, "name", what, default=""),
        uptime_s=number(of, "uptime", what, default=0),
        lock=text_or_none(of, "lock", what),
        hastate=text_or_none(of, "hastate", what),
        template=flag(of, "template", what),
        groups=read_groups(of.get("tags"), of.get("pool")),
    )


def _task(of: dict[str, Any]) -> Task:
    what = "tasks"
    upid = read_upid(of.get("upid"))
    ended_s = None if of.get("endtime") is None else number(of, "endtime", what)
    status = text(of, "status", what, default="")
    if ended_s is None and status and status not in {"running", "RUNNING"}:
        ended_s = upid.started_s  # it says how it ended, so it has
    return Task(upid.upid, upid.host, upid.kind, upid.guest, upid.started_s, ended_s, status)


def _down_s(startup: Any) -> int | None:
    """Return the time out of ``order=1,down=60``. No reading of a guest's power depends on it."""
    found = _DOWN.search(startup) if isinstance(startup, str) else None
    return int(found[1]) if found else None


def _smbios_uuid(smbios: str) -> str:
    """Return the UUID out of ``uuid=…,manufacturer=…``; empty where there is none that can be read."""
    for part in smbios.split(","):
        key, _, value = part.partition("=")
        if key == "uuid":
            try:
                return str(uuid.UUID(value))
            except ValueError:
                return ""
    return ""
