"""Drain one node, a step at a time: cordon, evict in parallel, wait until pods and volumes are gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never
from uuid import uuid4

from fencer.core.cordon import (
    DRAIN,
    HOOK,
    cordon_for,
    cordon_stands,
    cordoned_by_drain,
    passing_cordon,
    unrecorded_cordon,
)
from fencer.core.done import Done, Happened
from fencer.core.model import (
    Action,
    AttachmentView,
    Cordon,
    CordonNode,
    Deed,
    EvictPods,
    NodeView,
    Observation,
    PodView,
    Uncordon,
)
from fencer.core.text import age, count, listing, of_limit, printable
from fencer.core.times import MOST_APART_S, seconds_between
from fencer.errors import ClusterDenied, ClusterError, FencerError
from fencer.evicting.answers import unanswered, understand
from fencer.evicting.evacuation import Evacuation
from fencer.evicting.lots import Filters, Lot, lot, of_lot
from fencer.planned.step import Next, next_step
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World

LOOK_EVERY_S = 1.0
"""As kubectl does."""
CORDON_EVERY_S = 10.0
"""How often to check that the node is still cordoned; also once before it counts as drained."""
BATCH = 8
"""Evictions asked for at once: a budget's answer to these can spare asking for the rest."""
NAMED = 6
"""How many pods are named for one reason."""
CORDON_TRIES = 5
"""The kubelet writes the node's status every 10 s, and perhaps the agent: after a conflict, look again."""
OPTIONS = {
    Lot.UNMANAGED: "no controller would recreate it (--force evicts it, for good)",
    Lot.LOCAL_DATA: "its emptyDir would be lost (--delete-emptydir-data evicts it)",
}
"""Why a pod needs an option to be evicted, and which."""

Tell = Callable[[str, str, str], None]
"""Shows a step: the node's name, what it is, and its details."""


@dataclass(frozen=True, slots=True)
class DrainOptions:
    """How to drain.

    Attributes:
        filters: Which pods go.
        grace_s: How long each pod may take to end, 1 s at least; None: as long as its own spec says.
        timeout_s: For all of it.
        keep_cordon: Leave the node cordoned if the drain fails.
        by: Who cordons: `DRAIN` or `HOOK`.
        shutdown: The node's guest is shut down next.
    """

    filters: Filters = field(default_factory=Filters)
    grace_s: float | None = None
    timeout_s: float = float("inf")
    keep_cordon: bool = False
    by: str = DRAIN
    shutdown: bool = False


