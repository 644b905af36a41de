"""The promise, asked of the truth: nothing is given away, and nobody is cut off, who still lives.

An independent witness of what agents do. It knows neither evidence nor rules, only the world as it is; and it
stands between agents and ports, and watches what becomes of the objects, so that nothing is done unseen.

*Given away* is what ran in a memory that still is anywhere. So a guest that was dead and boots again while a
fence is on its way has lost nothing: what ran in it has ended, until its kubelet starts something again. And
nobody could know of memory that is brought back, from a snapshot, since its agent last looked at that guest
live, a moment ago: that is counted as *overtaken*, and its writers as those of any revenant.
So is a guest that boots again, and starts what was to run on its node before anybody hears of it.

Memory that is *outdated* counts as no node's: see `fencer.simulation.datacenter`. Nor does a VM that another
tool has started at an endpoint that the agent does not know, until its kubelet was alive for long enough.

*Two running copies* of one disk are a breach if fencer starts one of them (an agent, or a command) and could
see the other. If another tool starts it, they are counted, and are no breach.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from fencer.core import pause
from fencer.core.annotations import CORDON, PAUSE, read_cordon
from fencer.core.cordon import AFTER_FENCE
from fencer.core.maintenance import window_for
from fencer.core.model import (
    OUT_OF_SERVICE,
    Cordon,
    GuestRef,
    PodView,
    PowerState,
    Taint,
)
from fencer.core.policy import (
    SEEMS_KILLED_S,
    AfterStop,
    PausedGuest,
    Policy,
    Remediation,
    ResumedGuest,
    SavedGuest,
    UnresponsiveGuest,
)
from fencer.core.requests import Progress, Request, Strategy
from fencer.core.times import Moment
from fencer.ports import Hypervisor
from fencer.simulation.agent_machine import NTP_S
from fencer.simulation.assembly import Simulation
from fencer.simulation.boots import Boots
from fencer.simulation.commanded import Commanded
from fencer.simulation.commands import Typed
from fencer.simulation.datacenter import ALIVE
from fencer.simulation.deceptions import gives_away_s
from fencer.simulation.guests import NO_ENDPOINT, PROCESS_KEPT, Guest
from fencer.simulation.hypervisor import Trouble
from fencer.simulation.lifts import Lifts
from fencer.simulation.objects import ApiAttachment, ApiNode, ApiObject
from fencer.simulation.own_clock import OwnClock
from fencer.simulation.watched import Actor, WatchedCluster, WatchedHypervisor

CALLS_ON_THEIR_WAY = 3
"""So many calls to a slow API may lie between what was read and what it led to."""

HEARD_LATE_S = 60.0
"""How late a renewal may still be heard of, through lists that lag."""

LEASE_DURATION_S = 40.0
"""Whose lease is younger lives.

Source: kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go, NodeLeaseDurationSeconds.
"""

WHOLE_SECONDS_S = 2.0
"""How exact times are by the API server's clock, which counts whole seconds: one at each end."""

CALLS_OF_A_LIFT = 4
"""So many answers lie between the look that a cordon is dated by, and its write."""

LOOKS_UNTIL_SHOWN = 3
"""So many looks of a kubelet at its status after it runs again, memory from before shows itself."""

LOOKS_THAT_SHOW = 3
"""So many looks at a kubelet that is alive while its VM is off show that it runs elsewhere (D5)."""

A_MOMENT_S = 0.01
"""Times are added up from parts."""

YOUNG_S = 3600.0
"""A fence counts against the brake for an hour."""


_LIVES = frozenset({PowerState.RUNNING, PowerState.SAVED})


def _states_of_life(*, trusts: bool) -> frozenset[PowerState]:
    """Return in which states a VM has memory that may write; not paused, where the operator trusts that."""
    return _LIVES if trusts else _LIVES | {PowerState.PAUSED}


class Breach(AssertionError):
    """The promise was broken, whether or not two guests came to write because of it."""


