"""What POST does: power, and talking to the guest agent."""

from __future__ import annotations

from typing import Any

from tests.support.pve.api.call import Call
from tests.support.pve.qm.processes import SHUTDOWN_S
from tests.support.pve.refused import Refused, bad_parameter

Json = Any
ROOT_ONLY = ("skiplock", "keepActive", "migratedfrom")
_AGENT_PING_S = 3.0
_FROZEN_POST_S = {"stop": 3.1, "shutdown": 5.1}


def start(call: Call) -> Json:
    """``POST …/status/start``."""
    _refuse_root_only(call)
    return call.pve.qm.start(call.vmid, call.host.name, call.token.id).upid


def stop(call: Call) -> Json:
    """``POST …/status/stop``."""
    _refuse_root_only(call)
    _wait_for_frozen(call, "stop")
    overrule = call.flag("overrule-shutdown")
    task = call.pve.qm.stop(call.vmid, call.host.name, call.token.id, overrule_shutdown=overrule)
    return task.upid


def shutdown(call: Call) -> Json:
    """``POST …/status/shutdown``."""
    _refuse_root_only(call)
    _wait_for_frozen(call, "shutdown")
    timeout_s, force = call.number("timeout", int(SHUTDOWN_S)), call.flag("forceStop")
    task = call.pve.qm.shutdown(call.vmid, call.host.name, call.token.id, timeout_s=timeout_s, force=force)
    return task.upid


def reboot(call: Call) -> Json:
    """``POST …/status/reboot``."""
    timeout_s = call.number("timeout", int(SHUTDOWN_S))
    return call.pve.qm.reboot(call.vmid, call.host.name, call.token.id, timeout_s=timeout_s).upid


def reset(call: Call) -> Json:
    """``POST …/status/reset``."""
    _refuse_root_only(call)
    return call.pve.qm.reset(call.vmid, call.host.name, call.token.id).upid


def suspend(call: Call) -> Json:
    """``POST …/status/suspend``."""
    _refuse_root_only(call)
    if call.flag("todisk"):
        call.require(f"/vms/{call.vmid}", "VM.Config.Disk")
        return call.pve.qm.hibernate(call.vmid, call.host.name, call.token.id).upid
    return call.pve.qm.suspend(call.vmid, call.host.name, call.token.id).upid


def resume(call: Call) -> Json:
    """``POST …/status/resume``."""
    _refuse_root_only(call)
    return call.pve.qm.resume(call.vmid, call.host.name, call.token.id).upid


def agent_ping(call: Call) -> Json:
    """``POST …/agent/ping``."""
    _agent(call)
    return {"result": {}}


def agent_host_name(call: Call) -> Json:
    """``GET …/agent/get-host-name``."""
    return {"result": {"host-name": _agent(call)}}


def agent_os_info(call: Call) -> Json:
    """``GET …/agent/get-osinfo``."""
    _agent(call)
    return {"result": {"id": "debian", "name": "Debian GNU/Linux", "kernel-release": "6.12.0"}}


def agent_info(call: Call) -> Json:
    """``GET …/agent/info``."""
    _agent(call)
    command = {"name": "guest-ping", "enabled": True, "success-response": True}
    return {"result": {"version": "10.0.2", "supported_commands": [command]}}


def agent_interfaces(call: Call) -> Json:
    """``GET …/agent/network-get-interfaces``."""
    _agent(call)
    address = {"ip-address": f"10.77.1.{call.vmid % 250}", "ip-address-type": "ipv4", "prefix": 24}
    card = {"name": "eth0", "hardware-address": "bc:24:11:00:00:01", "ip-addresses": [address]}
    return {"result": [{"name": "lo", "hardware-address": "00:00:00:00:00:00", "ip-addresses": []}, card]}


def _agent(call: Call) -> str:
    """Return the guest's name, if an agent in it would say so."""
    conf, kvm = call.conf(), call.host.kvm(call.vmid)
    if not conf.agent:
        raise Refused(500, "No QEMU guest agent configured")
    if kvm is None:
        raise Refused(500, f"VM {call.vmid} is not running")
    if not kvm.runs or not call.pve.inside[call.vmid].agent_answers:
        raise Refused(500, "QEMU guest agent is not running", delay_s=_AGENT_PING_S)
    return conf.name


def _refuse_root_only(call: Call) -> None:
    for name in ROOT_ONLY:
        if name in call.params:
            bad_parameter(name, "Only root may use this option.")


def _wait_for_frozen(call: Call, verb: str) -> None:
    kvm = call.host.kvm(call.vmid)
    if kvm is not None and kvm.frozen:
        call.delay_s = _FROZEN_POST_S[verb]
