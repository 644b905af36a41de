"""Plays a scenario in virtual time, with an agent or without, and tells what happens.

This room knows no agent: the caller passes a function that builds one from `StagePorts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial

from fencer.core.model import Reason
from fencer.core.text import count
from fencer.simulation.assembly import Simulation
from fencer.simulation.commands import Typed
from fencer.simulation.crew import AgentFactory, Crew, StagePorts, Ticker
from fencer.simulation.cues import Cues
from fencer.simulation.faults import OF_AGENTS, OF_COMMANDS, Cue, Fault, What, apply
from fencer.simulation.objects import ApiBudget, ApiNode, ApiObject
from fencer.simulation.reporter import StageReporter
from fencer.simulation.requests import NodeHealthChecks
from fencer.simulation.restarts import Restarter
from fencer.simulation.scenario import Scenario
from fencer.simulation.summary import CommandSummary, IncidentSummary, Summary
from fencer.simulation.tally import Incident, Tally
from fencer.simulation.timeline import StageEvent
from fencer.simulation.truth import Truth
from fencer.simulation.workloads import NAMESPACE

__all__ = ["AgentFactory", "IncidentSummary", "Stage", "StagePorts", "Summary", "Ticker", "play"]

CALM_S = 30.0
"""At least this long after what has waited for a cue nothing more happens."""
TOLD_AT_ONCE_S = 10.0
"""How much of a story is played before it is shown."""


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
            scenario.shape,
            scenario.workloads(),
            seed=seed,
            strict=strict,
            timing=scenario.controllers,
            kubelets=scenario.kubelets,
            kubelets_of=scenario.kubelets_of,
        )
        self.simulation.warm_up()
        self.tally = Tally(self.simulation)
        self.truth = Truth(self.simulation, scenario.policy, strict=strict)
        self.reporter = StageReporter(self.simulation.timeline)
        for owner, least in scenario.budgets.items():
            name = owner.partition("/")[2]
            self.simulation.api.budgets.append(ApiBudget(NAMESPACE, name, owner, least))
        if scenario.health_check is not None:
            api, requests = self.simulation.api, self.simulation.requests
            NodeHealthChecks(api, requests, scenario.health_check, self.simulation.timeline)
        for restarts in scenario.restarts:
            Restarter(self.simulation.world, restarts)
        self._seed = seed
        script = scenario.script_for(alone=self.alone)
        self._cues, self._cued_s = Cues(script), -math.inf
        for hypervisor in self.simulation.hypervisors.values():
            hypervisor.subscribe(self.simulation.clock.wake)
        self._crew = (
            Crew(scenario, self.simulation, self.truth, self.reporter, agent, self._cue)
            if agent is not None
            else None
        )
        began_s = self.simulation.timeline.began_s
        for fault in script:
            if fault.cue is None:
                self.simulation.clock.at(began_s + fault.at_s, partial(self._let_happen, fault))
        self.simulation.api.watchers.append(self._hear_taint)

    def play(
        self, over: Callable[[], bool] = lambda: True, bound_s: float = 0.0
    ) -> Generator[StageEvent, None, None]:
        """Let the story happen, and tell it line by line.

        Args:
            over: Whether all is as it should be in the end; until then it goes on.
            bound_s: But no longer than so many seconds.
        """
        simulation = self.simulation
        try:
            while (now_s := simulation.clock.now_s()) < (end_s := self._ends_s) or (
                now_s < end_s + bound_s and not over()
            ):
                until_s = end_s if now_s < end_s else end_s + bound_s
                simulation.clock.advance(min(TOLD_AT_ONCE_S, until_s - now_s))
                yield from simulation.timeline.take()
            self._tell_leftovers()
            yield from simulation.timeline.take()
        finally:
            simulation.clock.close()

    def summary(self) -> Summary:
        """Say how it ended."""
        world, incidents = self.simulation.world, tuple(map(self._summarised, self.tally.incidents))
        fenced = tuple(one.node for one in incidents if one.fenced)
        refused = self._refused(fenced)
        alive = [pod for pod in self.simulation.api.pods.values() if not (pod.daemon or pod.over)]
        return Summary(
            scenario=self.scenario.name,
            alone=self.alone,
            seed=self._seed,
            fenced=bool(fenced),
            refused_reason=None if refused is None else refused.value,
            pods_moved=sum(one.pods_moved for one in incidents),
            pods_stuck=sum(pod.deleted_s is not None for pod in self.simulation.api.pods.values()),
            pods_down=sum(pod.deleted_s is None and not pod.ready for pod in alive),
            evicts_nobody=self.simulation.control_plane.evicts_nobody(),
            foreign_taint=bool(self.simulation.cluster.tainted_by_hand),
            seconds_to_fence=_slowest(one.seconds_to_fence for one in incidents),
            seconds_to_recover=_slowest(one.seconds_to_recover for one in incidents),
            double_writers=world.double_writers,
            resumable_hazards=world.resumable_hazards,
            breaches=self.truth.breaches,
            as_expected=None if self.alone else self._as_expected(fenced, refused, incidents),
            duration_s=round(self.simulation.clock.now_s() - self.simulation.timeline.began_s, 1),
            incidents=incidents,
            commands=self._commands,
            most_down=max((one.most_down for one in self.tally.incidents if one.planned), default=None),
        )

    @property
    def _commands(self) -> tuple[CommandSummary, ...]:
        return () if self._crew is None else tuple(self._crew.typist.ended)

    @property
    def typed(self) -> tuple[Typed, ...]:
        """What people have typed so far."""
        return () if self._crew is None else tuple(self._crew.typist.typed)

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

    def _let_happen(self, fault: Fault) -> None:
        node = self._node_of(fault.target) if fault.death else None
        if node is not None:
            self.tally.begin(node, planned=fault.what is What.TYPED)
        if fault.what in OF_AGENTS:
            if self._crew is not None:
                self._crew.befall(fault)
            return
        apply(fault, self.simulation)
        if fault.what in OF_COMMANDS and self._crew is not None:
            typist = self._crew.typist
            (typist.type if fault.what is What.TYPED else typist.break_off)(fault)

    @property
    def _ends_s(self) -> float:
        """When the story is over: calm for a while after what has waited for a cue, too."""
        duration_s = self.scenario.alone_s if self.alone else self.scenario.duration_s
        return max(self.simulation.timeline.began_s + duration_s, self._cued_s + CALM_S)

    def _hear_taint(self, obj: ApiObject) -> None:
        if isinstance(obj, ApiNode) and obj.out_of_service:
            self._cue(Cue.TAINTED, obj.name)

    def _cue(self, cue: Cue | None, node: str) -> Sequence[Fault]:
        """Let happen what waits for this, and return it; once the story is calm, nothing does any more."""
        clock = self.simulation.clock
        if clock.now_s() > self._ends_s - CALM_S:  # or the end would never come
            return ()
        due = self._cues.due(cue, lambda target: self._node_of(target) == node)
        for fault in due:
            self._cued_s = max(self._cued_s, clock.now_s() + fault.at_s + fault.for_s)
            if fault.what is not What.AGENT_STALLS:  # that is for the agent
                clock.after(fault.at_s, partial(self._let_happen, fault))
        return due

    def _node_of(self, target: str) -> str | None:
        """Return the node that a fault hits; of a host, the first one there, if there is any."""
        guests = self.simulation.world.guests.values()
        return next((guest.node for guest in guests if target in {guest.name, guest.host}), None)

    def _summarised(self, incident: Incident) -> IncidentSummary:
        ours = incident.node not in self.simulation.cluster.tainted_by_hand
        cleared = self.simulation.cluster.cleared[incident.node]
        if incident.node in self.scenario.fenced:  # Kubernetes may be quicker, because of fencer's taint
            cleared += self.simulation.control_plane.podgc.collected[incident.node]
        fenced = incident.tainted_s is not None and cleared > 0
        refused = self.reporter.refused(incident.node, fenced=fenced)
        return IncidentSummary(
            node=incident.node,
            fenced=fenced,
            refused_reason=None if refused is None else refused.value,
            pods_moved=incident.pods_moved,
            seconds_to_fence=incident.after_s(incident.tainted_s) if ours else None,
            seconds_to_recover=incident.after_s(incident.recovered_s),
            seconds_to_unfence=incident.after_s(incident.unfenced_s),
        )

    def _refused(self, fenced: tuple[str, ...]) -> Reason | None:
        others = (one.node for one in self.tally.incidents if one.node not in fenced)
        reasons = (self.reporter.refused(node, fenced=node in fenced) for node in (*fenced, *others))
        return next((reason for reason in reasons if reason is not None), None)

    def _as_expected(
        self, fenced: tuple[str, ...], refused: Reason | None, incidents: tuple[IncidentSummary, ...]
    ) -> bool:
        scenario = self.scenario
        lifted = all(one.seconds_to_unfence is not None for one in incidents if one.fenced)
        return (
            (fenced, refused) == (scenario.fenced, scenario.refused)
            and (lifted or scenario.stays_fenced)
            and tuple(one.words for one in self._commands if one.done) == scenario.done
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
