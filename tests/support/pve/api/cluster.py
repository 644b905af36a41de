"""What GET says: cluster, hosts and guests, in the shapes of the real one.

Source: replies recorded from pve-manager 9.2 and qemu-server 9.2; older shapes as in public samples of 8.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.pve.api.call import Call
from tests.support.pve.model import Conf, Host, Pmxcfs, service_id
from tests.support.pve.pvestatd import HOST_MEMORY
from tests.support.pve.refused import BAD_PARAMETER, Refused, bad_parameter

Json = Any
_QMP_GIVES_UP_S = 3.0
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


# -- cluster and hosts ------------------------------------------------------------------------------------


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
        "quorate": int(call.pve.seems_quorate(call.host, worker=True)),
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


def _node_row(call: Call, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"id": f"node/{name}", "type": "node", "node": name, "status": "unknown"}
    online, hidden = name in call.host.members, not call.may(f"/nodes/{name}", "Sys.Audit")
    said = call.pve.stats.known(call.host, "node", name)
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
    return {"Model": "Net", "State": "Connected"} if call.pve.device and call.pve.device_told else {}


def resources(call: Call) -> Json:
    """``GET /cluster/resources``: stale, and silent about what the caller may not see."""
    kind = call.params.get("type")
    if kind not in {None, "vm", "storage", "node", "sdn"}:
        allowed = "'vm, storage, node, sdn'"
        bad_parameter("type", f"value '{kind}' does not have a value in the enumeration {allowed}")
    rows: list[Json] = []
    if kind in {None, "vm"}:
        confs = call.pve.files_of(call.host).confs
        rows += [_vm_row(call, confs[it]) for it in sorted(confs) if call.may(f"/vms/{it}", "VM.Audit")]
    if kind in {None, "node"}:
        for name in call.pve.hosts:
            row = _node_row(call, name)
            rows.append({**row, "cgroup-mode": 2} if row["status"] == "online" else row)
    return rows


def _vm_row(call: Call, conf: Conf) -> Json:
    files = call.pve.files_of(call.host)
    row: dict[str, Any] = {
        "id": f"{conf.kind}/{conf.vmid}",
        "vmid": conf.vmid,
        "node": conf.host,
        "type": conf.kind,
        "status": "unknown",
    }
    row.update(call.pve.stats.known(call.host, "vm", str(conf.vmid)) or {})
    if conf.lock is not None:
        row["lock"] = conf.lock
    if conf.tags:
        row["tags"] = ";".join(conf.tags)
    if conf.pool is not None and call.may(f"/pool/{conf.pool}", "Pool.Audit"):
        row["pool"] = conf.pool
    service = files.manager.get("service_status", {}).get(service_id(conf.vmid))
    if service is not None:
        row["hastate"] = service["state"]
    return row


def nextid(call: Call) -> Json:
    """``GET /cluster/nextid``: tells anybody whether a number is taken."""
    taken = call.pve.files_of(call.host).confs
    if "vmid" not in call.params:
        return str(next(it for it in range(_FIRST_VMID, len(taken) + 1000) if it not in taken))
    wanted = call.number("vmid", 0)
    if wanted in taken:
        bad_parameter("vmid", f"VM {wanted} already exists")
    return str(wanted)


# -- guests -----------------------------------------------------------------------------------------------


def guests(call: Call) -> Json:
    """``GET /nodes/{node}/qemu``."""
    here = [it for it in call.pve.files_of(call.host).confs.values() if it.host == call.host.name]
    shown = [it for it in here if it.kind == "qemu" and call.may(f"/vms/{it.vmid}", "VM.Audit")]
    return [_guest_row(call, conf, full=call.flag("full")) for conf in shown]


def status_current(call: Call) -> Json:
    """``GET /nodes/{node}/qemu/{vmid}/status/current``."""
    conf = call.conf()
    row = _guest_row(call, conf, full=True)
    service = call.pve.files_of(call.host).manager.get("service_status", {}).get(service_id(conf.vmid))
    row["ha"] = {"managed": 0} if service is None else {"managed": 1, "state": service["state"]}
    if conf.agent:
        row["agent"] = 1
    return row


def _guest_row(call: Call, conf: Conf, *, full: bool) -> dict[str, Any]:
    kvm = call.host.kvm(conf.vmid)
    row: dict[str, Any] = {
        "vmid": conf.vmid,
        "name": conf.name,
        "status": "stopped" if kvm is None else "running",
        "uptime": 0 if kvm is None else int(call.pve.clock.now_s() - kvm.started_s),
        "cpus": conf.cores,
        "maxmem": conf.memory_mib << 20,
        "maxdisk": 1 << 20,
        **dict.fromkeys(("mem", "disk", "cpu", "netin", "netout"), 0),
    }
    modern = call.pve.release >= (9, 0)
    if modern:
        row["memhost"] = 0
    if kvm is not None:
        row["pid"] = kvm.pid
        if modern:
            row.update(
                {f"pressure{what}{how}": 0 for what in ("cpu", "io", "memory") for how in ("some", "full")}
            )
        if full and kvm.frozen:
            call.delay_s = _QMP_GIVES_UP_S
    if full:
        row["qmpstatus"] = "stopped" if kvm is None else kvm.qmpstatus
    if conf.lock is not None:
        row["lock"] = conf.lock
    if conf.tags:
        row["tags"] = ";".join(conf.tags)
    if conf.template:
        row["template"] = 1
    return row


def config(call: Call) -> Json:
    """``GET /nodes/{node}/qemu/{vmid}/config``: as it will be after a start, or with ``current`` as it is.

    Source: qemu-server's PVE/API2/Qemu.pm, vm_config; pve-guest-common's PVE/AbstractConfig.pm,
    load_current_config.
    """
    conf, name = call.conf(), call.params.get("snapshot")
    if name is not None and call.flag("current"):
        both = "cannot use 'snapshot' parameter with 'current'"
        raise Refused(400, BAD_PARAMETER, {"snapshot": both, "current": both})
    if name is None:
        return conf.listing() if call.flag("current") else {**conf.listing(), **conf.pending}
    if name not in conf.snapshots:
        raise Refused(500, f"snapshot '{name}' does not exist")
    then = replace(conf, lock=None, vmstate=None, parent=None, pending={})
    if conf.snapshots[name] is not None:
        then.vmstate = f"local:{conf.vmid}/vm-{conf.vmid}-state-{name}.raw"
    return {**then.listing(), "snaptime": call.pve.clock.unix_s() - 60}
