"""What GET says of the cluster and its hosts, and of guests where it speaks of all at once.

Source: replies recorded from pve-manager 9.2; older shapes as in public samples of 8.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tests.support.pve.api.call import Call, Json
from tests.support.pve.model import Conf, Host, Pmxcfs
from tests.support.pve.pvestatd import HOST_MEMORY
from tests.support.pve.refused import bad_parameter

_FIRST_VMID = 100


def version(call: Call) -> Json:
    """``GET /version``."""
    major, minor = call.pve.release
    return {"release": f"{major}.{minor}", "version": call.pve.version, "repoid": "14a22df3"}


def permissions(call: Call) -> Json:
    """``GET /access/permissions``."""
    path, told = call.params.get("path"), call.pve.access.permissions(call.token)
    if path is None:
        return told
    return {path: dict.fromkeys(sorted(call.token.on(path)), 1)} if call.token.on(path) else {}


def cluster_status(call: Call) -> Json:
    """``GET /cluster/status``."""
    alone = call.pve.name is None or call.host.pmxcfs is Pmxcfs.ALONE
    if alone:
        return [_member(call, call.host, 0)]
    whole = {
        "id": "cluster",
        "type": "cluster",
        "name": call.pve.name,
        "version": 3,
        "nodes": len(call.pve.hosts),
        "quorate": int(call.pve.corosync.seems_quorate(call.host, worker=True)),
    }
    return [whole, *(_member(call, host, host.number) for host in call.pve.hosts.values())]


def _member(call: Call, host: Host, number: int) -> Json:
    return {
        "id": f"node/{host.name}",
        "type": "node",
        "name": host.name,
        "nodeid": number,
        "ip": host.address,
        "local": int(host is call.host),
        "online": int(host.name in call.host.members),
        "level": "",
    }


def nodes(call: Call) -> Json:
    """``GET /nodes``."""
    rows = [_node_row(call, name) for name in call.pve.hosts]
    for row in rows:
        row["ssl_fingerprint"] = call.pve.fingerprints.get(row["node"])
    return rows


def certificates(call: Call) -> Json:
    """``GET /nodes/{node}/certificates/info``: those of the host, and the authority that signed them."""
    whole = call.host.pmxcfs is not Pmxcfs.ALONE
    authority = hashlib.sha256(f"{call.pve.name or call.host.name}".encode()).digest()
    rows = {"pve-ssl.pem": call.pve.fingerprints.get(call.host.name)}
    if call.host.authority and (whole or call.pve.name is None):
        rows["pve-root-ca.pem"] = authority.hex(":").upper()
    return [{"filename": name, "fingerprint": told, "subject": "/CN=x"} for name, told in rows.items()]


def _node_row(call: Call, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"id": f"node/{name}", "type": "node", "node": name, "status": "unknown"}
    online, hidden = name in call.host.members, not call.may(f"/nodes/{name}", "Sys.Audit")
    said = call.pve.pvestatd.known(call.host, "node", name)
    if said is not None:
        row["level"] = said.pop("level")
        gone = () if online else ("uptime", "cpu", "mem", "disk")
        row.update({} if hidden else {key: value for key, value in said.items() if key not in gone})
        row["status"] = "online"
    if not online:
        row["status"] = "offline"
    return row


def node_status(call: Call) -> Json:
    """``GET /nodes/{node}/status``."""
    quarter = HOST_MEMORY // 4
    kernel = {"sysname": "Linux", "machine": "x86_64", "release": "6.17.2-1-pve", "version": "#1 SMP"}
    cpu = {"cpus": 2, "cores": 2, "sockets": 1, "model": "none", "mhz": "2700.000", "user_hz": 100}
    return {
        "uptime": call.pve.uptime_s(call.host),
        "pveversion": f"pve-manager/{call.pve.version}/14a22df3",
        "kversion": "Linux 6.17.2-1-pve #1 SMP",
        "current-kernel": kernel,
        "boot-info": {"mode": "legacy-bios"},
        "cpuinfo": {**cpu, "family": "6", "vendor": "none", "flags": "fpu", "hvm": "1"},
        "cpu": 0.05,
        "wait": 0,
        "idle": 0,
        "ksm": {"shared": 0},
        "loadavg": ["0.10", "0.12", "0.09"],
        "memory": {
            "total": HOST_MEMORY,
            "used": quarter,
            "free": 3 * quarter,
            "available": 3 * quarter,
        },
        "swap": {"total": 0, "used": 0, "free": 0},
        "rootfs": {"total": 256 << 30, "used": 32 << 30, "free": 224 << 30, "avail": 200 << 30},
    }


def quorum_device(call: Call) -> Json:
    """``GET /cluster/config/qdevice``: empty where there is none, or where only root may ask it."""
    return (
        {"Model": "Net", "State": "Connected"}
        if call.pve.corosync.device and call.pve.corosync.device_told
        else {}
    )


def resources(call: Call) -> Json:
    """``GET /cluster/resources``: stale, and silent about what the caller may not see."""
    kind = call.params.get("type")
    call.require_one_of("type", "vm", "storage", "node", "sdn")
    rows: list[Json] = []
    if kind in {None, "vm"}:
        confs = call.files.confs
        rows += [_vm_row(call, confs[it]) for it in sorted(confs) if call.may(f"/vms/{it}", "VM.Audit")]
    if kind in {None, "node"}:
        for name in call.pve.hosts:
            row = _node_row(call, name)
            rows.append({**row, "cgroup-mode": 2} if row["status"] == "online" else row)
    return rows


def _vm_row(call: Call, conf: Conf) -> Json:
    row: dict[str, Any] = {
        "id": f"{conf.kind}/{conf.vmid}",
        "vmid": conf.vmid,
        "node": conf.host,
        "type": conf.kind,
        "status": "unknown",
    }
    row.update(call.pve.pvestatd.known(call.host, "vm", str(conf.vmid)) or {})
    if conf.lock is not None:
        row["lock"] = conf.lock
    if conf.tags:
        row["tags"] = ";".join(conf.tags)
    if conf.pool is not None and call.may(f"/pool/{conf.pool}", "Pool.Audit"):
        row["pool"] = conf.pool
    service = call.files.service(conf.vmid)
    if service is not None:
        row["hastate"] = service["state"]
    return row


def nextid(call: Call) -> Json:
    """``GET /cluster/nextid``: tells anybody whether a number is taken."""
    taken = call.files.confs
    if "vmid" not in call.params:
        return str(next(it for it in range(_FIRST_VMID, len(taken) + 1000) if it not in taken))
    wanted = call.number("vmid", 0)
    if wanted in taken:
        bad_parameter("vmid", f"VM {wanted} already exists")
    return str(wanted)
