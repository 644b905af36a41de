"""Backups: what ``vzdump`` does with a guest meanwhile.

Source: read in pve-manager's PVE/VZDump/QemuServer.pm; not recorded.
"""

from __future__ import annotations

from tests.support.pve.model import Conf, Host, Kvm
from tests.support.pve.qm.processes import Processes
from tests.support.pve.tasks import ROOT, Aborted, Phase, Steps, Task


class Backups(Processes):
    """Backups of one guest, and of many."""

    def backup(self, vmid: int, mode: str = "snapshot", *, by_hand: bool = False) -> Task:
        """``vzdump --mode``: stop, suspend or snapshot."""
        with self._on(vmid) as on:
            return self._tasks.start(on, "vzdump", vmid, ROOT, self._backup(on, vmid, mode), by_hand=by_hand)

    def backup_of_many(self, vmid: int) -> Task:
        """``vzdump --all``, held by hand before its turn comes to this guest: its task has no number."""
        with self._on(vmid) as on:
            return self._tasks.start(on, "vzdump", "", ROOT, self._backup_in_turn(on, vmid), by_hand=True)

    # -- what the tasks do --------------------------------------------------------------------------------

    def _backup(self, host: Host, vmid: int, mode: str) -> Steps:
        conf, kvm = self._conf_to_edit(host, vmid), host.kvm(vmid)
        conf.lock = "backup"
        if kvm is None:
            yield from self._backup_of_stopped(host, conf)
        elif mode == "stop":
            yield from self._hook(host, vmid, "pre-stop")
            yield Phase("stopping", 1.0)
            if host.kvm(vmid) is kvm:
                self.end(kvm)
            yield from self._hook(host, vmid, "post-stop")
            yield Phase("off", 4.0)
            again = self.launch(host, vmid, qmp="prelaunch")
            yield Phase("prelaunch", 1.0)
            again.qmp = "running"
            yield Phase("running", 20.0)
        else:
            if mode == "suspend":
                kvm.qmp = "paused"
                yield Phase("paused", 5.0)
                kvm.qmp = "running"
            yield Phase("running", 20.0)
        conf.lock = None

    def _backup_in_turn(self, host: Host, vmid: int) -> Steps:
        yield Phase("others", 600.0)
        yield from self._backup(host, vmid, "snapshot")

    def _backup_of_stopped(self, host: Host, conf: Conf) -> Steps:
        """Start a process that stands still, with whatever memory was saved, and end it unless it runs."""
        yield "INFO: starting kvm to execute backup task"
        dumped = self.launch(host, conf.vmid, conf.saved, qmp="prelaunch")
        if conf.vmstate is not None:
            yield "Resumed VM, removing state"
            conf.lock = conf.vmstate = conf.saved = None
        try:
            yield Phase("prelaunch", 20.0)
        except Aborted:
            self._end_if_still(dumped)
            conf.lock = None
            raise
        self._end_if_still(dumped)

    def _end_if_still(self, kvm: Kvm) -> None:
        if kvm.qmp == "prelaunch":
            self.end(kvm)
