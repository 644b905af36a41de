"""A fire drill of one node: its guest is stopped hard, the agent is watched, and the guest is started again.

Nothing on the Node tells the agent that it is a drill: no cordon, and a claim in the name of no incident.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from fencer.core.done import Done, GuestStopped
from fencer.core.model import (
    Evidence,
    ForgetMark,
    Intent,
    Judged,
    NodeView,
    Observation,
    PodView,
    PowerState,
    StartGuest,
    StopGuest,
    Verdict,
    Word,
)
from fencer.core.pods import clearable
from fencer.core.policy import Policy
from fencer.core.text import age
from fencer.errors import ClusterError, FencerError
from fencer.evicting.lots import Filters
from fencer.planned.before_drill import No, others_in_trouble, refusal
from fencer.planned.campaign import Replacements
from fencer.planned.drain import DrainOptions, Tell
from fencer.planned.drill import Course, Milestone, Next, failure, look_at, next_step, told, waits
from fencer.runtime.counting import not_running
from fencer.runtime.reconcile import Agent, incident_id
from fencer.runtime.world import World
from fencer.wording.reasons import says

BY_RULES_S = 30.0
"""So long the guest is started by the rules, which clear what is left first; then it is just started. It has
no old memory then, and its fence is lifted only when nothing from before is left."""
GIVE_UP_S = 120.0
"""So long its start is tried."""
MAY_COME_S = 30.0
"""So long a power-off that was not answered may still come: twice its deadline (`stop_deadline_s`)."""
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
    others = others_in_trouble(name, nodes, not_running(scene, nodes))
    return judged, refusal(judged, policy) or others


class DrillTurn:
    """The drill of one node. As long as it `owes` a start, `withdraw` is to be called, however it ends.

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
        self.owes = False
        """The guest may be off because of the drill, and was not started again."""
        self.course = Course(node.boot_id, limit_s)
        self.workloads = Replacements(world, agent)
        self.pods: tuple[PodView, ...] = ()
        """What a fence has to clear."""
        self._world = world
        self._agent = agent
        self._judge = judge
        self._policy = policy
        self._tell = tell
        self._seen: Observation | None = None
        self._off: Evidence | None = None
        self._owed_until_s = 0.0
        self._starting_since_s: float | None = None
        self._trouble = ""

    @property
    def returned(self) -> Sequence[PodView]:
        """See `Turn.returned`."""
        return ()

    @property
    def incident(self) -> str:
        """The id of the incident, as the agent that fenced it, or would have, calls it."""
        return self.course.mark.incident if self.course.mark else incident_id(self.node)

    def prepare(self) -> None:
        """Do nothing: an emergency is not prepared."""

    def withdraw(self) -> None:
        """Start the guest, if that is owed; whoever presses Ctrl-C has to wait for that. Bounded.

        What goes wrong is told, and `owes` then stays.
        """
        try:
            while self.owes and not self._gave_up():
                try:
                    self._start()
                    if self.owes:
                        self._world.clock.wait(self._policy.poll_s)
                except KeyboardInterrupt:
                    self._tell(self.node.name, "to be started", f"first its guest: {age(GIVE_UP_S)} at most")
        finally:
            if self.owes:  # a bug must not leave it off, either
                self._start_directly()
        if not self.over:
            self._tidy()

    def advance(self) -> float:
        """See `Turn.advance`."""
        match next_step(self.course, self._world.clock.now_s()):
            case Next.STOP:
                self._stop()
            case Next.WATCH | Next.AWAIT:
                self._look()
            case Next.START:
                self._start()
                if self._gave_up():
                    self._end(f"its guest could not be started: {self._trouble}")
            case Next.DONE:
                self._end(failure(self.course))
        return self._policy.poll_s if Milestone.OFF in self.course.reached else 0.0

    def waits(self) -> str:
        """See `Turn.waits`."""
        return waits(self.course, self._world.clock.now_s())

    # -- the power cut -------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Judge it live once more, and cut its guest's power."""
        judged, no = rehearse(self._judge, self._policy, self.node.name)
        if no is not None:
            self._end(f"{no.why}. What would change this: {no.change}. Nothing was done")
            return
        self.workloads.expect(self.node.name, ALL)
        # No agent's incident: one that finds its own claimed would take the power cut for fencer's.
        self._seen = replace(judged.observation, incident=f"drill-{incident_id(self.node)}")
        self._off = judged.observation.evidence
        assert self._off is not None  # noqa: S101 - it runs
        self.pods = clearable(judged.observation.pods or ())
        self.owes, self._owed_until_s = True, self._world.clock.now_s() + MAY_COME_S
        done = self._carry_out(StopGuest(self._off.guest, self._off.incarnation))
        now_s = self._world.clock.now_s()
        if isinstance(done, GuestStopped) and done.ok:
            self._owed_until_s = now_s
            self.course = self.course.at(Milestone.OFF, now_s)
            return
        self.owes = isinstance(done, GuestStopped) and done.sent
        self._owed_until_s = now_s + MAY_COME_S
        self.withdraw()
        self._end(f"its guest was not stopped: {done}")

    def _carry_out(self, action: StopGuest | StartGuest) -> Done:
        assert self._seen is not None  # noqa: S101 - it was judged
        done = self._agent.executor.carry_out(self._seen, action)
        self._world.reporter.acted(self.node, action, done)
        return done

    # -- what the agent does -------------------------------------------------------------------------------

    def _look(self) -> None:
        """Look once, and tell what was reached. What cannot be seen now is seen later."""
        name, observer, before = self.node.name, self._agent.observer, self.course.reached
        counts = Milestone.FENCED in before or Milestone.STARTED in before  # pods about to go look Ready
        try:
            scene = observer.look()
            seen = observer.closer(scene, observer.observation(scene, self._agent.named(scene, name)))
            short = tuple(self.workloads.short()) if counts else None
        except ClusterError as error:
            self._say_trouble(str(error))
            return
        self._trouble = ""
        self.course = self.course.saw(look_at(seen, {pod.uid for pod in self.pods}, short))
        if self.course.by_others and Milestone.STARTED not in before:
            self._world.reporter.said(f"{name}: somebody else started its guest", warning=True)
            self.owes = False
        for milestone in Milestone:
            if milestone in self.course.reached and milestone not in before:
                step = told(self.course, milestone, len(self.pods), self.workloads.complete)
                if step is not None:
                    self._tell(name, *step)

    # -- the guest again -----------------------------------------------------------------------------------

    def _gave_up(self) -> bool:
        since_s, now_s = self._starting_since_s, self._world.clock.now_s()
        return self.owes and since_s is not None and now_s - since_s >= GIVE_UP_S

    def _start(self) -> None:
        """Start the guest by the rules, which clear what is left first; in time also without them."""
        now_s = self._world.clock.now_s()
        self._starting_since_s = now_s if self._starting_since_s is None else self._starting_since_s
        if not self._start_by_rules() or now_s - self._starting_since_s >= BY_RULES_S:
            self._start_directly()

    def _start_by_rules(self) -> bool:
        """Return whether that can still come to something."""
        try:
            judged = self._agent.step(self.node.name, Intent.START, Word())
        except ClusterError as error:
            self._say_trouble(str(error))
            return True
        evidence = judged.observation.evidence
        ours = judged.observation.asked_s is not None
        self._started(evidence.power_state if evidence else PowerState.UNKNOWN, ours=ours)
        if self.owes and judged.decision.verdict is Verdict.REFUSE:
            self._say_trouble(f"not started by the rules: {says(judged.decision)}")
            return False
        if self.owes and judged.failed:
            self._say_trouble(judged.failed)
        return True

    def _start_directly(self) -> None:
        """Start the guest if its hypervisor says that it is off, whatever the cluster says."""
        if not self.owes or self._off is None:
            return
        guest = self._off.guest
        port = self._world.hypervisors[guest.endpoint]
        try:
            now = self._world.asker.ask(
                guest.endpoint, lambda: port.read(guest), self._policy.call_deadline_s
            )
        except FencerError as error:
            self._say_trouble(str(error))
            return
        if now.power_state is PowerState.STOPPED:
            done = self._carry_out(StartGuest(guest, now.incarnation))
            if done.ok:
                self._started(PowerState.RUNNING, ours=True)
            else:
                self._say_trouble(str(done))
            return
        self._started(now.power_state, ours=False)
        if now.power_state is not PowerState.RUNNING:
            self._say_trouble(f"{guest} is neither off nor running: {now.raw}")

    def _started(self, power_state: PowerState, *, ours: bool) -> None:
        """Take note that it runs: started by us, or still, once no power-off can come any more."""
        now_s = self._world.clock.now_s()
        if not ours and (power_state is not PowerState.RUNNING or now_s < self._owed_until_s):
            return
        self.owes, self._trouble = False, ""
        if self.course.off:
            self.course = self.course.at(Milestone.STARTED, now_s)

    def _say_trouble(self, text: str) -> None:
        """Say once what is in the way."""
        if text != self._trouble:
            self._trouble = text
            self._tell(self.node.name, "trouble", text)

    def _end(self, why: str) -> None:
        self.over, self.failed = True, why
        self._tidy()

    def _tidy(self) -> None:
        """Take the drill's claim off; where the node was fenced, it goes with the fence."""
        if self._seen is None:
            return
        with suppress(ClusterError):
            node = self._agent.shared.api(lambda: self._world.cluster.fact(self.node.name)).node
            if node.claim == self._seen.incident and node.mark is None:
                self._agent.executor.carry_out(replace(self._seen, node=node), ForgetMark())
