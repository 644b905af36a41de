"""Makes the tables of docs/proxmox.md: of each situation what the API answered, and what is read from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from fencer.core.model import PowerState
from fencer.errors import HypervisorError
from fencer.hypervisors.proxmox.errors import HostSilent, NotThere, ServerUnfit
from fencer.hypervisors.proxmox.ha import HaState, fold, moved_from, standing
from fencer.hypervisors.proxmox.ha_read import read_ha
from fencer.hypervisors.proxmox.leftover import LEFT_BY
from fencer.hypervisors.proxmox.look import look_around
from fencer.hypervisors.proxmox.parse import (
    Config,
    Status,
    read_config,
    read_listing,
    read_members,
    read_status,
)
from fencer.hypervisors.proxmox.settings import ProxmoxSettings
from fencer.hypervisors.proxmox.states import PowerReading, read_power, read_row
from tests.hypervisors.proxmox.page_rows import GROUPS, Situation
from tests.hypervisors.proxmox.replay import ReplayApi, as_received, path_of
from tests.support.pve.recordings import usual_recordings

HEADER = ("| situation | what the API says | fencer reads | so |", "| --- | --- | --- | --- |")
LOCKS = (
    "backup",
    "clone",
    "create",
    "migrate",
    "rollback",
    "snapshot",
    "snapshot-delete",
    "suspended",
    "suspending",
)
"""All there are. Source: qemu-server, PVE/QemuServer.pm, the enum of `lock`."""

_SETTINGS = ProxmoxSettings("home", ("https://pve2:8006",), "lab", "fencer@pve!agent", Path("unused"))
_OFF = Config(uuid="", name="")
_SLOW_S = 1.0
_LONGEST = 70  # characters of a text of the API
_MEANS: Final[dict[type[HypervisorError], str]] = {
    HostSilent: "the host is silent",
    NotThere: "it is not there",
    ServerUnfit: "this server is unfit",
}
"""What is made of a refusal; of any other, that it is one."""


def recorded(name: str) -> dict[str, Any]:
    """Return a recording."""
    content: dict[str, Any] = json.loads((usual_recordings() / f"{name}.json").read_text(encoding="utf-8"))
    return content


def situations() -> str:
    """Make the tables of all situations, group by group."""
    lines: list[str] = []
    for group, rows in GROUPS.items():
        lines += [f"### {group}", "", *HEADER, *map(_line, rows), ""]
    return "\n".join(lines)


def locks() -> str:
    """Make the table of what a lock means of a guest that is off: by the adapter's tables alone."""
    lines = ["| lock | fencer reads | left over |", "| --- | --- | --- |"]
    for lock in LOCKS:
        reading = read_power(Status("stopped", "stopped", lock=lock), _OFF)
        in_the_way = lock in LEFT_BY and not reading.settled
        lines.append(f"| `{lock}` | {_told(reading)} | {_LEFT_OVER[lock in LEFT_BY, in_the_way]} |")
    return "\n".join(lines)


_LEFT_OVER = {
    (True, True): "names `qm unlock` after ten minutes without a task",
    (True, False): "does no harm; keeps the guest from being started",
    (False, False): "never called so",
}


def _line(row: Situation) -> str:
    said, read = _answer(row)
    return f"| {row.words} | {said.replace('|', chr(92) + '|')} | {read} | {row.so} |"


def _answer(row: Situation) -> tuple[str, str]:
    recording = recorded(row.recording)
    if "series" in recording:
        return _by_ha(row, recording["series"]) if row.ha else _in_series(row, recording["series"])
    call, late = path_of(recording)[-1], _late(recording["elapsed_s"])
    try:
        data = as_received(recording)
    except HypervisorError as error:
        return f"{_refusal(recording)}{late}", _MEANS.get(type(error), "a refusal")
    if call == "current":
        return f"{_fields(data)}{late}", _told(read_power(read_status(data), _OFF))
    if call == "config":
        return f"a configuration, unlocked{late}" if read_config(
            data
        ).lock is None else "", "not asked for that"
    return _membership(row.recording, data)


def _membership(name: str, data: Any) -> tuple[str, str]:
    """Tell whether a server is believed at all, by all that was recorded of it."""
    members = read_members(data)
    online = f"{sum(members.online.values())} of {len(members.online)} hosts `online: 1`"
    said = (
        f"`quorate: {int(members.quorate)}`, {online}"
        if members.name
        else f"no row `type: cluster`, {online}"
    )
    when = name.removesuffix("-cluster-status")
    answers = {"cluster/status": data, "cluster/resources": []}
    for call, file in (("resources", "resources"), ("ha/status/manager_status", "ha-manager")):
        if (usual_recordings() / f"{when}-{file}.json").is_file():
            answers[f"cluster/{call}"] = as_received(recorded(f"{when}-{file}"))
    try:
        look_around(ReplayApi(answers), _SETTINGS, 1000.0)
    except ServerUnfit:
        return said, _MEANS[ServerUnfit]
    return said, "one of the majority"


def _in_series(row: Situation, series: list[dict[str, Any]]) -> tuple[str, str]:
    rows = (it for it in series if it["t"] >= row.at_s and it.get("vmid", row.vmid) == row.vmid)
    at = next(rows)
    if "qmpstatus" in at:
        return _fields(at), _told(read_power(read_status(at), _OFF))
    of = at["resources"][str(row.vmid)] if row.vmid and "resources" in at else at
    [found] = read_listing([{"type": "qemu", "vmid": row.vmid, "node": "pve1", **of}]).rows.values()
    online = read_members(at["cluster"]).online[found.host] if "cluster" in at else True
    there = "" if online else f", {found.host} `online: 0`"
    return f"`status: {found.status}`{there} (cluster/resources)", _told(read_row(found, host_online=online))


def _by_ha(row: Situation, series: list[dict[str, Any]]) -> tuple[str, str]:
    """Fold all that HA's manager has said up to then, as an agent does."""
    sid, memory, first = f"vm:{row.vmid}", HaState(), ""
    for at in series:
        view = read_ha(at["ha_manager"])
        memory = fold(memory, view, 1000.0 + at["t"])
        first = first or view.services[sid].host
        if at["t"] >= row.at_s:
            break
    service = view.services[sid]
    said = f"`state: {service.state}`, `node: {service.host}`; {first} `{view.hosts[first]}` (manager_status)"
    recovery = moved_from(memory, sid, service.host)
    over = standing(memory, view, sid, first)[0] or (recovery is not None and recovery.left == first)
    return said, f"its run on {first} is over" if over else "nothing is proven"


def _fields(data: dict[str, Any]) -> str:
    """Show what matters of `status/current`, as it stands there."""
    of = [f"`{key}: {data[key]}`" for key in ("status", "qmpstatus", "lock", "template") if data.get(key)]
    process = ["a `pid`" if data.get("pid") else "no `pid`"]
    ha = [f"`ha: {data['ha']['state']}`"] if data.get("ha", {}).get("managed") else []
    return ", ".join([*of, *process, *ha])


def _refusal(recording: dict[str, Any]) -> str:
    if recording["status"] is None:
        return "no answer"
    reason = recording["reason"]
    return f"`{recording['status']} {reason if len(reason) <= _LONGEST else reason[:_LONGEST] + '…'}`"


def _late(elapsed_s: float) -> str:
    return f", after {elapsed_s:.0f} s" if elapsed_s >= _SLOW_S else ""


def _told(reading: PowerReading) -> str:
    if reading.power_state is PowerState.UNKNOWN:
        return "unknown"
    return f"{reading.power_state.value}{'' if reading.settled else ', not settled'}"
