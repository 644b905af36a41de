"""Reconcile: observe, decide, execute one action, observe again. Every door comes through here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from fencer.core.crash_loop import in_crash_loop, is_loop_alarm
from fencer.core.decide import decide
from fencer.core.done import Done, Happened
from fencer.core.foreseen import waits_for_others
from fencer.core.history import LEASE_DURATION_S
from fencer.core.holds import writes_notes
from fencer.core.identity import Rules
from fencer.core.kept import laid_over, must_outlive, with_action
from fencer.core.learn import Learned, learn
from fencer.core.model import (
    Action,
    Alarm,
    BindNode,
    Decision,
    DiscardSaved,
    FenceMark,
    ForgetMark,
    Intent,
    Judged,
    NodeView,
    Observation,
    Reason,
    RecordDoubts,
    StopGuest,
    TaintNode,
    Uncordon,
    Verdict,
    Word,
)
from fencer.core.old_memory import repeats
from fencer.core.policy import Policy
from fencer.core.text import no_such_node
from fencer.errors import ClusterError, ClusterNotFound
from fencer.runtime.execute import Executor
from fencer.runtime.found import LOOK_AGAIN_S, NotYet
from fencer.runtime.lanes import Lanes, Seen
from fencer.runtime.memory import Scene
from fencer.runtime.observe import Observer
from fencer.runtime.shared import Shared
from fencer.runtime.world import World
from fencer.wording.conditions import AT_EASE
from fencer.wording.reasons import says

STEPS = 64
"""Actions on one node in one pass; 64 batches clear 2,048 pods, and the next pass goes on."""

FROM_AFAR = (BindNode, RecordDoubts, ForgetMark, Uncordon)
"""Notes, and actions on a healthy node, guarded by its version: if its lease was read, they need no closer
look. An alarm does: what is known from afar may be late."""

NOTES = (Alarm, BindNode, RecordDoubts, ForgetMark)
"""Notes for people and for other agents: an agent that does only these has done nothing."""

COUNTED = (TaintNode, StopGuest, DiscardSaved)
"""Before these the other nodes are counted again, one at a time: other agents act too, and other incidents go
on side by side."""

NO_NEWS = frozenset({Reason.CLOSER_LOOK, Reason.PLANNED_STOP})
"""No news about a node: it is looked at again at once, or whoever shuts it down tells it."""

STILL_READY = frozenset({Reason.NODE_READY, Reason.PLANNED_STOP})
"""The node is told to be Ready, or may be."""

DELETED = "{node}: its Node was deleted while it was fenced; nothing of it is left, so its fence has ended"

SHORT_REST_S = 0.05
"""Between two looks at something that may change at once."""

WORTH_WAITING = frozenset(
    {
        *(Verdict.WAIT, Verdict.STOP_FIRST, Verdict.DISCARD_FIRST, Verdict.FENCE),
        *(Verdict.FENCED, Verdict.RECOVERING),
    }
)


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over all nodes.

    Attributes:
        scene: What was seen from afar.
        judged: By node name.
        recheck_s: When to come again, at the latest.
        pursued: Nodes that are still being pursued: they are told as they were last judged, which was before.
    """

    scene: Scene
    judged: dict[str, Judged]
    recheck_s: float
    pursued: frozenset[str] = frozenset()


def does_something(decision: Decision) -> bool:
    """Whether a decision leads to more than a note."""
    return any(not isinstance(action, NOTES) for action in decision.actions)


