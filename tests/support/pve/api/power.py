"""The power commands.

Source: qemu-server's PVE/API2/Qemu.pm; answers and seconds as recorded.
"""

from __future__ import annotations

from tests.support.pve.api.call import Call, Json
from tests.support.pve.qm.processes import SHUTDOWN_S
from tests.support.pve.refused import bad_parameter

ROOT_ONLY = ("skiplock", "keepActive", "migratedfrom")
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


def _refuse_root_only(call: Call) -> None:
    for name in ROOT_ONLY:
        if name in call.params:
            bad_parameter(name, "Only root may use this option.")


def _wait_for_frozen(call: Call, verb: str) -> None:
    kvm = call.host.kvm(call.vmid)
    if kvm is not None and kvm.frozen:
        call.delay_s = _FROZEN_POST_S[verb]
