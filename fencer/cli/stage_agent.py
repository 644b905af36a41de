"""The agent of a simulated story: the real one, through the ports of a stage."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

from fencer.core.model import Deed, Observation
from fencer.core.policy import Mode
from fencer.core.times import write_utc
from fencer.errors import ClusterError
from fencer.journal.rows import Journal
from fencer.ports import Election, Reporter, Viewer
from fencer.reporting.journal import JournalReporter
from fencer.reporting.several import SeveralReporters
from fencer.runtime.answers import Answers
from fencer.runtime.election import Campaigns
from fencer.runtime.reconcile import Agent, Pass
from fencer.runtime.watch import sight
from fencer.runtime.world import NoRecord, World
from fencer.simulation.clock import EPOCH
from fencer.simulation.crew import Obeyed
from fencer.simulation.stage import StagePorts

ENDING_S = 10.0
"""How long an agent that ends waits for what goes on beside its passes: as ``fencer watch`` does."""


class StageAgent(Agent):
    """The agent as `fencer watch` runs it: each pass is shown, to its part in the election.

    Args:
        ports: What it gets on the stage.
        viewers: To whom else passes are shown.
    """

    def __init__(self, ports: StagePorts, *viewers: Viewer) -> None:
        self._ports = ports
        self._stage_world = world_of(ports)
        super().__init__(self._stage_world, ports.policy, ports.rules, by="fencer@demo")
        election = self._stage_world.election
        parts: tuple[Viewer, ...] = (election,) if isinstance(election, Campaigns) else ()
        self._viewers = (*viewers, *parts, *_answers(ports))

    def copied(self, ports: StagePorts) -> StageAgent | None:
        """Return it as it is, on other ports; see `fencer.simulation.crew.Revertible`."""
        if self._pursued:
            return None
        return deepcopy(self, _instead(self._ports, ports))

    def go_on(self) -> None:
        """See `fencer.simulation.crew.Revertible`."""
        beside = self._ports.beside
        assert beside is not None  # noqa: S101 - only an agent that watches is copied
        for viewer in self._viewers:
            if isinstance(viewer, Campaigns):
                for step in viewer.steps():
                    beside.again(step)
            elif isinstance(viewer, Answers):
                beside.again(viewer.step)

    def release(self) -> None:
        """See `fencer.simulation.crew.Revertible`."""
        self.finish(ENDING_S)
        if isinstance(self._stage_world.election, Campaigns):
            self._stage_world.election.release()

    def obey(self, words: str) -> Obeyed:
        """Do what somebody types after ``fencer``; see `fencer.simulation.crew.Obeying`."""
        from fencer.cli.stage_commands import (  # noqa: PLC0415 - all commands, for a few stories
            TOLD_BY_DECISIONS,
            VERBS,
            Command,
            StepTeller,
        )

        ports, by_hand = self._ports, self._ports.by_hand
        assert by_hand is not None  # noqa: S101 - the stage lets nobody else obey
        verb = words.split(maxsplit=1)[0]
        world = self._stage_world
        if verb not in TOLD_BY_DECISIONS:
            world = replace(world_of(ports, StepTeller(by_hand)), evictor=by_hand.evictor)
        command = Command(world, ports.policy, ports.rules, by_hand, words)
        return command.ended(VERBS[verb](command))

    def tick(self, *args: Any, **options: Any) -> Pass:
        """Make a pass, and show it; see `Agent.tick`."""
        try:
            done = super().tick(*args, **options)
        except ClusterError as error:
            for viewer in self._viewers:
                viewer.failed(str(error))
            raise
        for viewer in self._viewers:
            viewer.passed(sight(done, self._stage_world))
        return done


def _instead(ports: StagePorts, others: StagePorts) -> dict[int, object]:
    """Return what `deepcopy` is to put in place of each port, which lies outside of the agent."""
    pairs: list[tuple[object, object]] = [(ports, others)]
    outside = [one.name for one in fields(ports) if one.name not in {"policy", "rules", "holder"}]
    pairs += [(getattr(ports, name), getattr(others, name)) for name in outside]
    pairs += [(port, others.hypervisors[name]) for name, port in ports.hypervisors.items()]
    pairs += [(port, others.witnesses[key]) for key, port in ports.witnesses.items()]
    if ports.beside is not None and others.beside is not None:
        pairs += [(ports.beside.asker, others.beside.asker), (ports.beside.utc, others.beside.utc)]
    return {id(one): other for one, other in pairs if one is not None}


def world_of(ports: StagePorts, reporter: Reporter | None = None) -> World:
    """Return what an agent on the stage works through; where it has a disk, it keeps a journal.

    Args:
        ports: What it gets there.
        reporter: Is told instead of the stage.
    """
    reporter = reporter or ports.reporter
    world = World(
        ports.cluster,
        ports.hypervisors,
        ports.asker,
        ports.clock,
        reporter,
        witnesses=ports.witnesses,
        leases=ports.leases,
        election=_election(ports),
        requests=ports.requests,
        state=ports.state,
        utc=ports.wall or (lambda: write_utc(EPOCH + timedelta(seconds=ports.clock.now_s()))),
    )
    if ports.journal is None:
        return replace(world, recorder=_Announcing(ports))
    keeps = _Keeping(ports.journal, ports)
    return replace(world, reporter=SeveralReporters(reporter, keeps), recorder=keeps)


class _Announcing(NoRecord):
    """A `Recorder` that keeps nothing, and announces to the stage what is about to be done."""

    def __init__(self, ports: StagePorts) -> None:
        self._announce = ports.intends

    def intends(self, seen: Observation, action: Deed) -> None:
        """See `fencer.ports.Recorder.intends`."""
        self._announce(seen.node.name, action)


class _Keeping(JournalReporter):
    """The same, and it keeps a journal."""

    def __init__(self, journal: Journal, ports: StagePorts) -> None:
        now_s = ports.clock.now_s
        super().__init__(journal, ports.asker, now_s, lambda: EPOCH + timedelta(seconds=now_s()))
        self._announce = ports.intends

    def intends(self, seen: Observation, action: Deed) -> None:
        """See `fencer.ports.Recorder.intends`."""
        super().intends(seen, action)
        self._announce(seen.node.name, action)


def _election(ports: StagePorts) -> Election | None:
    """Let an agent on the stage campaign beside its passes; None: it only observes, or takes one command."""
    beside, leases = ports.beside, ports.leases
    if beside is None or leases is None or ports.policy.mode is not Mode.ARMED:
        return None
    campaigns = Campaigns(leases, ports.hypervisors, beside.asker, ports.clock, ports.holder, beside.utc)
    for step in campaigns.steps():
        beside.again(step)
    return campaigns


def _answers(ports: StagePorts) -> tuple[Answers, ...]:
    """Let an agent on the stage answer those who ask, beside its passes; empty: it only observes."""
    if ports.beside is None or ports.requests is None or ports.policy.mode is not Mode.ARMED:
        return ()
    cluster = ports.cluster
    answers = Answers(ports.requests, ports.reporter, ports.clock.now_s, lambda name: cluster.fact(name).node)
    ports.beside.again(answers.step)
    return (answers,)
