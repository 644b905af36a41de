"""Migration, phase by phase: which host says what of a guest while it moves.

Source: qemu-server's PVE/QemuMigrate.pm, and migrations recorded second by second: the source runs on until
the switch, its file is renamed before the target goes on, and only then is the old process ended. On the
target the process is started by ``qm start --migratedfrom`` over ssh, and ended by ``qm stop`` where the
migration fails: tasks like any others. Out of the cluster (prepare, PVE/Tunnel.pm) there is one of kind
qmtunnel instead, and the source keeps its file, locked.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.support.pve.model import Conf, Host, Kvm
from tests.support.pve.qm.processes import Processes
from tests.support.pve.refused import bad_parameter
from tests.support.pve.tasks import ROOT, Aborted, Phase, Steps, Task, TaskFailed, nothing

if TYPE_CHECKING:
    from tests.support.pve.cluster import PveCluster


class Migrations(Processes):
    """Into another host, and into another cluster."""

    def migrate(self, vmid: int, target: str, *, by_hand: bool = False) -> Task:
        """``qm migrate``: live where it runs, offline where it is stopped."""
        with self._on(vmid) as on:
            steps = self._migrate(on, self._pve.hosts[target], vmid)
            return self._tasks.start(on, "qmigrate", vmid, ROOT, steps, by_hand=by_hand)

    def remote_migrate(
        self,
        vmid: int,
        to: PveCluster | None = None,
        node: str = "pve1",
        *,
        delete: bool = False,
        by_hand: bool = False,
    ) -> Task:
        """``qm remote-migrate``: the guest goes on in another cluster.

        Args:
            vmid: The guest's number, here and there.
            to: The other cluster, where it is modelled.
            node: The host there, which may be called as one here is.
            delete: Destroy what is left here, in the same task.
            by_hand: Step by step.
        """
        with self._on(vmid) as on:
            if self._pve.ha.managed(vmid):
                bad_parameter("vmid", "cannot remote-migrate VM that is configured for HA")
            steps = self._migrate_away(on, vmid, to, node, delete=delete)
            return self._tasks.start(on, "qmigrate", vmid, ROOT, steps, by_hand=by_hand)

    def _migrate(self, source: Host, target: Host, vmid: int) -> Steps:
        conf, kvm = self._conf_to_edit(source, vmid), source.kvm(vmid)
        if conf.hookscript and target.lacks_hook and kvm is not None:
            raise TaskFailed("migration aborted")
        conf.lock = "migrate"
        self._tell_ha(vmid, target.name, "migrate")
        yield f"{self._dated()} starting migration of VM {vmid} to node '{target.name}' ({target.address})"
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
            self._tasks.start(target, "qmstart", conf.vmid, ROOT, nothing())
            yield Phase("copying", 3.0)
            kvm.qmp = "finish-migrate"
            yield Phase("switching", 0.1)
            kvm.qmp = "postmigrate"
            copy.qmp = "paused"
            yield Phase("switched", 1.0)
        except Aborted:
            if copy is not None:
                self.end(copy)
                self._tasks.start(target, "qmstop", conf.vmid, ROOT, nothing())
            conf.lock, kvm.qmp = None, "running"
            self._tell_ha(conf.vmid, kvm.host, "started")
            raise TaskFailed("migration problems") from None
        return copy

    def _migrate_away(
        self, source: Host, vmid: int, to: PveCluster | None, node: str, *, delete: bool
    ) -> Steps:
        conf, kvm = self._conf_to_edit(source, vmid), source.kvm(vmid)
        yield from self._tunnel(vmid, node)
        conf.lock = "migrate"
        yield f"{self._dated()} starting migration of VM {vmid} to node '{node}' (198.51.100.7)"
        yield Phase("locked", 1.0)
        yield Phase("copying", 5.0)
        if kvm is not None:
            kvm.qmp = "postmigrate"
            yield Phase("switched", 1.0)
            self.end(kvm, cleaned=False)
        self._arrive(conf, None if kvm is None else kvm.memory, to, node)
        if delete:
            del self._pve.confs[vmid]

    def _tunnel(self, vmid: int, node: str) -> Steps:
        """Say what only a migration out of the cluster says, before anything else."""
        upid = f"UPID:{node}:0001E240:00989680:6920B3A0:qmtunnel:{vmid}:root@pam!move:"
        yield f"{self._dated()} remote: started tunnel worker '{upid}'"
        yield 'tunnel: -> sending command "version" to remote'
        yield "tunnel: <- got reply"
        for whose in ("local", "remote", "minimum required"):
            yield f"{self._dated()} {whose} WS tunnel version: 2"
        yield "websocket tunnel started"

    def _arrive(self, conf: Conf, memory: str | None, to: PveCluster | None, node: str) -> None:
        """Let it be there, and go on there if it ran: by its tunnel's worker, without a start's task."""
        if to is None:
            if memory is not None:
                self._pve.elsewhere[conf.vmid] = memory
            return
        to.admit(replace(conf, host=node, lock=None, pool=None, snapshots={}))
        there = to.hosts[node]
        to.tasks.start(there, "qmtunnel", conf.vmid, f"{ROOT}!move", nothing())
        if memory is not None:
            to.qm.launch(there, conf.vmid, memory)

    def _dated(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self._pve.clock.unix_s()))

    def _tell_ha(self, vmid: int, target: str, state: str) -> None:
        service = self._pve.files.service(vmid)
        if service is None:
            return
        service["state"] = state
        if state == "migrate":
            service["target"] = target
        else:
            service["node"] = target
            service.pop("target", None)
