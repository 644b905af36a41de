"""What can go wrong, as data, and what each of it does to the world."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from fencer.core.annotations import EXCLUDE, PAUSE
from fencer.core.identity import MEANINGLESS, swapped
from fencer.core.model import PowerState, Taint
from fencer.simulation.assembly import Simulation
from fencer.simulation.guests import Guest, Passage
from fencer.simulation.hosts import WitnessTrouble, recover
from fencer.simulation.hypervisor import SimulatedHypervisor
from fencer.simulation.kubelet import Kubelet
from fencer.simulation.passages import back_up, end_amid_backup, migrate, move_cold, move_out
from fencer.simulation.pauser import WHY, hold
from fencer.simulation.timeline import Actor

LATE_S = 4.0
"""An answer so late is still within an ordinary deadline."""
TOO_LATE_S = 20.0
"""An answer so late is not."""
FROZEN_S = 300.0
"""How long an agent stands still in front of its next power order."""
LAG_S = 40.0
"""How far behind the truth the lists of an API server are that lags."""
API_DOWN_WHY = "the API server does not answer: connection refused"
MIGRATED = Passage(PowerState.UNKNOWN, "shut off (migrated)", away=True)
"""What libvirt tells of a guest that has left, until it restarts."""
LOCKED = Passage(PowerState.STOPPED, "stopped, lock: migrate")
"""What Proxmox tells of one that was moved to another cluster."""
UNLOCKED = Passage(PowerState.UNKNOWN, "stopped; the last task here is a qmigrate that ended well", away=True)
"""What is told of the same once somebody has unlocked it: the task log is all that is left of the move."""


AUTOSCALER = Taint("ToBeDeletedByClusterAutoscaler", "1700000000", "NoSchedule")
"""Source: kubernetes/autoscaler, cluster-autoscaler/utils/taints/taints.go."""
NO_UUIDS = ("", "none", "\x00", *sorted(MEANINGLESS))
"""What machines without a UUID report."""


class What(StrEnum):
    """What happens, to a guest, its node, the endpoint, or the API."""

    # power of a guest
    POWER_OFF = "power_off"
    CRASH = "crash"
    SHUTDOWN = "shutdown"
    PAUSE = "pause"
    IO_ERROR = "io_error"
    RESUME = "resume"
    SAVE = "save"
    SAVE_TO_FILE = "save_to_file"
    HIBERNATE = "hibernate"
    """It saves its own memory inside its disk, and powers itself off."""
    RESTORE = "restore"
    START = "start"
    DELETE = "delete"
    REBOOT = "reboot"
    PANIC = "panic"
    # its memory and its place
    SNAPSHOT = "snapshot"
    REVERT = "revert"
    MIGRATE = "migrate"
    MOVE_OUT = "move_out"
    MOVE_OUT_LOCKED = "move_out_locked"
    MOVE_COLD = "move_cold"
    UNLOCK = "unlock"
    CLONE = "clone"
    COPY_DEFINITION = "copy_definition"
    """Its disk is not copied: whatever starts the copy lets two VMs run from it."""
    STARTED_ELSEWHERE = "started_elsewhere"
    """Another tool, like Pacemaker, boots it at another endpoint, whatever became of it where it was."""
    STARTED_ABROAD = "started_abroad"
    """The same at an endpoint that fencer does not know."""
    STARTED_ON_OTHER_HOST = "started_on_other_host"
    """The same on another host of its endpoint: its configuration was moved there."""
    BACK_UP = "back_up"
    END_AMID_BACKUP = "end_amid_backup"
    """It powers itself off while a backup reads its disks."""
    RESTORE_BACKUP = "restore_backup"
    HA_RECOVER = "ha_recover"
    # a guest that runs on
    NIC_OFF = "nic_off"
    NIC_ON = "nic_on"
    KUBELET_STOP = "kubelet_stop"
    KUBELET_START = "kubelet_start"
    # the Node object
    DELETE_NODE = "delete_node"
    REPLACE = "replace"
    LIE_UUID = "lie_uuid"
    JOIN_WITH_UUID = "join_with_uuid"
    """A new Node joins that reports the UUID of its VM, and is no VM of any hypervisor: JOINER-NAME."""
    JOIN_WITH_SWAPPED_UUID = "join_with_swapped_uuid"
    """The same with its bytes in the other order."""
    JOIN_WITHOUT_UUID = "join_without_uuid"
    """The same with none, or with what is none."""
    JOIN_UNDER_NAME = "join_under_name"
    """The same under its name, with the UUID of the next node's VM."""
    FORGE_MARK = "forge_mark"
    HOSTILE_NOTES = "hostile_notes"
    TAINT_BY_HAND = "taint_by_hand"
    TAINT_IF_OFF = "taint_if_off"
    """Another controller sets the out-of-service taint, after a look that its VM is off …"""
    UNTAINT_BY_HAND = "untaint_by_hand"
    """… and takes it off, whoever has set it."""
    OTHER_TAINT = "other_taint"
    """The cluster autoscaler marks it as one that it is going to delete …"""
    OTHER_TAINT_OFF = "other_taint_off"
    """… and thinks better of it."""
    CORDON_BY_HAND = "cordon_by_hand"
    UNCORDON_BY_HAND = "uncordon_by_hand"
    FORCE_DELETE_PODS = "force_delete_pods"
    FORCE_DELETE_BLINDLY = "force_delete_blindly"
    """The same without a look whether the VM is off."""
    POD_BY_HAND = "pod_by_hand"
    """A person makes a pod that names the node, whether it is fenced or not."""
    ATTACH_BY_HAND = "attach_by_hand"
    """A person makes a VolumeAttachment for the node, of a volume that no pod uses …"""
    DETACH_BY_HAND = "detach_by_hand"
    """… and deletes it."""
    # a host (target: its name)
    HOST_OFF = "host_off"
    HOST_ON = "host_on"
    HOST_CUT = "host_cut"
    HOST_JOINED = "host_joined"
    QMEVENTD_DEAD = "qmeventd_dead"
    """From now on nothing there ends the process of a VM that has powered itself off …"""
    QMEVENTD_BACK = "qmeventd_back"
    """… of those that end later."""
    # its power witness
    WITNESS_SILENT = "witness_silent"
    WITNESS_SAYS_ON = "witness_says_on"
    WITNESS_SAYS_OFF = "witness_says_off"
    WITNESS_TRUTHFUL = "witness_truthful"
    # wrong answers of the endpoint about a guest
    LIE_STOPPED = "lie_stopped"
    MISSING = "missing"
    UNSETTLED = "unsettled"
    CONFIG_MOVED = "config_moved"
    # the daemon of an endpoint (target: its name)
    DAEMON_RESTART = "daemon_restart"
    # wrong answers of the endpoint (target: its name; none: the first) about all
    ALL_STOPPED = "all_stopped"
    HEARSAY = "hearsay"
    STALE = "stale"
    LATE = "late"
    TOO_LATE = "too_late"
    HANG = "hang"
    UNREACHABLE = "unreachable"
    DENIED = "denied"
    POWER_DENIED = "power_denied"
    STOP_RAISES = "stop_raises"
    NO_QUORUM = "no_quorum"
    TRUTHFUL = "truthful"
    # hands off: a person pauses fencing, or excludes a node
    FENCING_PAUSED = "fencing_paused"
    FENCING_RESUMED = "fencing_resumed"
    NODE_PAUSED = "node_paused"
    NODE_RESUMED = "node_resumed"
    NODE_EXCLUDED = "node_excluded"
    NODE_INCLUDED = "node_included"
    # the workloads
    BUDGETS_LOOSENED = "budgets_loosened"
    # the API
    API_DOWN = "api_down"
    API_UP = "api_up"
    API_LAGS = "api_lags"
    API_CAUGHT_UP = "api_caught_up"
    WATCH_SWALLOWED = "watch_swallowed"
    # fencer itself (target of the next five: which of its agents, like fencer-1)
    AGENT_FROZEN = "agent_frozen"
    AGENT_KILLED = "agent_killed"
    AGENT_ARMED = "agent_armed"
    """Until then it only observes; then its configuration says `mode: armed`, and it is reloaded."""
    AGENT_RELOADED = "agent_reloaded"
    """Its configuration is changed, and it is reloaded."""
    DISK_HANGS = "disk_hangs"
    """The disk under its journal, for a while."""
    AGENT_RESTARTED = "agent_restarted"
    """Stopped as a package upgrade stops it: between two passes, and it gives its Leases back."""
    AGENT_PAUSED = "agent_paused"
    """The VM that it runs in is paused, and its clocks with it; later NTP corrects the wall clock."""
    AGENT_SNAPSHOT = "agent_snapshot"
    """A snapshot of that VM, with its memory and its disk …"""
    AGENT_REVERTED = "agent_reverted"
    """… and it is reverted to that: its monotonic clock goes on from there; NTP corrects the wall clock."""
    AGENT_RESTORED = "agent_restored"
    """Only its disk is put back, as it was at the snapshot, and a fresh process begins."""
    AGENT_STALLS = "agent_stalls"
    """The agent that is about to do something about the node of its target stands still, before it does."""
    # the way of one agent to an endpoint, or to the API server (target: which agent)
    LINK_CUT = "link_cut"
    LINK_HANGS = "link_hangs"
    LINK_SLOW = "link_slow"
    LINK_DENIED = "link_denied"
    LINK_STALE = "link_stale"
    """What it sweeps is old; only of an endpoint."""
    LINK_DEAF = "link_deaf"
    """Whatever it sends arrives, and no answer does."""
    LINK_BACK = "link_back"
    FREEZE = "freeze"
    TYPED = "typed"
    """A person types a command of fencer, about the node of its target: see `fencer.simulation.typist`."""
    INTERRUPTED = "interrupted"
    """Ctrl-C ends the newest command about the node of its target that is under way, or a lost session."""
    COMMAND_KILLED = "command_killed"
    """The same by `kill -9`, or with the machine on which it runs."""


