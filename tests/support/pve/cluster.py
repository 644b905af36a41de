"""The cluster itself: the truth about its hosts and guests, and hands that change it behind the API."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from uuid import uuid4

from tests.support.pve.api.access import Access
from tests.support.pve.clock import Clock
from tests.support.pve.corosync import Corosync
from tests.support.pve.ha import Ha
from tests.support.pve.model import Conf, Daemon, Files, Host, Inside, Kvm, Pmxcfs
from tests.support.pve.pvestatd import Pvestatd
from tests.support.pve.qm import Qm
from tests.support.pve.qm.hooks import Hooks
from tests.support.pve.tasks import Tasks

LEAVE_S = 7.8
JOIN_S = 5.0
TOKEN = "fencer@pve!agent"  # noqa: S105 - a name
RIGHTS = ("Sys.Audit", "VM.Audit", "VM.PowerMgmt")


class PveCluster:
    """A Proxmox VE cluster, or a single host, in memory. Every method may be called from any thread.

    Args:
        name: The cluster's; None: a standalone host.
        hosts: Their names, first to last.
        clock: By which everything happens.
        version: Of pve-manager; shapes of replies follow it.

    Attributes:
        files: What the cluster file system holds, for those with quorum.
        inside: How guests behave, by VMID.
        elsewhere: Memory that lives on in another cluster, by VMID.
        fingerprints: Of the hosts' certificates, once they are served.
        token: Name of a token with the rights to look and to power.
        secret: Its secret.
    """

    def __init__(
        self,
        name: str | None = "lab",
        hosts: Iterable[str] = ("pve1", "pve2", "pve3"),
        *,
        clock: Clock | None = None,
        version: str = "9.2.11",
    ) -> None:
        self.name, self.version = name, version
        self.clock = clock or Clock()
        names = tuple(hosts)
        self.hosts = {it: Host(it, number, frozenset(names)) for number, it in enumerate(names, 1)}
        self.files = Files()
        self.cut_ways: set[frozenset[str]] = set()
        self.inside: dict[int, Inside] = {}
        self.elsewhere: dict[int, str] = {}
        self.fingerprints: dict[str, str] = {}
        self.watchers: list[Callable[[], None]] = []
        self.tasks, self.access, self.corosync = Tasks(self.clock), Access(), Corosync(self)
        self.qm, self.ha, self.pvestatd, self.hooks = Qm(self), Ha(self), Pvestatd(self), Hooks()
        self.token, self.secret = TOKEN, str(uuid4())
        self.access.add_token(self.token, self.secret, {"/": RIGHTS})
        self._vmids = itertools.count(101)
        for host in self.hosts.values():
            host.up_since_s = self.clock.now_s() - 5000
        self.pvestatd.begin_rounds()
        self.ha.begin_rounds()

    # -- looks --------------------------------------------------------------------------------------------

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor version."""
        major, minor, *_ = self.version.split(".")
        return int(major), int(minor)

    @property
    def confs(self) -> dict[int, Conf]:
        """All configuration files, by VMID."""
        return self.files.confs

    def files_of(self, host: Host) -> Files:
        """Return the files as a host has them: without quorum they are those of the time when it lost it."""
        return Files() if host.pmxcfs is Pmxcfs.ALONE else host.stale or self.files

    def uptime_s(self, host: Host) -> int:
        """Return since when a host has power."""
        return int(self.clock.now_s() - host.up_since_s)

    def kvms(self, vmid: int) -> list[Kvm]:
        """Return every process that holds memory of a guest, whoever knows of it. The truth."""
        with self.clock.held():
            return [host.kvms[vmid] for host in self.hosts.values() if vmid in host.kvms]

    def runs(self, vmid: int) -> bool:
        """Whether a vCPU of a guest runs anywhere. The truth."""
        with self.clock.held():
            return vmid in self.elsewhere or any(kvm.runs for kvm in self.kvms(vmid))

    def memory_of(self, vmid: int) -> str | None:
        """Return the name of the memory with which a guest runs. The truth."""
        return next((kvm.memory for kvm in self.kvms(vmid) if kvm.runs), None)

    # -- guests -------------------------------------------------------------------------------------------

    def add_guest(
        self,
        name: str,
        host: str = "pve1",
        *,
        vmid: int | None = None,
        uuid: str | None = None,
        running: bool = True,
        agent: bool = False,
        ha: str | None = None,
        **options: object,
    ) -> Conf:
        """Make a guest that has been there for a while; more `options` are fields of `Conf`."""
        with self.clock.held():
            number = vmid or next(it for it in self._vmids if it not in self.confs)
            made = Conf(number, name, host, uuid or str(uuid4()), str(uuid4()), agent=agent)
            for key, value in options.items():
                setattr(made, key, value)
            self.admit(made, Inside(agent_answers=agent))
            if running:
                self.qm.launch(self.hosts[host], number).started_s -= 100
            if ha is not None:
                self.ha.add(number, ha)
            self.pvestatd.broadcast(self.hosts[host])
            return made

    def admit(self, conf: Conf, inside: Inside | None = None) -> None:
        """Write a new guest's configuration."""
        self.confs[conf.vmid] = conf
        self.inside[conf.vmid] = inside or Inside()

    def crash(self, vmid: int, *, lingers: bool = False) -> None:
        """End a guest's process, from outside or inside; `lingers`: it stays, though nobody sees it."""
        with self.clock.held():
            for kvm in self.kvms(vmid):
                if lingers:
                    kvm.lingers = True
                else:
                    self.qm.end(kvm)

    def reset_inside(self, vmid: int) -> None:
        """Have a guest reboot itself, in the same process."""
        with self.clock.held():
            for kvm in self.kvms(vmid):
                kvm.memory = self.qm.fresh_memory(vmid)

    def set_qmp(self, vmid: int, status: str) -> None:
        """Set what ``query-status`` says."""
        with self.clock.held():
            for kvm in self.kvms(vmid):
                kvm.qmp = status

    def freeze(self, vmid: int) -> None:
        """Stop the process of a guest by a signal."""
        self._set_frozen(vmid, frozen=True)

    def thaw(self, vmid: int) -> None:
        """Let it go on."""
        self._set_frozen(vmid, frozen=False)

    def deafen(self, vmid: int) -> None:
        """Let a guest ignore the power button from now on."""
        self.inside[vmid].obeys_after_s = None

    def move_conf(self, vmid: int, host: str) -> None:
        """``mv`` the configuration file to another host's folder; the process stays where it is."""
        with self.clock.held():
            self.confs[vmid].host = host

    def set_lock(self, vmid: int, lock: str | None) -> None:
        """``qm set --lock``."""
        with self.clock.held():
            self.confs[vmid].lock = lock

    # -- hosts --------------------------------------------------------------------------------------------

    def host_dies(self, name: str, *, silent: bool = False) -> None:
        """Cut a host's power; `silent`: its address swallows packets instead of refusing them."""
        with self.clock.held() as now_s:
            host = self.hosts[name]
            for task in self.tasks.active(host):
                task.cut_off()
            host.up, host.silent, host.died_s = False, silent, now_s
            host.kvms, host.flocks, host.stats = {}, set(), {}
            host.starts_again, host.uncleaned = set(), set()
            self._change(LEAVE_S)

    def host_returns(self, name: str) -> None:
        """Give a host its power again; guests with `onboot` start once it has quorum."""
        with self.clock.held():
            host = self.hosts[name]
            host.up, host.up_since_s, host.members = True, self.clock.now_s(), frozenset({name})
            host.stale = deepcopy(self.files)
            self._change(JOIN_S)
            self.clock.after(JOIN_S + 1, partial(self._start_all, host))

    def drop_link(self, name: str) -> None:
        """Let no packet through to a host, nor from it."""
        with self.clock.held():
            self.hosts[name].link, self.hosts[name].group = False, self.hosts[name].number
            self._change(LEAVE_S)

    def restore_link(self, name: str) -> None:
        """Let packets through again."""
        with self.clock.held():
            self.hosts[name].link, self.hosts[name].group = True, 0
            self._change(JOIN_S)

    def partition(self, names: Iterable[str]) -> None:
        """Cut the corosync traffic between these hosts and the others; the API is reached all the same."""
        with self.clock.held():
            cut = [self.hosts[name] for name in names]
            for host in cut:
                host.group = cut[0].number
            self._change(LEAVE_S)

    def cut_way(self, one: str, other: str) -> None:
        """Let no request of one host's API reach another's; clients and corosync have other ways."""
        with self.clock.held():
            self.cut_ways.add(frozenset({one, other}))

    def lose_quorum(self) -> None:
        """Cut the corosync traffic between all hosts."""
        with self.clock.held():
            for host in self.hosts.values():
                host.group = host.number
            self._change(LEAVE_S)

    def heal(self) -> None:
        """Mend all partitions."""
        with self.clock.held():
            for host in self.hosts.values():
                host.group = 0
            self._change(JOIN_S)

    def set_daemon(self, name: str, daemon: str, state: Daemon) -> None:
        """Kill or freeze pveproxy, pvedaemon or pvestatd of a host, or start it again."""
        with self.clock.held():
            setattr(self.hosts[name], daemon, state)
        self._tell_watchers()

    def set_corosync(self, name: str, state: Daemon) -> None:
        """Kill or freeze corosync of a host, or start it again. Others notice; it keeps what it knew."""
        with self.clock.held():
            host = self.hosts[name]
            self.corosync.set_daemon(host, state)
            self._change(JOIN_S if state is Daemon.OK else LEAVE_S)

    def set_pmxcfs(self, name: str, state: Pmxcfs) -> None:
        """Stop or freeze the cluster file system of a host, or start it again."""
        with self.clock.held():
            self.hosts[name].pmxcfs = state

    # -- helpers ------------------------------------------------------------------------------------------

    def _change(self, noticed_s: float) -> None:
        self.clock.after(noticed_s, self.corosync.reform)
        self._tell_watchers()

    def _tell_watchers(self) -> None:
        for watcher in self.watchers:
            watcher()

    def _start_all(self, host: Host) -> None:
        for conf in self.confs.values():
            if conf.onboot and conf.host == host.name and self.corosync.quorate(host):
                self.qm.start(conf.vmid)

    def _set_frozen(self, vmid: int, *, frozen: bool) -> None:
        with self.clock.held():
            for kvm in self.kvms(vmid):
                kvm.frozen = frozen
