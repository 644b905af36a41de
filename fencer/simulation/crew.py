"""The agents of a story: each a strand of its own, that may be suspended or killed in the middle of anything.

This room knows no agent: the caller passes a function that builds one from `StagePorts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Protocol, TypeAlias, cast

from fencer.core.election import Holder, LeaseRecord
from fencer.core.identity import Rules
from fencer.core.policy import Mode, Policy
from fencer.errors import ClusterError
from fencer.journal.rows import Journal
from fencer.ports import (
    Asker,
    Clock,
    Cluster,
    Evictor,
    HostPower,
    Hypervisor,
    LeaseStore,
    Pauser,
    Reporter,
    Requests,
    StateStore,
    Surveyor,
)
from fencer.simulation.asker import Companion, Killed, Process
from fencer.simulation.assembly import Simulation
from fencer.simulation.commands import Hands, Typed
from fencer.simulation.disk import ReadState, SimulatedDisk, SimulatedState
from fencer.simulation.faults import Fault, What
from fencer.simulation.renamed import Renamed
from fencer.simulation.reporter import StageReporter
from fencer.simulation.scenario import Scenario, Watcher
from fencer.simulation.skew import Balancer, SkewedCluster, SkewedLeases
from fencer.simulation.truth import Truth
from fencer.simulation.typist import Typist

PATIENCE_S = 2.0
"""How long a look at all endpoints waits for a slow one. A test compares with ``fencer watch``."""

MIN_WAIT_S = 0.05
"""Between two passes, however soon the agent wants to come again."""

ON_THE_WAY_S = 0.03
"""How long a write to the API is on its way at most, once the agent has made up its mind."""

WRITES = frozenset(
    {
        *("bind", "record_doubts", "claim", "taint", "untaint", "forget_mark", "cordon", "uncordon"),
        *("clear", "evict", "delete_attachment"),
    }
)
"""Calls of the `Cluster` that change something."""


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
        journal: Where what it keeps goes; None: it keeps nothing.
        leases: What agents share.
        holder: Who it is in this life of its process, as on a Lease.
        requests: What other controllers ask; None: nobody is heard.
        by_hand: What only commands need; None: it watches.
        beside: What goes on beside its passes; None: it takes one command, and ends.
        state: Keeps what it has seen over its restarts; a command reads it. None: there is no disk.
    """

    cluster: Cluster
    hypervisors: Mapping[str, Hypervisor]
    asker: Asker
    clock: Clock
    reporter: Reporter
    policy: Policy
    rules: Rules
    witnesses: Mapping[tuple[str, str], HostPower]
    journal: Journal | None = None
    leases: LeaseStore | None = None
    holder: str = ""
    requests: Requests | None = None
    by_hand: ByHand | None = None
    beside: Beside | None = None
    state: StateStore | None = None


@dataclass(frozen=True, slots=True)
class ByHand:
    """What commands need beside the ports that watch.

    Attributes:
        evictor: Evicts pods, as far as budgets allow.
        surveyor: Looks at all that a plan looks at.
        pauser: Pauses fencing, with a person's own credentials.
        step: Tells a step as whoever typed the command sees it: of which node, what it is, its details.
    """

    evictor: Evictor
    surveyor: Surveyor
    pauser: Pauser
    step: Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True)
