"""What ``qm`` does with the power of a guest: start, stop, shutdown, reboot, reset, suspend, resume.

Each is asked on a host and either refused at once (`Refused`) or becomes a task there, which does its steps
under the lock of the guest's configuration.

Source: qemu-server's PVE/API2/Qemu.pm, PVE/QemuServer.pm and PVE/CLI/qm.pm, as run for this project: what is
refused at once, what fails in the task although the request was answered with 200, and how long it takes.
"""

from __future__ import annotations

from tests.support.pve.model import Host
from tests.support.pve.qm.processes import SHUTDOWN_S, Processes, check_lock
from tests.support.pve.refused import Refused, bad_parameter
from tests.support.pve.tasks import ROOT, Aborted, Steps, Task, TaskFailed, locked

AGENT_PING_S = 3.0
_QUIT_S = 0.3
_CLEANUP_S = 0.7
_FROZEN_STOP_S = 77.0
_FROZEN_SHUTDOWN_S = 13.5
_QMP_GIVES_UP_S = 5.0


class Power(Processes):
    """The power commands."""

    def start(self, vmid: int, host: str | None = None, user: str = ROOT, *, by_ha: bool = False) -> Task:
        """``qm start``: from saved memory, where there is any."""
        with self._on(vmid, host) as on:
            if not self._pve.corosync.quorate(on):
                raise Refused(500, "cluster not ready - no quorum?")
            if self._pve.ha.managed(vmid) and not by_ha:
                return self._tasks.start(on, "hastart", vmid, user, self._pve.ha.request_start(vmid))
            return self._start_locked(on, "qmstart", vmid, user, self._start(on, vmid))

    def stop(
        self,
        vmid: int,
        host: str | None = None,
        user: str = ROOT,
        *,
        overrule_shutdown: bool = False,
        by_ha: bool = False,
    ) -> Task:
        """``qm stop``: cut the power."""
        with self._on(vmid, host) as on:
            if self._pve.ha.managed(vmid) and not by_ha:
                if overrule_shutdown:
                    bad_parameter("overrule-shutdown", "Not applicable for HA resources.")
                return self._tasks.start(on, "hastop", vmid, user, self._pve.ha.request_stop(on, vmid, 0))
            if overrule_shutdown:
                for task in self._tasks.active(on):
                    if task.kind == "qmshutdown" and task.guest == str(vmid):
                        task.abort()
            return self._start_locked(on, "qmstop", vmid, user, self._stop(on, vmid))

    def shutdown(
        self,
        vmid: int,
        host: str | None = None,
        user: str = ROOT,
        *,
        timeout_s: float = SHUTDOWN_S,
        force: bool = False,
    ) -> Task:
        """``qm shutdown``: ask the guest; `force`: cut its power when it has not obeyed in time."""
        with self._on(vmid, host) as on:
            if self._pve.ha.managed(vmid):
                steps = self._pve.ha.request_stop(on, vmid, int(timeout_s))
                return self._tasks.start(on, "hastop", vmid, user, steps)
            if not force:
                self._refuse_paused(on, vmid)
            steps = self._shutdown(on, vmid, timeout_s, force=force)
            return self._start_locked(on, "qmshutdown", vmid, user, steps)

    def reboot(
        self, vmid: int, host: str | None = None, user: str = ROOT, *, timeout_s: float = SHUTDOWN_S
    ) -> Task:
        """``qm reboot``: shutdown, then start by whoever cleans up."""
        with self._on(vmid, host) as on:
            self._refuse_stopped(on, vmid)
            self._refuse_paused(on, vmid)
            return self._start_locked(on, "qmreboot", vmid, user, self._reboot(on, vmid, timeout_s))

    def reset(self, vmid: int, host: str | None = None, user: str = ROOT) -> Task:
        """``qm reset``: boot again in the same process."""
        with self._on(vmid, host) as on:
            self._refuse_stopped(on, vmid)
            return self._start_locked(on, "qmreset", vmid, user, self._reset(on, vmid))

    def suspend(self, vmid: int, host: str | None = None, user: str = ROOT) -> Task:
        """``qm suspend``: stop the vCPUs, keep the memory."""
        with self._on(vmid, host) as on:
            self._refuse_stopped(on, vmid)
            return self._start_locked(on, "qmpause", vmid, user, self._pause(on, vmid))

    def resume(self, vmid: int, host: str | None = None, user: str = ROOT) -> Task:
        """``qm resume``: let the vCPUs go on; a hibernated guest starts from its memory."""
        with self._on(vmid, host) as on:
            conf = self._pve.confs.get(vmid)
            if conf is not None and conf.lock == "suspended" and on.kvm(vmid) is None:
                return self._start_locked(on, "qmresume", vmid, user, self._start(on, vmid))
            self._refuse_stopped(on, vmid)
            return self._start_locked(on, "qmresume", vmid, user, self._resume(on, vmid))

    def _start_locked(self, host: Host, kind: str, vmid: int, user: str, steps: Steps) -> Task:
        return self._tasks.start(host, kind, vmid, user, locked(host, vmid, steps))

    def _refuse_paused(self, host: Host, vmid: int) -> None:
        kvm = host.kvm(vmid)
        if kvm is not None and kvm.qmpstatus in {"paused", "prelaunch", "suspended"}:
            raise Refused(500, "VM is paused - cannot shutdown")

    # -- what the tasks do --------------------------------------------------------------------------------

    def _start(self, host: Host, vmid: int) -> Steps:
        conf = self._conf(host, vmid)
        if conf.template:
            raise TaskFailed("you can't start a vm if it's a template")
        kvm = host.kvm(vmid)
        if kvm is not None and conf.lock == "backup":
            kvm.qmp = "running"
            return
        hibernated = conf.lock == "suspended" or conf.vmstate is not None
        check_lock(conf, "suspended")
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

    def _stop(self, host: Host, vmid: int) -> Steps:
        conf = self._conf(host, vmid)
        kvm = host.kvm(vmid)
        if kvm is None:
            return
        check_lock(conf)
        yield from self._hook(host, vmid, "pre-stop")
        yield _FROZEN_STOP_S if kvm.frozen else _QUIT_S
        if host.kvm(vmid) is kvm:
            self.end(kvm)
            conf.apply_pending()
        yield from self._hook(host, vmid, "post-stop")
        yield _CLEANUP_S

    def _shutdown(self, host: Host, vmid: int, timeout_s: float, *, force: bool = False) -> Steps:
        conf = self._conf(host, vmid)
        if host.kvm(vmid) is None:
            return
        check_lock(conf)
        yield from self._hook(host, vmid, "pre-stop")
        yield from self._power_button(host, vmid, timeout_s, force=force)
        yield _CLEANUP_S

    def _reboot(self, host: Host, vmid: int, timeout_s: float) -> Steps:
        check_lock(self._conf(host, vmid))
        host.starts_again.add(vmid)
        try:
            yield from self._hook(host, vmid, "pre-stop")
            yield from self._power_button(host, vmid, timeout_s)
        except (TaskFailed, Aborted):
            host.starts_again.discard(vmid)
            raise
        yield 2 * _CLEANUP_S

    def _power_button(self, host: Host, vmid: int, timeout_s: float, *, force: bool = False) -> Steps:
        kvm, inside = host.kvm(vmid), self._pve.inside[vmid]
        assert kvm is not None
        if kvm.frozen:
            yield _FROZEN_SHUTDOWN_S
            raise TaskFailed("VM quit/powerdown failed")
        if self._conf(host, vmid).agent and not inside.agent_answers:
            yield AGENT_PING_S
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
        check_lock(self._conf(host, vmid))
        kvm = self._process(host, vmid)
        if kvm.frozen:
            yield _QMP_GIVES_UP_S
            why = f"unable to connect to VM {vmid} qmp socket - timeout after 51 retries"
            raise TaskFailed(f"VM {vmid} qmp command 'system_reset' failed - {why}")
        yield 0.05
        kvm.memory = self.fresh_memory(vmid)
        if kvm.qmp != "running":
            kvm.qmp = "prelaunch"

    def _pause(self, host: Host, vmid: int) -> Steps:
        check_lock(self._conf(host, vmid), "backup")
        yield 0.05
        self._process(host, vmid).qmp = "paused"

    def _resume(self, host: Host, vmid: int) -> Steps:
        check_lock(self._conf(host, vmid), "backup")
        kvm = self._process(host, vmid)
        yield 0.05
        if kvm.qmp == "internal-error":
            why = "Resetting the Virtual Machine is required"
            raise TaskFailed(f"VM {vmid} qmp command 'cont' failed - {why}")
        if kvm.qmp != "io-error":
            kvm.qmp = "running"
