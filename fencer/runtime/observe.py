"""Observe: gather what one decision may know, from afar for all nodes, and closely for one.

The order is part of the proof: hypervisors are read first and the cluster afterwards, so that a lease renewal
that shows up in a later look than a reading really happened after it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

from fencer.core.doubt import believe
from fencer.core.election import Tenure
from fencer.core.fleet import heard, may_be_alive
from fencer.core.history import aged, glimpse, listen, remember
from fencer.core.identity import AT_REST, Rules, leftover, may_have_become
from fencer.core.kept import remembered
from fencer.core.maintenance import told
from fencer.core.model import (
    Binding,
    Candidate,
    Evidence,
    FenceMark,
    GuestHistory,
    GuestRef,
    Intent,
    Judged,
    NodeView,
    Note,
    Observation,
    PowerState,
    Proof,
    StopFailed,
    Verdict,
    Word,
)
from fencer.core.policy import Mode, Policy
from fencer.core.recover import left_as
from fencer.core.requests import NO_CALL
from fencer.core.times import Moment, earlier
from fencer.errors import ClusterNotFound, FencerError
from fencer.ports import Fact
from fencer.runtime.counting import Counting
from fencer.runtime.found import LOOK_AGAIN_S
from fencer.runtime.index import Index
from fencer.runtime.leases import Leases
from fencer.runtime.memory import Calm, Scene
from fencer.runtime.readings import Reader
from fencer.runtime.shared import Shared
from fencer.runtime.world import World

LONGEST_PASSES_S = 600.0
"""Readings of two successive passes add up, even if much is to do in between, and so do those of two looks at
a node that is left alone between them. They do not over an hour in which the whole agent stood still."""

READ_AGAIN = 4
"""A VM is read again if other calls took this part of the time for which a reading counts, or if no more than
this part of it is left."""


class _Noted(TypedDict):
    """What an observation has of the notebook."""

    note: Note | None
    unwritten: tuple[str, ...]
    answering_s: float
    unread: str


class Observer:
    """Looks, and remembers.

    Args:
        world: The ports.
        rules: What the configuration says of identity.
        policy: Deadlines, and what counts as silent.
        shared: What it shares with the executor.

    Attributes:
        counting: Sums up what is seen.
    """

    def __init__(self, world: World, rules: Rules, policy: Policy, shared: Shared) -> None:
        self._world = world
        self._rules = rules
        self._policy = policy
        self._api, self._memory = shared.api, shared.memory
        self._notes, self._finder, self._names = shared.notes, shared.finder, shared.names
        self._calls, self._keeper = shared.calls, shared.keeper
        self._cordons = shared.cordons
        self._swept: Mapping[str, Sequence[Evidence] | FencerError] = {}
        self._answered_s, self._back_s = world.clock.now_s(), float("-inf")
        self._unanswered = False
        self._glimpsed_s: dict[str, float] = {}
        """Node, by UID → when its guest was read live while the API server did not answer."""
        self._reader = Reader(world, policy)
        self._looks_s = (world.clock.now_s(),) * 2
        self._leases = Leases(world, policy, shared)
        self._index = Index(world, rules, shared.memory)
        self.counting = Counting(world, policy, shared, self._leases, self._index)
        self._hands_off: tuple[object, ...] = ()
        """What kept fencer from acting at the last look, no matter on which node."""

    def look(self, *, sparing: bool = False) -> Scene:
        """Look at everything from afar: one sweep per endpoint, the nodes, and leases.

        Args:
            sparing: Read only those leases that something depends on, see `Leases`: for looks that follow one
                another. Otherwise all of them.

        Raises:
            ClusterError: without nodes there is nothing to decide.
        """
        self.sweep()
        scene = self._nodes_beside(self._swept, sparing=sparing)
        self._answered(scene)
        return scene

    def sweep(self) -> None:
        """Read all guests from afar. Until a look has found the nodes as well, the API server is away."""
        self._keeper.begin()
        self._api.show_life()
        self._looks_s = (self._looks_s[1], self._world.clock.now_s())
        self._swept, answers = self._reader.sweep(self._calls.questions())
        self._calls.heard(answers)

    def _answered(self, scene: Scene) -> None:
        """Take note that the API server answers; if it did not for long, since when it does again."""
        if self._unanswered and scene.now_s - self._answered_s > self._policy.apart_s:
            self._back_s = scene.now_s
        self._answered_s, self._unanswered = scene.now_s, False
        self._glimpsed_s.clear()

    def glimpse(self) -> Scene:
        """Return what was just swept, with the nodes as they were last known: the API server does not answer.

        It is enough to learn from, and for nothing else.
        """
        self._unanswered = True
        self._notes.try_again()
        readings, failed = _read_in(self._swept)
        now_s = self._world.clock.now_s()
        self._names.learn((*self._keeper.nodes, *self._notes.notes), self._swept.keys() - failed)
        views = [self._notes.read(self._names.read(remembered(view))) for view in self._keeper.nodes]
        leases = self._memory.leases
        scene = Scene(
            nodes={
                view.name: aged(view, leases[view.uid], now_s) if view.uid in leases else view
                for view in views
            },
            evidence=readings,
            errors={name: str(self._swept[name]) for name in failed},
            malformed=(),
            directory=self._index.directory(views, readings, failed),
            utc=self._keeper.utc,
            now_s=now_s,
            pause_note=None,
        )
        for node in scene.nodes.values():
            candidates = scene.directory.candidates(node)
            history = self._memory.guests.get(node.uid)
            if candidates and history is not None:
                reading = readings.get(candidates[0].guest.key)
                self._memory.guests[node.uid] = glimpse(history, reading)
        return scene

    def unread(self, scene: Scene) -> list[NodeView]:
        """Return the nodes that cannot be read now, as they last were: their guests can be seen anyway."""
        names = _named(scene.malformed)
        return [
            self._notes.read(self._names.read(remembered(node)))
            for node in self._keeper.nodes
            if node.name in names
        ]

    def in_question(self, scene: Scene) -> list[NodeView]:
        """Return the nodes whose guest does not just run on where it is bound to: the others tell nothing.

        Nor does one just run on whose memory may be inside its disk still: that has to be noted (D3).
        """
        return [node for node in scene.nodes.values() if not self._runs_on(scene, node)]

    def _runs_on(self, scene: Scene, node: NodeView) -> bool:
        candidates = scene.directory.candidates(node)
        if len(candidates) != 1 or not isinstance(node.binding, Binding) or self._notes.of(node.uid):
            return False
        reading = scene.evidence.get(candidates[0].guest.key)
        if reading is None or reading.away or reading.untracked:
            return False
        return reading.power_state is PowerState.RUNNING and reading.guest == node.binding.guest

    def glimpse_closer(self, scene: Scene, nodes: Sequence[NodeView]) -> NodeView | None:
        """Read the guest of one of these nodes live, the one that was read so the longest time ago.

        As always one a pass, and each at most every `LOOK_AGAIN_S` (L1).

        Returns:
            The node; None: none is due.
        """
        now_s, read_s = self._world.clock.now_s(), self._glimpsed_s
        due = [node for node in nodes if now_s - read_s.get(node.uid, float("-inf")) >= LOOK_AGAIN_S]
        node = min(due, key=lambda node: read_s.get(node.uid, float("-inf")), default=None)
        if node is not None:
            read_s[node.uid] = now_s
            for candidate in scene.directory.candidates(node)[:1]:
                self._read(scene, candidate.guest)
        return node

    def _nodes_beside(
        self, sweeps: Mapping[str, Sequence[Evidence] | FencerError], *, sparing: bool
    ) -> Scene:
        """Read the nodes and leases, after the guests.

        Raises:
            ClusterError: without nodes there is nothing to decide.
        """
        known = self._leases.ask(self._world.cluster.nodes)
        readings, failed = _read_in(sweeps)
        self._names.learn((*known.views, *self._notes.notes), sweeps.keys() - failed)
        calls = self._calls.named
        views = [self._leases.newest(view) for view in known.views]
        directory = self._index.directory(views, readings, failed)
        calm = self._calm(views, readings, calls) if sparing else {}
        asked = self._leases.in_question(views, readings, directory, calm, calls) if sparing else None
        nodes, beats = self._leases.read(views, asked, calm)
        apart_s, now_s = self._world.apart_s(beats.utc), self._world.clock.now_s()
        self._memory.not_found = {
            key: reading
            for key, reading in self._memory.not_found.items()
            if key not in readings and key[0] not in failed
        }
        scene = Scene(
            nodes=nodes | self._deleted(nodes, now_s),
            evidence=readings,
            errors={name: str(answer) for name, answer in sweeps.items() if isinstance(answer, FencerError)},
            malformed=(*known.malformed, *beats.malformed),
            directory=directory,
            utc=beats.utc,
            now_s=now_s,
            pause_note=beats.paused_why,
            windows=told(self._policy.maintenance, Moment.of(beats.utc, apart_s)),
            lost=self._reader.lost(sweeps),
            requests=self._calls.requests,
            since_last_s=max(0.0, self._looks_s[1] - self._seen_since_s),
            apart_s=apart_s,
            views={view.name: view for view in views},
        )
        hands_off = (scene.paused_why, scene.windows)
        self._keep_calm(scene, calm if hands_off == self._hands_off else {})
        self._hands_off = hands_off
        scene.evidence |= self._still_absent(now_s)
        self._remember_all(scene)
        self._calls.tell()
        self._keeper.answered(known.views, beats.utc, _named(known.malformed))
        return scene

    @property
    def _seen_since_s(self) -> float:
        """Since when it has looked without standing still; at most since the look before the newest."""
        return max(self._looks_s[0], self._api.awake_since_s)

    def _calm(
        self,
        views: Collection[NodeView],
        readings: Mapping[tuple[str, str, str], Evidence],
        calls: Collection[str],
    ) -> dict[str, Calm]:
        """Return what is known of the nodes of which nothing has changed, nor of their guests, by name.

        Those about which somebody asks for anything (`calls`) are judged in every pass.
        """
        calm = {}
        for view in views:
            known = self._memory.calm.get(view.name)
            if known is None or known.view is not view or view.name in calls:
                continue
            reading = readings.get(known.evidence.guest.key)
            if reading is not None and reading.repeats(known.evidence):
                calm[view.name] = known
        return calm

    def _keep_calm(self, scene: Scene, calm: Mapping[str, Calm]) -> None:
        """Forget that others were calm: what is read of them has to be taken in."""
        self._memory.calm = {name: known for name, known in calm.items() if scene.nodes[name] is known.node}
        scene.calm = {name: known.judged for name, known in self._memory.calm.items()}

    def leave_alone(self, scene: Scene, judged: Judged) -> None:
        """Do not look into a healthy node again before anything about it changes."""
        seen, decision = judged.observation, judged.decision
        healthy = decision.verdict is Verdict.HEALTHY and not (decision.actions or decision.look)
        certain = len(seen.candidates) == 1 and not (seen.rivals or seen.claimed_by)
        waits = decision.recheck_s is not None or seen.close or judged.failed or seen.call != NO_CALL
        if seen.node.asked or waits or not (healthy and certain):
            return
        view, reading = scene.views[seen.node.name], scene.evidence[seen.candidates[0].guest.key]
        self._memory.calm[view.name] = Calm(view, seen.node, reading, judged)

    def observation(
        self, scene: Scene, node: NodeView, intent: Intent = Intent.WATCH, word: Word | None = None
    ) -> Observation:
        """Put together what is known of one node from afar."""
        candidates = self._candidates(scene, node)
        evidence, error = self._reader.from_afar(scene, candidates)
        history = self._memory.guests.get(node.uid, GuestHistory())
        evidence = self._believed(node, evidence)
        found = self._finder.known(scene, node)
        return Observation(
            node=node,
            candidates=candidates,
            evidence=evidence,
            history=history,
            fleet=self.counting.fleet(scene),
            intent=intent,
            now_s=scene.now_s,
            utc=scene.utc,
            apart_s=scene.apart_s,
            rivals=self._rivals(scene, node),
            claimed_by=self._claimed_by(scene, node),
            bound_reading=self._bound_reading(scene, node, candidates),
            taken_by="" if candidates else scene.directory.taken_by(node),
            unanswered=tuple(sorted(scene.errors)),
            evidence_error=error,
            last_state=_last_state(scene, candidates),
            others=tuple(self._state_of(scene, candidate) for candidate in candidates[1:]),
            killed=self._memory.killed.get(candidates[0].guest.key) if candidates else None,
            stop_failed=self._stop_failed(candidates, scene.now_s),
            fenced_guest=self._reader.fenced_from_afar(scene, node, candidates),
            stopped_as=self._stopped_as(node, scene.earliest_utc),
            tenure=self._tenure(candidates),
            call=self._calls.of(node.name),
            asked_s=self._asked_s(node, scene.now_s),
            ordered_run=self._memory.ordered_run(node.uid, evidence),
            looked_s=scene.now_s - self._memory.looked.get(node.uid, float("-inf")),
            pods=found.pods if found else None,
            attachments=found.attachments if found else None,
            kept_volumes=found.kept_volumes if found else frozenset(),
            kept_unread=found.kept_unread if found else "",
            word=word or self._word_in_mark(node, scene.now_s),
            **self._noted(node, intent, scene.now_s),
        )

    def _noted(self, node: NodeView, intent: Intent, now_s: float) -> _Noted:
        """Return what is noted of a node, what has to be written first, and since when that is possible."""
        by_hand = intent is not Intent.WATCH
        writes = by_hand or self._policy.mode is Mode.ARMED
        return {
            "note": self._notes.of(node.uid),
            "unwritten": self._notes.first(node, alone=by_hand) if writes else (),
            "answering_s": now_s - self._back_s,
            "unread": self._keeper.unread,
        }

    def closer(self, scene: Scene, before: Observation) -> Observation:
        """Read guest, node, lease, pods and attachments live, in this order, for one node alone.

        Raises:
            ClusterError: the node could not be read; nothing may be done.
        """
        self._calls.look_again(before.node.name)  # first: what is read of the guest grows old
        guest, evidence, error = self._read_first(scene, before)
        read_s = self._world.clock.now_s()
        fact = self._fact(before.node)
        apart_s = self._world.apart_s(fact.utc)
        found = self._finder.look(scene, fact.node)
        now_s = self._world.clock.now_s()
        node = self._leases.live(fact)
        self._memory.live[node.uid] = (fact.node, now_s)
        self._listen(node, evidence, now_s)
        self._memory.looked[node.uid] = now_s
        evidence = self._believed(node, evidence)
        self._remember(scene, node, evidence, now_s)
        self.counting.take_in(scene, node, fact.paused_why)
        key = guest.key if guest is not None else None
        candidates = self._candidates(scene, node)
        seen = replace(
            before,
            node=node,
            candidates=candidates,
            evidence=evidence,
            evidence_error=error,
            last_state=_last_state(scene, candidates),
            others=tuple(self._state_of(scene, candidate) for candidate in candidates[1:]),
            claimed_by=self._claimed_by(scene, node),
            bound_reading=self._bound_reading(scene, node, candidates),
            history=self._memory.guests[node.uid],
            fleet=self.counting.fleet(scene),
            now_s=now_s,
            utc=fact.utc,
            apart_s=apart_s,
            pods=found.pods,
            attachments=found.attachments,
            kept_volumes=found.kept_volumes,
            kept_unread=found.kept_unread,
            killed=None if key is None else self._memory.killed.get(key),
            stop_failed=self._stop_failed(candidates, now_s),
            fenced_guest=self._reader.read_fenced(scene, node, candidates),
            stopped_as=self._stopped_as(node, earlier(fact.utc, apart_s)),
            tenure=self._tenure(candidates),
            call=self._calls.of(node.name),
            asked_s=self._asked_s(node, now_s),
            ordered_run=self._memory.ordered_run(node.uid, evidence),
            looked_s=0.0,
            close=True,
            **self._noted(node, before.intent, now_s),
        )
        return self._read_again(scene, seen, read_s)

    def recounted(self, scene: Scene, observation: Observation, came_s: float) -> Observation:
        """Count the nodes again, right before an action that the other nodes are counted for.

        Args:
            scene: Of this pass.
            observation: A close one.
            came_s: Since when it waits to be the one who acts.

        Returns:
            The same by what was counted: the fleet, how long ago its node was heard, and how old all else is.
            If that took long, its VM was read again; if it reads otherwise, this is a look from afar.

        Raises:
            ClusterError: nothing may be done.
        """
        self.counting.again(scene, observation.node.name, came_s)
        now_s = self._world.clock.now_s()
        node = aged(observation.node, self._memory.leases[observation.node.uid], now_s)
        seen = replace(
            observation,
            node=node,
            claimed_by=self._claimed_by(scene, node),
            fleet=self.counting.fleet(scene),
            tenure=self._tenure(observation.candidates),
            now_s=now_s,
            utc=scene.utc,
            apart_s=scene.apart_s,
            **self._noted(node, observation.intent, now_s),
        )
        # Other fences wait meanwhile, so it may take no longer than one of them waits before it looks again.
        return self._read_again(scene, seen, observation.now_s, self._policy.evidence_max_age_s / 2)

    def _still_absent(self, now_s: float) -> dict[tuple[str, str, str], Evidence]:
        """Return the guests that their endpoints did not know lately, and whose end is not on record.

        Otherwise each of them would be asked for in every pass, for ever, and always in vain.
        """
        return {
            key: replace(reading, observed_at_s=now_s)
            for key, reading in self._memory.not_found.items()
            if not reading.end_recorded and now_s - reading.observed_at_s < LOOK_AGAIN_S
        }

    def _read_first(self, scene: Scene, before: Observation) -> tuple[GuestRef | None, Evidence | None, str]:
        """Read the first candidate live; if that shows that the node is another one now, read that one."""
        first = before.candidates[0].guest if before.candidates else None
        if first is None:
            return None, None, before.evidence_error
        evidence, error = self._read(scene, first)
        now = self._candidates(scene, before.node)
        if now and now[0].guest.key != first.key:
            first = now[0].guest
            evidence, error = self._read(scene, first)
        return first, evidence, error

    def _read_again(
        self, scene: Scene, seen: Observation, since_s: float, within_s: float = math.inf
    ) -> Observation:
        """Read a VM once more if the calls after its reading took long: an API may take seconds for each.

        Its age counts from this reading. The order stays that of the earlier one, which was complete before
        the lease was read (G9). If the two differ, all of it has to be looked at again.
        """
        first, now_s, longest_s = seen.evidence, self._world.clock.now_s(), self._policy.evidence_max_age_s
        if first is None:
            return seen
        late = now_s - since_s > longest_s / READ_AGAIN  # or the reading itself took long
        if not late and now_s - first.observed_at_s <= longest_s - longest_s / READ_AGAIN:
            return seen
        if seen.node.name in self._calls.named:  # whoever asked for it may have withdrawn that
            self._calls.look_again(seen.node.name)
            seen = replace(seen, call=self._calls.of(seen.node.name))
        reading, _ = self._read(scene, first.guest, within_s)
        now = self._believed(seen.node, reading)
        if now is None:
            return seen
        return replace(seen, evidence=now, close=now.confirms(first))

    def _read(self, scene: Scene, guest: GuestRef, within_s: float = math.inf) -> tuple[Evidence | None, str]:
        """Read a VM live, and take that into the scene."""
        evidence, error = self._reader.read(scene, guest, within_s)
        if evidence is not None:
            known = scene.evidence.get(evidence.guest.key)
            if known is None or not known.repeats(evidence):
                scene.fleet = None
            scene.evidence[evidence.guest.key] = evidence
            if scene.directory.note(evidence):
                self._index.outdate()
            self._memory.not_found.pop(guest.key, None)
            if evidence.power_state is PowerState.ABSENT:
                self._memory.not_found[guest.key] = evidence
        return evidence, error

    def _believed(self, node: NodeView, evidence: Evidence | None) -> Evidence | None:
        """Return a reading as it is judged; only here is it changed.

        If its host is silent, witnesses of that host's power add to it; an off that is doubted says nothing.
        """
        history = self._memory.guests.get(node.uid, GuestHistory())
        return believe(self._reader.by_host_power(node, evidence, history), node, history)

    def _state_of(self, scene: Scene, candidate: Candidate) -> PowerState:
        reading = scene.evidence.get(candidate.guest.key)
        if reading is None:
            absent = candidate.guest.key in self._memory.not_found
            return PowerState.ABSENT if absent else PowerState.UNKNOWN
        return PowerState.ABSENT if reading.away else reading.power_state  # it runs on, and not there

    def _candidates(self, scene: Scene, node: NodeView) -> tuple[Candidate, ...]:
        """Return every guest that may be this node, the bound one first; before it one that it has moved to.

        A binding follows its guest: if the bound one is at rest, exactly one other runs, and the node is
        heard, that other one has to be read from now on. Core binds it again once it was seen alive with the
        node.
        """
        candidates = scene.directory.candidates(node)
        states = [self._state_of(scene, candidate) for candidate in candidates]
        running = [number for number, state in enumerate(states) if state is PowerState.RUNNING]
        alone = len(running) == 1 and running != [0] and AT_REST.issuperset(states[:1])
        if not alone or not heard(node, self._policy):
            return candidates
        moved = candidates[running[0]]
        if not may_have_become(node, scene.evidence[moved.guest.key]):
            return candidates
        return (moved, *(candidate for candidate in candidates if candidate is not moved))

    def _rivals(self, scene: Scene, node: NodeView) -> tuple[str, ...]:
        names = scene.directory.rivals(node)
        return tuple(name for name in names if not leftover(scene.nodes[name]))

    def _claimed_by(self, scene: Scene, node: NodeView) -> tuple[str, ...]:
        names = scene.directory.claimed_by(node)
        return tuple(name for name in names if may_be_alive(scene.nodes[name], self._policy))

    def _bound_reading(
        self, scene: Scene, node: NodeView, candidates: tuple[Candidate, ...]
    ) -> Evidence | None:
        """Return the reading of the guest that the node is bound to, if that is not the first one."""
        if not isinstance(node.binding, Binding):
            return None
        key = node.binding.guest.key
        return None if candidates and candidates[0].guest.key == key else scene.evidence.get(key)

    def _listen(self, node: NodeView, evidence: Evidence | None, now_s: float) -> None:
        before = self._memory.guests.get(node.uid, GuestHistory())
        self._memory.guests[node.uid] = listen(before, node, evidence, now_s)

    def forget(self, node: NodeView) -> None:
        """Forget a deleted node with nothing left to do."""
        self._memory.fenced.pop(node.uid, None)

    def _fact(self, node: NodeView) -> Fact:
        """Read the node live; one that was deleted while we fenced it stays as it was last seen."""
        try:
            return self._api(lambda: self._world.cluster.fact(node.name))
        except ClusterNotFound:
            if node.uid not in self._memory.fenced:
                raise
            deleted = replace(self._memory.fenced[node.uid], gone=True)
            pause = self._api(self._world.cluster.pause)
            return Fact(deleted, renew_time=None, utc=pause.utc, paused_why=pause.why)

    def _deleted(self, nodes: Mapping[str, NodeView], now_s: float) -> dict[str, NodeView]:
        """Return the nodes whose objects were deleted while we fenced them, and were not made again since."""
        uids = {node.uid for node in nodes.values()}
        lost = [node for uid, node in self._memory.fenced.items() if uid not in uids]
        for node in lost:
            if node.name in nodes:
                self.forget(node)
        return {
            node.name: aged(replace(node, gone=True), self._memory.leases[node.uid], now_s)
            for node in lost
            if node.name not in nodes
        }

    def _stop_failed(self, candidates: tuple[Candidate, ...], now_s: float) -> StopFailed | None:
        failed = self._memory.stops_failed.get(candidates[0].guest.key) if candidates else None
        return None if failed is None else StopFailed(now_s - failed[0], *failed[1:])

    def _stopped_as(self, node: NodeView, utc: str) -> str | None:
        """Return in which incarnation an agent's own stop has left the guest, unless it has run since."""
        return None if self._memory.ran_since.get(node.uid) == node.claim else left_as(node, utc)

    def _word_in_mark(self, node: NodeView, now_s: float) -> Word:
        """Return since when this agent has known of the operator's word in a mark, if there is one (O4)."""
        mark, words = node.mark, self._memory.words
        if not isinstance(mark, FenceMark) or mark.proof is not Proof.OPERATOR:
            return Word()
        if node.uid not in words or words[node.uid][0] != mark.incident:
            words[node.uid] = (mark.incident, now_s)
        return Word(given_s=words[node.uid][1])

    def _tenure(self, candidates: tuple[Candidate, ...]) -> Tenure | None:
        election = self._world.election
        return election.tenure(candidates[0].guest.endpoint) if election and candidates else None

    def _asked_s(self, node: NodeView, now_s: float) -> float | None:
        at_s = self._memory.asked.get((node.uid, node.boot_id))
        return None if at_s is None else now_s - at_s

    def _remember(self, scene: Scene, node: NodeView, evidence: Evidence | None, now_s: float) -> None:
        """Take in a reading as far as it is believed."""
        if evidence is not None and evidence.power_state is PowerState.RUNNING:
            self._memory.killed.pop(evidence.guest.key, None)
            if node.left is not None:
                self._memory.ran_since[node.uid] = node.claim
        if evidence is not None and (evidence.gone or node.ready is True):
            self._memory.stops_failed.pop(evidence.guest.key, None)
        if node.fenced:
            self._memory.fenced[node.uid] = node
        else:
            self.forget(node)
        before = self._memory.guests.get(node.uid, GuestHistory())
        rest_s = self._finder.rest_s(scene, node) if evidence is not None and evidence.gone else 0.0
        rest_s = min(rest_s, now_s - self._api.awake_since_s)  # nobody looked while the agent stood still
        apart_s = max(self._policy.apart_s, rest_s, min(now_s - self._seen_since_s, LONGEST_PASSES_S))
        self._memory.guests[node.uid] = remember(before, node, evidence, now_s, apart_s)

    def _remember_all(self, scene: Scene) -> None:
        uids = set()
        for node in scene.nodes.values():
            uids.add(node.uid)
            if node.name in scene.calm:
                continue
            candidates = self._candidates(scene, node)
            reading = scene.evidence.get(candidates[0].guest.key) if candidates else None
            runs = reading is not None and reading.power_state is PowerState.RUNNING
            if node.uid in self._memory.pursued and not runs:
                continue  # whoever pursues it reads it; but that it runs, nobody may miss
            self._remember(scene, node, self._believed(node, reading), scene.now_s)
        memory = self._memory
        uids |= memory.pursued.keys()
        memories: tuple[dict[str, Any], ...] = (
            *(memory.leases, memory.guests, memory.looked, memory.live),
            *(memory.ran_since, memory.words),
        )
        for known in memories:
            for forgotten in known.keys() - uids:
                del known[forgotten]
        self._finder.notice(scene.nodes.values())
        self._notes.keep(uids, _named(scene.malformed))
        self._names.keep(uids)
        self._cordons.keep(uids)


def _read_in(
    sweeps: Mapping[str, Sequence[Evidence] | FencerError],
) -> tuple[dict[tuple[str, str, str], Evidence], set[str]]:
    """Return the readings in what endpoints answered, by guest, and the names of those that did not."""
    readings = {
        reading.guest.key: reading
        for answer in sweeps.values()
        if not isinstance(answer, FencerError)
        for reading in answer
    }
    return readings, {name for name, answer in sweeps.items() if isinstance(answer, FencerError)}


def _named(malformed: Sequence[str]) -> frozenset[str]:
    """Return the names of nodes that cannot be read: each is told as "node NAME: why"."""
    return frozenset(text.partition(": ")[0].removeprefix("node ") for text in malformed)


def _last_state(scene: Scene, candidates: tuple[Candidate, ...]) -> PowerState | None:
    reading = scene.evidence.get(candidates[0].guest.key) if candidates else None
    return None if reading is None else reading.power_state