class Beside:
    """What goes on in an agent's process beside its passes.

    Attributes:
        asker: Calls from there.
        again: Calls something again and again, as long as the process lives: that returns when to come again.
        utc: The wall clock, RFC 3339.
    """

    asker: Asker
    again: Callable[[Callable[[], float]], object]
    utc: Callable[[], str]


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

    def obey(self, words: str) -> Obeyed:
        """Do what somebody types after ``fencer``, until that is done, refused, or patience ends.

        Raises:
            ClusterError: the cluster could not be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class Obeyed:
    """How a command has ended.

    Attributes:
        done: It did what it was asked for; otherwise it refused, or failed.
        text: Its last line; empty: what was told before says it all.
    """

    done: bool
    text: str


AgentFactory: TypeAlias = Callable[[StagePorts], Ticker]


class Crew:
    """All agents of a story.

    Args:
        scenario: Who watches from when to when, and how they are set.
        simulation: The world.
        truth: Which sees all that they do to the cluster.
        reporter: What they say.
        agent: Builds one.
    """

    def __init__(
        self,
        scenario: Scenario,
        simulation: Simulation,
        truth: Truth,
        reporter: StageReporter,
        agent: AgentFactory,
    ) -> None:
        self._scenario, self._simulation = scenario, simulation
        self._truth, self._reporter, self._agent = truth, reporter, agent
        self._processes: dict[str, Process] = {}
        self._down_s: dict[str, float] = {}
        self._chances: dict[str, Random] = {}
        self._trouble = ""
        self._lives = 0
        self._typed = 0
        self.typist = Typist(scenario, simulation, truth, self._obey, [], [])
        """Who types commands."""
        self._disk = SimulatedDisk(simulation.clock, simulation.timeline)
        self._states: dict[str, SimulatedState] = {}
        self._observing = {fault.target for fault in scenario.script if fault.what is What.AGENT_ARMED}
        began_s, clock = simulation.timeline.began_s, simulation.clock
        for number, watcher in enumerate(scenario.watchers, 1):
            begin = partial(clock.spawn, partial(self._watch, f"fencer-{number}", watcher))
            if watcher.from_s:
                clock.at(began_s + watcher.from_s, begin)
            else:
                begin()
        for watcher in scenario.watchers:
            if watcher.until_s < scenario.duration_s:
                clock.at(began_s + watcher.until_s, self._tell_end)

    def befall(self, fault: Fault) -> None:
        """Let an agent stand still, or end and begin again, in the midst of what it will be doing by then."""
        process, name, for_s = self._processes.get(fault.target), fault.target, fault.for_s
        if process is None:
            return
        tell, clock = self._simulation.timeline.tell, self._simulation.clock
        if fault.what is What.DISK_HANGS:
            tell("world", None, "disk-hangs", fault.text)
            self._disk.hang()
            clock.after(for_s, self._disk.go_on)
            return

        if fault.what is What.AGENT_ARMED:
            tell("person", None, "agent-armed", fault.text or f"{name} is armed, and reloaded")
            self._observing.discard(name)

        def freeze() -> None:
            tell("world", None, "agent-freezes", f"{name} stands still: its machine is suspended")
            clock.advance(for_s)
            tell("world", None, "agent-goes-on", f"{name} goes on where it stood, {for_s:.0f} s later")

        def kill() -> None:
            tell("world", None, "agent-ends", f"{name} is killed")
            self._down_s[name] = for_s
            raise Killed

        def reload() -> None:
            tell("world", None, "agent-ends", f"{name} is reloaded")
            self._down_s[name] = for_s
            raise Killed

        fates = {What.AGENT_FROZEN: freeze, What.AGENT_ARMED: reload}
        process.meets(fates.get(fault.what, kill), fault.steps)

    def _obey(self, typed: Typed) -> Obeyed:
        """Carry out a command: an agent that remembers nothing, and takes one command."""
        self._typed += 1
        name = f"by hand, {typed.words} {self._typed}"
        ports = self._ports(name, Watcher(), typed)
        typed.process = self._processes[name]
        return cast("Obeying", self._agent(ports)).obey(typed.words)

    def _watch(self, name: str, watcher: Watcher) -> None:
        """Watch until the time has come, as often as it takes."""
        clock, timeline = self._simulation.clock, self._simulation.timeline
        if watcher.from_s:
            text = "another one begins; all it knows of the past is what is written on the Nodes"
            timeline.tell("world", None, "agent-begins", text)
        while timeline.now_s() < watcher.until_s:
            try:
                self._live(self._agent(self._ports(name, watcher)), watcher)
                self._processes[name].end()
            except Killed:
                clock.advance(self._down_s[name])
                timeline.tell("world", None, "agent-begins", f"{name} begins again")

    def _live(self, ticker: Ticker, watcher: Watcher) -> None:
        clock, timeline = self._simulation.clock, self._simulation.timeline
        while timeline.now_s() < watcher.until_s:
            clock.wait(self._pass(ticker))

    def _pass(self, ticker: Ticker) -> float:
        """Let an agent make a pass, as its watch loop would. Returns how long to wait for the next."""
        trouble = ""
        try:
            done = ticker.tick()
        except ClusterError as error:
            done, trouble = None, str(error)
        if trouble != self._trouble:
            self._reporter.said(trouble or "kubernetes: answers again", warning=bool(trouble))
        self._trouble = trouble
        return self._scenario.policy.poll_s if done is None else max(MIN_WAIT_S, done.recheck_s)

    def _tell_end(self) -> None:
        self._simulation.timeline.tell("world", None, "agent-ends", "the agent that watched so far ends")

    def _ports(self, name: str, watcher: Watcher, typed: Typed | None = None) -> StagePorts:
        """Return the ports of an agent, or of a command that was typed."""
        watches = typed is None
        simulation, several = self._simulation, len(self._scenario.watchers) > 1
        knows = watcher.knows if watcher.knows is not None else tuple(simulation.hypervisors)
        calls, admitted = watcher.calls, simulation.rules().admitted
        process = self._processes[name] = Process(simulation.clock)
        self._lives += 1
        holder = str(Holder(name, "simulated", str(self._lives)))
        watched, hypervisors = self._truth.ports(holder if watches else "", typed=typed)
        cluster: object = watched
        if self._scenario.clocks:
            cluster = SkewedCluster(cluster, self._balancer(name))
        chance = None
        if self._scenario.interleaved:
            chance = self._chances.setdefault(name, Random(f"{simulation.seed} {name}"))  # noqa: S311 - repeatable
            cluster = _FarAway(cluster, simulation, process, chance)
        reporter = self._reporter.of(name.partition(",")[0]) if several else self._reporter
        by_hand = ByHand(cast("Evictor", cluster), simulation.surveyor, simulation.pauser, reporter.step)
        asker = simulation.asker_of(process, chance)
        asker.patience_s = PATIENCE_S if watches else math.inf
        return StagePorts(
            cast("Cluster", cluster),
            _by_name(hypervisors, knows, calls),
            asker,
            simulation.clock if watches else Hands(simulation.clock, process),
            reporter,
            self._policy_of(name),
            Rules(admitted={calls.get(name, name): rule for name, rule in admitted.items()}),
            {(calls.get(name, name), host): port for (name, host), port in simulation.witnesses.items()},
            self._disk if What.DISK_HANGS in {fault.what for fault in self._scenario.script} else None,
            self._leases_of(name, process),
            holder,
            simulation.requests,
            None if watches else by_hand,
            self._beside(process) if watches else None,
            self._state_of(name, watches=watches),
        )

    def _state_of(self, name: str, *, watches: bool) -> StateStore:
        """Return what lies on an agent's disk. Commands are typed where the first one runs, and read it."""
        own = self._states.setdefault(name if watches else "fencer-1", SimulatedState(self._disk))
        return own if watches else ReadState(own)

    def _policy_of(self, name: str) -> Policy:
        policy = self._scenario.policy
        return replace(policy, mode=Mode.OBSERVE) if name in self._observing else policy

    def _leases_of(self, name: str, process: Process) -> LeaseStore:
        """Return the Leases, far away: what is written is on its way for a while, and so is the answer."""
        leases: LeaseStore = self._simulation.leases
        if self._scenario.clocks:
            leases = SkewedLeases(leases, self._balancer(f"{name}, leases"))
        if not self._scenario.interleaved:
            return leases
        chance = self._chances.setdefault(f"{name}, leases", Random(f"{self._simulation.seed} {name} leases"))  # noqa: S311 - repeatable
        return _FarLeases(leases, self._simulation, process, chance)

    def _balancer(self, name: str) -> Balancer:
        """Return what picks the API server for each answer to one agent, by a chance of its own."""
        key, seed = f"{name}, servers", self._simulation.seed
        chance = self._chances.setdefault(key, Random(f"{seed} {key}"))  # noqa: S311 - repeatable
        return Balancer(self._scenario.clocks, self._simulation.timeline, chance)

    def _beside(self, process: Process) -> Beside:
        simulation = self._simulation
        companion = Companion(process, simulation.clock)

        def again(step: Callable[[], float]) -> None:
            def go_on() -> None:
                with suppress(Killed):
                    while True:
                        companion.step()
                        simulation.clock.advance(step())

            simulation.clock.spawn(go_on)

        return Beside(
            simulation.asker_of(companion, None), again, partial(simulation.clock.utc, "microseconds")
        )


