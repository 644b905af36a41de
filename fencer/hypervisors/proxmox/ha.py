"""What Proxmox's HA stack proves about a dead host: a fold over what its manager and agents write.

HA's manager calls a host fenced once it holds the lock of that host's agent. That alone proves nothing: an
agent without services holds no lock and arms no watchdog, and its host may live. It does prove that a guest's
old run is over when that guest had been started by that agent while it was active: its watchdog was armed
then, and must have reset the host before the lock ran out.

So `fold` remembers which guests are *guarded* (seen started by an active agent), and calls a guarded guest
recovered when its service reaches the state `recovery`, or is taken off a host that was being fenced. Pure.

Source: pve-ha-manager, PVE/HA/Manager.pm, LRM.pm, NodeStatus.pm; upstream simulator's traces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

GAP_S = 30.0
"""Guards older than three rounds of HA's daemons (10 s each) are forgotten: too much may have happened."""

WATCHDOG_S = 60.0
"""This long after its agent's last word, a host whose watchdog was armed has been reset."""

_GUARDING_MODES = frozenset({"active", "shutdown"})
"""Modes in which an active agent keeps its watchdog until its services are stopped. Not `restart`: then it
leaves them running, and lets go of both."""

_UNDER_WAY = frozenset({"started", "request_stop", "fence", "recovery"})
"""States of a service in which its guest runs, or ran, on the very host that the service names."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service as the manager has it.

    Attributes:
        running: The manager has taken in that its agent started it.
        order: Names what its agent was last told to do.
    """

    state: str
    host: str
    running: bool
    order: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """A host's agent (LRM), as it last wrote.

    Attributes:
        started: The order to start → the service that it reported as started by it.
        written: When, by its own clock; only its change means anything.
    """

    state: str
    mode: str
    started: Mapping[str, str]
    written: int = 0

    @property
    def guards(self) -> bool:
        """Its watchdog is armed, and stays so while its services run."""
        return self.state == "active" and self.mode in _GUARDING_MODES

    @property
    def leaves(self) -> bool:
        """It is in maintenance: its watchdog is armed until no service is left to run there, not after."""
        return self.state in {"active", "maintenance"} and self.mode == "maintenance"


@dataclass(frozen=True, slots=True)
class HaView:
    """One answer of `ha/status/manager_status`.

    Attributes:
        quorate: The answering host belongs to a majority.
        disarmed: HA is being disarmed, or is.
        hosts: Host → what the manager takes it for: online, maintenance, unknown, fence, gone.
        services: Service, like ``vm:102`` → what the manager has of it.
        agents: Host → its agent.
    """

    quorate: bool
    disarmed: bool = False
    hosts: Mapping[str, str] = field(default_factory=dict)
    services: Mapping[str, Service] = field(default_factory=dict)
    agents: Mapping[str, Agent] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recovery:
    """HA fenced a host for good, and took this guest off it.

    Attributes:
        left: The host on which its old run is over.
        moved_to: Where its configuration went; None: nowhere yet.
        at_s: When it was seen, on the agent's monotonic clock.
    """

    left: str
    moved_to: str | None
    at_s: float


@dataclass(frozen=True, slots=True)
class Guard:
    """A guest that an agent with an armed watchdog had started.

    Attributes:
        host: Where.
        fenced: The manager was seen to fence that host since.
    """

    host: str
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class HaState:
    """What the fold remembers.

    Attributes:
        at_s: When the last answer was folded in, on the agent's monotonic clock.
        guarded: Service → its guard.
        recovered: Service → its last recovery.
        heard: Host → its agent's last word, and when that was first seen.
    """

    at_s: float = 0.0
    guarded: Mapping[str, Guard] = field(default_factory=dict)
    recovered: Mapping[str, Recovery] = field(default_factory=dict)
    heard: Mapping[str, tuple[int, float]] = field(default_factory=dict)


