"""Plays a scenario in virtual time, with an agent or without, and tells what happens.

This room knows no agent: whoever plays a scenario gives a function that builds one from `StagePorts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, cast

from fencer.core.identity import Rules
from fencer.core.model import Intent, Reason, Word
from fencer.core.policy import PausedGuest, Policy
from fencer.core.text import count
from fencer.errors import ClusterError
from fencer.ports import Asker, Clock, Cluster, HostPower, Hypervisor, Reporter
from fencer.simulation.assembly import Simulation
from fencer.simulation.faults import Fault, What, apply
from fencer.simulation.objects import ApiNode, ApiObject
from fencer.simulation.reporter import StageReporter
from fencer.simulation.scenario import Scenario, Watcher
from fencer.simulation.summary import IncidentSummary, Summary
from fencer.simulation.tally import Incident, Tally
from fencer.simulation.timeline import StageEvent
from fencer.simulation.truth import Truth

__all__ = ["AgentFactory", "IncidentSummary", "Passed", "Stage", "StagePorts", "Summary", "Ticker", "play"]

BY_HAND_S = 90.0
"""How long a command waits for what only time can bring."""

MIN_WAIT_S = 0.05
"""Between two passes, however soon the agent wants to come again."""


@dataclass(frozen=True, slots=True)
class StagePorts:
    """All that an agent gets here.

    Attributes:
        hypervisors: By endpoint.
        asker: Runs calls in line; an endpoint's trouble costs virtual time.
        clock: Virtual.
        reporter: What it is told appears in the timeline.
        policy: How the scenario sets fencer.
        rules: Power actions are admitted on every guest.
        witnesses: Which power witness watches which host of which endpoint.
    """

    cluster: Cluster
    hypervisors: Mapping[str, Hypervisor]
    asker: Asker
    clock: Clock
    reporter: Reporter
    policy: Policy
    rules: Rules
    witnesses: Mapping[tuple[str, str], HostPower]


class Passed(Protocol):
    """What the stage wants to know of a pass."""

    @property
    def recheck_s(self) -> float:
        """When to come again, at the latest."""
        ...


class Ticker(Protocol):
    """An agent, reduced to its pass."""

    def tick(self) -> Passed | None:
        """Make one pass: observe, decide, act.

        Returns:
            How long to wait for the next one, or for a wake-up; None: `Policy.poll_s`.

        Raises:
            ClusterError: the cluster could not be read. The stage tells it, and comes again.
        """
        ...


class Obeying(Ticker, Protocol):
    """An agent that takes commands, too."""

    def pursue(self, name: str, intent: Intent, word: Word, patience_s: float) -> object:
        """Follow one node until its intent is fulfilled, refused, or patience ends."""
        ...


AgentFactory: TypeAlias = Callable[[StagePorts], Ticker]


class Stage:
    """One playing of one scenario. Most callers want `play`.

    Args:
        scenario: What to play.
        agent: Builds the agent; None: Kubernetes alone.
        seed: Of all chance.
        strict: A double writer raises `DoubleWriter` instead of being told and counted.
    """

    def __init__(
        self, scenario: Scenario, agent: AgentFactory | None, *, seed: int = 0, strict: bool = False
    ) -> None:
        self.scenario = scenario
        self.alone = agent is None
        self.simulation = Simulation(
            scenario.shape, scenario.workloads(), seed=seed, strict=strict, kubelets=scenario.kubelets
        )
        self.simulation.warm_up()
        self.tally = Tally(self.simulation)
        self.truth = Truth(
            self.simulation,
            strict=strict,
            trusts_pauses=scenario.policy.paused_guest is PausedGuest.TRUST,
        )
        self.reporter = StageReporter(self.simulation.timeline)
        self._seed = seed
        self._trouble = ""
        self._agent = agent
        self._first = next((one for one in scenario.watchers if one.from_s == 0.0), None)
        others = [one for one in scenario.watchers if one is not self._first]
        self._ticker = None
        if agent is not None and self._first is not None:
            self._ticker = agent(self._ports(self._first))
        for hypervisor in self.simulation.hypervisors.values():
            hypervisor.subscribe(self.simulation.clock.wake)
        began_s = self.simulation.timeline.began_s
        for watcher in others if agent is not None else ():
            self.simulation.clock.at(began_s + watcher.from_s, partial(self._begin, watcher))
        for watcher in scenario.watchers if agent is not None else ():
            if not math.isinf(watcher.until_s):
                self.simulation.clock.at(began_s + watcher.until_s, self._tell_end)
        script = scenario.script_for(alone=self.alone)
        for fault in script:
            if fault.cue is None:
                self.simulation.clock.at(began_s + fault.at_s, partial(self._let_happen, fault))
        self._waiting = [fault for fault in script if fault.cue is not None]
        self.simulation.api.watchers.append(self._hear_cue)

    def play(self) -> Iterator[StageEvent]:
        """Let the story happen, and tell it line by line."""
        simulation, scenario = self.simulation, self.scenario
        end_s = simulation.timeline.began_s + (scenario.alone_s if self.alone else scenario.duration_s)
        while simulation.clock.now_s() < end_s:
            on_duty = self._first is not None and simulation.timeline.now_s() < self._first.until_s
            on_duty = on_duty and self._ticker is not None
            wait_s = self._pass() if on_duty else scenario.policy.poll_s
            simulation.clock.wait(min(wait_s, max(0.0, end_s - simulation.clock.now_s())))
            yield from simulation.timeline.take()
        self._tell_leftovers()
        yield from simulation.timeline.take()

    def summary(self) -> Summary:
        """Say how it ended."""
        world, incidents = self.simulation.world, tuple(map(self._summarised, self.tally.incidents))
        fenced = tuple(one.node for one in incidents if one.fenced)
        refused = self._refused(fenced)
        return Summary(
            scenario=self.scenario.name,
            alone=self.alone,
            seed=self._seed,
            fenced=bool(fenced),
            refused_reason=None if refused is None else refused.value,
            pods_moved=sum(one.pods_moved for one in incidents),
            pods_stuck=sum(pod.deleted_s is not None for pod in self.simulation.api.pods.values()),
            foreign_taint=bool(self.simulation.cluster.tainted_by_hand),
            seconds_to_fence=_slowest(one.seconds_to_fence for one in incidents),
            seconds_to_recover=_slowest(one.seconds_to_recover for one in incidents),
            double_writers=world.double_writers,
            resumable_hazards=world.resumable_hazards,
            breaches=self.truth.breaches,
            as_expected=None if self.alone else self._as_expected(fenced, refused, incidents),
            duration_s=round(self.simulation.clock.now_s() - self.simulation.timeline.began_s, 1),
            incidents=incidents,
        )

    def _pass(self) -> float:
        """Let the agent make a pass, as its watch loop would. Returns how long to wait for the next."""
        assert self._ticker is not None  # noqa: S101 - asked by the caller
        trouble = ""
        try:
            done = self._ticker.tick()
        except ClusterError as error:
            done, trouble = None, str(error)
        if trouble != self._trouble:
            self.reporter.said(trouble or "kubernetes: answers again", warning=bool(trouble))
        self._trouble = trouble
        return self.scenario.policy.poll_s if done is None else max(MIN_WAIT_S, done.recheck_s)

    def _begin(self, watcher: Watcher) -> None:
        """Start another agent, which polls on its own from now on, whatever the first is doing."""
        assert self._agent is not None  # noqa: S101 - asked by the caller
        text = "another one begins; all it knows of the past is what is written on the Nodes"
        self.simulation.timeline.tell("world", None, "agent-begins", text)
        ticker = self._agent(self._ports(watcher))

        def again() -> None:
            if self.simulation.timeline.now_s() >= watcher.until_s:
                return
            with suppress(ClusterError):
                ticker.tick()
            self.simulation.clock.after(self.scenario.policy.poll_s, again)

        again()

    def _tell_end(self) -> None:
        self.simulation.timeline.tell("world", None, "agent-ends", "the agent that watched so far ends")

    def _fence_by_hand(self, node: str) -> None:
        """Let somebody type ``fencer fence NODE``: an agent that remembers nothing, and takes commands."""
        assert self._agent is not None  # noqa: S101 - asked by the caller
        agent = cast("Obeying", self._agent(self._ports(Watcher())))
        with suppress(ClusterError):
            agent.pursue(node, Intent.FENCE, Word(), BY_HAND_S)

    def _tell_leftovers(self) -> None:
        """Say what is stuck at the end, and would be an hour later."""
        api = self.simulation.api
        stuck = [pod for pod in api.pods.values() if pod.deleted_s is not None]
        volumes = {pod.volume for pod in stuck} & {one.volume for one in api.attachments.values()}
        if stuck:
            text = (
                f"{count(len(stuck), 'pod')} still Terminating, {count(len(volumes), 'volume')} still held "
                "by the silent node; it stays so until that node is back"
            )
            self.simulation.timeline.tell("kubernetes", stuck[0].node, "stuck", text, pods=len(stuck))
        for node in sorted(self.simulation.cluster.tainted_by_hand & set(api.nodes)):
            if api.nodes[node].out_of_service:
                text = "the taint is still there: to take it off is for whoever set it"
                self.simulation.timeline.tell("world", node, "taint-stays", text)

    def _ports(self, watcher: Watcher) -> StagePorts:
        simulation = self.simulation
        knows = watcher.knows if watcher.knows is not None else tuple(simulation.hypervisors)
        return StagePorts(
            self.truth.cluster(),
            {name: simulation.hypervisors[name] for name in knows},
            simulation.asker,
            simulation.clock,
            self.reporter,
            self.scenario.policy,
            simulation.rules(),
            simulation.witnesses,
        )

    def _let_happen(self, fault: Fault) -> None:
        if fault.death:
            self.tally.begin(self._node_of(fault.target))
        apply(fault, self.simulation)
        if fault.what is What.FENCE_BY_HAND and not self.alone:
            self._fence_by_hand(fault.target)

    def _hear_cue(self, obj: ApiObject) -> None:
        """Let happen what waits for this: all cues so far are about a taint."""
        if not self._waiting or not isinstance(obj, ApiNode) or not obj.out_of_service:
            return
        due = [fault for fault in self._waiting if self._node_of(fault.target) == obj.name]
        self._waiting = [fault for fault in self._waiting if fault not in due]
        for fault in due:
            self.simulation.clock.after(fault.at_s, partial(self._let_happen, fault))

    def _node_of(self, target: str) -> str:
        """Return the node that a fault hits; of a host, the first one there."""
        guests = self.simulation.world.guests.values()
        return next(guest.node for guest in guests if target in {guest.name, guest.host})

    def _summarised(self, incident: Incident) -> IncidentSummary:
        ours = incident.node not in self.simulation.cluster.tainted_by_hand
        return IncidentSummary(
            node=incident.node,
            fenced=incident.tainted_s is not None and self.simulation.cluster.cleared[incident.node] > 0,
            pods_moved=incident.pods_moved,
            seconds_to_fence=incident.after_s(incident.tainted_s) if ours else None,
            seconds_to_recover=incident.after_s(incident.recovered_s),
            seconds_to_unfence=incident.after_s(incident.unfenced_s),
        )

    def _refused(self, fenced: tuple[str, ...]) -> Reason | None:
        nodes = fenced or [one.node for one in self.tally.incidents]
        reasons = (self.reporter.refused(node, fenced=bool(fenced)) for node in nodes)
        return next((reason for reason in reasons if reason is not None), None)

    def _as_expected(
        self, fenced: tuple[str, ...], refused: Reason | None, incidents: tuple[IncidentSummary, ...]
    ) -> bool:
        scenario = self.scenario
        lifted = all(one.seconds_to_unfence is not None for one in incidents if one.fenced)
        return (
            (fenced, refused) == (scenario.fenced, scenario.refused)
            and (lifted or scenario.stays_fenced)
            and (self.simulation.world.double_writers > 0) == scenario.second_writer
            and (self.truth.breaches == 0 or scenario.second_writer)
        )


def play(
    scenario: Scenario, agent: AgentFactory | None = None, *, seed: int = 0, strict: bool = False
) -> Iterator[StageEvent | Summary]:
    """Play a scenario: its events as they happen, and last its `Summary`.

    Args:
        scenario: One of `fencer.simulation.scenarios.SCENARIOS`, or another.
        agent: Builds the agent; None: what Kubernetes alone would do.
        seed: Same seed, same story, to the last character.
        strict: A double writer raises `DoubleWriter` instead of being told and counted.
    """
    stage = Stage(scenario, agent, seed=seed, strict=strict)
    yield from stage.play()
    yield stage.summary()


def _slowest(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None
