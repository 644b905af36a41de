"""What people type in a simulated story: the code behind the commands, told as lines of the story."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from fencer.cli.endless import refusal
from fencer.cli.outlook import in_words
from fencer.cli.plan import SAYS, node_line
from fencer.cli.progress import Progress
from fencer.core.done import Done
from fencer.core.identity import Rules
from fencer.core.model import Decision, Deed, Intent, NodeView, Verdict, Word
from fencer.core.policy import Policy
from fencer.core.text import age
from fencer.evicting.lots import Filters
from fencer.journal.rows import BY_HAND
from fencer.planned.campaign import Campaign
from fencer.planned.drain import DrainOptions, NodeDrain
from fencer.planned.ordering import elsewhere, in_order
from fencer.planned.plan.case import Terms
from fencer.planned.plan.endless import endless
from fencer.planned.plan.judge import plan
from fencer.planned.plan.words import Severity
from fencer.planned.turns import DrainTurn, ShutdownOptions, ShutdownTurn, StartTurn, Turn
from fencer.ports.inventory import Inventory
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World
from fencer.simulation.clock import EPOCH
from fencer.simulation.crew import ByHand, Obeyed
from fencer.wording.reasons import says

BY = f"person@desk{BY_HAND}"
"""Who types."""
FENCE_S = 90.0
"""How long `fencer fence` waits for what only time can bring."""
PLANNED_S = 600.0
"""The same of planned stops and starts: what `--timeout` is if nobody gives it."""


class StepTeller(Progress):
    """Tells the steps of a command as whoever typed it sees them.

    Args:
        by_hand: Where they are told.
    """

    def __init__(self, by_hand: ByHand) -> None:
        super().__init__(lambda: EPOCH)
        self._node, self._by_hand = "", by_hand

    def decided(self, node: NodeView, decision: Decision) -> None:
        """See `Reporter.decided`."""
        self._node = node.name
        super().decided(node, decision)

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """See `Reporter.acted`."""
        self._node = node.name
        super().acted(node, action, done)

    def line(self, what: str, detail: str, colour: str | None = None) -> None:  # noqa: ARG002 - told by who
        """See `Progress.line`."""
        self._by_hand.step(self._node, what, detail)


class Command:
    """A command that somebody has typed.

    Args:
        world: The ports, and who is told.
        policy: How careful to be.
        rules: What the configuration says of identity.
        by_hand: What only commands need.
        nodes: The nodes that were typed.
    """

    def __init__(
        self, world: World, policy: Policy, rules: Rules, by_hand: ByHand, nodes: Sequence[str]
    ) -> None:
        self._world, self._policy, self._by_hand, self._names = world, policy, by_hand, tuple(nodes)
        self._agent = Agent(world, policy, rules, by=BY)
        self._options = DrainOptions(timeout_s=PLANNED_S)

    def fence(self) -> Obeyed:
        """Do what `fencer fence` does: its decisions tell it all."""
        [name] = self._names
        judged = self._agent.pursue(name, Intent.FENCE, Word(), FENCE_S)
        return Obeyed(done=judged.decision.verdict is Verdict.FENCED, text="")

    def plan(self) -> Obeyed:
        """Do what `fencer plan` does."""
        made = plan(self._names, self._survey(), self._terms)
        for node in made.nodes:
            self._by_hand.step(node.name, "plan", node_line(node).partition(": ")[2])
        for one in made.findings:
            if one.severity is not Severity.NOTE:
                self._by_hand.step(self._names[0], str(one.severity), in_words(one))
        return Obeyed(done=made.verdict.goes, text=f"{made.verdict}: {SAYS[made.verdict]}")

    def drain(self) -> Obeyed:
        """Do what `fencer drain` does."""
        refused = self._foresee()
        if refused:
            return Obeyed(done=False, text=refused)
        return self._see_through(
            [
                DrainTurn(
                    node,
                    NodeDrain(self._world, self._agent, node.name, self._options, self._by_hand.step),
                    keep_cordon=False,
                )
                for node in self._nodes()
            ],
            "drained in {}; it stays cordoned",
        )

    def shutdown(self) -> Obeyed:
        """Do what `fencer shutdown` does."""
        for name in self._names:
            decision = self._agent.step(name, Intent.SHUTDOWN, Word(), act=False).decision
            if decision.verdict is Verdict.REFUSE:
                return Obeyed(done=False, text=f"refused: {says(decision)}")
        refused = self._foresee()
        if refused:
            return Obeyed(done=False, text=refused)
        options, tell = ShutdownOptions(self._options, PLANNED_S), self._by_hand.step
        make = partial(ShutdownTurn, self._world, self._agent, self._policy)
        return self._see_through(
            [make(node, options, tell) for node in self._nodes()],
            "shut down in {}, and proven off; it stays cordoned",
        )

    def start(self) -> Obeyed:
        """Do what `fencer start` does."""
        make = partial(StartTurn, self._world, self._agent, self._policy)
        return self._see_through(
            [make(node, PLANNED_S) for node in self._nodes()], "back in {}", ordered=False
        )

    @property
    def _terms(self) -> Terms:
        return Terms(Filters(), PLANNED_S, PLANNED_S)

    def _survey(self) -> Inventory:
        return self._agent.shared.api(self._by_hand.surveyor.survey)

    def _nodes(self) -> Sequence[NodeView]:
        known = self._agent.observer.look().nodes
        return in_order(known[name] for name in self._names)

    def _foresee(self) -> str:
        """Say what a plan says of this drain, and return why it is refused; empty: it is not."""
        seen = self._survey()
        made, never = plan(self._names, seen, self._terms), endless(self._names, seen, self._terms, {})
        if never:
            return f"{refusal(never)}; nothing was changed"
        self._by_hand.step(self._names[0], str(made.verdict), SAYS[made.verdict])
        return ""

    def _see_through(self, turns: Sequence[Turn], done: str, *, ordered: bool = True) -> Obeyed:
        clock, tell = self._world.clock, self._by_hand.step
        campaign = Campaign(
            self._world, turns, 1, tell, drain=self._options, patience_s=PLANNED_S, ordered=ordered
        )
        began_s, nodes = clock.now_s(), [turn.node for turn in turns]
        if elsewhere(nodes, self._agent.observer.look().nodes.values()):
            campaign.prepare()
        if campaign.run():
            return Obeyed(done=True, text=done.format(age(round(clock.now_s() - began_s))))
        failed = (f"{turn.node.name}: {turn.failed}" for turn in turns if turn.failed)
        return Obeyed(done=False, text="; ".join(failed) or campaign.stuck)


VERBS: Mapping[str, Callable[[Command], Obeyed]] = {
    "fence": Command.fence,
    "plan": Command.plan,
    "drain": Command.drain,
    "shutdown": Command.shutdown,
    "start": Command.start,
}
"""What can be typed in a story."""
