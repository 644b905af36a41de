"""What makes guests of guests or files, and what ends them: clone, restore, template, import, destroy.

Source: qemu-server's PVE/API2/Qemu.pm (clone_vm, create_vm, template), PVE/CLI/qm.pm (importovf) and
PVE/QemuServer.pm (restore_update_config_line); pve-guest-common's AbstractConfig.pm, create_and_lock_config.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from tests.support.pve.model import Conf, Host
from tests.support.pve.qm.processes import Processes
from tests.support.pve.refused import Refused
from tests.support.pve.tasks import ROOT, Phase, Steps, Task, TaskFailed


class Copies(Processes):
    """The commands after which there is another guest, or what was one is none any more."""

    def clone(
        self, vmid: int, newid: int, name: str = "", *, pool: str | None = None, by_hand: bool = False
    ) -> Task:
        """``qm clone``: another UUID; hookscript, tags and all the rest as they are, but the pool."""
        with self._on(vmid) as on:
            of = self._pve.confs[vmid]
            if newid in self._pve.confs:
                raise Refused(500, f"unable to create VM {newid}: config file already exists")
            copy = self._copied(of, newid, name or f"Copy-of-VM-{of.name}", "clone")
            copy.uuid, copy.template, copy.pool = str(uuid4()), False, pool
            self._pve.admit(copy)
            return self._tasks.start(on, "qmclone", vmid, ROOT, self._unlock_later(on, copy), by_hand=by_hand)

    def restore(
        self,
        vmid: int,
        newid: int,
        name: str = "",
        *,
        force: bool = False,
        unique: bool = False,
        by_hand: bool = False,
    ) -> Task:
        """``qmrestore`` of a backup of this guest: over an id that is taken only by force; the same UUID.

        Args:
            vmid: Of the guest that was backed up just now.
            newid: Where to.
            name: Of the guest in the backup; empty: as it is.
            force: Overwrite what is there, if it does not run.
            unique: With another UUID.
            by_hand: Step by step.
        """
        of, there = self._pve.confs[vmid], self._pve.confs.get(newid)
        with self._on(newid if there else vmid) as on:
            said = f"unable to restore VM {newid} -"
            if there is not None and not force:
                raise Refused(500, f"{said} VM {newid} already exists on node '{there.host}'")
            if there is not None and there.lock is not None:
                raise Refused(500, f"{said} VM is locked ({there.lock})")
            copy = self._copied(of, newid, name or of.name, "create")
            copy.host, copy.pool = on.name, there.pool if there else None
            if unique:
                copy.uuid = str(uuid4())
            if there is None:
                self._pve.admit(copy)
            else:
                there.lock = "create"
            steps = self._restore(on, copy, said)
            return self._tasks.start(on, "qmrestore", newid, ROOT, steps, by_hand=by_hand)

    def template(self, vmid: int) -> Task:
        """``qm template``: it never runs again."""
        with self._on(vmid) as on:
            conf = self._pve.confs[vmid]
            if conf.lock is not None:
                raise Refused(500, f"VM is locked ({conf.lock})")
            if conf.snapshots:
                raise Refused(500, "unable to create template, because VM contains snapshots")
            if on.kvm(vmid) is not None:
                raise Refused(500, "you can't convert a VM to template if VM is running")
            return self._tasks.start(on, "qmtemplate", vmid, ROOT, self._make_template(on, vmid))

    def import_ovf(self, vmid: int, name: str, host: str) -> Conf:
        """``qm importovf``: no task; a UUID of its own, and nothing else that the exported guest had."""
        with self._pve.clock.held():
            if vmid in self._pve.confs:
                raise Refused(500, f"VM {vmid} already exists on node '{self._pve.confs[vmid].host}'")
            made = Conf(vmid, name, host, str(uuid4()), str(uuid4()))
            self._pve.admit(made)
            return made

    def destroy(self, vmid: int) -> Task:
        """``qm destroy``."""
        with self._on(vmid) as on:
            if on.kvm(vmid) is not None:
                raise Refused(500, f"VM {vmid} is running - destroy failed")
            return self._tasks.start(on, "qmdestroy", vmid, ROOT, self._destroy(on, vmid))

    # -- what the tasks do --------------------------------------------------------------------------------

    def _restore(self, host: Host, copy: Conf, said: str) -> Steps:
        there = self._pve.confs[copy.vmid]
        if host.kvm(copy.vmid) is not None:
            there.lock = None
            raise TaskFailed(f"{said} vm is running")
        yield Phase("copying", 5.0)
        copy.lock = None
        self._pve.admit(copy)

    def _make_template(self, host: Host, vmid: int) -> Steps:
        conf = self._conf_to_edit(host, vmid)
        conf.template = True
        yield 1.0

    def _unlock_later(self, host: Host, copy: Conf) -> Steps:
        self._conf_to_edit(host, copy.vmid)
        yield Phase("copying", 5.0)
        copy.lock = None

    def _destroy(self, host: Host, vmid: int) -> Steps:
        conf = self._conf_to_edit(host, vmid)
        yield 0.5
        if host.kvm(vmid) is not None:
            raise TaskFailed(f"VM {vmid} is running - destroy failed")
        self._pve.confs.pop(conf.vmid)
        self._pve.ha.forget(vmid)

    def _copied(self, of: Conf, newid: int, name: str, lock: str) -> Conf:
        return replace(
            of,
            vmid=newid,
            name=name,
            lock=lock,
            vmgenid=str(uuid4()),
            vmstate=None,
            saved=None,
            parent=None,
            snapshots={},
        )
