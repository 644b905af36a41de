"""What ``qm`` and ``vzdump`` do with memory and disks: hibernate, snapshot, backup, destroy.

Source: read in qemu-server and pve-manager (of backups: PVE/VZDump/QemuServer.pm); unlike the power
commands these were not recorded.
"""

from __future__ import annotations

from tests.support.pve.model import Conf, Host, Kvm
from tests.support.pve.power import Power
from tests.support.pve.refused import Refused
from tests.support.pve.tasks import Aborted, Phase, Steps, Task, TaskFailed, flock

ROOT = "root@pam"


class Chores(Power):
    """The commands that leave something behind. See `Qm` for all."""

    def hibernate(
        self, vmid: int, host: str | None = None, user: str = ROOT, *, by_hand: bool = False
    ) -> Task:
        """``qm suspend --todisk``: the memory goes to a volume, and the next start goes on with it."""
        with self._pve.clock.lock:
            on = self._on(vmid, host)
            self._refuse_stopped(on, vmid)
            if self._pve.ha.managed(vmid):
                raise Refused(500, "Cannot suspend HA managed VM to disk")
            return self._task(on, "qmsuspend", vmid, user, self._hibernate(on, vmid), by_hand=by_hand)

    def snapshot(self, vmid: int, name: str = "before", *, ram: bool = True, by_hand: bool = False) -> Task:
        """``qm snapshot``, with the memory where `ram` is set and the guest runs."""
        with self._pve.clock.lock:
            on = self._on(vmid, None)
            steps = self._snapshot(on, vmid, name, ram=ram)
            return self._task(on, "qmsnapshot", vmid, ROOT, steps, by_hand=by_hand)

    def delete_snapshot(self, vmid: int, name: str = "before", *, by_hand: bool = False) -> Task:
        """``qm delsnapshot``."""
        with self._pve.clock.lock:
            on = self._on(vmid, None)
            steps = self._delete_snapshot(on, vmid, name)
            return self._task(on, "qmdelsnapshot", vmid, ROOT, steps, by_hand=by_hand)

    def rollback(self, vmid: int, name: str = "before", *, by_hand: bool = False) -> Task:
        """``qm rollback``: cut the power; go on with the memory of the snapshot, where it has any."""
        with self._pve.clock.lock:
            on = self._on(vmid, None)
            return self._task(on, "qmrollback", vmid, ROOT, self._rollback(on, vmid, name), by_hand=by_hand)

    def backup(self, vmid: int, mode: str = "snapshot", *, by_hand: bool = False) -> Task:
        """``vzdump --mode``: stop, suspend or snapshot."""
        with self._pve.clock.lock:
            on = self._on(vmid, None)
            return self._task(on, "vzdump", vmid, ROOT, self._backup(on, vmid, mode), by_hand=by_hand)

    def backup_of_many(self, vmid: int) -> Task:
        """``vzdump --all``, held by hand before its turn comes to this guest: its task has no number."""
        with self._pve.clock.lock:
            on = self._on(vmid, None)
            return self._task(on, "vzdump", "", ROOT, self._backup_in_turn(on, vmid), by_hand=True)

    def destroy(self, vmid: int) -> Task:
        """``qm destroy``."""
        with self._pve.clock.lock:
            on = self._on(vmid, None)
            if on.kvm(vmid) is not None:
                raise Refused(500, f"VM {vmid} is running - destroy failed")
            return self._task(on, "qmdestroy", vmid, ROOT, self._destroy(on, vmid))

    # -- what the tasks do --------------------------------------------------------------------------------

    def _hibernate(self, host: Host, vmid: int) -> Steps:
        yield from flock(host, vmid)
        host.flocks.discard(vmid)
        conf, kvm = self._to_edit(host, vmid), self._process(host, vmid)
        conf.lock = "suspending"
        try:
            yield Phase("saving", 4.0)
            kvm.qmp = "save-vm"
            yield Phase("saved", 0.5)
        except Aborted:
            conf.lock, kvm.qmp = None, "running"
            raise
        conf.vmstate = f"local:{vmid}/vm-{vmid}-state-suspend.raw"
        conf.saved, conf.lock = kvm.memory, "suspended"
        self.end(kvm)

    def _snapshot(self, host: Host, vmid: int, name: str, *, ram: bool) -> Steps:
        conf, kvm = self._to_edit(host, vmid), host.kvm(vmid)
        conf.lock = "snapshot"
        if kvm is not None and ram:
            kvm.qmp = "save-vm"
        yield Phase("saving", 3.0)
        if kvm is not None and kvm.qmp == "save-vm":
            kvm.qmp = "running"
        conf.snapshots[name] = kvm.memory if kvm is not None and ram else None
        conf.lock, conf.parent = None, name

    def _delete_snapshot(self, host: Host, vmid: int, name: str) -> Steps:
        conf = self._to_edit(host, vmid)
        conf.lock = "snapshot-delete"
        yield Phase("deleting", 2.0)
        conf.snapshots.pop(name, None)
        conf.lock = conf.parent = None

    def _rollback(self, host: Host, vmid: int, name: str) -> Steps:
        conf, kvm = self._to_edit(host, vmid), host.kvm(vmid)
        conf.lock = "rollback"
        if kvm is not None:
            yield from self._hook(host, vmid, "pre-stop")
            yield 0.5
            self.end(kvm)
            yield from self._hook(host, vmid, "post-stop")
        yield Phase("stopped", 3.0)
        memory = conf.snapshots[name]
        conf.lock, conf.parent = None, name
        if memory is not None:
            self.launch(host, vmid, memory)

    def _backup(self, host: Host, vmid: int, mode: str) -> Steps:
        conf, kvm = self._to_edit(host, vmid), host.kvm(vmid)
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

    def _destroy(self, host: Host, vmid: int) -> Steps:
        conf = self._to_edit(host, vmid)
        yield 0.5
        if host.kvm(vmid) is not None:
            raise TaskFailed(f"VM {vmid} is running - destroy failed")
        self._pve.confs.pop(conf.vmid)
        self._pve.ha.forget(vmid)

    # -- helpers ------------------------------------------------------------------------------------------

    def _to_edit(self, host: Host, vmid: int) -> Conf:
        """Return a configuration that may be written now."""
        conf = self._conf(host, vmid)
        if not self._pve.quorate(host):
            path = f"/etc/pve/nodes/{host.name}/qemu-server/{vmid}.conf.tmp.881"
            raise TaskFailed(f"unable to open file '{path}' - Permission denied")
        if conf.lock not in {None, "create", "clone"}:
            raise TaskFailed(f"VM is locked ({conf.lock})")
        return conf
