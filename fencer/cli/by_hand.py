"""What `fence` and `unfence` share: look first, ask the person, pursue, and show the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import click

from fencer.cli import living
from fencer.cli.guests import node_of_guest
from fencer.cli.progress import Progress, Waiting
from fencer.cli.recording import Recording, recording
from fencer.cli.render import clean, complain, say, tell
from fencer.cli.wire import Parts, Quiet, Wiring, connected, no_such_node
from fencer.core import foreseen
from fencer.core.model import Intent, Judged, Reason, Verdict, Word
from fencer.errors import ConfigError
from fencer.ports import Recorder, Reporter
from fencer.reporting.events import EventReporter
from fencer.reporting.several import SeveralReporters
from fencer.runtime.reconcile import Agent
from fencer.wording.nodes import guest_of, state_of
from fencer.wording.reasons import says
from fencer.wording.ways_out import ways_out


@dataclass(frozen=True, slots=True)
class Task:
    """One verb on one node, on behalf of a person.

    Attributes:
        parts: What it works with.
        node: The node's name.
        intent: The verb.
        word: What else the person said.
        by: Who they are, for mark and journal.
        progress: Shows the way.
        kept: Keeps what is done.
    """

    parts: Parts
    node: str
    intent: Intent
    word: Word
    by: str
    progress: Progress
    kept: Recording

    def look(self) -> Judged:
        """Judge the node without doing anything; unless that is a no, read its pods and volumes as well.

        Raises:
            ConfigError: there is no such node.
            ClusterError: it could not be read.
        """
        agent = self._agent(Quiet())
        with no_such_node(), self.parts.asking():
            seen = agent.survey(self.node, self.intent, self.word)
        judged = seen.judged[self.node]
        if judged.decision.reason is Reason.EVIDENCE_MISSING:
            told = says(judged.decision)
            for error in (error for _, error in sorted(seen.scene.errors.items()) if error not in told):
                complain(error)
        if judged.observation.pods is not None or judged.decision.verdict is Verdict.REFUSE:
            return judged
        return replace(judged, observation=agent.observer.closer(seen.scene, judged.observation))

    def introduce(self, judged: Judged) -> None:
        """Name the node and its guest."""
        guest = guest_of(judged)
        who = "no guest" if guest is None else f"{guest}: {state_of(judged.observation)}"
        self.progress.introduce({self.node: who})

    def pursue(self, timeout_s: float, *, act: bool) -> tuple[Judged, float]:
        """Follow the node until the intent is fulfilled, refused, or time is up.

        Args:
            timeout_s: How long to wait for what only takes time.
            act: False: stop before anything would be done.

        Returns:
            The node in the end, and how many seconds it took.

        Raises:
            ClusterError: the cluster could not be read.
        """
        began_s = self.parts.clock.now_s()
        if act:
            self.kept.asked((self.node,))
        agent = self._agent(SeveralReporters(*self._reporters(act=act)), self.kept.journal if act else None)
        try:
            with living.line() as show:
                waits = Waiting(show, self.parts.clock.now_s, timeout_s)
                judged = agent.pursue(self.node, self.intent, self.word, timeout_s, act=act, waits=waits)
        except KeyboardInterrupt:
            say(f"interrupted; `fencer status {clean(self.node)}` shows how far it came", err=True)
            raise
        return judged, self.parts.clock.now_s() - began_s

    def foreseen(self, judged: Judged) -> Judged:
        """Return how the node will be judged after the wait for silence, if that is a no as things are."""
        refusal = foreseen.refusal(judged.observation, self.parts.policy)
        return judged if refusal is None else replace(judged, decision=refusal)

    def refuse(self, judged: Judged, said: str = "refused", then: str = "") -> NoReturn:
        """Say no, why, and what would change that.

        Args:
            judged: The node.
            said: How it is said.
            then: What would be done then.

        Raises:
            click.exceptions.Exit: always.
        """
        if judged.failed:
            tell(f"{said}: {clean(says(judged.decision))}, but it could not be done: {clean(judged.failed)}.")
            say(
                "What would change this: the cause mended. `fencer check` looks at rights, connections, and "
                "how fast the API server answers."
            )
            raise click.exceptions.Exit(1)
        tell(f"{said}: {clean(says(judged.decision))}.{then and ' '}{then}")
        for sentence in ways_out(judged, str(self.parts.path)):
            tell(sentence)
        raise click.exceptions.Exit(1)

    def _agent(self, reporter: Reporter, recorder: Recorder | None = None) -> Agent:
        return Agent(self.parts.world(reporter, recorder), self.parts.policy, self.parts.rules, self.by)

    def _reporters(self, *, act: bool) -> Iterator[Reporter]:
        yield self.progress
        if act and self.kept.journal is not None:
            yield self.kept.journal
        if act:
            yield EventReporter(self.parts.cluster, self.parts.asker)


@contextmanager
def task_for(
    wiring: Wiring, path: Path, node: str, intent: Intent, word: Word, *, by_guest: bool = False
) -> Iterator[Task]:
    """Connect, and begin.

    Args:
        wiring: Builds the parts.
        path: The configuration.
        node: The node's name.
        intent: The verb.
        word: What else the person said.
        by_guest: `node` is not the node's name, but its guest's number, UUID or name.

    Raises:
        ConfigError: the configuration is not right, or that guest is no node.
        HypervisorUnreachable, ClusterError: that guest's node could not be found out.
    """
    with connected(wiring, path) as parts:
        name, word = node, replace(word, given_s=parts.clock.now_s())
        if by_guest:
            name, guest = node_of_guest(parts, node)
            word = replace(word, guest=f"{guest.endpoint}/{guest.id}")
        by = f"{wiring.person()} (by hand)"
        with recording(wiring, parts, by) as kept:
            yield Task(parts, name, intent, word, by, Progress(wiring.wall), kept)


def refuse_without_person(wiring: Wiring, node: str, *, yes: bool, dry_run: bool) -> None:
    """Make sure that somebody can consent, before anything is asked.

    Raises:
        ConfigError: nobody is there, and --yes was not given.
    """
    if not (yes or dry_run or wiring.interactive()):
        raise ConfigError(
            f"{node}: nobody can confirm here, because stdin is not a terminal. Add --yes, or --dry-run to "
            "see what would happen"
        )


def consent(plan: Sequence[str], question: str, *, yes: bool) -> None:
    """Name what will happen, and go on only if the person agrees.

    Raises:
        click.exceptions.Exit: they do not.
    """
    for line in plan:
        say(line)
    if not yes and not click.confirm(clean(question)):
        say("Nothing was done.")
        raise click.exceptions.Exit(1)
