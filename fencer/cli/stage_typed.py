"""A command that a person types in a simulated story: its words, read as the real command reads them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import click

from fencer import DISTRIBUTION
from fencer.cli.approve import approve
from fencer.cli.drain import drain
from fencer.cli.drill import drill
from fencer.cli.fence import fence
from fencer.cli.pause import pause, resume
from fencer.cli.plan import plan
from fencer.cli.progress import Progress
from fencer.cli.shutdown import shutdown
from fencer.cli.start import start
from fencer.cli.trust import trust
from fencer.cli.unfence import unfence
from fencer.core.done import Done
from fencer.core.identity import Rules
from fencer.core.model import Decision, Deed, NodeView
from fencer.core.policy import Policy
from fencer.journal.rows import BY_HAND
from fencer.reporting.journal import JournalReporter
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import NoRecord, World
from fencer.simulation.clock import EPOCH
from fencer.simulation.crew import ByHand, Obeyed

BY = f"person@demo{BY_HAND}"
"""Who types."""
READS: Mapping[str, click.Command] = {
    "fence": fence,
    "unfence": unfence,
    "plan": plan,
    "drain": drain,
    "shutdown": shutdown,
    "start": start,
    "drill": drill,
    "trust": trust,
    "approve": approve,
    "pause": pause,
    "resume": resume,
}
"""What reads the words of a command."""


def options_of(words: str) -> Mapping[str, Any]:
    """Return the options and arguments of a command, as the real one reads them.

    Args:
        words: What was typed after ``fencer``.

    Raises:
        click.UsageError: the real command would not take them.
    """
    verb, *typed = shlex.split(words)
    return READS[verb].make_context(verb, typed).params


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


class Silent:
    """A `Reporter` for the looks of a command before it acts: what they show is told otherwise."""

    def decided(self, node: NodeView, decision: Decision) -> None:
        """Show nothing."""

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """Show nothing."""

    def said(self, text: str, *, warning: bool) -> None:
        """Show nothing."""


class Command:
    """A command that a person has typed.

    Args:
        world: The ports, and who is told.
        policy: How careful to be.
        rules: What the configuration says of identity.
        by_hand: What only commands need.
        words: What was typed after ``fencer``: a verb, its arguments and options.

    Attributes:
        options: Its arguments and options.
        names: The nodes that it is about.
        agent: Acts on behalf of the person.
        looker: Judges before that, and tells nobody.
    """

    def __init__(self, world: World, policy: Policy, rules: Rules, by_hand: ByHand, words: str) -> None:
        self.world, self.policy, self.rules, self.by_hand = world, policy, rules, by_hand
        self.words, self.verb = words, words.split(maxsplit=1)[0]
        self.options = options_of(words)
        node = self.options.get("node")
        self.names: tuple[str, ...] = self.options.get("nodes") or ((node,) if node else ())
        self.silent_world = replace(world, reporter=Silent(), recorder=NoRecord())
        self.agent = Agent(world, policy, rules, by=BY)
        self.looker = Agent(self.silent_world, policy, rules, by=BY)
        self._journal = world.recorder if isinstance(world.recorder, JournalReporter) else None
        self._begun = False

    def begin(self) -> None:
        """Keep what a person has asked for, before anything is done."""
        self._begun = True
        if self._journal is not None:
            self._journal.began(self.verb, version(DISTRIBUTION), self.policy, tuple(self.world.hypervisors))
            self._journal.asked(self.words, self.names, {})

    def ended(self, how: Obeyed) -> Obeyed:
        """Keep how it has ended, if it had begun: refused beforehand, it is not kept, nor are looks."""
        if self._journal is not None and self._begun:
            self._journal.ended(0 if how.done else 1)
        return how