OF_LINKS = frozenset(
    {
        *(What.LINK_CUT, What.LINK_HANGS, What.LINK_SLOW, What.LINK_DENIED, What.LINK_STALE, What.LINK_DEAF),
        What.LINK_BACK,
    }
)
"""What happens to the way of one agent: see `fencer.simulation.links`."""
OF_AGENTS = OF_LINKS | {
    *(What.AGENT_FROZEN, What.AGENT_KILLED, What.AGENT_ARMED, What.DISK_HANGS, What.AGENT_RESTARTED),
    *(What.AGENT_RELOADED, What.AGENT_PAUSED, What.AGENT_SNAPSHOT, What.AGENT_REVERTED, What.AGENT_RESTORED),
    What.AGENT_STALLS,
}
"""What happens to agents, of which the rest of the world knows nothing: see `fencer.simulation.crew`."""

OF_WITNESSES = frozenset(
    {What.WITNESS_SILENT, What.WITNESS_SAYS_ON, What.WITNESS_SAYS_OFF, What.WITNESS_TRUTHFUL}
)
"""What happens to the power witness of a host."""

OF_COMMANDS = frozenset({What.TYPED, What.INTERRUPTED, What.COMMAND_KILLED})
"""What happens around commands: see `fencer.simulation.typist`."""

