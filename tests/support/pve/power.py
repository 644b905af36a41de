"""What ``qm`` does with the power of a guest: start, stop, shutdown, reboot, reset, suspend, resume.

Each is asked on a host and either refused at once (`Refused`) or becomes a task there.

Source: qemu-server's PVE/API2/Qemu.pm, as run for this project: what is refused at once, and what fails in
the task, although the request was answered with 200.
"""

from __future__ import annotations

from tests.support.pve.refused import Refused
from tests.support.pve.steps import SHUTDOWN_S, PowerSteps
from tests.support.pve.tasks import Task

ROOT = "root@pam"


class Power(PowerSteps):
    """The power commands. See `Qm` for all."""

    # -- commands -----------------------------------------------------------------------------------------

    def start(self, vmid: int, host: str | None = None, user: str = ROOT, *, by_ha: bool = False) -> Task:
        """``qm start``: from saved memory, where there is any."""
        with self._pve.clock.lock:
            on = self._on(vmid, host)
            if not self._pve.quorate(on):
                raise Refused(500, "cluster not ready - no quorum?")
            if self._pve.ha.managed(vmid) and not by_ha:
                return self._task(on, "hastart", vmid, user, self._pve.ha.request_start(vmid))
            return self._task(on, "qmstart", vmid, user, self._start(on, vmid))

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
        with self._pve.clock.lock:
            on = self._on(vmid, host)
            if self._pve.ha.managed(vmid) and not by_ha:
                if overrule_shutdown:
                    text = {"overrule-shutdown": "Not applicable for HA resources."}
                    raise Refused(400, "Parameter verification failed.", text)
                return self._task(on, "hastop", vmid, user, self._pve.ha.request_stop(on, vmid, 0))
            if overrule_shutdown:
                for task in self._pve.tasks.active(on):
                    if task.kind == "qmshutdown" and task.guest == str(vmid):
                        task.abort()
            return self._task(on, "qmstop", vmid, user, self._stop(on, vmid))

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
        with self._pve.clock.lock:
            on = self._on(vmid, host)
            if self._pve.ha.managed(vmid):
                steps = self._pve.ha.request_stop(on, vmid, int(timeout_s))
                return self._task(on, "hastop", vmid, user, steps)
            self._refuse_paused(on, vmid, force=force)
            return self._task(on, "qmshutdown", vmid, user, self._shutdown(on, vmid, timeout_s, force=force))

    def reboot(
        self, vmid: int, host: str | None = None, user: str = ROOT, *, timeout_s: float = SHUTDOWN_S
    ) -> Task:
        """``qm reboot``: shutdown, then start by whoever cleans up."""
        with self._pve.clock.lock:
            on = self._on(vmid, host)
            self._refuse_stopped(on, vmid)
            self._refuse_paused(on, vmid)
            return self._task(on, "qmreboot", vmid, user, self._reboot(on, vmid, timeout_s))

    def reset(self, vmid: int, host: str | None = None, user: str = ROOT) -> Task:
        """``qm reset``: boot again in the same process."""
        with self._pve.clock.lock:
            on = self._on(vmid, host)
            self._refuse_stopped(on, vmid)
            return self._task(on, "qmreset", vmid, user, self._reset(on, vmid))

    def suspend(self, vmid: int, host: str | None = None, user: str = ROOT) -> Task:
        """``qm suspend``: stop the vCPUs, keep the memory."""
        with self._pve.clock.lock:
            on = self._on(vmid, host)
            self._refuse_stopped(on, vmid)
            return self._task(on, "qmpause", vmid, user, self._pause(on, vmid))

    def resume(self, vmid: int, host: str | None = None, user: str = ROOT) -> Task:
        """``qm resume``: let the vCPUs go on; a hibernated guest starts from its memory."""
        with self._pve.clock.lock:
            on = self._on(vmid, host)
            conf = self._pve.confs.get(vmid)
            if conf is not None and conf.lock == "suspended" and on.kvm(vmid) is None:
                return self._task(on, "qmresume", vmid, user, self._start(on, vmid))
            self._refuse_stopped(on, vmid)
            return self._task(on, "qmresume", vmid, user, self._resume(on, vmid))