class Agent:
    """Runs the pipeline.

    Args:
        world: The ports.
        policy: How careful to be.
        rules: What the configuration says of identity.
        by: Who acts, for marks and events.

    Attributes:
        shared: What observer and executor share: calls to the cluster, and what is remembered.
        observer: Looks.
        executor: Acts.
    """

    def __init__(self, world: World, policy: Policy, rules: Rules | None = None, by: str = "fencer") -> None:
        self._world = world
        self._policy = policy
        self._by = by
        self._told: dict[str, tuple[Verdict, Reason, str]] = {}
        self._rehearsed: dict[str, Decision] = {}
        self._alarmed: set[tuple[str, Alarm]] = set()
        self._recorded: dict[str, tuple[float, Decision]] = {}
        """By UID of the node: its newest recorded decision, and when that was observed."""
        self.shared = Shared.of(world, policy)
        self.observer = Observer(world, rules or Rules(), policy, self.shared)
        self.executor = Executor(world, policy, self.shared)
        self._pursued = self.shared.memory.pursued
        self._lanes = Lanes(world, self._pursued)
        self._last: dict[str, Judged] = {}
        self._due_s = float("inf")

    def tick(self, progress: Callable[[], object] = lambda: None, *, patience_s: float | None = None) -> Pass:
        """Judge every node once, and do what follows: for all nodes that need it side by side.

        Args:
            progress: Called after every step, for a watchdog: a pass over many nodes takes long.
            patience_s: How long to wait for the slowest of them; None: a poll. Those that take longer go on
                beside the next passes, and are told as they were last judged.

        Raises:
            ClusterError: the cluster could not be read at all.
        """
        with self._world.asker.turn():
            self.shared.api.passes = patience_s is None
            try:
                scene = self.observer.look(sparing=True)
            except ClusterError:
                self._learn_without_nodes()
                raise
            judged: dict[str, Judged] = dict(scene.calm)
            due: list[Seen] = []
            nodes = [node for node in scene.nodes.values() if node.name not in judged]
            learnt = self._learn(scene, [*nodes, *self.observer.unread(scene)])
            for node in nodes:
                if node.uid not in self._pursued:
                    seen = self._first(learnt[node.uid][0])
                    if self._asks(*seen):
                        due.append(seen)
                    else:
                        self.observer.leave_alone(scene, self._concluded(*seen))
                    self._last.setdefault(node.uid, Judged(*seen))
                judged[node.name] = self._last[node.uid]
            self._lanes.pursue(
                due,
                lambda observation, decision: self._go_on(scene, observation, decision, progress),
                judged,
                self._policy.poll_s if patience_s is None else patience_s,
            )
            self._forget_all_but(node.uid for node in scene.nodes.values())
            self._due_s, due_s = float("inf"), self._due_s
        recheck_s = max(0.0, min(self._policy.poll_s, due_s - self._world.clock.now_s()))
        still = frozenset(node.name for node in scene.nodes.values() if node.uid in self._pursued)
        return Pass(scene, judged, recheck_s, still)

    def learn_only(self) -> None:
        """Look at all guests, and keep what has to be noted: the API server does not answer yet."""
        with self._world.asker.turn():
            self.observer.sweep()
            self._learn_without_nodes()

    def _learn_without_nodes(self) -> None:
        """Learn from what was swept, although the API server does not answer: it is written there later."""
        scene = self.observer.glimpse()
        nodes = self.observer.in_question(scene)
        learnt = self._learn(scene, nodes, away=True).values()
        node = self.observer.glimpse_closer(scene, [seen.node for seen, learned in learnt if learned.look])
        if node is not None:
            self._learn(scene, [node], away=True, close=True)

    def _learn(
        self, scene: Scene, nodes: Iterable[NodeView], *, away: bool = False, close: bool = False
    ) -> dict[str, tuple[Observation, Learned]]:
        """Note what must not be forgotten of these nodes, and keep it at once, before anything is written.

        That also covers nodes that are pursued, and those that get no lane in this pass: what is seen now may
        not be seen again. Then say so, where nothing is going to be written on the Node.

        Args:
            scene: What was seen.
            nodes: Of which.
            away: The API server does not answer.
            close: Their guests were read live, for these looks alone.

        Returns:
            By UID, what was seen, with the notes laid over it, and what was learnt.
        """
        learnt, noted = {}, []
        for node in nodes:
            seen = replace(self._signed(self.observer.observation(scene, node)), close=close)
            learned = learn(seen, self._policy)
            for action in learned.notes:
                if seen.note is not None or must_outlive(with_action(None, seen.node, action)):
                    done = self.executor.note(seen, action)
                    kept = away or not writes_notes(seen, self._policy)
                    noted += [(seen.node, action, done)] if done is not None and kept else []
            if (note := self.shared.notes.of(node.uid)) != seen.note and note is not None:
                if node.name in scene.nodes:
                    scene.nodes[node.name] = laid_over(node, note)
                seen = self._signed(self.observer.observation(scene, laid_over(node, note)))
            learnt[node.uid] = seen, learned
        self.shared.keeper.save_notes()
        for node, action, done in noted:
            self._world.reporter.acted(node, action, done)
        return learnt

    def finish(self, patience_s: float) -> None:
        """Let what goes on beside the passes come to its end, for so long."""
        until_s = self._world.clock.now_s() + patience_s
        while self._pursued and self._world.clock.now_s() < until_s:
            self._world.clock.wait(SHORT_REST_S)

    def _forget_all_but(self, uids: Iterable[str]) -> None:
        for forgotten in self._last.keys() - uids - self._pursued.keys():
            del self._last[forgotten]

    def survey(
        self, name: str | None = None, intent: Intent = Intent.WATCH, word: Word | None = None
    ) -> Pass:
        """Judge every node (or one) without doing anything, looking closely where a decision asks for it.

        Raises:
            ClusterNotFound: there is no node of that name.
            ClusterError: the cluster could not be read.
        """
        scene = self.observer.look()
        nodes = tuple(scene.nodes.values()) if name is None else (self.named(scene, name),)
        judged = {
            node.name: self._settle(scene, self.observer.observation(scene, node, intent, word), act=False)
            for node in nodes
        }
        return Pass(scene, judged, self._policy.poll_s)

    def pursue(
        self,
        name: str,
        intent: Intent,
        word: Word,
        patience_s: float,
        *,
        act: bool = True,
        waits: Callable[[Decision], object] = lambda _: None,
    ) -> Judged:
        """Follow one node until its intent is fulfilled, refused, or patience ends.

        Args:
            name: The node.
            intent: FENCE or UNFENCE.
            word: What the operator said.
            patience_s: How long to wait for what only time can bring.
            act: False: stop where something would be done, or where no time brings what is waited for.
            waits: Called before each wait, with what it is for.

        Raises:
            ClusterNotFound: there is no node of that name.
            ClusterError: the cluster could not be read.
        """
        until_s = self._world.clock.now_s() + patience_s
        while True:
            judged = self.step(name, intent, word, act=act)
            decision = judged.decision
            over = decision.verdict not in WORTH_WAITING or decision.reason is Reason.PODS_CLEARED
            rehearsed = not act and (does_something(decision) or waits_for_others(decision))
            if over or rehearsed or self._world.clock.now_s() >= until_s:
                return judged
            waits(decision)
            recheck_s = self._policy.poll_s if decision.recheck_s is None else decision.recheck_s
            self._world.clock.wait(min(self._policy.poll_s, max(SHORT_REST_S, recheck_s)))

    def step(self, name: str, intent: Intent, word: Word, *, act: bool = True) -> Judged:
        """Look at one node once, and do what follows now.

        Args:
            name: The node.
            intent: On whose behalf.
            word: What the operator said.
            act: False: stop where something would be done.

        Raises:
            ClusterNotFound: there is no node of that name.
            ClusterError: the cluster could not be read.
        """
        scene = self.observer.look()
        observation = self.observer.observation(scene, self.named(scene, name), intent, word)
        return self._settle(scene, observation, act=act)

    def _settle(
        self,
        scene: Scene,
        observation: Observation,
        progress: Callable[[], object] = lambda: None,
        *,
        act: bool = True,
    ) -> Judged:
        """Take one node as far as it goes now: one action at a time, everything observed again after each."""
        return self._go_on(scene, *self._first(self._signed(observation)), progress, act=act)

    def _first(self, observation: Observation) -> tuple[Observation, Decision]:
        """Decide on a node from afar."""
        return observation, self._as_rehearsed(observation, decide(observation, self._policy))

    def _asks(self, observation: Observation, decision: Decision) -> bool:
        """Whether anybody has to be asked before it is clear what a node is."""
        due = self._due(observation, decision)
        return bool(due) or self._wants_closer(observation, decision, due)

    def _go_on(
        self,
        scene: Scene,
        observation: Observation,
        decision: Decision,
        progress: Callable[[], object],
        *,
        act: bool = True,
    ) -> Judged:
        """Act and look, in turns, until there is nothing more to do now."""
        failed, refused = "", set[type[Action]]()
        try:
            for _ in range(STEPS):
                progress()
                due = self._due(observation, decision, refused)
                if self._wants_closer(observation, decision, due):
                    observation = self._signed(self.observer.closer(scene, observation))
                elif not due or not act:
                    break
                else:
                    observation, decision, done = self._act_on(scene, observation, decision, due[0], refused)
                    if done is None:
                        continue
                    if _looks_again(done):
                        observation = self._signed(self.observer.closer(scene, observation))
                    if not done.ok:
                        failed, refused = str(done), {*refused, type(due[0])}
                        if not isinstance(due[0], BindNode | RecordDoubts):  # a note counts all the same
                            break
                decision = decide(observation, self._policy)
        except ClusterError as error:
            failed = str(error)
            decision = replace(decision, recheck_s=None)  # at once it would fail again
            if not isinstance(error, NotYet):
                self._world.reporter.said(f"{observation.node.name}: {error}", warning=True)
        return self._concluded(observation, decision, failed)

    def _act_on(
        self,
        scene: Scene,
        observation: Observation,
        decision: Decision,
        action: Action,
        refused: Collection[type[Action]],
    ) -> tuple[Observation, Decision, Done | None]:
        """Carry out an action; count the other nodes first where it has to be counted.

        Returns:
            As `_act_counted` does.
        """
        if isinstance(action, COUNTED):
            return self._act_counted(scene, observation, decision, refused)
        return observation, decision, self._act(observation, decision, action)

    def _act_counted(
        self, scene: Scene, observation: Observation, decision: Decision, refused: Collection[type[Action]]
    ) -> tuple[Observation, Decision, Done | None]:
        """Count the other nodes again, and act if that still is right, while nobody else does.

        Whoever has waited long for that has to look again first, before it costs a count: what it saw would
        be too old in the end.

        Returns:
            What was seen then, what was decided, and what came of the action; None: another one is due, or
            none.
        """
        came_s = self._world.clock.now_s()
        with ExitStack() as alone, self._waiting(observation, decision):
            alone.enter_context(self._world.asker.alone("counting"))
            if self._world.clock.now_s() - came_s > self._policy.evidence_max_age_s / 2:
                return replace(observation, close=False), decision, None
            observation = self.observer.recounted(scene, observation, came_s)
            decision = decide(observation, self._policy)
            due = self._due(observation, decision, refused)
            if self._wants_closer(observation, decision, due) or not due or not isinstance(due[0], COUNTED):
                return observation, decision, None
            action = due[0]

            def counts() -> None:
                self.observer.counting.count(scene, observation.node, action)
                alone.close()

            done = self._act(observation, decision, action, counts)
        if isinstance(done, Happened) and done.changed:  # of any other failure nobody knows what came
            self.observer.counting.discount(scene, observation.node)
        return observation, decision, done

    @contextmanager
    def _waiting(self, observation: Observation, decision: Decision) -> Iterator[None]:
        """Count a node among those that wait for their turn to be fenced."""
        due, uid = self.shared.memory.due, observation.node.uid
        if any(isinstance(action, TaintNode) for action in decision.actions):
            due.add(uid)
        try:
            yield
        finally:
            due.discard(uid)

    def _concluded(self, observation: Observation, decision: Decision, failed: str = "") -> Judged:
        """Tell what became of a node, and remember it, and when it has to be looked at again."""
        if decision.recheck_s is not None:
            self._due_s = min(self._due_s, self._world.clock.now_s() + decision.recheck_s)
        self._tell(observation, decision)
        self._record_end_of_alarm(observation, decision)
        self._rehearse(observation.node, decision)
        if observation.node.gone and decision.reason is Reason.PODS_CLEARED:
            self.observer.forget(observation.node)
            self._world.reporter.said(DELETED.format(node=observation.node.name), warning=False)
        concluded = self._last[observation.node.uid] = Judged(observation, decision, failed)
        return concluded

    def _as_rehearsed(self, observation: Observation, decision: Decision) -> Decision:
        """Return the action that a close look found lately, if only another close look would find it again.

        For an agent that only observes: a node that it does nothing about must not cost one in every pass.
        """
        said = self._rehearsed.get(observation.node.uid)
        if said is None or decision.reason is not Reason.CLOSER_LOOK or observation.looked_s >= LOOK_AGAIN_S:
            return decision
        if [check.name for check in said.checks] != [check.name for check in decision.checks]:
            return decision  # another ladder: somebody else has fenced it, or taken the fence off
        return replace(said, actions=decision.actions, look=decision.look)

    def _rehearse(self, node: NodeView, decision: Decision) -> None:
        """Remember what would be done to a node, while anything would."""
        if decision.reason is Reason.OBSERVE_MODE:
            self._rehearsed[node.uid] = decision
        else:
            self._rehearsed.pop(node.uid, None)

    def _due(
        self, observation: Observation, decision: Decision, refused: Collection[type[Action]] = ()
    ) -> list[Action]:
        """Return the actions to carry out: an alarm only once, and no note that the Node has just refused."""
        return [
            action
            for action in decision.actions
            if type(action) not in refused
            and not (isinstance(action, Alarm) and self._is_raised(observation, action))
        ]

    def _is_raised(self, seen: Observation, alarm: Alarm) -> bool:
        """Whether an alarm was raised in this incident, or what it says is known by another one."""
        incident = _incident_of(seen, alarm)
        raised = [one for which, one in self._alarmed if which == incident]
        # A drain changes the text of a crash loop's alarm.
        known = is_loop_alarm(alarm) and any(map(is_loop_alarm, raised))
        return known or alarm in raised or repeats(alarm, raised)

    def _wants_closer(self, observation: Observation, decision: Decision, due: Sequence[Action]) -> bool:
        """Never act from afar; and take the second of two readings at once if no wait is needed."""
        if decision.look and not observation.close:
            return True
        if decision.verdict is Verdict.WAIT and decision.recheck_s == 0.0:
            run = observation.history.run
            return not observation.close or (decision.reason is Reason.NOT_HELD and run is not None)
        if decision.reason in STILL_READY and _long_gone(observation):
            return True
        near = not observation.node.asked or any(not isinstance(action, FROM_AFAR) for action in due)
        return bool(due) and near and not observation.close

    def _act(
        self,
        observation: Observation,
        decision: Decision,
        action: Action,
        counts: Callable[[], None] = lambda: None,
    ) -> Done:
        self._tell(observation, decision)
        if isinstance(action, Alarm):  # news, whatever its verdict and reason (A8)
            self._alarmed.add((_incident_of(observation, action), action))
            self._record(observation, decision)
        done = self.executor.carry_out(observation, action, counts)
        self._world.reporter.acted(observation.node, action, done)
        return done

    def _tell(self, seen: Observation, decision: Decision) -> None:
        now, node = _news(seen.node, decision), seen.node
        if decision.reason in NO_NEWS or self._told.get(node.uid) == now:
            return
        first = node.uid not in self._told
        self._told[node.uid] = now
        plain = decision.verdict is Verdict.HEALTHY and decision.reason is not Reason.CORDON_UNRECORDED
        if not (first and plain):
            self._record(seen, decision)
            self._world.reporter.decided(node, decision)

    def _record(self, seen: Observation, decision: Decision) -> None:
        """Record a decision, unless it is the newest record already."""
        now = seen.now_s, decision
        if self._recorded.get(seen.node.uid) != now:
            self._recorded[seen.node.uid] = now
            self._world.recorder.judged(seen, decision)

    def _record_end_of_alarm(self, seen: Observation, decision: Decision) -> None:
        """Record that a healthy node has no alarm any more: by its verdict and reason that is no news."""
        recorded = self._recorded.get(seen.node.uid)
        raised = recorded is not None and _raises_alarm(recorded[1])
        if raised and decision.verdict is Verdict.HEALTHY and not _raises_alarm(decision):
            self._record(seen, decision)
        if not in_crash_loop(decision):
            self._alarmed -= {one for one in self._alarmed if one[0] == seen.node.uid}

    def _signed(self, observation: Observation) -> Observation:
        """Add the incident under which an action would be recorded, and its author."""
        mark = observation.node.mark
        if isinstance(mark, FenceMark) and observation.node.fenced:
            incident = mark.incident
        else:
            incident = incident_id(observation.node)
        if observation.intent is Intent.SHUTDOWN:  # a guest that was stopped for this is not started again
            incident = f"{incident}-shutdown"
        return replace(observation, incident=incident, by=self._by)

    def named(self, scene: Scene, name: str) -> NodeView:
        """Return a node of a scene by its name.

        Raises:
            ClusterNotFound: there is none.
        """
        if name not in scene.nodes:
            raise ClusterNotFound(no_such_node(name, scene.nodes))
        return scene.nodes[name]