OF_PEOPLE = frozenset(
    {
        *(What.TYPED, What.INTERRUPTED, What.FENCING_PAUSED, What.FENCING_RESUMED),
        *(What.NODE_PAUSED, What.NODE_RESUMED, What.NODE_EXCLUDED, What.NODE_INCLUDED),
    }
)
"""What a person does to fencer."""


class Cue(StrEnum):
    """What a fault of a script may wait for."""

    TAINTED = "tainted"
    """The out-of-service taint is put on the node of its target."""
    BEFORE_TAINT = "before_taint"
    """An agent or a command has decided to taint that node, and has asked and written nothing since …"""
    BEFORE_STOP = "before_stop"
    """… to cut the power of its VM, or to throw its saved memory away …"""
    BEFORE_CLEAR = "before_clear"
    """… to delete its pods or attachments …"""
    BEFORE_LIFT = "before_lift"
    """… or to lift its fence."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One line of a script.

    Attributes:
        at_s: When, in seconds since the story began; of a fault with a cue, since that.
        what: What happens.
        target: A guest, a host, an endpoint, or nothing in particular.
        text: How it is told; empty: in plain words.
        death: An incident begins here: what follows is measured from this moment.
        cue: What it waits for; None: only the clock.
        for_s: Of an agent: how long it stands still, or until it is started again.
        steps: Of an agent: after so many further steps of its calls, so that it is in the midst of something.
        words: Of a command: what is typed after ``fencer``.
        sets: Of a reload: keys and values of the agent's policy, where it differs now from the scenario's.
        endpoint: Of the way of an agent: where it leads; empty: to the API server.
    """

    at_s: float
    what: What
    target: str = ""
    text: str = ""
    death: bool = False
    cue: Cue | None = None
    for_s: float = 0.0
    steps: int = 0
    words: str = ""
    sets: tuple[tuple[str, Any], ...] = ()
    endpoint: str = ""

    @property
    def told(self) -> str:
        """Say it in a sentence."""
        plain = f"{self.target} {self.what.value.replace('_', ' ')}".strip()
        if self.what in OF_LINKS:
            plain = f"{plain}: its way to {self.endpoint or 'the API server'}"
        return self.text or (f"types: fencer {self.words}" if self.words else plain)


