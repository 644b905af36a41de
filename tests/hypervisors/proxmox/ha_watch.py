"""An agent that watches every guest of a recorded HA trace, through the adapter's parsers and core's ladder.

Every trace is replayed second by second through sweep, proof and fold of the adapter, and through core's
history and ladder. The node is silent all the time, so that nothing but the hypervisor's word decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from fencer.core.decide import decide
from fencer.core.history import remember
from fencer.core.model import (
    Binding,
    Candidate,
    Evidence,
    Fleet,
    GuestHistory,
    GuestRef,
    Intent,
    NodeView,
    Observation,
    PodView,
    PowerState,
    Proof,
    Verdict,
    Via,
)
from fencer.core.policy import Mode, Policy
from fencer.errors import HypervisorError, HypervisorUnreachable
from fencer.hypervisors.proxmox.look import Look, look_around
from fencer.hypervisors.proxmox.memory import Memory
from fencer.hypervisors.proxmox.proof import Prover
from fencer.hypervisors.proxmox.settings import ProxmoxSettings
from fencer.hypervisors.proxmox.sweep import Sweeper
from tests.hypervisors.proxmox.ha_api import TraceApi, uuid_of
from tests.hypervisors.proxmox.ha_trace import Trace, load, traces

FOLDER = traces()
NAMES = sorted(path.name for path in FOLDER.glob("*.jsonl") if path.stat().st_size)

POLICY = Policy(mode=Mode.ARMED)
SETTINGS = ProxmoxSettings("home", ("https://sim:8006",), "sim", "fencer@pve!agent", Path("unused"))
POD = PodView("db", "db-0", "1", "1", "Running")


@dataclass
class Confirmed:
    """The agent would fence: which proof, and how long after the guest's end."""

    sid: str
    at_s: int
    proof: Proof
    after_s: int | None


@dataclass
class Account:
    """What became of a trace.

    Attributes:
        confirmed: Fences that core would have done.
        recovered: Service and host → seconds from the host's loss of power to HA's proof of it.
        refused: Service → the last word about a guest whose host died, and that was neither of the two.
        premature: What must never be.
    """

    confirmed: list[Confirmed] = field(default_factory=list)
    recovered: dict[tuple[str, str], int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    premature: list[str] = field(default_factory=list)


@dataclass
class Watched:
    """One guest, as core knows it."""

    history: GuestHistory
    node: NodeView
    words: str = ""
    fenced: bool = False


class Watch:
    """An agent that watches all guests of a trace whose nodes are silent."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.account = trace, Account()
        self._memory = Memory()
        self._prover = Prover(SETTINGS, self._memory)
        self._sweeper = Sweeper(self._prover, timer=lambda: 0.0)
        self._api = TraceApi(trace)
        self._watched: dict[str, Watched] = {}

    def second(self) -> None:
        """Look at everything once."""
        now_s = float(self.trace.now_s)
        try:
            look = look_around(self._api, SETTINGS, now_s)
            swept = self._sweeper.sweep(look)
        except HypervisorUnreachable:
            return  # no quorum, or nobody there
        for evidence in swept:
            self._take_in(f"vm:{evidence.guest.id}", evidence, now_s)
        for sid in self.trace.guests:
            self._look_closely(sid, look, now_s)
        for sid, recovery in self._memory.ha.recovered.items():
            self._hold_recovery_against_truth(sid, recovery.left)

    def end(self) -> Account:
        """Add up."""
        for sid, host in sorted(self.trace.alive_when_lost):
            done = (
                any(it.sid == sid for it in self.account.confirmed) or (sid, host) in self.account.recovered
            )
            if not done:
                watched = self._watched.get(sid)
                self.account.refused[sid] = watched.words if watched else "never seen"
        return self.account

    def _look_closely(self, sid: str, look: Look, now_s: float) -> None:
        """Prove from the look of this second: another one would say the same."""
        vmid = sid.removeprefix("vm:")
        guest = GuestRef("home", vmid, uuid_of(int(vmid)), f"vm{vmid}")
        try:
            evidence = self._prover.prove(look, guest)
        except HypervisorError as error:
            if sid in self._watched:
                self._watched[sid].words = str(error)
            return
        watched = self._take_in(sid, evidence, now_s)
        watched.words = evidence.raw
        observation = Observation(
            node=watched.node,
            candidates=(Candidate(evidence.guest, Via.UUID),),
            evidence=evidence,
            history=watched.history,
            fleet=Fleet(nodes=10, silent=1),
            intent=Intent.WATCH,
            now_s=now_s,
            utc="2026-11-20T19:00:00Z",
            pods=(POD,),
            attachments=(),
            close=True,
        )
        off = decide(observation, POLICY).verdict is Verdict.FENCE
        if off and not watched.fenced:
            self._confirm(sid, evidence)
        watched.fenced = off

    def _take_in(self, sid: str, evidence: Evidence, now_s: float) -> Watched:
        watched = self._watched.setdefault(sid, Watched(GuestHistory(), node(evidence.guest)))
        host = evidence.guest.host
        if evidence.conclusive and evidence.power_state is PowerState.RUNNING and self._heard(host):
            watched.node = node(evidence.guest)  # the binding follows a guest whose node is heard
        watched.history = remember(watched.history, watched.node, evidence, now_s, POLICY.apart_s)
        return watched

    def _heard(self, host: str | None) -> bool:
        return host is not None and self.trace.hosts[host].there

    def _confirm(self, sid: str, evidence: Evidence) -> None:
        guest = self.trace.guests[sid]
        after_s = None if guest.ended_s is None else self.trace.now_s - guest.ended_s
        self.account.confirmed.append(Confirmed(sid, self.trace.now_s, evidence.proof, after_s))
        if guest.runs:
            hosts = ", ".join(guest.runs)
            self.account.premature.append(
                f"{self.trace.now_s} s: {sid} runs on {hosts}, and was confirmed off: {evidence.raw}"
            )

    def _hold_recovery_against_truth(self, sid: str, left: str) -> None:
        lost_s = self.trace.hosts[left].lost_power_s
        if (sid, left) not in self.account.recovered and sid in self.trace.guests:
            guest = self.trace.guests[sid]
            if left in guest.runs:
                self.account.premature.append(f"{self.trace.now_s} s: {sid} runs on {left}, called recovered")
            since_s = lost_s if lost_s is not None else guest.ended_s or 0
            self.account.recovered[sid, left] = self.trace.now_s - since_s


def node(guest: GuestRef) -> NodeView:
    """Return a silent node that is bound to a guest."""
    silent = NodeView(
        name=guest.name,
        uid=guest.id,
        system_uuid=guest.uuid,
        boot_id="b1",
        ready=None,
        version="1",
        binding=Binding(guest, ("b1",)),
    )
    return replace(silent, not_ready_s=1000.0, lease_age_s=1000.0)


@cache
def play(name: str, *, by_hand: bool = False) -> tuple[Trace, Account]:
    """Replay one trace to its end, once for all tests."""
    trace = load(FOLDER / name, by_hand=by_hand)
    watch = Watch(trace)
    for second in range(trace.ends_s + 1):
        trace.play(second)
        watch.second()
    return trace, watch.end()
