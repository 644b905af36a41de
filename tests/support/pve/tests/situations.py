"""What has to be done to the stand-in to bring about what was recorded from the real one.

A table: which recordings, and how their situation is made. A recording that no row names has no counterpart
here: the stand-in does not have the endpoint, or the real one was in a state that only its laboratory had.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.pve import Daemon, Pmxcfs, PveCluster

AUDITOR = {
    *("VM.Audit", "Sys.Audit", "Datastore.Audit", "Mapping.Audit", "Pool.Audit", "SDN.Audit"),
    "VM.GuestAgent.Audit",
}
FENCER = {"Sys.Audit", "VM.Audit", "VM.PowerMgmt"}
ALL = {*AUDITOR, *FENCER, "VM.Config.Disk", "VM.GuestAgent.Unrestricted"}
TOKENS = {
    "fencer@pve!full": {"/": FENCER},
    "root@pam!tk": {"/": ALL},
    "none@pve!tk": {},
    "one@pve!tk": {"/vms/100": AUDITOR},
    "vmonly@pve!tk": {"/vms": AUDITOR},
    "fencer@pve!sep": {"/vms/100": {"Sys.Audit", "VM.Audit"}},
    "fencer@pve!exp": {"/": FENCER},
}
_VERBS = "start|stop|shutdown|reboot|reset|suspend|resume|running|resources"


@dataclass(frozen=True, slots=True)
class Situation:
    """A row of the table.

    Attributes:
        pattern: Names of recordings.
        make: Makes the situation; gets what the groups of the pattern hold.
        alone: On a standalone host pve1; otherwise in a cluster of pve1 to pve3.
    """

    pattern: str
    make: Callable[..., object] = lambda _pve: None
    alone: bool = True


def find(name: str) -> tuple[Situation, tuple[str, ...]] | None:
    """Return the row of a recording, and what its pattern's groups hold."""
    for situation in SITUATIONS:
        found = re.fullmatch(situation.pattern, name)
        if found:
            return situation, tuple(group or "" for group in found.groups())
    return None


def build(situation: Situation, groups: tuple[str, ...]) -> PveCluster:
    """Return a cluster in that situation."""
    if situation.alone:
        pve = PveCluster(None, ("pve1",))
        pve.add_guest("web1", vmid=100, tags=("fencer", "k8s"))
        for vmid in (101, 102, 103, 104, 111, 112, 113):
            pve.add_guest(f"guest-{vmid}", vmid=vmid, running=False)
    else:
        pve = PveCluster()
        for vmid, host in ((201, "pve3"), (202, "pve2"), (203, "pve3"), (205, "pve2")):
            pve.add_guest(f"guest-{vmid}", host, vmid=vmid)
    for token, rights in TOKENS.items():
        if situation.alone or "/vms/100" not in rights:
            pve.access.add_token(token, f"secret-of-{token}", rights)
    pve.access.expire("fencer@pve!exp")
    situation.make(pve, *groups)
    return pve


def _running(pve: PveCluster, vmid: int, qmp: str = "running", *, obeys_s: float | None = 0.3) -> None:
    host = pve.hosts[pve.confs[vmid].host]
    if host.kvm(vmid) is None:
        pve.qm.launch(host, vmid)
    pve.set_qmp(vmid, qmp)
    pve.inside[vmid].obeys_after_s = obeys_s


def _silent_agent(pve: PveCluster, *_groups: str) -> None:
    pve.confs[103].agent = True
    _running(pve, 103)


def _busy_with_shutdown(pve: PveCluster) -> None:
    _running(pve, 101, obeys_s=None)
    pve.qm.shutdown(101, timeout_s=40)
    pve.clock.advance(3)


def _hooked(pve: PveCluster) -> None:
    """A hook, or a cleanup that came too late, holds the configuration's lock."""
    pve.hosts["pve1"].flocks.update({100, 103})


def _dead(pve: PveCluster, *_groups: str) -> None:
    pve.host_dies("pve3")


def _never_started(pve: PveCluster, *_groups: str) -> None:
    pve.host_dies("pve1")
    pve.clock.advance(310)


def _daemon(pve: PveCluster, daemon: str, state: str) -> None:
    pve.set_daemon("pve3", daemon, Daemon(state))


def _ha(pve: PveCluster, *_groups: str, state: str = "started") -> None:
    pve.add_guest("h7", "pve3", vmid=207, running=state == "started", ha=state)


def _odd_cpu(pve: PveCluster, *groups: str) -> None:
    qmp = "prelaunch" if "after-reset" in groups[-1] else groups[0]
    for vmid in (208, 209):
        pve.add_guest(f"guest-{vmid}", "pve2", vmid=vmid)
        pve.set_qmp(vmid, qmp)


def _ha_on_two(pve: PveCluster) -> None:
    pve.add_guest("h6", "pve1", vmid=206, ha="started")
    pve.add_guest("h7", "pve2", vmid=207, ha="started")


def _minority(pve: PveCluster, *_groups: str) -> None:
    _ha_on_two(pve)
    pve.partition({"pve3"})
    pve.clock.advance(35)