def apply(fault: Fault, simulation: Simulation) -> None:
    """Let a fault happen now, and tell it; where nobody is there to whom it could, nothing does."""
    guest = simulation.world.guests.get(fault.target)
    node = guest.node or None if guest is not None else None
    who: Actor = "person" if fault.what in OF_PEOPLE else "world"
    simulation.timeline.tell(who, node, fault.what.value, fault.told, death=fault.death)
    if guest is not None:
        TO_GUEST[fault.what](simulation, guest)
        simulation.stir(guest)
    elif fault.what in TO_ENDPOINT:
        TO_ENDPOINT[fault.what](simulation.hypervisors[fault.target or simulation.shape.endpoint])
    elif fault.what in OF_WITNESSES and not simulation.shape.watches(fault.target):
        return  # no witness watches that host
    elif fault.what in TO_HOST:
        TO_HOST[fault.what](simulation, fault.target)
    elif fault.target:
        return  # a guest that never came to be
    else:
        TO_ALL[fault.what](simulation)


def _its(simulation: Simulation, guest: Guest) -> SimulatedHypervisor:
    """Return the endpoint that a guest is at; of one that fencer does not know, the first."""
    return simulation.hypervisors.get(guest.endpoint, simulation.hypervisor)


def _elsewhere(simulation: Simulation, guest: Guest) -> str:
    """Return another host of the guest's endpoint; where there is none, one that nobody has seen yet."""
    hosts = simulation.shape.hosts if guest.endpoint == simulation.shape.endpoint else (guest.host,)
    after = hosts.index(guest.host) + 1 if guest.host in hosts else 0
    others = [*hosts[after:], *hosts]
    return next((host for host in others if host != guest.host), "another-host")


def _loosen_budgets(simulation: Simulation) -> None:
    """Let every budget allow one more pod to be away."""
    budgets = simulation.api.budgets
    budgets[:] = [replace(one, min_available=one.min_available - 1) for one in budgets]


def _move_out(simulation: Simulation, guest: Guest, left: Passage) -> bool:
    """Move a guest to the first endpoint that is not its own; one unknown to fencer, if there is one."""
    there = _other_endpoint(simulation, guest)
    return move_out(simulation.world, guest, there, f"{there}1", left)


def _move_cold(simulation: Simulation, guest: Guest) -> bool:
    """The same for a guest that is shut down for it, and boots there."""
    there = _other_endpoint(simulation, guest)
    return move_cold(simulation.world, guest, there, f"{there}1")


def _other_endpoint(simulation: Simulation, guest: Guest) -> str:
    shape = simulation.shape
    return next(name for name in (*shape.foreign, *shape.further, shape.endpoint) if name != guest.endpoint)


