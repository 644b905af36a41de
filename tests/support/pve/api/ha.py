"""What GET says of HA: the manager's own status, and the rows made of it for people.

Source: pve-ha-manager's PVE/API2/HA/Status.pm and Resources.pm; replies recorded from three hosts.
"""

from __future__ import annotations

import time

from tests.support.pve.api.call import Call, Json
from tests.support.pve.clock import EPOCH_S
from tests.support.pve.refused import bad_parameter

_OLD_S = 30


def manager_status(call: Call) -> Json:
    """``GET /cluster/ha/status/manager_status``."""
    files = call.files
    quorate = "1" if call.pve.corosync.seems_quorate(call.host) else ""
    told = {"manager_status": files.manager, "quorum": {"node": call.host.name, "quorate": quorate}}
    return {**told, "lrm_status": files.lrm} if files.lrm else told


def resources(call: Call) -> Json:
    """``GET /cluster/ha/resources``."""
    return [_resource(call, sid) for sid in call.files.resources]


def resource(call: Call) -> Json:
    """``GET /cluster/ha/resources/{sid}``."""
    sid = call.names["sid"]
    sid = f"vm:{sid}" if sid.isdigit() else sid
    if sid not in call.files.resources:
        bad_parameter("sid", f"no such resource '{sid}'")
    return _resource(call, sid)


def _resource(call: Call, sid: str) -> Json:
    return {"sid": sid, "type": "vm", "digest": "0" * 40, **call.files.resources[sid]}


def current(call: Call) -> Json:
    """``GET /cluster/ha/status/current``."""
    files, quorate = call.files, call.pve.corosync.seems_quorate(call.host)
    text = "OK" if quorate else f"No quorum on node '{call.host.name}'!"
    rows: list[Json] = [
        {"id": "quorum", "type": "quorum", "node": call.host.name, "status": text, "quorate": int(quorate)}
    ]
    manager = files.manager
    master, fresh = manager.get("master_node"), False
    if master is not None:
        fresh = _age_s(call, manager["timestamp"]) <= _OLD_S
        word = "active" if fresh else "old timestamp - dead?"
        rows.append(
            {
                "id": "master",
                "type": "master",
                "node": master,
                "timestamp": manager["timestamp"],
                "status": f"{master} ({word}, {_date(manager['timestamp'])})",
            }
        )
    if call.pve.release >= (9, 2):
        rows.append(_fencing(call, master or call.host.name, armed=fresh))
    rows += [_agent(call, name) for name in sorted(files.lrm)]
    rows += [_service(call, sid) for sid in sorted(files.resources)]
    return rows


def _fencing(call: Call, node: str, *, armed: bool) -> Json:
    state = call.pve.ha.armed_state or ("armed" if armed else "standby")
    watchdog = "active" if state == "armed" else "standby"
    row = {
        "id": "fencing",
        "type": "fencing",
        "node": node,
        "armed-state": state,
        "status": f"{state} (CRM watchdog {watchdog})",
    }
    return {**row, "resource_mode": "freeze"} if state == "disarmed" else row


def _agent(call: Call, name: str) -> Json:
    files = call.files
    status = files.lrm[name]
    word = status["state"]
    if _age_s(call, status["timestamp"]) > _OLD_S:
        word = "old timestamp - dead?"
    elif status["mode"] != "active":
        word = f"{status['mode']} mode"
    elif word == "wait_for_agent_lock" and not any(
        service["node"] == name and service["state"] not in {"stopped", "error", "ignored"}
        for service in files.manager["service_status"].values()
    ):
        word = "idle"
    watchdog = (
        "" if call.pve.release < (9, 2) else f" watchdog {'active' if word == 'active' else 'standby'},"
    )
    return {
        "id": f"lrm:{name}",
        "type": "lrm",
        "node": name,
        "timestamp": status["timestamp"],
        "status": f"{name} ({word},{watchdog} {_date(status['timestamp'])})",
    }


def _service(call: Call, sid: str) -> Json:
    files = call.files
    service, wanted = files.manager["service_status"][sid], files.resources[sid]
    state = service["state"]
    if state == "started" and "running" not in service:
        state = "starting"
    return {
        "id": f"service:{sid}",
        "type": "service",
        "sid": sid,
        "node": service["node"],
        "crm_state": service["state"],
        "state": state,
        "status": f"{sid} ({service['node']}, {state})",
        "request_state": wanted["state"],
        **{key: value for key, value in wanted.items() if key != "state"},
    }


def _age_s(call: Call, timestamp: int) -> int:
    return call.pve.clock.unix_s() - timestamp


def _date(timestamp: int) -> str:
    assert timestamp >= EPOCH_S
    return time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(timestamp))
