"""What the power tasks do with a guest's process, step by step, and how long each step takes.

Source: qemu-server's PVE/QemuServer.pm and PVE/CLI/qm.pm, as run for this project.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tests.support.pve.model import Conf, Host, Kvm
from tests.support.pve.refused import Refused
from tests.support.pve.tasks import Aborted, Steps, Task, TaskFailed, flock

if TYPE_CHECKING:
    from tests.support.pve.cluster import PveCluster

SHUTDOWN_S = 60.0
_QUIT_S = 0.3
_CLEANUP_S = 0.7
_FROZEN_STOP_S = 77.0
_FROZEN_SHUTDOWN_S = 13.5
_QMP_GIVES_UP_S = 5.0
_AGENT_PING_S = 3.0
_STALE_CLEANUP_S = 30.0


class PowerSteps:
    """Beneath the commands: processes, and what is done to them.

    Args:
        pve: The cluster.
    """

    def __init__(self, pve: PveCluster) -> None:
        self._pve = pve
        self._pids = itertools.count(4001, 3)
        self._memories = itertools.count(1)

    # -- processes ----------------------------------------------------------------------------------------

    def launch(self, host: Host, vmid: int, memory: str | None = None, qmp: str = "running") -> Kvm:
        """Start a kvm process; without `memory` the guest boots."""
        held = memory or self.fresh_memory(vmid)
        if memory is None and vmid in self._pve.confs:
            self._pve.confs[vmid].apply_pending()
        now_s = self._pve.clock.now_s()
        kvm = Kvm(vmid, host.name, next(self._pids), now_s, held, qmp)
        host.kvms[vmid] = kvm
        host.uncleaned.add(vmid)
        return kvm

    def fresh_memory(self, vmid: int) -> str:
        """Name the memory of a guest that has just booted."""
        return f"boot-{next(self._memories)}-of-{vmid}"

    def end(self, kvm: Kvm, *, cleaned: bool = True) -> None:
        """End a process; qmeventd sees it, and cleans up a moment later unless told otherwise."""
        host = self._pve.hosts[kvm.host]
        if host.kvms.get(kvm.vmid) is kvm:
            del host.kvms[kvm.vmid]
        if cleaned:
            self._pve.tasks.background(host, self._cleanup(host, kvm.vmid))
        else:
            host.uncleaned.discard(kvm.vmid)

    # -- what the tasks do --------------------------------------------------------------------------------

    def _start(self, host: Host, vmid: int) -> Steps:
        yield from flock(host, vmid)
        try:
            conf = self._conf(host, vmid)
            if conf.template:
                raise TaskFailed("you can't start a vm if it's a template")
            kvm = host.kvm(vmid)
            if kvm is not None and conf.lock == "backup":
                kvm.qmp = "running"
                return
            hibernated = conf.lock == "suspended" or conf.vmstate is not None
            if conf.lock != "suspended":
                _check_lock(conf)
            if kvm is not None:
                raise TaskFailed(f"VM {vmid} already running")
            yield from self._hook(host, vmid, "pre-start")
            if hibernated:
                yield "Resuming suspended VM"
            yield 0.5
            self.launch(host, vmid, conf.saved if hibernated else None)
            if hibernated:
                conf.lock = conf.vmstate = conf.saved = None
            yield from self._hook(host, vmid, "post-start")
            yield 0.2
        finally:
            host.flocks.discard(vmid)

    def _stop(self, host: Host, vmid: int) -> Steps:
        yield from flock(host, vmid)
        try:
            conf = self._conf(host, vmid)
            kvm = host.kvm(vmid)
            if kvm is None:
                return
            _check_lock(conf)
            yield from self._hook(host, vmid, "pre-stop")
            yield _FROZEN_STOP_S if kvm.frozen else _QUIT_S
            if host.kvm(vmid) is kvm:
                self.end(kvm)
                conf.apply_pending()
            yield from self._hook(host, vmid, "post-stop")
            yield _CLEANUP_S
        finally:
            host.flocks.discard(vmid)

    def _shutdown(self, host: Host, vmid: int, timeout_s: float, *, force: bool = False) -> Steps:
        yield from flock(host, vmid)
        try:
            conf = self._conf(host, vmid)
            if host.kvm(vmid) is None:
                return
            _check_lock(conf)
            yield from self._hook(host, vmid, "pre-stop")
            yield from self._power_button(host, vmid, timeout_s, force=force)
            yield _CLEANUP_S
        finally:
            host.flocks.discard(vmid)

    def _reboot(self, host: Host, vmid: int, timeout_s: float) -> Steps:
        yield from flock(host, vmid)
        try:
            _check_lock(self._conf(host, vmid))
            host.starts_again.add(vmid)
            try:
                yield from self._hook(host, vmid, "pre-stop")
                yield from self._power_button(host, vmid, timeout_s)
            except (TaskFailed, Aborted):
                host.starts_again.discard(vmid)
                raise
            yield 2 * _CLEANUP_S
        finally:
            host.flocks.discard(vmid)

    def _power_button(self, host: Host, vmid: int, timeout_s: float, *, force: bool = False) -> Steps:
        kvm, inside = host.kvm(vmid), self._pve.inside[vmid]
        assert kvm is not None
        if kvm.frozen:
            yield _FROZEN_SHUTDOWN_S
            raise TaskFailed("VM quit/powerdown failed")
        if self._conf(host, vmid).agent and not inside.agent_answers:
            yield _AGENT_PING_S
        obeys_s = inside.obeys_after_s if kvm.runs else None
        if obeys_s is None or obeys_s > timeout_s:
            yield 0.0 if force and not kvm.runs else timeout_s
            if host.kvm(vmid) is kvm and not force:
                raise TaskFailed("VM quit/powerdown failed - got timeout")
        else:
            yield obeys_s
        if host.kvm(vmid) is kvm:
            self.end(kvm)
            self._conf(host, vmid).apply_pending()
        yield from self._hook(host, vmid, "post-stop")

    def _reset(self, host: Host, vmid: int) -> Steps:
        yield from flock(host, vmid)
        try:
            _check_lock(self._conf(host, vmid))
            kvm = self._process(host, vmid)
            if kvm.frozen:
                yield _QMP_GIVES_UP_S
                why = f"unable to connect to VM {vmid} qmp socket - timeout after 51 retries"
                raise TaskFailed(f"VM {vmid} qmp command 'system_reset' failed - {why}")
            yield 0.05
            kvm.memory = self.fresh_memory(vmid)
            if kvm.qmp != "running":
                kvm.qmp = "prelaunch"
        finally:
            host.flocks.discard(vmid)

    def _pause(self, host: Host, vmid: int) -> Steps:
        yield from flock(host, vmid)
        try:
            self._check_lock_unless_backup(host, vmid)
            yield 0.05
            self._process(host, vmid).qmp = "paused"
        finally:
            host.flocks.discard(vmid)

    def _resume(self, host: Host, vmid: int) -> Steps:
        yield from flock(host, vmid)
        try:
            self._check_lock_unless_backup(host, vmid)
            kvm = self._process(host, vmid)
            yield 0.05
            if kvm.qmp == "internal-error":
                why = "Resetting the Virtual Machine is required"
                raise TaskFailed(f"VM {vmid} qmp command 'cont' failed - {why}")
            if kvm.qmp != "io-error":
                kvm.qmp = "running"
        finally:
            host.flocks.discard(vmid)

    def _cleanup(self, host: Host, vmid: int) -> Steps:
        """``qm cleanup``, by qmeventd: starts what was to reboot, and waits in vain for a new process."""
        yield 0.4
        yield from flock(host, vmid, SHUTDOWN_S)
        try:
            conf = self._pve.files_of(host).confs.get(vmid)
            if conf is None or conf.host != host.name:
                return
            if host.kvm(vmid) is None:
                yield from self._hook(host, vmid, "post-stop")
            if vmid in host.starts_again and host.kvm(vmid) is None:
                host.starts_again.discard(vmid)
                if self._pve.quorate(host):
                    yield from self._hook(host, vmid, "pre-start")
                    self.launch(host, vmid)
                    yield from self._hook(host, vmid, "post-start")
                return
            waited_s = 0.0
            while host.kvm(vmid) is not None and waited_s < _STALE_CLEANUP_S:
                yield 1.0
                waited_s += 1.0
        finally:
            host.flocks.discard(vmid)

    def _hook(self, host: Host, vmid: int, phase: str) -> Steps:
        """Run the guest's hookscript; post-stop only for a process that nobody has cleaned up after."""
        if phase == "post-stop":
            if vmid not in host.uncleaned:
                return
            host.uncleaned.discard(vmid)
        conf = self._pve.files_of(host).confs.get(vmid)
        if conf is not None and conf.host == host.name:
            yield from self._pve.hooks.run(host, conf, phase)

    # -- checks -------------------------------------------------------------------------------------------

    def _on(self, vmid: int, host: str | None) -> Host:
        self._pve.clock.now_s()
        return self._pve.hosts[host or self._pve.confs[vmid].host]

    def _task(
        self, host: Host, kind: str, vmid: int, user: str, steps: Steps, *, by_hand: bool = False
    ) -> Task:
        return self._pve.tasks.start(host, kind, vmid, user, steps, by_hand=by_hand)

    def _conf(self, host: Host, vmid: int) -> Conf:
        conf = self._pve.files_of(host).confs.get(vmid)
        if conf is None or conf.host != host.name:
            raise TaskFailed(f"unable to find configuration file for VM {vmid} on node '{host.name}'")
        return conf

    def _process(self, host: Host, vmid: int) -> Kvm:
        kvm = host.kvm(vmid)
        if kvm is None:
            raise TaskFailed(f"VM {vmid} not running")
        return kvm

    def _check_lock_unless_backup(self, host: Host, vmid: int) -> None:
        conf = self._conf(host, vmid)
        if conf.lock != "backup":
            _check_lock(conf)

    def _refuse_stopped(self, host: Host, vmid: int) -> None:
        if host.kvm(vmid) is None:
            raise Refused(500, f"VM {vmid} not running")

    def _refuse_paused(self, host: Host, vmid: int, *, force: bool = False) -> None:
        kvm = host.kvm(vmid)
        if kvm is not None and not force and kvm.qmpstatus in {"paused", "prelaunch", "suspended"}:
            raise Refused(500, "VM is paused - cannot shutdown")


def _check_lock(conf: Conf) -> None:
    if conf.lock is not None:
        raise TaskFailed(f"VM is locked ({conf.lock})")