def _of_kubelet(simulation: Simulation, guest: Guest, what: Callable[[Kubelet], object]) -> None:
    """Do something to a VM's kubelet, if it has one."""
    kubelet = simulation.kubelet_of(guest)
    if kubelet is not None:
        what(kubelet)


def _start_elsewhere(simulation: Simulation, guest: Guest, endpoints: Sequence[str]) -> bool:
    """Let another tool start a VM at the first of these endpoints that is not its own, if there is one."""
    there = next((name for name in endpoints if name != guest.endpoint), None)
    host = simulation.shape.hosts[0] if there == simulation.shape.endpoint else f"{there}1"
    return there is not None and simulation.start_elsewhere(guest, there, host)


def _force_delete_pods(all_: Simulation, guest: Guest) -> None:
    """An administrator force-deletes the pods of a node, after a look whether its VM is off."""
    if guest.power in {PowerState.STOPPED, PowerState.ABSENT}:
        all_.cluster.force_delete_pods(guest.node)


def _lie_uuid(simulation: Simulation, guest: Guest) -> None:
    """Let a kubelet report the byte-swapped UUID of the first other node's guest."""
    node = simulation.api.nodes.get(guest.node)
    if node is not None:
        node.system_uuid = swapped(_next_uuid(simulation, guest))
        simulation.api.changed(node)


def _taint_if_off(simulation: Simulation, guest: Guest) -> None:
    """Taint a node as out of service, if none of the VMs that are or were that node has any memory."""
    machines = simulation.machines_of(guest.node) if guest.node else []
    if all(one.power in {PowerState.STOPPED, PowerState.ABSENT} for one in machines):
        simulation.cluster.taint_by_hand(guest.node)


def joiner_of(guest: str) -> str:
    """Name the machine that joins because of a fault of this target."""
    return f"joiner-{guest}"


def _next_uuid(simulation: Simulation, guest: Guest) -> str:
    """Return the UUID of the first other node's VM."""
    return next(one.guest.uuid for name, one in simulation.nodes.items() if name != guest.node)