class NodeDrain:
    """The drain of one node.

    Args:
        world: The ports.
        agent: Whose observer and executor are used.
        name: The node.
        options: How to drain.
        tell: Shows the steps.

    Attributes:
        over: Nothing is left to do.
        failed: Why it failed; empty: it did not, or goes on.
        cordoned: The node is cordoned by a fencer drain: this one, or an earlier one.
        own: The note of a cordon that this drain set, or tried to, and may undo; None: there is none.
        unanswered: It tried to, and no answer came: the node may be cordoned, or be cordoned yet.
        pods: The pods that it moves, and its progress.
    """

    def __init__(self, world: World, agent: Agent, name: str, options: DrainOptions, tell: Tell) -> None:
        self.name = name
        self.over = False
        self.failed = ""
        self.cordoned = False
        self.own: Cordon | None = None
        self.unanswered = False
        self.pods: Evacuation[PodView] = Evacuation(options.filters)
        self._world = world
        self._agent = agent
        self._options = options
        self._tell = tell
        self._before: Cordon | None = None
        self._run = uuid4().hex[:12]
        self._seen: Observation | None = None
        self._attachments: Sequence[AttachmentView] = ()
        self._since_s: float | None = None
        self._next_look_s = 0.0
        self._cordon_look_s = 0.0
        self._trouble = ""
        self._held: dict[str, str] = {}
        self._counted = False

    def begin(self) -> None:
        """Cordon the node, unless that was done; its drain may come later.

        Raises:
            ClusterError: it could not begin; nothing was changed.
        """
        if self._seen is None:
            self._begin()

    def advance(self) -> float:
        """Do what is due now.

        Returns:
            In how many seconds to come again.

        Raises:
            ClusterError: it could not begin; nothing was changed.
        """
        self.begin()
        if not self.over:
            self._work()
        now_s = self._world.clock.now_s()
        due_s = self.pods.evictions.next_s()
        times = [self._next_look_s, *([] if due_s is None else [due_s])]
        return max(0.0, min(times) - now_s)

    def give_back(self) -> bool:
        """Undo this drain's own cordon, after a failure here or elsewhere; return whether it is off.

        Anybody else's cordon stays, another drain's too. If this drain took over a cordon that the agent
        takes off by itself, it is put back for the agent.
        """
        done: Done = Happened("", ok=False)
        failures = 0
        for _ in range(CORDON_TRIES):
            if self.own is None:
                return False
            try:
                node = self._read_node()
            except ClusterError as error:
                done = Happened(str(error), ok=False)
            else:
                if not cordon_stands(node, self.own):
                    return self._gave_up(node)
                done = self._undo_cordon(node)
            if done.ok:
                return self._before is None
            failures += not (isinstance(done, Happened) and done.changed)
            if failures > 1:
                break
        self._tell(self.name, "trouble", f"not uncordoned: {done}")
        return False

    def _gave_up(self, node: NodeView) -> bool:
        """Take note that somebody else has the cordon, or took it off; return whether it is off."""
        # Without an answer, the cordon may still be on its way.
        self.own = None if self.cordoned else self.own
        self.cordoned = self.cordoned and node.unschedulable
        return not node.unschedulable and self.own is None

    def _undo_cordon(self, node: NodeView) -> Done:
        before = self._before
        action: Uncordon | CordonNode = Uncordon() if before is None else CordonNode(before)
        done = self._carry_out(node, action)
        if done.ok:
            self.cordoned, self.own = False, None
            why = "its drain failed" if self.failed else "its drain did not begin"
            did = "uncordoned" if before is None else "cordoned as before; the agent takes that off"
            self._record(action, f"{did}: {why}", ok=True)
        return done

    @property
    def begun(self) -> bool:
        """Whether more was done than cordoning."""
        return self._counted

    def progress(self) -> str:
        """Say its progress."""
        gone, left = len(self.pods.evictions.gone), len(self.pods.evictions.left())
        return f"{gone} of {gone + left} pods are gone"

    def waits(self) -> str:
        """Say what it waits for: ``9 of 17 gone; 8 wait for lab/db; 32 s of 600 s``; empty: not begun."""
        if self._since_s is None:
            return ""
        gone, left = len(self.pods.evictions.gone), len(self.pods.evictions.left())
        held = sorted(self.pods.evictions.behind().items())
        ending = left - sum(number for _, number in held)
        spent_s = self._world.clock.now_s() - self._since_s
        parts = [
            f"{gone} of {gone + left} gone",
            *(f"{number} {_wait(number)} for {budget}" for budget, number in held),
            f"{ending} still ending" if ending else "",
            "" if left or not self._attachments else f"{count(len(self._attachments), 'volume')} attached",
            of_limit(spent_s, self._options.timeout_s),
        ]
        return "; ".join(filter(None, parts))

    # -- the beginning -------------------------------------------------------------------------------------

    def _begin(self) -> None:
        for tries_left in reversed(range(CORDON_TRIES)):
            observation = self._observe()
            filters = self._options.filters
            barred = of_lot(observation.pods or (), filters, filters.forbidden)
            self._seen = observation
            self.pods = Evacuation(filters, observation.utc)
            if barred:
                self._refuse(barred)
                return
            if other := self._other_drain(observation):
                self._fail(other)
                return
            action = cordon_for(
                observation.node,
                observation.latest_utc,
                self._options.by,
                self._run,
                shutdown=self._options.shutdown,
            )
            if action is None:
                self._found_cordoned(observation.node)
                return
            # Noted before it is done: if the answer is lost, the next look shows whether it was done.
            self._before, self.own = passing_cordon(observation.node), action.cordon
            done = self._agent.executor.carry_out(observation, action)
            self.unanswered |= isinstance(done, Happened) and done.unanswered
            if done.ok:
                self.cordoned = True
                self._record(action, str(done), ok=True)
                return
            if not tries_left:
                self._fail(f"it could not be cordoned: {done}")

    def _other_drain(self, seen: Observation) -> str:
        """Say that a drain for another hook, perhaps another agent's, may still go on; empty: none does.

        A hook's cordon does not say that its drain has ended; after the time that a drain may take it has, by
        the slower clock (E26).
        """
        cordon = passing_cordon(seen.node)
        if self._options.by != HOOK or cordon is None or cordon.by != HOOK or cordon.run == self._run:
            return ""
        since_s = seconds_between(cordon.since_utc, seen.earliest_utc)
        ahead_s = seconds_between(seen.latest_utc, cordon.since_utc)
        ended = since_s >= self._options.timeout_s or ahead_s > MOST_APART_S
        if cordon.boot_id != seen.node.boot_id or ended:
            return ""
        began = age(max(0.0, since_s))
        return f"a drain for another hook, run {printable(cordon.run)}, began {began} ago, and may go on"

    def _found_cordoned(self, node: NodeView) -> None:
        self.cordoned = cordoned_by_drain(node)
        if self.own is not None and cordon_stands(node, self.own):
            self._tell(self.name, "cordoned", "though no answer came")
            return
        self.own = None
        whose = "by a fencer drain" if self.cordoned else "by somebody else"
        if unrecorded_cordon(node) is not None:
            whose = "by fencer, as its note says"
        self._tell(self.name, "cordoned", f"already, {whose}: it stays so")

    def _read_node(self) -> NodeView:
        shared = self._agent.shared
        return shared.cordons.look(shared.api(lambda: self._world.cluster.fact(self.name)).node)

    def _carry_out(self, node: NodeView, action: Action) -> Done:
        assert self._seen is not None  # noqa: S101 - what is to be undone has begun
        seen = replace(self._seen, node=node, now_s=self._world.clock.now_s())  # it was read just now
        return self._agent.executor.carry_out(seen, action)

    def _observe(self) -> Observation:
        observer = self._agent.observer
        scene = observer.look()
        observation = observer.observation(scene, self._agent.named(scene, self.name))
        return observer.closer(scene, observation)

    def _refuse(self, barred: Sequence[PodView]) -> None:
        for pod in barred:
            self._tell(self.name, "in the way", f"{pod}: {OPTIONS[lot(pod, self._options.filters)]}")
        needs = "needs" if len(barred) == 1 else "need"
        self._fail(f"{count(len(barred), 'pod')} {needs} an option that was not given; nothing was changed")

    # -- the way -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        now_s = self._world.clock.now_s()
        self._since_s = now_s if self._since_s is None else self._since_s
        if now_s < self._next_look_s or (self._look() and not self.over):
            self._take_next_step(now_s, now_s - self._since_s)
        if not self.over and now_s - self._since_s >= self._options.timeout_s:
            self._fail(f"after {age(self._options.timeout_s)}, {self._in_the_way()}")

    def _take_next_step(self, now_s: float, took_s: float) -> None:
        step = next_step(self.pods.evictions, self.pods.staying, self._attachments, now_s)
        match step:
            case Next.EVICT:
                self._evict(self.pods.evictions.due(now_s)[:BATCH])
            case Next.DONE:
                self.over = True
                self._tell(
                    self.name,
                    "drained",
                    f"{count(len(self.pods.evictions.gone), 'pod')} gone {self._how(took_s)}",
                )
            case Next.HOPELESS:
                self._fail(f"refused for good: {self._in_the_way()}")
            case Next.WAIT_FOR_PODS | Next.WAIT_FOR_VOLUMES:
                pass
            case _:
                assert_never(step)

    def _how(self, took_s: float) -> str:
        whose = " of theirs" if self._attachments else ""  # pods that stay keep their volumes
        returned = self.pods.returned
        back = f"; {count(len(returned), 'pod')} came back" if returned else ""
        return f"in {age(round(took_s))}, no volume{whose} left attached{back}"

    def _look(self) -> bool:
        """Look at the pods and, once they are gone, at the volumes; tell whether both could be seen."""
        cluster = self._world.cluster
        self._next_look_s = self._world.clock.now_s() + LOOK_EVERY_S
        try:
            self._saw(self._agent.shared.api(lambda: cluster.pods(self.name)))
            if self.pods.evictions.done:
                self._attachments = self._agent.shared.api(cluster.attachments).of(self.name)
            if self.pods.evictions.done or self._world.clock.now_s() >= self._cordon_look_s:
                self._look_at_cordon()
        except ClusterDenied:
            raise
        except ClusterError as error:
            if str(error) != self._trouble:
                self._tell(self.name, "trouble", str(error))
            self._trouble = str(error)
            return False
        self._trouble = ""
        return True

    def _look_at_cordon(self) -> None:
        """Fail if the cordon was taken off: by the drain that set it and failed, or by a person."""
        node = self._read_node()
        self._cordon_look_s = self._world.clock.now_s() + CORDON_EVERY_S
        if not node.unschedulable:
            self.cordoned, self.own = False, None
            self._fail("it was uncordoned meanwhile, by somebody else")

    def _saw(self, pods: Sequence[PodView]) -> None:
        came_back = self.pods.saw(pods)
        if not self._counted:
            self._tell(self.name, "to go", _named(self.pods.going))
        self._counted = True
        for pod, why in came_back:
            self._tell(self.name, "comes back", f"{pod}: {why}; left where it is")

    def _evict(self, pods: Sequence[PodView]) -> None:
        action = EvictPods(tuple(pods), self._options.grace_s)
        if self._seen is not None:
            self._world.recorder.intends(self._seen, action)
        accepted, news = [], defaultdict(list)
        for pod, answer in self._agent.executor.evict(action):
            reply = unanswered(str(answer)) if isinstance(answer, FencerError) else understand(answer)
            if self.pods.evictions.answered(pod, reply, self._world.clock.now_s()):
                news[f"{pod.namespace}/{reply.budget}" if reply.budget else "", reply.text].append(pod)
            if not reply.text:
                accepted.append(pod)
        for (budget, text), held in news.items():
            self._tell_blocked(budget, text, held)
        if accepted:
            self._record(EvictPods(tuple(accepted), self._options.grace_s), _named(accepted), ok=True)

    def _tell_blocked(self, budget: str, text: str, pods: Sequence[PodView]) -> None:
        """Say what is in the way of some pods; of a budget once for all that wait for it."""
        if not budget:
            self._tell(self.name, "blocked", f"{_listed(pods)}: {text}")
        elif self._held.get(budget) != text:
            self._held[budget] = text
            number = self.pods.evictions.behind()[budget]
            self._tell(self.name, "blocked", f"{count(number, 'pod')} {_wait(number)} for {budget}: {text}")

    def _in_the_way(self) -> str:
        left = self.pods.evictions.left()
        if not left:
            volumes = ", ".join(item.volume for item in self._attachments[:4])
            return f"{len(self._attachments)} still attached: {volumes}"
        groups = defaultdict(list)
        for pod, why in left:
            groups[why].append(pod)
        return "; ".join(f"{_listed(pods)}: {why}" for why, pods in groups.items())

    def _fail(self, why: str) -> None:
        self.over, self.failed = True, why

    def _record(self, action: Deed, text: str, *, ok: bool) -> None:
        if self._seen is not None:
            self._world.reporter.acted(self._seen.node, action, Happened(text, ok))


def _wait(number: int) -> str:
    return "waits" if number == 1 else "wait"


def _listed(pods: Sequence[PodView]) -> str:
    return listing(pods, NAMED)


def _named(pods: Sequence[PodView]) -> str:
    """Return how many there are, and the first of them by name."""
    return f"{count(len(pods), 'pod')}: {_listed(pods)}" if pods else "no pod"