class Truth:
    """Watches what is done in a world.

    Args:
        simulation: The world.
        policy: What the operator has set, for agents of which nothing else is known.
        strict: A breach raises; otherwise it is told and counted.
    """

    def __init__(self, simulation: Simulation, policy: Policy, *, strict: bool) -> None:
        self.breaches = 0
        self.overtaken = 0
        """Memory was brought back while the taint was on its way, and so nobody could know."""
        self.unseen_copies = 0
        """What fencer did beside a VM that runs from the same disk, and that it could not see."""
        self._simulation, self._strict, self._usual_policy = simulation, strict, policy
        self._trusted = policy.paused_guest is PausedGuest.TRUST
        """Some agent takes a paused guest for gone."""
        self.returns: list[Return] = []
        """Each lift of a fence by an agent."""
        self.taken_for_gone: set[str] = set()
        """Guests that were fenced while they were paused, by ``paused_guest: trust``."""
        self._at_first, self._acting = len(simulation.api.nodes), False
        late_s = policy.evidence_max_age_s + CALLS_ON_THEIR_WAY * simulation.shape.call_s
        self.commanded = Commanded(simulation, self._breach, late_s)
        """What commands do."""
        self._actor: Actor | None = None
        """Whose doing it is, what is just done."""
        self._ordered: dict[tuple[str, str, str], Actor] = {}
        """Guest → who gave it its last order."""
        self.heard: dict[str, datetime] = {}
        """Node → when it was last heard before it was tainted."""
        self._ours: dict[str, float] = {}
        """Node → when it was tainted by an agent."""
        self._taken_off_s: dict[str, float] = {}
        """Node that an agent had tainted → when someone else took the taint off."""
        self._fenced: set[str] = set()
        """Nodes that an agent ever tainted."""
        self._died_with: dict[str, tuple[str, bool]] = {}
        """Node that an agent tainted → the host with which its guest had died, empty: by itself; and whether
        that was still dead."""
        self._was_alive: dict[str, bool] = {}
        self._runs_since_s = dict.fromkeys(simulation.world.guests, -math.inf)
        self._paused_since_s: dict[str, float] = {}
        self._last_cut_s = -math.inf
        self._cuts: dict[str, _Cut] = {}
        """Guest → its run that an agent ended by cutting its power."""
        self._back_s: dict[str, float] = {}
        """Guest → when its memory came to be, or came back."""
        self._lifted_s: dict[str, float] = {}
        """Node → when an agent lifted its fence, and cordoned it."""
        self.boots, self._lifts = Boots(simulation), Lifts(simulation)
        self._off_since_s, self._called_off = dict[str, float](), set[str]()
        """Guest → since when it is off; and guests that their hypervisors had called off before."""
        self._record: dict[str, frozenset[str]] = {}
        """Node that an agent tainted → UIDs of its pods and attachments at that time."""
        self._nodes = {name: _seen(node) for name, node in simulation.api.nodes.items()}
        simulation.requests.on_answer.append(self._answered)
        for hypervisor in simulation.hypervisors.values():
            hypervisor.on_stop.append(self._stopped)
        simulation.world.on_power.append(self._note_power)
        simulation.api.watchers.append(self._changed)

    def gone(self, node: str) -> bool:
        """Whether no machine that was this node can run on: nothing of its memory is anywhere."""
        return not self._living(node)

    def runs_since_s(self, node: str) -> float:
        """Return when a node's guest began to run as it does; minus infinity: it always did, or does not."""
        guests = (guest for guest in self._simulation.world.guests.values() if guest.node == node)
        return max((self._runs_since_s.get(guest.name, -math.inf) for guest in guests), default=-math.inf)

    def listed(self, actor: Actor) -> None:
        """Take note that an agent has read all nodes."""
        if not actor.observes:
            self.boots.looks_s.append(self.now_s)

    def swept(self, endpoint: str, actor: Actor) -> None:
        """Take note of the VMs of an endpoint that an agent has just read running, with living kubelets."""
        if actor.observes:
            return
        for guest in self._simulation.world.guests.values():
            if guest.endpoint == endpoint and self._simulation.heard(guest):
                renewed_s = self._simulation.api.nodes[guest.node].renewed_s
                first_s = actor.renewals.setdefault((guest.name, guest.boot_id), renewed_s)
                renew_s = self._simulation.timing_of(guest.node).renew_s
                if renewed_s - first_s >= gives_away_s(self._simulation.shape, renew_s):
                    self.boots.seen_alive.add(guest.name)

    def ports(
        self,
        holder: str,
        own: OwnClock | None = None,
        *,
        policy: Policy | None = None,
        typed: Typed | None = None,
        knows: Collection[str] | None = None,
    ) -> tuple[object, dict[str, Hypervisor]]:
        """Return the ports of one agent, watched: what it changes, and when it last looked at each guest.

        Args:
            holder: Who it is on a Lease; empty: a person's command, which needs none.
            own: Its machine's clocks; None: they are the world's.
            policy: How it is set; None: as all are.
            typed: It is a person's command, and may start the VM of any node.
            knows: The endpoints in its configuration; None: all.
        """
        clock, hypervisors = self._simulation.clock, self._simulation.hypervisors
        known = frozenset(hypervisors if knows is None else knows)
        actor = Actor(own or OwnClock(clock), known, policy or self._usual_policy, typed)
        self._trusted |= actor.policy.paused_guest is PausedGuest.TRUST

        def looked(guest: GuestRef) -> None:
            actor.looks[guest.name] = clock.now_s()

        def orders(ref: GuestRef) -> None:
            self._ordered[ref.key] = actor
            guest = next(one for one in self._simulation.world.guests.values() if one.ref.key == ref.key)
            self._hold_against_strangers(guest, actor.knows)
            if actor.observes:
                self._breach(ref.name, "an agent that only observes gives an order about its guest")
            held_by = self._simulation.leases.holder_of(self._simulation.lease_of(ref.endpoint))
            # excuse: a power order without the Lease, less than 10 s after the clocks of the VM that an agent
            #   runs in stood still, or were set back to a snapshot: by its own clock it holds the Lease
            if holder and held_by != holder and not actor.went_on_lately(clock.now_s()):
                self._breach(
                    guest.node, f"{holder} gives an order, and {held_by or 'nobody'} holds the Lease"
                )

        watched = {
            name: WatchedHypervisor(self, actor, port, looked, orders) for name, port in hypervisors.items()
        }
        cluster = WatchedCluster(self, actor, self._simulation.cluster)
        return cluster, cast("dict[str, Hypervisor]", watched)

    def started(self, ref: GuestRef, actor: Actor) -> None:
        """Take note of a guest that was started."""
        for guest in self._simulation.world.guests.values():
            if guest.ref.key != ref.key:
                continue
            self._hold_against_copies(guest, actor.knows)
            begun = actor.typed is not None  # a person knows of the window (C2a)
            self._hold_against_hands_off(guest.node, "its guest is started", begun=begun)
            if actor.typed is not None:
                continue
            if not self._was_cut(guest, guest.starts - 1):
                self._breach(guest.node, "its guest is started, and it was no agent that had stopped it")
            if actor.policy.after_stop is not AfterStop.START:
                self._breach(guest.node, "its guest is started, and nobody asked for that")

    @contextmanager
    def acting(self, actor: Actor) -> Iterator[None]:
        """What changes now is the doing of an agent."""
        self._acting, self._actor = True, actor
        try:
            with self.commanded.doing(actor.typed):
                yield
        finally:
            self._acting, self._actor = False, None

    def fenced(self, node: str) -> bool:
        """Whether the fence that stands on a node is fencer's."""
        return node in self._ours

    def asked_off(self, ref: GuestRef) -> None:
        """Take note of a VM that is asked to shut down."""
        guest = next(one for one in self._simulation.world.guests.values() if one.ref.key == ref.key)
        self.commanded.asks_off(guest)
        self._hold_against_hands_off(guest.node, "its VM is asked to shut down", begun=False)

    def cleared(self, pod: PodView) -> None:
        """Take note of a pod that is about to be cleared."""
        found = self._simulation.api.pods.get(pod.uid)
        if found is None:
            return
        if found.tolerates_out_of_service or found.mirror:
            self._breach(found.node or "", f"{pod} is cleared, which stays")
        if found.node is not None:
            self._hold_against_hands_off(found.node, f"{pod} is cleared", begun=True)
            self._hold_against_others(found.node, f"{pod} is cleared", begun=True)
            self._given_away(found.node, f"{pod} is cleared")
            # excuse: a pod is cleared of a node whose taint someone else took off less long ago than a
            #   reading may be old, and three calls take
            taken_off_s = self._taken_off_s.get(found.node, -math.inf)
            if found.node not in self._ours and self.now_s - taken_off_s > self._on_its_way_s:
                self._breach(found.node, f"{pod} is cleared, and its node was not fenced")

    @property
    def _policy(self) -> Policy:
        """Of the agent that acts now."""
        return self._usual_policy if self._actor is None else self._actor.policy

    @property
    def _answer_s(self) -> float:
        """How old an answer may be to be acted upon."""
        return self._policy.evidence_max_age_s

    def discards(self, ref: GuestRef) -> Guest:
        """Take note of a guest whose saved memory is about to be thrown away. Returns that guest."""
        guest = next(one for one in self._simulation.world.guests.values() if one.ref.key == ref.key)
        self._actor = self._ordered.get(ref.key)
        if self._policy.saved_guest is not SavedGuest.DISCARD:
            self._breach(guest.node, "its saved memory is thrown away, and nobody asked for that")
        self._hold_against_hands_off(guest.node, "its saved memory is thrown away", begun=False)
        self._hold_against_others(guest.node, "its saved memory is thrown away", begun=False)
        self._actor = None
        return guest

    def discarded(self, guest: Guest) -> None:
        """Take note that it is thrown away."""
        self._actor = self._ordered.get(guest.ref.key)
        self._hold_against_window(guest)
        self._actor = None

    def _stopped(self, guest: Guest) -> None:
        self._actor = self._ordered.get(guest.ref.key)
        self.cut_off(guest)
        self._hold_against_window(guest)
        self._actor = None

    def cut_off(self, guest: Guest) -> None:
        """Take note of a guest whose power is being cut by an agent, at the moment in which it is.

        Under a fence of ours old memory may be wanted off (``resumed_guest``), and no boot since.
        Nor could anybody know of one that was resumed, or heard again, while the order was on its way.
        """
        # also one whose memory is just being brought back: it will not be
        if guest.power in ALIVE or guest.process_left:
            self._cuts[guest.name] = _Cut(guest.starts, self._actor)
        node, now_s = self._simulation.api.nodes.get(guest.node), self._simulation.clock.now_s()
        self._hold_against_hands_off(guest.node, "its guest is stopped", begun=False)
        self._hold_against_quorum(guest)
        old = guest.revenant or not guest.cold
        if guest.node not in self._ours:
            self._hold_against_others(guest.node, "its guest is stopped", begun=False)
        if self.commanded.cuts(guest) or node is None:
            return
        if old and guest.node in self._ours:
            if self._policy.resumed_guest is not ResumedGuest.STOP:
                self._breach(guest.node, "its guest is stopped under its fence, which nobody asked for")
            return
        if guest.stands_still:
            self._hold_against_pause(guest)
        heard_since_s = max(node.ready_since_s, node.heard_since_s)
        known_s = now_s - max(self._runs_since_s.get(guest.name, -math.inf), heard_since_s)
        # excuse: the power of a VM is cut that was resumed, or whose kubelet is alive again, less than
        #   `evidence_max_age_s` ago
        if guest.power is not PowerState.RUNNING or known_s < self._answer_s:
            return
        if self._simulation.heard(guest):
            self._breach_late(guest.node, "its guest is stopped, which runs and is heard")
        elif now_s - node.renewed_s < self._policy.unresponsive_after_s - self._answer_s:
            self._breach_late(guest.node, "its guest is stopped, which runs and was heard lately")
        else:
            self._hold_against_policy(guest)

    def _hold_against_quorum(self, guest: Guest) -> None:
        """No control plane loses its majority by a power-off: members run, or did a moment ago (C8)."""
        members = [name for name in self._simulation.shape.members if name in self._simulation.api.nodes]
        if guest.node not in members:
            return
        others = [self._simulation.nodes[name].guest for name in members if name != guest.node]
        lately_s = self.now_s - self._on_its_way_s
        up = sum(self._off_since_s.get(one.name, math.inf) >= lately_s for one in others)
        if up < len(members) // 2 + 1:
            self._breach(guest.node, f"its guest is stopped, and {up} of {len(members)} members are left")

    def _hold_against_pause(self, guest: Guest) -> None:
        """A guest that is paused is stopped where the operator wants that, once it is for long enough.

        By hand the time of a confirmation is enough (M1).
        """
        state = "paused" if guest.power is PowerState.PAUSED else "off with its process left"
        if self._policy.paused_guest is not PausedGuest.STOP:
            self._breach(guest.node, f"its guest is stopped, which is {state}, and nobody asked for that")
        paused_s = self._simulation.clock.now_s() - self._paused_since_s.get(guest.name, -math.inf)
        by_hand = self._actor is not None and self._actor.typed is not None
        limit_s = self._policy.confirm_s if by_hand else self._policy.paused_for_s
        if guest.passage is PROCESS_KEPT:
            self._breach_late(guest.node, "its process is stopped, which a backup keeps")
        elif paused_s < limit_s:
            text = f"its guest is stopped, which was {state} for {paused_s:.0f} s only"
            self._breach_late(guest.node, text)

    def _changed(self, obj: ApiObject) -> None:
        """Judge what has become of an object, if an agent has done that."""
        if self._acting and self._actor is not None and self._actor.observes:
            name = obj.name if isinstance(obj, ApiNode) else obj.node or ""
            self._breach(name, "it is changed by an agent that only observes")
        if isinstance(obj, ApiNode):
            was, now = self._nodes.get(obj.name), _seen(obj)
            self._nodes[obj.name] = now
            if was != now:
                self.commanded.changes(obj.name)
            if was is None or was.uid != now.uid:
                self._ours.pop(obj.name, None)
            elif self._acting:
                self._judge(obj.name, was, now)
            elif was.tainted and not now.tainted:
                self._ours.pop(obj.name, None)
                self._taken_off_s[obj.name] = self.now_s
        elif isinstance(obj, ApiAttachment) and self._acting:
            left = (obj.volume, obj.node) not in self._simulation.api.attachments
            if left and obj.node in self._simulation.api.nodes:
                self._breach(obj.node, f"the attachment of {obj.volume} is deleted, and its node is there")
            elif left:
                self._given_away(obj.node, f"{obj.volume} is torn off")

    def _judge(self, name: str, was: _Seen, now: _Seen) -> None:
        if now.others != was.others:
            self._breach(name, "a taint is changed that is none of ours")
        if now.tainted and not was.tainted:
            self._judge_fence(name)
        elif was.tainted and not now.tainted and name not in self._ours:
            self._breach(name, "a taint is lifted that fencer did not set")
        elif was.tainted and not now.tainted:
            note = read_cordon(self._simulation.api.nodes[name].annotations.get(CORDON))
            ours = now.cordoner == "fencer" and isinstance(note, Cordon) and note.by == AFTER_FENCE
            self._judge_lift(name, cordons=now.cordoned and ours)
        if now.cordoned and not was.cordoned:
            self.commanded.cordons(name)
        if was.cordoned and not now.cordoned and was.cordoner == "fencer":
            if name in self._lifted_s:
                self._hold_against_hands_off(name, "its cordon is lifted", begun=True)
            self._hold_against_haste(name)
        if was.cordoned and not now.cordoned and was.cordoner != "fencer":
            self._breach(name, f"a cordon is lifted that {was.cordoner or 'somebody else'} set")

    def _judge_fence(self, name: str) -> None:
        self._ours[name], self._died_with[name] = (
            self._simulation.clock.now_s(),
            self._died_with_host(name),
        )
        self._fenced.add(name)
        self._given_away(name, "tainted")
        self._note_trusted(name)
        guests = [one for one in self._simulation.world.guests.values() if one.node == name]
        self._record[name] = self._held_by(name)
        self._lifts.fenced(name, self._on_its_way_s)
        self.boots.fenced(name, guests)
        stopped = any(self._was_cut(guest, guest.starts) for guest in guests)
        self._hold_against_hands_off(name, "tainted", begun=stopped)
        self._hold_against_others(name, "tainted", begun=False)
        self._hold_against_sign_of_life(name)
        self._hold_against_short_ends(name)
        self._hold_against_silence(name)
        self._hold_against_brake(name)

    def _judge_lift(self, name: str, *, cordons: bool) -> None:
        if cordons:
            self._lifted_s[name] = self._simulation.clock.now_s()
        self._hold_against_hands_off(name, "its fence is lifted", begun=True)
        fenced_s = self._ours.pop(name)
        began_s, since_s = self._simulation.timeline.began_s, max(fenced_s, self.runs_since_s(name))
        self.returns.append(Return(name, since_s - began_s, self.now_s - began_s))
        self._hold_against_old_memory(name, fenced_s)
        self._hold_against_death(name, fenced_s)
        for text in self._lifts.objections(name, fenced_s, self._policy, self._on_its_way_s):
            self._breach(name, text)
        self._take_in_copies(name)

    def _take_in_copies(self, name: str) -> None:
        """From now on a VM counts as the node again that could not be seen when that was fenced."""
        for guest in self._simulation.world.guests.values():
            if guest.node == name and guest.endpoint != NO_ENDPOINT and guest.power is PowerState.RUNNING:
                guest.outdated = False

    def _note_trusted(self, name: str) -> None:
        """A paused guest was taken for gone, as the operator has it."""
        if self._policy.paused_guest is PausedGuest.TRUST:
            paused = (one for one in self._simulation.world.guests.values() if one.power is PowerState.PAUSED)
            self.taken_for_gone |= {guest.name for guest in paused if guest.node == name}

    def _hold_against_death(self, name: str, fenced_s: float) -> None:
        """No fence is lifted whose guest was off when it was fenced, and has not run since."""
        guests = [guest for guest in self._simulation.world.guests.values() if guest.node == name]
        off_s = max((self._off_since_s.get(guest.name, math.inf) for guest in guests), default=math.inf)
        if off_s < fenced_s:
            self._breach(name, "its fence is lifted, and its guest has not run since")

    def _hold_against_haste(self, name: str) -> None:
        """After a fence a node stays cordoned until caches have settled."""
        lifted_s = self._lifted_s.pop(name, -math.inf)
        ago_s = self.now_s - lifted_s
        # excuse: a cordon is lifted sooner than `settle_s`, by as long as a reading may be old: the note on
        #   it has the time of the look; or it was set while the clock of the machine that the agent runs in
        #   was wrong, and perhaps that of the API server, too
        written_s = max(CALLS_OF_A_LIFT * self._simulation.shape.call_s, self._policy.evidence_max_age_s)
        wrong = self._actor is not None and 0 <= lifted_s - self._actor.own.went_on_s < NTP_S
        if not wrong and ago_s < self._policy.settle_s - WHOLE_SECONDS_S - written_s:
            self._breach(name, f"its cordon is lifted {ago_s:.1f} s after its fence")

    @property
    def _on_its_way_s(self) -> float:
        """How old a word of a person or controller may be: it is read, a slot reserved, the taint set."""
        # excuse: a pause, a window or the word of another controller is not heeded that is younger than a
        #   reading may be, and three calls take
        return self._answer_s + CALLS_ON_THEIR_WAY * self._simulation.shape.call_s

    def _hold_against_hands_off(self, name: str, how: str, *, begun: bool) -> None:
        """While people keep fencer's hands off, nothing is done; and in a window nothing is begun."""
        now_s = self._simulation.clock.now_s()
        nodes = self._simulation.api.nodes
        for (node, annotation), since_s in self._simulation.api.held_since_s.items():
            if self._is_over(node):
                continue
            stands = not node or (node == name and node in nodes and annotation in nodes[node].annotations)
            if stands and now_s - since_s > self._on_its_way_s:
                self._breach_late(name, f"{how}, and since {now_s - since_s:.0f} s ago there is {annotation}")
        before = self._simulation.clock.utc_in(-self._on_its_way_s)
        windows = (before, self._simulation.clock.utc())
        if self.commanded.typed is not None:  # a person knows of the window (C2a)
            return
        if not begun and all(window_for(name, self._policy.maintenance, Moment(utc, utc)) for utc in windows):
            self._breach_late(name, f"{how}, and a maintenance window is open")

    def _is_over(self, node: str) -> bool:
        """Whether the pause of a node, or of the cluster, has an end that has passed."""
        api = self._simulation.api
        found = api.nodes.get(node)
        text = api.paused_why if not node else found and found.annotations.get(PAUSE)
        note = pause.read(text or None)
        return note is not None and note.over(api.clock.utc())

    def _hold_against_brake(self, name: str) -> None:
        """Count the fences that stand and are young, of nodes that there are, and whose guests there are.

        All that died with one host count once; and not all hosts may die. A person may go over it.
        """
        if self.commanded.over_brake:
            return
        now_s, nodes, machines = (
            self._simulation.clock.now_s(),
            self._simulation.api.nodes,
            self._simulation.nodes,
        )
        young = [
            node
            for node, at_s in self._ours.items()
            if node in nodes
            and now_s - at_s < YOUNG_S
            and machines[node].guest.power is not PowerState.ABSENT
        ]
        died_with = [self._died_with.get(node, ("", False)) for node in young]
        hosts = {host for host, _ in died_with if host}
        used = len(hosts) + sum(not host for host, _ in died_with)
        limit = self._policy.brake_at(max(self._at_first, len(nodes)))  # more nodes may have joined
        if used > limit:
            self._breach_late(name, f"the brake is at {limit}, and this is fence {used}")
        listed = (one.guest for one in machines.values() if one.guest.endpoint != NO_ENDPOINT)
        all_hosts = {guest.host for guest in listed} | hosts
        dead = {host for host, still in died_with if still}
        if len(dead) > self._policy.brake_at_hosts(len(all_hosts)):
            self._breach_late(name, f"{len(dead)} of {len(all_hosts)} hosts have died by these fences")

    def _died_with_host(self, name: str) -> tuple[str, bool]:
        """Return the host with which a node's guest has died, and whether that is dead; see `_died_with`."""
        guest = self._simulation.nodes[name].guest
        if guest.recovered:
            return guest.came_from[-1], True
        # excuse: VMs that died with their host count once for the brake, too, if that was powered on again
        #   less long ago than a reading may be old, and three calls take
        world = self._simulation.world
        back_s = world.revived_s.get(guest.host, -math.inf)
        just_back = guest.power is PowerState.STOPPED and self.now_s - back_s <= self._on_its_way_s
        dead = guest.host in world.dead_hosts
        return guest.host if dead or just_back else "", dead

    def _held_by(self, name: str) -> frozenset[str]:
        """Return the UIDs of the pods on a node that are not over, and of its attachments that stay."""
        api = self._simulation.api
        pods = (pod.uid for pod in api.pods_on(name) if not pod.mirror and not pod.over)
        held = (one.uid for one in api.attachments.values() if one.node == name and not one.terminating)
        return frozenset((*pods, *held))

    def _hold_against_old_memory(self, name: str, fenced_s: float) -> None:
        """No fence is lifted while memory from before it runs and is heard, if anything was given away."""
        lost = self._record.get(name, frozenset()) - self._held_by(name)
        shows_s = LOOKS_UNTIL_SHOWN * self._simulation.timing_of(name).renew_s
        known_s = self._simulation.clock.now_s() - shows_s
        for guest in self._simulation.world.guests.values():
            old = guest.node == name and self.boots.from_before(guest) and not guest.outdated
            since_s = max(self._runs_since_s.get(guest.name, math.inf), fenced_s)
            shown_s = max(since_s, self.boots.shown_since_s(name, guest.boot_id))
            known = since_s < known_s or shown_s < self.now_s - self._on_its_way_s
            if old and lost and guest.running() and self._simulation.heard(guest) and known:
                away = f"{len(lost)} of what it was about were given away"
                self._breach(name, f"its fence is lifted, {away}, and {guest.name} runs with old memory")

    def _hold_against_strangers(self, guest: Guest, knows: Collection[str]) -> None:
        """Orders are given only to VMs that were admitted and are nodes': no copies, and no other VMs."""
        if not guest.node and self._is_left_behind(guest, knows):
            self.unseen_copies += 1
        elif not guest.node:
            self._breach(guest.name, "it is given an order, and is no node's VM")
        elif not self._simulation.admits(guest):
            self._breach(guest.node, "its VM is given an order, and power actions on it are not admitted")

    def _is_left_behind(self, guest: Guest, knows: Collection[str]) -> bool:
        """Whether a node's VM was moved from there to where the agent can't see it."""
        # excuse: an order to what is left of a VM that was moved cold to an endpoint that the agent does not
        #   know, unless its kubelet is alive there for long
        moved = [one for one in self._simulation.world.copies_of(guest) if one.node]
        seen = any(self._can_be_seen(one, knows) or self._is_alive_for_long(one) for one in moved)
        return bool(moved) and not seen

    def _hold_against_copies(self, guest: Guest, knows: Collection[str]) -> None:
        """No VM is started by fencer while another one runs from its disk, or has memory that may run on."""
        for copy in self._simulation.world.copies_of(guest):
            if copy.power not in ALIVE:
                continue
            # excuse: fencer starts a VM beside a copy of its disk whose endpoint is not known to that agent
            #   or is in trouble, or that has only just begun to run, unless its kubelet is alive for long
            if not self._can_be_seen(copy, knows) and not self._is_alive_for_long(copy):
                self.unseen_copies += 1
                continue
            self._breach_late(
                guest.node, f"{guest.name} is started, and {copy.name}, of the same disk, is {copy.power}"
            )

    def _can_be_seen(self, guest: Guest, knows: Collection[str]) -> bool:
        """Whether its endpoint is known and answers, and it has not just begun to run."""
        since_s = self._runs_since_s.get(guest.name, -math.inf)
        just_begun = self._simulation.clock.now_s() - since_s < self._on_its_way_s
        hypervisor = self._simulation.hypervisors.get(guest.endpoint)
        answers = hypervisor is not None and hypervisor.trouble == Trouble()
        return guest.endpoint in knows and answers and not just_begun

    def _is_alive_for_long(self, guest: Guest) -> bool:
        """Whether a VM's kubelet is alive, and was for so long that each agent has heard it (S11)."""
        runs_s = self.now_s - self._runs_since_s.get(guest.name, -math.inf)
        renew_s = self._simulation.timing_of(guest.node).renew_s
        return self._simulation.heard(guest) and runs_s >= gives_away_s(self._simulation.shape, renew_s)

    def _hold_against_window(self, guest: Guest) -> None:
        """However many agents there are, they end one guest at a time; but old memory at once."""
        now_s = self._simulation.clock.now_s()
        ago_s, self._last_cut_s = now_s - self._last_cut_s, now_s
        wanted = self.commanded.wants_off(guest) or self.commanded.over_brake
        young = ago_s < self._policy.power_window_s - WHOLE_SECONDS_S
        if young and guest.node not in self._ours and not wanted:
            self._breach_late(guest.node, f"its guest is stopped {ago_s:.1f} s after another one")

    def _hold_against_sign_of_life(self, name: str) -> None:
        """An agent fences no node whose kubelet was alive lately: less long ago than the policy asks for."""
        silent_s = self.now_s - self._simulation.api.nodes[name].renewed_s
        limit_s = self._policy.lease_silent_s
        if self.commanded.typed is None and silent_s < limit_s - self._on_its_way_s:
            self._breach_late(name, f"tainted, and its kubelet was alive {silent_s:.0f} s ago")

    def _hold_against_short_ends(self, name: str) -> None:
        """No node is fenced whose VM has just ended: less long ago than the policy asks for (G6)."""
        if self.commanded.typed is not None and self.commanded.typed.says("--confirm-guest-off"):
            return
        for guest in self._simulation.machines_of(name):
            if guest.process_left and self._actor is not None and guest.endpoint in self._actor.knows:
                self._breach_late(name, f"tainted, and the process of {guest.name} is left")
            paused = guest.power is PowerState.PAUSED
            limit_s = self._policy.paused_for_s if paused else self._policy.confirm_s
            limit_s = max(limit_s, self._may_be_killed(guest) * self._policy.killed_hold_s)
            off_s = self.now_s - self._off_since_s.get(guest.name, -math.inf)
            # excuse: a fence sooner than `confirm_s` after a VM has ended that its hypervisor called off
            #   before, or that runs where that agent does not look
            seen = self._actor is not None and guest.endpoint in self._actor.knows
            if seen and guest.name not in self._called_off and off_s < limit_s - A_MOMENT_S:
                self._breach(name, f"tainted, and {guest.name} is off for {off_s:.1f} s only")

    def _was_cut(self, guest: Guest, run: int) -> bool:
        """Whether an agent has ended a run of a VM by cutting its power."""
        cut = self._cuts.get(guest.name)
        return cut is not None and cut.run == run

    def _may_be_killed(self, guest: Guest) -> bool:
        """Whether an agent has stopped a VM so slowly that it was killed, or another agent has stopped it."""
        cut = self._cuts.get(guest.name)
        if cut is None or cut.run != guest.starts or cut.actor is None or cut.actor.typed is not None:
            return False
        return cut.actor is not self._actor or cut.took_s >= SEEMS_KILLED_S

    def stop_ended(self, ref: GuestRef, took_s: float) -> None:
        """Take note of how long the power-off of a VM took."""
        for guest in self._simulation.world.guests.values():
            if guest.ref.key == ref.key and self._was_cut(guest, guest.starts):
                self._cuts[guest.name].took_s = took_s

    def _hold_against_silence(self, name: str) -> None:
        """While nobody at all is heard, the path to the nodes is the suspect, and nobody is fenced."""
        if self.commanded.over_brake:
            return
        heard_s = max(node.renewed_s for node in self._simulation.api.nodes.values())
        silent_s = self._simulation.clock.now_s() - heard_s
        limit_s = self._policy.lease_silent_s or LEASE_DURATION_S
        # excuse: a fence while all nodes are silent, for less than 60 s longer than asked for
        if silent_s > limit_s + HEARD_LATE_S:
            self._breach_late(name, f"tainted, and no node at all was heard for {silent_s:.0f} s")

    def _hold_against_policy(self, guest: Guest) -> None:
        """A guest that runs is stopped where the operator wants that, or where somebody asks for it."""
        request = self._simulation.requests.about(guest.node)
        heard = self._policy.remediation is Remediation.STOP
        asked = heard and request is not None and request.strategy is Strategy.STOP
        if self._policy.unresponsive_guest is not UnresponsiveGuest.STOP and not asked:
            self._breach(guest.node, "its guest is stopped, which runs, and nobody asked for that")

    def _hold_against_others(self, name: str, how: str, *, begun: bool) -> None:
        """Nothing is done for whoever gave it up, and nothing is begun where others work unasked."""
        if self._policy.remediation is Remediation.IGNORE or self.commanded.typed is not None:
            return
        requests, now_s = self._simulation.requests, self._simulation.clock.now_s()
        given_up_s, reserved_s = requests.given_up_s.get(name), requests.reserved_s.get(name)
        if given_up_s is not None and reserved_s is not None and now_s - given_up_s > self._on_its_way_s:
            self._breach_late(name, f"{how}, and whoever asked for it has given that up")
        unasked = not begun and requests.about(name) is None
        if unasked and reserved_s is not None and now_s - reserved_s > self._on_its_way_s:
            self._breach_late(name, f"{how}, and somebody else works on it")

    def _answered(self, request: Request, progress: Progress) -> None:
        """Whoever asked is told that it is done only once it is, and no only where it is not."""
        node = self._simulation.api.nodes.get(request.node)
        if progress.succeeded and request.node not in self._fenced:
            self._breach(request.node, "whoever asked is told that it is done, and it never was fenced")
        fenced_s = self._ours.get(request.node, math.inf) if node is not None else math.inf
        stands = self._simulation.clock.now_s() - fenced_s > self._answer_s
        if progress.succeeded is False and stands and not request.given_up:
            self._breach(request.node, "whoever asked is told no, and it is fenced")

    def _note_power(self, guest: Guest) -> None:
        self.commanded.changes(guest.node)
        for twin in self._twins_of(guest):  # it may start, and what was plain stays so
            if self._gives_itself_away(twin, [guest]):
                self.boots.exposed_s[twin.name] = self.now_s
        alive = guest.power in _states_of_life(trusts=self._trusted)
        if guest.power is not PowerState.RUNNING:
            self._runs_since_s.pop(guest.name, None)
        else:
            self._runs_since_s.setdefault(guest.name, self._simulation.clock.now_s())
        if guest.power is PowerState.PAUSED or guest.process_left:
            self._paused_since_s.setdefault(guest.name, self._simulation.clock.now_s())
        else:
            self._paused_since_s.pop(guest.name, None)
        if alive:
            self._off_since_s.pop(guest.name, None)
            self._called_off.discard(guest.name)
        elif guest.name not in self._off_since_s:
            self._off_since_s[guest.name] = self.now_s
            hypervisor = self._simulation.hypervisors.get(guest.endpoint)
            self._called_off |= {guest.name} & set(() if hypervisor is None else hypervisor.trouble.lies)
        if alive and not self._was_alive.get(guest.name, True):
            self._back_s[guest.name] = self._simulation.clock.now_s()
        self._was_alive[guest.name] = alive

    def _living(self, node: str) -> list[Guest]:
        """Return the guests whose memory is, or was when the pods of this node ran in it, that node's."""
        guests = self._simulation.world.guests.values()
        return [one for one in guests if one.node == node and self._lives(one) and not one.outdated]

    def _lives(self, guest: Guest) -> bool:
        if guest.power not in _states_of_life(trusts=self._policy.paused_guest is PausedGuest.TRUST):
            return False
        return not guest.cold or self._simulation.holds_pods(guest)

    def _given_away(self, node: str, how: str) -> None:
        oldest_s = self.now_s - self._on_its_way_s
        for guest in self._living(node):
            brought_back = not guest.cold or guest.power is not PowerState.RUNNING
            looked_s = -math.inf if self._actor is None else self._actor.looks.get(guest.name, -math.inf)
            since = oldest_s <= looked_s <= self._back_s.get(guest.name, -math.inf)
            # excuse: memory is brought back after the agent's last live look at that VM (*overtaken*), or
            #   the VM has booted and its kubelet has not reported that boot yet
            if (brought_back and since) or (not brought_back and self._was_never_heard(guest)):
                self.overtaken += 1
                continue
            # excuse: another tool starts a VM at an endpoint that the agent does not know, or another machine
            #   joins under its name, and is alive for too short a time, while the VM is off and agents look,
            #   to show that; also at any other endpoint, if the configuration names the VM (`nodes:`)
            if self._is_hidden_copy(guest):
                self.unseen_copies += 1
                guest.outdated = True
                continue
            self._breach_late(node, f"{how}, and its guest {guest.name} is {guest.power} on {guest.endpoint}")

    @property
    def now_s(self) -> float:
        """The world's clock."""
        return self._simulation.clock.now_s()

    def _names_of(self, node: str) -> list[str]:
        return [guest.name for guest in self._simulation.world.guests.values() if guest.node == node]

    def _is_hidden_copy(self, guest: Guest) -> bool:
        """Whether a second machine is the node where the agent can't look, and its kubelet was too brief."""
        twins = self._twins_of(guest)
        if not twins or self._actor is None:
            return False
        # A VM that the configuration names is looked for nowhere else.
        if guest.endpoint in self._actor.knows and guest.node not in self._simulation.shape.mapped:
            return False
        exposed_s = self.boots.exposed_s.get(guest.name)
        # The VM at home may have run since: that counts once its own boot is shown.
        exposed = exposed_s is not None and exposed_s >= self.boots.shown_since_s(guest.node, guest.boot_id)
        return not exposed and not self._gives_itself_away(guest, twins)

    def _twins_of(self, guest: Guest) -> list[Guest]:
        """Return the other machines that are its node: copies of its disk, and what joined under its name."""
        others = self._simulation.world.guests.values()
        return [one for one in others if one is not guest and one.node == guest.node and guest.node]

    def _gives_itself_away(self, guest: Guest, twins: Collection[Guest]) -> bool:
        """Whether a kubelet is alive for long while its VM is off at home.

        It takes three looks to expose that it runs elsewhere.
        """
        off_s = max((self._off_since_s.get(one.name, math.inf) for one in twins), default=math.inf)
        since_s = max(off_s, self._runs_since_s.get(guest.name, math.inf))
        node = self._simulation.api.nodes.get(guest.node)
        renew_s = self._simulation.timing_of(guest.node).renew_s
        if node is None or node.renewed_s - since_s < gives_away_s(self._simulation.shape, renew_s):
            return False
        looks = bisect(self.boots.looks_s, node.renewed_s) - bisect(self.boots.looks_s, since_s)
        return looks >= LOOKS_THAT_SHOW

    def _was_never_heard(self, guest: Guest) -> bool:
        """Whether its kubelet has not reported this boot yet, so that no agent can know it."""
        return guest.node in self._simulation.api.nodes and not self.boots.was_shown(guest)

    def _breach_late(self, node: str, text: str) -> None:
        """Something is done that was right a moment ago."""
        # excuse: what an agent was about to do when the VM that it runs in was paused, with its clocks, and
        #   what was right then: no answer has come since that could have shown it the time
        if self._actor is not None and self._actor.was_paused_over(self._names_of(node), self.now_s):
            self.overtaken += 1
            return
        self._breach(node, text)

    def _breach(self, node: str, text: str) -> None:
        self.breaches += 1
        self._simulation.timeline.tell("world", node, "breach", text)
        if self._strict:
            raise Breach(f"{self._simulation.timeline.now_s():.1f} s: {node}: {text}")


@dataclass(frozen=True, slots=True)
class Return:
    """The way back of a node.

    Attributes:
        node: Which.
        since_s: When its VM ran again under its fence, in seconds of the story.
        until_s: When its fence was lifted.
    """

    node: str
    since_s: float
    until_s: float


@dataclass(slots=True)
class _Cut:
    """A run of a VM that was ended by cutting its power.

    Attributes:
        run: Which.
        actor: Whose order it was.
        took_s: How long that took.
    """

    run: int
    actor: Actor | None
    took_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Seen:
    """What must not change by itself, of a Node."""

    uid: str
    tainted: bool
    others: frozenset[Taint]
    cordoned: bool
    cordoner: str | None


def _seen(node: ApiNode) -> _Seen:
    others = frozenset(taint for taint in node.taints if taint.key != OUT_OF_SERVICE)
    return _Seen(node.uid, node.out_of_service, others, node.unschedulable, node.cordoner)
