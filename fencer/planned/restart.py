"""The VM of a drill: stopped, and then started again by the rules of `fencer start` (S10)."""

from __future__ import annotations

from contextlib import suppress

from fencer.core.done import Done
from fencer.core.model import (
    Evidence,
    Intent,
    Judged,
    Observation,
    PowerState,
    StopGuest,
    Verdict,
    Word,
)
from fencer.core.policy import Policy
from fencer.core.text import age, alike
from fencer.errors import ClusterError
from fencer.planned.drain import Tell
from fencer.planned.drill import Look, look_at
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World
from fencer.wording.reasons import change_of_start, says

GIVE_UP_S = 120.0
"""So long its start is tried: what is in the way may pass."""
AGAIN_S = 30.0
"""So long after an order to start that was accepted, and came to nothing, the next one is given: Proxmox VE
accepts tasks that fail."""
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
        self.refused: Judged | None = None
        """The rules' last answer, where they were in the way."""
        self.by_others: Look | None = None
        """The look that showed that another tool had started it. None: none did."""
        self.last = seen
        """The node as it was last seen."""
        self.reading: Evidence | None = None
        """The last reading of its guest since the power cut. None: there was none."""
        self._ordered = False
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
        return self._carry_out(StopGuest(self._guest.guest, self._guest.incarnation))

    def answered(self) -> None:
        """Take note that the order of `stop` was carried out: none can come any more."""
        self._owed_until_s = 0.0

    def settled(self) -> None:
        """Take note that no start is owed: the order was not even sent, or another tool started it."""
        self.owes = False

    def saw(self, seen: Observation) -> None:
        """Keep what was seen last, for the person who has to go on."""
        self.last, self.reading = seen, seen.evidence or self.reading

    @property
    def gave_up(self) -> bool:
        """Whether its start was tried for long enough, in vain."""
        late = self._since_s is not None and self._world.clock.now_s() - self._since_s >= GIVE_UP_S
        return self.owes and late

    def see_through(self) -> None:
        """Start the VM, if that is owed; a person who presses Ctrl-C has to wait for that. Bounded."""
        while self.owes:
            try:
                self.try_once()
                if self.gave_up:
                    return
                if self.owes:
                    self._world.clock.wait(self._policy.poll_s)
            except KeyboardInterrupt:
                self._show("first", f"its VM is started: that takes {age(GIVE_UP_S)} at most")

    def try_once(self) -> None:
        """Start the VM as `fencer start` does: what is left is cleared first; if it refuses, report why.

        No hypervisor's word alone starts it: the VM might run elsewhere by now, started by another tool.
        """
        now_s = self._world.clock.now_s()
        self._since_s = now_s if self._since_s is None else self._since_s
        try:
            judged = self._judge(act=False)  # a Node that is Ready with another boot: the VM runs somewhere
            if self.owes and judged.decision.verdict is not Verdict.REFUSE:
                judged = self._judge(act=True)
        except ClusterError as error:
            self.refused = None
            self._say(str(error), "")
            return
        if not self.owes:
            return
        refused = judged.decision.verdict is Verdict.REFUSE
        self.refused = judged if refused else None
        if refused:
            self._say(says(judged.decision), f". What would change this: {change_of_start(judged.decision)}")
        elif judged.failed:
            self._say(judged.failed, "")

    def tidy(self) -> None:
        """Take the drill's claim off the node. Where it is fenced, it goes with the fence."""
        api, cluster = self._agent.shared.api, self._world.cluster
        with suppress(ClusterError):  # then it stays, and means nothing
            node = api(lambda: cluster.fact(self._seen.node.name)).node
            if node.claim == self._seen.incident and node.mark is None:
                api(lambda: cluster.forget_mark(node))

    def _judge(self, *, act: bool) -> Judged:
        """Ask the rules of `fencer start`, carry them out if wanted, and note what was seen."""
        judged = self._agent.step(self._seen.node.name, Intent.START, Word(), act=act)
        ordered = judged.decision.verdict is Verdict.START or judged.observation.asked_s is not None
        self._ordered = self._ordered or (act and ordered)
        self._note(judged.observation)
        return judged

    def _note(self, seen: Observation) -> None:
        """Take note that it runs, unless a power-off may still come; and of an order to start it."""
        self.saw(seen)
        if seen.asked_s is not None:
            self.answered()  # what may still come is meant for the run before
        look = look_at(seen, (), None)
        if look.shows_start(self._seen.node.boot_id) and self._world.clock.now_s() >= self._owed_until_s:
            self.owes, self.trouble = False, ""
            self.by_others = None if self._is_own(seen) else look
        elif look.power_state is PowerState.STOPPED and seen.asked_s is not None and seen.asked_s >= AGAIN_S:
            self._agent.shared.memory.asked.pop((seen.node.uid, seen.node.boot_id), None)

    def _is_own(self, seen: Observation) -> bool:
        """Whether what runs is the VM that was ordered to start here, for all that can be seen."""
        evidence, guest = seen.evidence, self._guest.guest
        if not self._ordered or evidence is None:
            return self._ordered
        return evidence.power_state is PowerState.RUNNING and evidence.guest.key == guest.key

    def _carry_out(self, action: StopGuest) -> Done:
        done = self._agent.executor.carry_out(self._seen, action)
        self._world.reporter.acted(self._seen.node, action, done)
        return done

    def _say(self, text: str, way: str) -> None:
        """Say once what is in the way, and the way out; with other numbers it is the same."""
        if alike(text) not in self._said:
            self._said.add(alike(text))
            self._show("trouble", text + way)
        self.trouble = text

    def _show(self, what: str, text: str) -> None:
        self._tell(self._seen.node.name, what, text)
