"""Guests' processes: how one begins and ends, and what cleans up after it. Beneath all commands of ``qm``.

Source: qemu-server's PVE/QemuServer.pm and PVE/CLI/qm.pm, as run for this project.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.pve.model import Conf, Host, Kvm
from tests.support.pve.refused import Refused
from tests.support.pve.tasks import Steps, TaskFailed, locked

if TYPE_CHECKING:
    from tests.support.pve.cluster import PveCluster

SHUTDOWN_S = 60.0
_STALE_CLEANUP_S = 30.0


class Processes:
    """The processes of all guests.

    Args:
        pve: The cluster.
    """

    def __init__(self, pve: PveCluster) -> None:
        self._pve, self._tasks = pve, pve.tasks
        self._pids = itertools.count(4001, 3)
        self._memories = itertools.count(1)

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
            self._tasks.background(host, self._clean_up_soon(host, kvm.vmid))
        else:
            host.uncleaned.discard(kvm.vmid)

    # -- what cleans up -----------------------------------------------------------------------------------

    def _clean_up_soon(self, host: Host, vmid: int) -> Steps:
        yield 0.4
        yield from locked(host, vmid, self._clean_up(host, vmid), SHUTDOWN_S)

    def _clean_up(self, host: Host, vmid: int) -> Steps:
        """``qm cleanup``, by qmeventd: starts what was to reboot, and waits in vain for a new process."""
        if self._conf_if_here(host, vmid) is None:
            return
        if host.kvm(vmid) is None:
            yield from self._hook(host, vmid, "post-stop")
        if vmid in host.starts_again and host.kvm(vmid) is None:
            host.starts_again.discard(vmid)
            if self._pve.corosync.quorate(host):
                yield from self._hook(host, vmid, "pre-start")
                self.launch(host, vmid)
                yield from self._hook(host, vmid, "post-start")
            return
        waited_s = 0.0
        while host.kvm(vmid) is not None and waited_s < _STALE_CLEANUP_S:
            yield 1.0
            waited_s += 1.0

    def _hook(self, host: Host, vmid: int, phase: str) -> Steps:
        """Run the guest's hookscript; post-stop only for a process that nobody has cleaned up after."""
        if phase == "post-stop":
            if vmid not in host.uncleaned:
                return
            host.uncleaned.discard(vmid)
        conf = self._conf_if_here(host, vmid)
        if conf is not None:
            yield from self._pve.hooks.run(host, conf, phase)

    # -- what every command begins with -------------------------------------------------------------------

    @contextmanager
    def _on(self, vmid: int, host: str | None = None) -> Iterator[Host]:
        """Carry out a command on a host: the guest's own, if none is named."""
        with self._pve.clock.held():
            yield self._pve.hosts[host or self._pve.confs[vmid].host]

    def _conf_if_here(self, host: Host, vmid: int) -> Conf | None:
        conf = self._pve.files_of(host).confs.get(vmid)
        return None if conf is None or conf.host != host.name else conf

    def _conf(self, host: Host, vmid: int) -> Conf:
        conf = self._conf_if_here(host, vmid)
        if conf is None:
            raise TaskFailed(f"unable to find configuration file for VM {vmid} on node '{host.name}'")
        return conf

    def _conf_to_edit(self, host: Host, vmid: int) -> Conf:
        """Return a configuration that may be written now."""
        conf = self._conf(host, vmid)
        if not self._pve.corosync.quorate(host):
            path = f"/etc/pve/nodes/{host.name}/qemu-server/{vmid}.conf.tmp.881"
            raise TaskFailed(f"unable to open file '{path}' - Permission denied")
        check_lock(conf, "create", "clone")
        return conf

    def _process(self, host: Host, vmid: int) -> Kvm:
        kvm = host.kvm(vmid)
        if kvm is None:
            raise TaskFailed(f"VM {vmid} not running")
        return kvm

    def _refuse_stopped(self, host: Host, vmid: int) -> None:
        if host.kvm(vmid) is None:
            raise Refused(500, f"VM {vmid} not running")


def check_lock(conf: Conf, *harmless: str) -> None:
    """Fail if a configuration has a lock, other than these."""
    if conf.lock is not None and conf.lock not in harmless:
        raise TaskFailed(f"VM is locked ({conf.lock})")
