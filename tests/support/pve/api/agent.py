"""The guest agent, where there is one.

Source: qemu-server's PVE/API2/Qemu/Agent.pm; refusals as recorded.
"""

from __future__ import annotations

from tests.support.pve.api.call import Call, Json
from tests.support.pve.qm.power import AGENT_PING_S
from tests.support.pve.refused import Refused


def ping(call: Call) -> Json:
    """``POST …/agent/ping``."""
    _agent(call)
    return {"result": {}}


def host_name(call: Call) -> Json:
    """``GET …/agent/get-host-name``."""
    return {"result": {"host-name": _agent(call)}}


def os_info(call: Call) -> Json:
    """``GET …/agent/get-osinfo``."""
    _agent(call)
    return {"result": {"id": "debian", "name": "Debian GNU/Linux", "kernel-release": "6.12.0"}}


def info(call: Call) -> Json:
    """``GET …/agent/info``."""
    _agent(call)
    command = {"name": "guest-ping", "enabled": True, "success-response": True}
    return {"result": {"version": "10.0.2", "supported_commands": [command]}}


def interfaces(call: Call) -> Json:
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
        raise Refused(500, "QEMU guest agent is not running", delay_s=AGENT_PING_S)
    return conf.name