def fold(before: HaState, view: HaView, now_s: float) -> HaState:
    """Take in one answer. One without quorum changes nothing.

    Args:
        before: What was known.
        view: The answer.
        now_s: When its call began, on the agent's monotonic clock.
    """
    if not view.quorate or now_s < before.at_s:
        return before
    heard = {
        host: before.heard[host]
        if host in before.heard and before.heard[host][0] == agent.written
        else (agent.written, now_s)
        for host, agent in view.agents.items()
    }
    guarded: dict[str, Guard] = {}
    recovered = dict(before.recovered)
    for sid, guard in before.guarded.items() if now_s - before.at_s <= GAP_S else ():
        kept = _kept(view, sid, guard)
        silent_s = now_s - heard.get(guard.host, (0, now_s))[1]
        seen = _recovery(view, sid, kept or guard, now_s, silent_s)
        known = recovered.get(sid)
        if seen is not None and (known is None or (known.left, known.moved_to) != (seen.left, seen.moved_to)):
            recovered[sid] = seen
        if kept is not None:
            guarded[sid] = kept
    for sid, service in view.services.items():
        if not _begins(view, sid, service):
            continue
        guarded.setdefault(sid, Guard(service.host, fenced=service.state in {"fence", "recovery"}))
        known = recovered.get(sid)
        if known is not None and service.state == "started" and service.host != known.moved_to:
            del recovered[sid]  # it ran on since, elsewhere
    return HaState(now_s, guarded, recovered, heard)


def standing(state: HaState, view: HaView, sid: str, host: str) -> tuple[bool, str]:
    """Judge a guest whose configuration is on a host that is not there.

    Args:
        state: With `view` folded in.
        view: The newest answer.
        sid: The guest's service.
        host: Where its configuration is.

    Returns:
        Whether its old run there is proven over, and the reason, for people.
    """
    service, agent = view.services.get(sid), view.agents.get(host)
    if service is None:
        return False, "HA does not manage it"
    words = f"HA has it as {service.state} on {service.host}"
    known = state.recovered.get(sid)
    if view.disarmed:
        return False, f"{words}, but HA is disarmed: no watchdog has reset {host}"
    if service.state == "recovery" and known is not None and (known.left, known.moved_to) == (host, None):
        return True, f"{words}: {host} is fenced, and its watchdog was armed"
    if service.state in {"started", "request_stop", "fence"} and _guards(state, sid, host):
        return False, f"{words}; fencing {host} takes HA two to three minutes"
    if agent is None or not agent.guards:
        mode = f"{agent.state}, {agent.mode}" if agent else "never seen"
        return False, f"{words}, but the agent of {host} (last {mode}) had no watchdog armed"
    return False, f"{words}, which proves nothing about {host}"


def moved_from(state: HaState, sid: str, host: str) -> Recovery | None:
    """Return the recovery that brought a guest to where its configuration is now; None where none did."""
    known = state.recovered.get(sid)
    return known if known is not None and known.moved_to == host else None


def _recovery(view: HaView, sid: str, guard: Guard, now_s: float, silent_s: float) -> Recovery | None:
    """Return the recovery that this answer shows of a guarded guest, if it shows one."""
    service = view.services.get(sid)
    if service is None:
        return None
    if service.host == guard.host:
        return Recovery(guard.host, None, now_s) if service.state == "recovery" else None
    # Off a host that is there, a service is migrated or relocated. Off one that is not, HA takes it only
    # after fencing; what was not seen of that must show in the silence of the host's agent.
    there = view.hosts.get(guard.host) in {"online", "maintenance"}
    if guard.fenced or (not there and silent_s >= WATCHDOG_S):
        return Recovery(guard.host, service.host, now_s)
    return None


def _kept(view: HaView, sid: str, guard: Guard) -> Guard | None:
    """Return the guard as it stands after this answer; None: it ended."""
    service, agent = view.services.get(sid), view.agents.get(guard.host)
    if service is None or view.disarmed or service.host != guard.host or service.state not in _UNDER_WAY:
        return None
    if service.state in {"fence", "recovery"}:
        # From here on the agent may write again: its host was reset, and has come back.
        return Guard(guard.host, fenced=True)
    if agent is None:
        return None
    return guard if agent.guards or (agent.leaves and _runs(sid, service, agent)) else None


def _begins(view: HaView, sid: str, service: Service) -> bool:
    """Whether a guest is guarded by what this answer alone says.

    An agent's last words outlive it, so that an agent of ours that starts during an incident knows too; and
    they count before a manager took them in, which may have been on the host that died.
    """
    agent = view.agents.get(service.host)
    if view.disarmed or agent is None or not agent.guards or sid not in agent.started.values():
        return False
    if service.state in {"fence", "recovery"}:
        # What it reports may be of long ago; and as it shuts down, it leaves alone what HA had let go of.
        return agent.mode == "active"
    return service.state == "started" and _runs(sid, service, agent)


def _runs(sid: str, service: Service, agent: Agent) -> bool:
    return service.running or agent.started.get(service.order) == sid


def _guards(state: HaState, sid: str, host: str) -> bool:
    return sid in state.guarded and state.guarded[sid].host == host