def _raises_alarm(decision: Decision) -> bool:
    return any(isinstance(action, Alarm) for action in decision.actions)


def _incident_of(seen: Observation, alarm: Alarm) -> str:
    """Return the incident in which an alarm is raised once: a crash loop is one, over all of its boots."""
    return seen.node.uid if is_loop_alarm(alarm) else seen.incident


def _looks_again(done: Done) -> bool:
    """Whether a close look follows: it was done; or the Node has changed, which a watch may show late."""
    return done.ok or (isinstance(done, Happened) and done.changed)


def _long_gone(observation: Observation) -> bool:
    """Whether a node that is told to be Ready is worth a look: what is told may be late."""
    evidence, silent_s = observation.evidence, observation.node.lease_age_s or 0.0
    late = evidence is not None and evidence.gone and silent_s >= LEASE_DURATION_S
    return late and not observation.close and observation.looked_s >= LOOK_AGAIN_S


def _news(node: NodeView, decision: Decision) -> tuple[Verdict, Reason, str]:
    """Return what makes a decision news; what would be done is part of it, but not to how many objects.

    That a healthy node's guest cannot be read is told once, of its endpoint. While fencing is paused, a node
    that falls is refused as before: that it is not Ready any more is the news.
    """
    if decision.reason is Reason.BLIND:
        return decision.verdict, Reason.NODE_HEALTHY, ""
    if decision.reason in AT_EASE:
        return decision.verdict, decision.reason, "" if node.ready is True else "not Ready"
    deed = says(decision).partition(":")[0] if decision.reason is Reason.OBSERVE_MODE else ""
    return decision.verdict, decision.reason, deed


def incident_id(node: NodeView) -> str:
    """Return the id of an incident: the same for every agent that sees this node end in this boot."""
    return hashlib.sha256(f"{node.uid}/{node.boot_id}".encode()).hexdigest()[:8]
