"""Migration, phase by phase: which host says what of a guest while it moves.

Source: qemu-server's PVE/QemuMigrate.pm, and migrations recorded second by second: the source runs on until
the switch, its file is renamed before the target goes on, and only then is the old process ended.
"""

from __future__ import annotations

import time
from collections.abc import Generator

from tests.support.pve.chores import Chores
from tests.support.pve.model import Conf, Host, Kvm, service_id
from tests.support.pve.tasks import Aborted, Phase, Steps, Task, TaskFailed

ROOT = "root@pam"


class Qm(Chores):
    """All that an operator can do with guests from a shell."""

    def migrate(self, vmid: int, target: str, *, by_hand: bool = False) -> Task:
        """``qm migrate``: live where it runs, offline where it is stopped."""
        with self._pve.clock.lock:
            on = self._on(vmid, None)
            steps = self._migrate(on, self._pve.hosts[target], vmid)
            return self._task(on, "qmigrate", vmid, ROOT, steps, by_hand=by_hand)

    def remote_migrate(self, vmid: int, *, delete: bool = False, by_hand: bool = False) -> Task:
        """``qm remote-migrate``: the guest goes on in another cluster."""
        with self._pve.clock.lock:
            on = self._on(vmid, None)
            steps = self._migrate_away(on, vmid, delete=delete)
            return self._task(on, "qmigrate", vmid, ROOT, steps, by_hand=by_hand)

    def _migrate(self, source: Host, target: Host, vmid: int) -> Steps:
        conf, kvm = self._to_edit(source, vmid), source.kvm(vmid)
        if conf.hookscript and target.lacks_hook and kvm is not None:
            raise TaskFailed("migration aborted")
        conf.lock = "migrate"
        self._tell_ha(vmid, target.name, "migrate")
        dated = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self._pve.clock.unix_s()))
        yield f"{dated} starting migration of VM {vmid} to node '{target.name}' ({target.address})"
        if kvm is None:
            yield Phase("locked", 0.7)
            conf.host = target.name
            yield Phase("moved", 1.0)
            conf.lock = None
        else:
            copy = yield from self._transfer(target, conf, kvm)
            conf.host = target.name
            yield Phase("moved", 0.3)
            copy.qmp = "running"
            yield Phase("resumed", 3.0)
            self.end(kvm, cleaned=False)
            conf.lock = None
        self._tell_ha(vmid, target.name, "started")

    def _transfer(self, target: Host, conf: Conf, kvm: Kvm) -> Generator[float | Phase | str, None, Kvm]:
        copy: Kvm | None = None
        try:
            yield Phase("locked", 1.0)
            copy = self.launch(target, conf.vmid, kvm.memory, "inmigrate")
            yield Phase("copying", 3.0)
            kvm.qmp = "finish-migrate"
            yield Phase("switching", 0.1)
            kvm.qmp = "postmigrate"
            copy.qmp = "paused"
            yield Phase("switched", 1.0)
        except Aborted:
            if copy is not None:
                self.end(copy)
            conf.lock, kvm.qmp = None, "running"
            self._tell_ha(conf.vmid, kvm.host, "started")
            raise TaskFailed("migration problems") from None
        return copy

    def _migrate_away(self, source: Host, vmid: int, *, delete: bool) -> Steps:
        conf, kvm = self._to_edit(source, vmid), self._process(source, vmid)
        conf.lock = "migrate"
        yield Phase("locked", 1.0)
        yield Phase("copying", 5.0)
        kvm.qmp = "postmigrate"
        yield Phase("switched", 1.0)
        self._pve.elsewhere[vmid] = kvm.memory
        self.end(kvm, cleaned=False)
        if delete:
            del self._pve.confs[vmid]

    def _tell_ha(self, vmid: int, target: str, state: str) -> None:
        service = self._pve.files.manager.get("service_status", {}).get(service_id(vmid))
        if service is None:
            return
        service["state"] = state
        if state == "migrate":
            service["target"] = target
        else:
            service["node"] = target
            service.pop("target", None)
