"""What GET says of guests on their own host: the list, one's state, one's configuration.

Source: replies recorded from qemu-server 9.2; older shapes as in public samples of 8.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.pve.api.call import Call, Json
from tests.support.pve.model import Conf
from tests.support.pve.refused import BAD_PARAMETER, Refused

_QMP_GIVES_UP_S = 3.0


def guests(call: Call) -> Json:
    """``GET /nodes/{node}/qemu``."""
    here = [it for it in call.files.confs.values() if it.host == call.host.name]
    shown = [it for it in here if it.kind == "qemu" and call.may(f"/vms/{it.vmid}", "VM.Audit")]
    return [_guest_row(call, conf, full=call.flag("full")) for conf in shown]


def status_current(call: Call) -> Json:
    """``GET /nodes/{node}/qemu/{vmid}/status/current``."""
    conf = call.conf()
    row = _guest_row(call, conf, full=True)
    service = call.files.service(conf.vmid)
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
