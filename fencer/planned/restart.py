"""The guest of a drill: stopped, and then started again whatever happens, by the rules or without them."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from fencer.core.done import Done
from fencer.core.model import (
    Evidence,
    GuestRef,
    Intent,
    Observation,
    PowerState,
    StartGuest,
    StopGuest,
    Verdict,
    Word,
)
from fencer.core.policy import Policy
from fencer.core.text import age, alike
from fencer.errors import ClusterError, FencerError
from fencer.planned.drain import Tell
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World
from fencer.wording.reasons import says

BY_RULES_S = 30.0
"""So long the guest is started by the rules, which clear what is left first; then it is just started. It has
no old memory then, and its fence is lifted only when nothing from before is left."""
GIVE_UP_S = 120.0
"""So long its start is tried."""
MAY_COME_S = 30.0
"""So long a power-off that was not answered may still come: twice its deadline (`stop_deadline_s`)."""


class Restart:
    """The power cut of a drill, and the start that is owed from then on.

    Args:
        world: The ports.
        agent: Acts on behalf of the person.
        policy: Deadlines, and how often to look.
        seen: The node as it was judged, live, before its guest is stopped.
        guest: It.
        tell: Shows the steps.
    """

    def __init__(
        self, world: World, agent: Agent, policy: Policy, seen: Observation, guest: Evidence, tell: Tell
    ) -> None:
        self.owes = False
        """The guest may be off because of the drill, and was not seen running since."""
        self.trouble = ""
        """What was last in the way."""
        self._world = world
        self._agent = agent
        self._policy = policy
        self._seen = seen
        self._guest = guest
        self._tell = tell
        self._owed_until_s = 0.0
        self._since_s: float | None = None
        self._said: set[str] = set()

    def stop(self) -> Done:
        """Cut the guest's power. It owes a start from the moment at which the order may be carried out."""
        self.owes, self._owed_until_s = True, self._world.clock.now_s() + MAY_COME_S
        return self._carry_out(StopGuest(self._ref, self._guest.incarnation))

    def answered(self) -> None:
        """Take note that the order of `stop` was carried out: none can come any more."""
        self._owed_until_s = 0.0

    def settled(self) -> None:
        """Take note that no start is owed: the order was not even sent, or somebody else started it."""
        self.owes = False

    @property
    def gave_up(self) -> bool:
        """Whether its start was tried for long enough, in vain."""
        late = self._since_s is not None and self._world.clock.now_s() - self._since_s >= GIVE_UP_S
        return self.owes and late

    def see_through(self) -> None:
        """Start the guest, if that is owed; whoever presses Ctrl-C has to wait for that. Bounded."""
        try:
            while self.owes and not self.gave_up:
                try:
                    self.try_once()
                    if self.owes:
                        self._world.clock.wait(self._policy.poll_s)
                except KeyboardInterrupt:
                    self._show("first", f"its guest is started: that takes {age(GIVE_UP_S)} at most")
        finally:
            if self.owes:  # a bug must not leave it off, either
                self._start_directly()

    def try_once(self) -> None:
        """Start the guest by the rules, which clear what is left first; in time also without them."""
        now_s = self._world.clock.now_s()
        self._since_s = now_s if self._since_s is None else self._since_s
        if not self._start_by_rules() or now_s - self._since_s >= BY_RULES_S:
            self._start_directly()

    def tidy(self) -> None:
        """Take the drill's claim off the node. Where it is fenced, it goes with the fence."""
        api, cluster = self._agent.shared.api, self._world.cluster
        with suppress(ClusterError):  # then it stays, and means nothing
            node = api(lambda: cluster.fact(self._seen.node.name)).node
            if node.claim == self._seen.incident and node.mark is None:
                api(lambda: cluster.forget_mark(node))

    @property
    def _ref(self) -> GuestRef:
        return self._guest.guest

    def _start_by_rules(self) -> bool:
        """Return whether that can still come to something."""
        try:
            judged = self._agent.step(self._seen.node.name, Intent.START, Word())
        except ClusterError as error:
            self._say(str(error))
            return True
        if judged.observation.asked_s is not None:
            self.answered()  # what may still come is meant for the run before
        evidence = judged.observation.evidence
        self._note(evidence)
        if self.owes and judged.decision.verdict is Verdict.REFUSE:
            if evidence is not None and evidence.power_state is PowerState.STOPPED:
                self._say(f"not started by the rules: {says(judged.decision)}")
            return False
        if self.owes and judged.failed:
            self._say(judged.failed)
        return True

    def _start_directly(self) -> None:
        """Start the guest if its hypervisor says that it is off, whatever the cluster says."""
        now = self._read()
        if now is None or now.power_state is not PowerState.STOPPED:
            return
        done = self._carry_out(StartGuest(self._ref, now.incarnation))
        if not done.ok:
            self._say(str(done))
            return
        self.answered()
        self._world.clock.wait(self._policy.poll_s)  # an order that was taken may still fail
        self._read()

    def _read(self) -> Evidence | None:
        """Read the guest live, and take note if it runs."""
        read = partial(self._world.hypervisors[self._ref.endpoint].read, self._ref)
        try:
            now = self._world.asker.ask(self._ref.endpoint, read, self._policy.call_deadline_s)
        except FencerError as error:
            self._say(str(error))
            return None
        self._note(now)
        if now.power_state not in {PowerState.STOPPED, PowerState.RUNNING}:
            self._say(f"{self._ref} is neither off nor running: {now.raw}")
        return now

    def _note(self, now: Evidence | None) -> None:
        """Take note that it runs, unless a power-off may still come."""
        runs = now is not None and now.power_state is PowerState.RUNNING
        if runs and self._world.clock.now_s() >= self._owed_until_s:
            self.owes, self.trouble = False, ""

    def _carry_out(self, action: StopGuest | StartGuest) -> Done:
        done = self._agent.executor.carry_out(self._seen, action)
        self._world.reporter.acted(self._seen.node, action, done)
        return done

    def _say(self, text: str) -> None:
        """Say once what is in the way; with other numbers it is the same."""
        if alike(text) not in self._said:
            self._said.add(alike(text))
            self._show("trouble", text)
        self.trouble = text

    def _show(self, what: str, text: str) -> None:
        self._tell(self._seen.node.name, what, text)