TO_GUEST: dict[What, Callable[[Simulation, Guest], object]] = {
    What.POWER_OFF: lambda all_, guest: all_.world.power_off(guest),
    What.CRASH: lambda all_, guest: all_.world.power_off(guest, "crashed"),
    What.SHUTDOWN: lambda all_, guest: all_.world.shut_down(guest),
    What.PAUSE: lambda all_, guest: all_.world.pause(guest),
    What.IO_ERROR: lambda all_, guest: all_.world.pause(guest, "I/O error", io_error=True),
    What.RESUME: lambda all_, guest: all_.world.resume(guest),
    What.SAVE: lambda all_, guest: all_.world.save(guest),
    What.SAVE_TO_FILE: lambda all_, guest: all_.world.save(guest, to_file=True),
    What.HIBERNATE: lambda all_, guest: all_.world.hibernate(guest),
    What.RESTORE: lambda all_, guest: all_.world.start(guest),
    What.START: lambda all_, guest: all_.world.start(guest),
    What.DELETE: lambda all_, guest: all_.world.delete(guest),
    What.REBOOT: lambda all_, guest: all_.world.reboot(guest),
    What.PANIC: lambda all_, guest: all_.world.panic(guest),
    What.SNAPSHOT: lambda all_, guest: all_.take_snapshot(guest),
    What.REVERT: lambda all_, guest: all_.revert(guest),
    What.MIGRATE: lambda all_, guest: migrate(all_.world, guest, _elsewhere(all_, guest)),
    What.MOVE_OUT: lambda all_, guest: _move_out(all_, guest, MIGRATED),
    What.MOVE_OUT_LOCKED: lambda all_, guest: _move_out(all_, guest, LOCKED),
    What.MOVE_COLD: _move_cold,
    What.UNLOCK: lambda _, guest: setattr(guest, "passage", UNLOCKED),
    What.CLONE: lambda all_, guest: all_.world.copy_guest(guest, all_.shape.endpoint),
    What.COPY_DEFINITION: lambda all_, guest: all_.world.copy_guest(
        guest, all_.shape.endpoint, own_disk=False
    ),
    What.STARTED_ELSEWHERE: lambda all_, guest: _start_elsewhere(
        all_, guest, (*all_.shape.further, all_.shape.endpoint)
    ),
    What.STARTED_ABROAD: lambda all_, guest: _start_elsewhere(all_, guest, all_.shape.foreign),
    What.STARTED_ON_OTHER_HOST: lambda all_, guest: all_.start_elsewhere(
        guest, guest.endpoint, _elsewhere(all_, guest)
    ),
    What.BACK_UP: lambda all_, guest: back_up(all_.world, guest),
    What.END_AMID_BACKUP: lambda all_, guest: end_amid_backup(all_.world, guest),
    What.RESTORE_BACKUP: lambda all_, guest: all_.world.restore_backup(guest),
    What.HA_RECOVER: lambda all_, guest: recover(all_.world, guest, _elsewhere(all_, guest)),
    What.NIC_OFF: lambda _, guest: setattr(guest, "nic_up", False),
    What.NIC_ON: lambda _, guest: setattr(guest, "nic_up", True),
    What.KUBELET_STOP: lambda all_, guest: _of_kubelet(all_, guest, Kubelet.stop),
    What.KUBELET_START: lambda all_, guest: _of_kubelet(all_, guest, Kubelet.start),
    What.DELETE_NODE: lambda all_, guest: all_.api.delete_node(guest.node),
    What.REPLACE: lambda all_, guest: all_.replace(guest.node),
    What.LIE_UUID: _lie_uuid,
    What.JOIN_WITH_UUID: lambda all_, guest: all_.join(joiner_of(guest.name), guest.uuid),
    What.JOIN_WITH_SWAPPED_UUID: lambda all_, guest: all_.join(joiner_of(guest.name), swapped(guest.uuid)),
    What.JOIN_WITHOUT_UUID: lambda all_, guest: all_.join(
        joiner_of(guest.name), all_.world.random.choice(NO_UUIDS)
    ),
    What.JOIN_UNDER_NAME: lambda all_, guest: all_.join(
        joiner_of(guest.name), _next_uuid(all_, guest), guest.node
    ),
    What.FORGE_MARK: lambda all_, guest: all_.cluster.forge_mark(guest.node, guest.ref),
    What.HOSTILE_NOTES: lambda all_, guest: all_.cluster.write_hostile_notes(guest.node),
    What.TAINT_BY_HAND: lambda all_, guest: all_.cluster.taint_by_hand(guest.node),
    What.TAINT_IF_OFF: _taint_if_off,
    What.UNTAINT_BY_HAND: lambda all_, guest: all_.cluster.untaint_by_hand(guest.node),
    What.OTHER_TAINT: lambda all_, guest: all_.cluster.taint_otherwise(guest.node, AUTOSCALER),
    What.OTHER_TAINT_OFF: lambda all_, guest: all_.cluster.untaint_otherwise(guest.node, AUTOSCALER),
    What.CORDON_BY_HAND: lambda all_, guest: all_.cluster.cordon_by_hand(guest.node),
    What.UNCORDON_BY_HAND: lambda all_, guest: all_.cluster.uncordon_by_hand(guest.node),
    What.FORCE_DELETE_PODS: _force_delete_pods,
    What.FORCE_DELETE_BLINDLY: lambda all_, guest: all_.cluster.force_delete_pods(guest.node),
    What.POD_BY_HAND: lambda all_, guest: all_.cluster.make_pod(guest.node),
    What.ATTACH_BY_HAND: lambda all_, guest: all_.cluster.attach_by_hand(guest.node),
    What.DETACH_BY_HAND: lambda all_, guest: all_.cluster.detach_by_hand(guest.node),
    What.NODE_PAUSED: lambda all_, guest: hold(all_.api, guest.node, PAUSE, WHY),
    What.NODE_RESUMED: lambda all_, guest: hold(all_.api, guest.node, PAUSE, None),
    What.NODE_EXCLUDED: lambda all_, guest: hold(all_.api, guest.node, EXCLUDE, "true"),
    What.NODE_INCLUDED: lambda all_, guest: hold(all_.api, guest.node, EXCLUDE, None),
    **dict.fromkeys(OF_COMMANDS, lambda _all, _guest: None),
    What.LIE_STOPPED: lambda all_, guest: _its(all_, guest).lie(guest.name, PowerState.STOPPED),
    What.MISSING: lambda all_, guest: _its(all_, guest).trouble.missing.add(guest.name),
    What.UNSETTLED: lambda all_, guest: _its(all_, guest).trouble.unsettled.add(guest.name),
    What.CONFIG_MOVED: lambda all_, guest: _its(all_, guest).move_config(guest.name, _elsewhere(all_, guest)),
}
TO_HOST: dict[What, Callable[[Simulation, str], object]] = {
    What.HOST_OFF: lambda all_, host: all_.world.kill_host(host),
    What.HOST_ON: lambda all_, host: all_.world.revive_host(host),
    What.HOST_CUT: lambda all_, host: all_.world.cut_host(host, off=True),
    What.HOST_JOINED: lambda all_, host: all_.world.cut_host(host, off=False),
    What.QMEVENTD_DEAD: lambda all_, host: all_.world.leaving_hosts.add(host),
    What.QMEVENTD_BACK: lambda all_, host: all_.world.leaving_hosts.discard(host),
    What.WITNESS_SILENT: lambda all_, host: setattr(all_.witness(host).trouble, "silent", True),
    What.WITNESS_SAYS_ON: lambda all_, host: all_.witness(host).lie(answer=False),
    What.WITNESS_SAYS_OFF: lambda all_, host: all_.witness(host).lie(answer=True),
    What.WITNESS_TRUTHFUL: lambda all_, host: setattr(all_.witness(host), "trouble", WitnessTrouble()),
}
TO_ENDPOINT: dict[What, Callable[[SimulatedHypervisor], object]] = {
    What.DAEMON_RESTART: lambda endpoint: endpoint.restart(),
    What.ALL_STOPPED: lambda endpoint: endpoint.lie_about_all(PowerState.STOPPED),
    What.HEARSAY: lambda endpoint: setattr(endpoint.trouble, "hearsay", True),
    What.STALE: lambda endpoint: endpoint.freeze_sweeps(),
    What.LATE: lambda endpoint: setattr(endpoint.trouble, "delay_s", LATE_S),
    What.TOO_LATE: lambda endpoint: setattr(endpoint.trouble, "delay_s", TOO_LATE_S),
    What.HANG: lambda endpoint: setattr(endpoint.trouble, "delay_s", math.inf),
    What.UNREACHABLE: lambda endpoint: setattr(endpoint.trouble, "unreachable", True),
    What.DENIED: lambda endpoint: setattr(endpoint.trouble, "denied", True),
    What.POWER_DENIED: lambda endpoint: setattr(endpoint.trouble, "power_denied", True),
    What.STOP_RAISES: lambda endpoint: setattr(endpoint.trouble, "stop_raises", True),
    What.NO_QUORUM: lambda endpoint: setattr(endpoint.trouble, "quorate", False),
    What.FREEZE: lambda endpoint: setattr(endpoint.trouble, "freeze_s", FROZEN_S),
    What.TRUTHFUL: lambda endpoint: endpoint.recover(),
}
TO_ALL: dict[What, Callable[[Simulation], object]] = {
    What.TYPED: lambda _all: None,
    What.BUDGETS_LOOSENED: _loosen_budgets,
    What.FENCING_PAUSED: lambda all_: hold(all_.api, "", PAUSE, WHY),
    What.FENCING_RESUMED: lambda all_: hold(all_.api, "", PAUSE, None),
    What.API_DOWN: lambda all_: setattr(all_.api, "down_why", API_DOWN_WHY),
    What.API_UP: lambda all_: setattr(all_.api, "down_why", None),
    What.API_LAGS: lambda all_: all_.cluster.lag(LAG_S),
    What.API_CAUGHT_UP: lambda all_: all_.cluster.lag(0.0),
    What.WATCH_SWALLOWED: lambda all_: all_.cluster.swallow_watch(),
}
