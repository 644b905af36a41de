"""A fire drill of one node: its VM is stopped hard, the agent is watched, and the VM is started again.

Nothing on the Node tells the agent that it is a drill: no cordon, and a claim in the name of no incident.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fencer.core.done import GuestStopped
from fencer.core.model import Evidence, Intent, Judged, NodeView, Observation, PodView, Word
from fencer.core.pods import clearable
from fencer.core.policy import Policy
from fencer.core.text import alike
from fencer.errors import ClusterError
from fencer.evicting.lots import Filters
from fencer.planned.before_drill import No, others_in_trouble, refusal
from fencer.planned.campaign import Replacements
from fencer.planned.drain import DrainOptions, Tell
from fencer.planned.drill import Course, Milestone, Next, failure, look_at, next_step, told, waits
from fencer.planned.restart import Restart
from fencer.runtime.counting import not_running
from fencer.runtime.reconcile import Agent, incident_id
from fencer.runtime.world import World

ALL = DrainOptions(Filters(force=True, delete_emptydir_data=True))
"""A crash takes every pod."""


def rehearse(agent: Agent, policy: Policy, name: str) -> tuple[Judged, No | None]:
    """Judge live whether the guest of a node may be stopped for a drill. Nothing is done.

    Args:
        agent: Judges.
        policy: How careful the watching agent is.
        name: The node.

    Returns:
        The node, and why not; None: it may.

    Raises:
        ClusterError: the cluster could not be read.
    """
    scene = agent.observer.look()
    nodes = scene.nodes.values()
    judged = agent.step(name, Intent.SHUTDOWN, Word(), act=False)
    others = others_in_trouble(name, nodes, not_running(scene, nodes), scene.errors)
    return judged, refusal(judged, policy) or others


class DrillTurn:
    """The drill of one node. However it ends: `withdraw` has to be called, as long as it `owes` a start.

    Args:
        world: The ports.
        agent: Acts on behalf of the person.
        judge: Judges before that, and tells nobody: it asks as for a shutdown.
        policy: How often to look.
        node: The node.
        limit_s: How long the watching agent may take, and again the return.
        tell: Shows the steps.
    """

    def __init__(
        self,
        world: World,
        agent: Agent,
        judge: Agent,
        policy: Policy,
        node: NodeView,
        limit_s: float,
        tell: Tell,
    ) -> None:
        self.node = node
        self.failed = ""
        self.over = False
        self.course = Course(node.boot_id, limit_s)
        self.workloads = Replacements(world, agent)
        self.pods: tuple[PodView, ...] = ()
        """What a fence has to clear."""
        self._world = world
        self._agent = agent
        self._judge = judge
        self._policy = policy
        self._tell = tell
        self._restart: Restart | None = None
        self._trouble = ""
        self._withdrawn = False
        self._next_look_s = 0.0

    @property
    def returned(self) -> Sequence[PodView]:
        """See `Turn.returned`."""
        return ()

    @property
    def owes(self) -> bool:
        """Whether its guest may be off because of the drill, and was not seen running since."""
        return self._restart is not None and self._restart.owes

    @property
    def trouble(self) -> str:
        """What was last in the way of the start that it owes; empty: nothing."""
        return self._restart.trouble if self._restart is not None else ""

    @property
    def refused(self) -> Judged | None:
        """The rules' last answer about the start that it owes, where they were in the way."""
        return self._restart.refused if self._restart is not None else None

    @property
    def last(self) -> Observation | None:
        """The node as it was last seen. None: nothing was done yet."""
        return self._restart.last if self._restart is not None else None

    @property
    def reading(self) -> Evidence | None:
        """The last reading of its guest since the power cut. None: there was none."""
        return self._restart.reading if self._restart is not None else None

    @property
    def incident(self) -> str:
        """The id of the incident, as the agent that fenced it, or would have, calls it."""
        return self.course.mark.incident if self.course.mark else incident_id(self.node)

    def prepare(self) -> None:
        """Do nothing: an emergency is not prepared."""

    def withdraw(self) -> None:
        """Start the guest, if that is owed. Bounded; what goes wrong is told, and `owes` then stays."""
        restart, done = self._restart, self._withdrawn or self.over
        self._withdrawn = True
        if restart is not None and (restart.owes or not done):
            self._bring_back(restart)

    def advance(self) -> float:
        """See `Turn.advance`."""
        match next_step(self.course, self._world.clock.now_s()), self._restart:
            case (Next.STOP, _) | (_, None):
                self._stop()
            case Next.WATCH | Next.AWAIT, _:
                self._look()
            case Next.START, restart:
                restart.try_once()
                self._note_start(restart)
                if restart.gave_up:
                    self._end(f"its VM could not be started: {restart.trouble}")
            case _:
                self._end(failure(self.course))
        return self._policy.poll_s if Milestone.OFF in self.course.reached else 0.0

    def waits(self) -> str:
        """See `Turn.waits`."""
        return waits(self.course, self._world.clock.now_s())

    def _stop(self) -> None:
        """Judge it live once more, and cut its guest's power."""
        judged, no = rehearse(self._judge, self._policy, self.node.name)
        if no is not None:
            self._end(f"{no.why}. What would change this: {no.change}. Nothing was done")
            return
        self.workloads.expect(self.node.name, ALL)
        self.pods = clearable(judged.observation.pods or ())
        guest = judged.observation.evidence
        assert guest is not None  # noqa: S101 - it runs
        # No agent's incident: one that finds its own claimed would take the power cut for fencer's.
        seen = replace(judged.observation, incident=f"drill-{incident_id(self.node)}")
        self._restart = restart = Restart(self._world, self._agent, self._policy, seen, guest, self._tell)
        done = restart.stop()
        if isinstance(done, GuestStopped) and done.ok:
            restart.answered()
            self.course = self.course.at(Milestone.OFF, self._world.clock.now_s())
            return
        if not (isinstance(done, GuestStopped) and done.sent):
            restart.settled()
        self._bring_back(restart)
        self._end(f"its VM was not stopped: {done}")

    def _look(self) -> None:
        """Look once, and tell what was reached. What cannot be seen now is seen later."""
        name, observer, before = self.node.name, self._agent.observer, self.course.reached
        now_s = self._world.clock.now_s()
        if now_s < self._next_look_s:
            return
        self._next_look_s = now_s + self._policy.poll_s
        counts = Milestone.FENCED in before or Milestone.STARTED in before  # pods about to go look Ready
        try:
            scene = observer.look(sparing=True)
            seen = observer.closer(scene, observer.observation(scene, self._agent.named(scene, name)))
            short = tuple(self.workloads.short()) if counts else None
        except ClusterError as error:
            if alike(str(error)) != alike(self._trouble):
                self._tell(name, "trouble", str(error))
            self._trouble = str(error)
            return
        self._trouble = ""
        if self._restart is not None:
            self._restart.saw(seen)
        self.course = self.course.saw(look_at(seen, {pod.uid for pod in self.pods}, short))
        if self.course.by_others and Milestone.STARTED not in before and self._restart is not None:
            self._restart.settled()
            where = self.course.runs_as or "where fencer can't see it"
            self._world.reporter.said(f"{name}: another tool started its VM: {where}", warning=True)
        for milestone in Milestone:
            if milestone in self.course.reached and milestone not in before:
                step = told(self.course, milestone, len(self.pods), self.workloads.complete)
                if step is not None:
                    self._tell(name, *step)

    def _bring_back(self, restart: Restart) -> None:
        restart.see_through()
        self._note_start(restart)
        restart.tidy()

    def _note_start(self, restart: Restart) -> None:
        if not self.course.off or restart.owes:
            return
        if restart.by_others is not None:
            self.course = self.course.started_by_others(restart.by_others)
        else:
            self.course = self.course.at(Milestone.STARTED, self._world.clock.now_s())

    def _end(self, why: str) -> None:
        self.over, self.failed = True, why
        if self._restart is not None:
            self._restart.tidy()