def _by_name(
    hypervisors: Mapping[str, Hypervisor], knows: Collection[str], calls: Mapping[str, str]
) -> dict[str, Hypervisor]:
    """Return the endpoints that somebody knows, by the names that they have there."""
    own = {name: hypervisors[name] for name in knows if name not in calls}
    renamed = {calls[name]: Renamed(hypervisors[name], calls[name]) for name in knows if name in calls}
    return own | cast("dict[str, Hypervisor]", renamed)


class _FarLeases:
    """The Leases: a request takes effect after a while, its answer comes later, and meanwhile all goes on."""

    def __init__(self, leases: LeaseStore, simulation: Simulation, process: Process, chance: Random) -> None:
        self._leases, self._clock = leases, simulation.clock
        self._process, self._chance = process, chance

    def read_lease(self, name: str) -> LeaseRecord:
        return self._call(lambda: self._leases.read_lease(name))

    def write_lease(self, record: LeaseRecord) -> LeaseRecord:
        return self._call(lambda: self._leases.write_lease(record))

    def _call(self, call: Callable[[], LeaseRecord]) -> LeaseRecord:
        self._process.follow()
        self._clock.advance(self._chance.uniform(0.0, ON_THE_WAY_S))
        try:
            return call()
        finally:
            self._clock.advance(self._chance.uniform(0.0, ON_THE_WAY_S))
            self._process.follow()


class _FarAway:
    """The cluster's port: what changes something is on its way for a while, whatever was asked before."""

    def __init__(self, cluster: object, simulation: Simulation, process: Process, chance: Random) -> None:
        self._cluster, self._clock = cluster, simulation.clock
        self._process, self._chance = process, chance

    def __getattr__(self, name: str) -> object:
        call = getattr(self._cluster, name)
        if name not in WRITES:
            return call

        def send(*args: object, **options: object) -> object:
            self._process.step()
            self._clock.advance(self._chance.uniform(0.0, ON_THE_WAY_S))
            return call(*args, **options)

        return send