def _no_quorum(pve: PveCluster, what: str) -> None:
    _ha_on_two(pve)
    pve.host_dies("pve3")
    pve.clock.advance(400)
    pve.host_dies("pve1")
    pve.clock.advance(20)
    if "after-stop" in what:
        pve.crash(202)


def _back(pve: PveCluster, *_groups: str) -> None:
    pve.host_dies("pve3")
    pve.clock.advance(400)
    pve.host_returns("pve3")
    pve.clock.advance(30)


def _partitioned(pve: PveCluster, what: str) -> None:
    pve.partition({"pve3"})
    pve.clock.advance(12)
    if "status-203" in what:
        pve.crash(203)


def _moved(pve: PveCluster, state: str, _what: str) -> None:
    pve.partition({"pve3"})
    pve.clock.advance(12)
    pve.move_conf(201, "pve2")
    pve.clock.advance(12)
    if state == "healed":
        pve.heal()
        pve.clock.advance(12)


def _ghost(pve: PveCluster, *_groups: str) -> None:
    pve.move_conf(100, "ghost")


SITUATIONS = (
    Situation("01-.*"),
    Situation("02-agent-(?:403|off)"),
    Situation("02-agent(-running)?", _silent_agent),
    Situation(r"02-lock-([a-z-]+?)-(?:stopped.*|resources)", lambda pve, lock: pve.set_lock(102, lock)),
    Situation(rf"02-lock-([a-z-]+?)-(?:{_VERBS})", lambda pve, lock: pve.set_lock(100, lock)),
    Situation("02-(?:reboot|reset|stop|suspend2?|start-c|resources-lock)"),
    Situation(
        "02-(?:reboot-ignored|shutdown-ignored|shutdown-ignored-force)",
        lambda pve: _running(pve, 101, obeys_s=None),
    ),
    Situation("02-shutdown-ok", lambda pve: _running(pve, 100, obeys_s=None)),
    Situation("02-shutdown-delay5", lambda pve: _running(pve, 102, obeys_s=5.0)),
    Situation("02-shutdown-agent-dead", _silent_agent),
    Situation("02-shutdown-prelaunch", lambda pve: _running(pve, 103, "prelaunch")),
    Situation(
        "02-(?:reboot-paused|reset-paused|resume|shutdown-paused.*|suspend-again|status-paused|resources-paused)",
        lambda pve: _running(pve, 100, "paused"),
    ),
    Situation("02-sigstop-(?:status|list|reset|shutdown|stop).*", lambda pve: pve.freeze(100)),
    Situation("02-start-b", lambda pve: pve.crash(100)),
    Situation("02-(?:start-101|start-f1|start-f3|start-freeze|stopped-.*)"),
    Situation("02-(?:status-during-shutdown|stop-overrule)", _busy_with_shutdown),
    Situation("02-stop-111", lambda pve: _running(pve, 111)),
    Situation("02-(?:suspend3|stop-paused)", _hooked),
    Situation("02-template-.*", lambda pve: setattr(pve.confs[104], "template", True)),
    Situation("03-(?!hookscript|bad).*"),
    Situation("04-noqmeventd-crash-status", lambda pve: setattr(pve.confs[103], "agent", True)),
    Situation("04-(?:crash-slowhook-start|slow-poststop-start)", _hooked),
    Situation("05-ghost-(?:cluster-status|nodes|pve1-status|resources-0|ridx|status)", _ghost),
    Situation("07-base-.*", _never_started, alone=False),
    Situation("07-dead-0s-.*", _dead, alone=False),
    Situation("07-(?:drop-.*|link-down-(?!stop).*)", lambda pve: pve.drop_link("pve3"), alone=False),
    Situation("07-(pvedaemon|pveproxy)-(dead|frozen)-.*", _daemon, alone=False),
    Situation("07-pmxcfs-frozen-.*", lambda pve: pve.set_pmxcfs("pve2", Pmxcfs.FROZEN), alone=False),
    Situation(
        "07-pmxcfs-stopped.*|13-etcpve-unmounted-(?!pvesh).*",
        lambda pve: pve.set_pmxcfs("pve2", Pmxcfs.STOPPED),
        alone=False,
    ),
    Situation("07-(?:proxy-ok-.*|pmxcfs-back-resources)", alone=False),
    Situation("08-ha-api-start", lambda pve: _ha(pve, state="stopped"), alone=False),
    Situation("08-ha-(?:api-stop|overrule|status-current-vm|suspend-todisk)", _ha, alone=False),
    Situation("09-(io-error|internal-error)-(.*)", _odd_cpu, alone=False),
    Situation("09-resources-(io)-(internal-error)", _odd_cpu, alone=False),
    Situation("09-shutdown-.*", alone=False),
    Situation("10-minority-.*", _minority, alone=False),
    Situation("10-noquorum-(?!config-put|suspend)(.*)", _no_quorum, alone=False),
    Situation("10-back-201-.*", _back, alone=False),
    Situation("10-partition-majority-(status-201|status-203|stop-203)", _partitioned, alone=False),
    Situation("10-partition-(moved|healed)-(.*)", _moved, alone=False),
)
