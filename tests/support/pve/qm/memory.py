"""What ``qm`` does with a guest's memory: hibernate, snapshot, rollback.

Source: read in qemu-server; unlike the power commands these were not recorded.
"""

from __future__ import annotations

from tests.support.pve.model import Host
from tests.support.pve.qm.processes import Processes
from tests.support.pve.refused import Refused
from tests.support.pve.tasks import ROOT, Aborted, Phase, Steps, Task, locked, nothing


class SavedMemory(Processes):
    """The commands that save memory, and bring it back."""

    def hibernate(
        self, vmid: int, host: str | None = None, user: str = ROOT, *, by_hand: bool = False
    ) -> Task:
        """``qm suspend --todisk``: the memory goes to a volume, and the next start goes on with it."""
        with self._on(vmid, host) as on:
            self._refuse_stopped(on, vmid)
            if self._pve.ha.managed(vmid):
                raise Refused(500, "Cannot suspend HA managed VM to disk")
            return self._tasks.start(on, "qmsuspend", vmid, user, self._hibernate(on, vmid), by_hand=by_hand)

    def snapshot(self, vmid: int, name: str = "before", *, ram: bool = True, by_hand: bool = False) -> Task:
        """``qm snapshot``, with the memory where `ram` is set and the guest runs."""
        with self._on(vmid) as on:
            steps = self._snapshot(on, vmid, name, ram=ram)
            return self._tasks.start(on, "qmsnapshot", vmid, ROOT, steps, by_hand=by_hand)

    def delete_snapshot(self, vmid: int, name: str = "before", *, by_hand: bool = False) -> Task:
        """``qm delsnapshot``."""
        with self._on(vmid) as on:
            steps = self._delete_snapshot(on, vmid, name)
            return self._tasks.start(on, "qmdelsnapshot", vmid, ROOT, steps, by_hand=by_hand)

    def rollback(self, vmid: int, name: str = "before", *, by_hand: bool = False) -> Task:
        """``qm rollback``: cut the power; go on with the memory of the snapshot, where it has any."""
        with self._on(vmid) as on:
            return self._tasks.start(
                on, "qmrollback", vmid, ROOT, self._rollback(on, vmid, name), by_hand=by_hand
            )

    # -- what the tasks do --------------------------------------------------------------------------------

    def _hibernate(self, host: Host, vmid: int) -> Steps:
        yield from locked(host, vmid, nothing())
        conf, kvm = self._conf_to_edit(host, vmid), self._process(host, vmid)
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
        conf, kvm = self._conf_to_edit(host, vmid), host.kvm(vmid)
        conf.lock = "snapshot"
        if kvm is not None and ram:
            kvm.qmp = "save-vm"
        yield Phase("saving", 3.0)
        if kvm is not None and kvm.qmp == "save-vm":
            kvm.qmp = "running"
        conf.snapshots[name] = kvm.memory if kvm is not None and ram else None
        conf.lock, conf.parent = None, name

    def _delete_snapshot(self, host: Host, vmid: int, name: str) -> Steps:
        conf = self._conf_to_edit(host, vmid)
        conf.lock = "snapshot-delete"
        yield Phase("deleting", 2.0)
        conf.snapshots.pop(name, None)
        conf.lock = conf.parent = None

    def _rollback(self, host: Host, vmid: int, name: str) -> Steps:
        conf, kvm = self._conf_to_edit(host, vmid), host.kvm(vmid)
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
