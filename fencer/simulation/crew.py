"""The agents of a story: each a strand of its own, that may be suspended or killed in the middle of anything.

This room knows no agent: the caller passes a function that builds one from `StagePorts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Protocol, TypeAlias, cast, runtime_checkable

from fencer.core.election import Holder
from fencer.core.identity import Rules
from fencer.core.model import Deed
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
from fencer.simulation.agent_machine import AgentMachine
from fencer.simulation.around import Around, Call
from fencer.simulation.asker import Companion, InlineAsker, Killed, Process
from fencer.simulation.assembly import Simulation
from fencer.simulation.commands import Hands, Typed
from fencer.simulation.cues import BEFORE
from fencer.simulation.disk import ReadState, SimulatedDisk, SimulatedState
from fencer.simulation.faults import Cue, Fault, What
from fencer.simulation.links import WRITES, Links
from fencer.simulation.own_clock import OwnClock
from fencer.simulation.renamed import Renamed
from fencer.simulation.reporter import StageReporter
from fencer.simulation.scenario import Scenario, Watcher
from fencer.simulation.skew import Balancer, skewed
from fencer.simulation.truth import Truth
from fencer.simulation.typist import Typist

PATIENCE_S = 2.0
"""How long a look at all endpoints waits for a slow one. A test compares with ``fencer watch``."""

MIN_WAIT_S = 0.05
"""Between two passes, however soon the agent wants to come again."""

ON_THE_WAY_S = 0.03
"""How long a write to the API is on its way at most, once the agent has made up its mind."""


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
        wall: Its machine's clock, RFC 3339; None: as `clock`, which is the world's then.
        intends: Called with a node's name right before something is done about it; it may take its time.
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
    wall: Callable[[], str] | None = None
    intends: Callable[[str, Deed], None] = lambda _node, _deed: None


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


@runtime_checkable
class Revertible(Ticker, Protocol):
    """An agent that a snapshot of its machine can keep, and that can be stopped in good order."""

    def copied(self, ports: StagePorts) -> Ticker | None:
        """Return it as it is, on other ports, with nothing going on; None: something is under way in it."""
        ...

    def go_on(self) -> None:
        """Let go on, in a copy, what goes on beside the passes."""
        ...

    def release(self) -> None:
        """Give back what is held: it ends."""
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
        cue: Lets happen what waits for a cue about a node, and returns all of that.
    """

    def __init__(
        self,
        scenario: Scenario,
        simulation: Simulation,
        truth: Truth,
        reporter: StageReporter,
        agent: AgentFactory,
        cue: Callable[[Cue | None, str], Sequence[Fault]],
    ) -> None:
        self._scenario, self._simulation, self._cue = scenario, simulation, cue
        self._truth, self._reporter, self._agent = truth, reporter, agent
        self._chances: dict[str, Random] = {}
        self._stalls: dict[tuple[Cue | None, str], tuple[float, int]] = {}
        """What is put off, and about which node → until when, and after how many steps they stand still."""
        self._trouble = ""
        self._lives = 0
        self._typed = 0
        self.typist = Typist(scenario, simulation, truth, self._obey, [], [])
        """Who types commands."""
        self._disk = SimulatedDisk(simulation.clock, simulation.timeline)
        self._machines = {
            f"fencer-{number}": self._machine(f"fencer-{number}", watcher)
            for number, watcher in enumerate(scenario.watchers, 1)
        }
        began_s, clock = simulation.timeline.began_s, simulation.clock
        for name, watcher in zip(self._machines, scenario.watchers, strict=True):
            begin = partial(clock.spawn, partial(self._watch, name, watcher))
            if watcher.from_s:
                clock.at(began_s + watcher.from_s, begin)
            else:
                begin()
        for watcher in scenario.watchers:
            if watcher.until_s < scenario.duration_s:
                clock.at(began_s + watcher.until_s, self._tell_end)

    def _machine(self, name: str, watcher: Watcher) -> AgentMachine:
        simulation, own = self._simulation, OwnClock(self._simulation.clock)
        state, links = SimulatedState(self._disk), Links(simulation, watcher.calls, own)
        machine = AgentMachine(name, simulation.clock, simulation.timeline, state, links, own)
        armed_later = {fault.target for fault in self._scenario.script if fault.what is What.AGENT_ARMED}
        machine.observes = watcher.observes or name in armed_later
        return machine

    def befall(self, fault: Fault) -> None:
        """Let something happen to an agent; to one that is not there, nothing does."""
        if fault.what is What.DISK_HANGS:
            self._simulation.timeline.tell("world", None, "disk-hangs", fault.text)
            self._disk.hang()
            self._simulation.clock.after(fault.for_s, self._disk.go_on)
        elif fault.target in self._machines:
            self._machines[fault.target].befall(fault)

    def _obey(self, typed: Typed) -> Obeyed:
        """Carry out a command: an agent that remembers nothing, and takes one command."""
        self._typed += 1
        typed.process = Process(self._simulation.clock)
        ports = self._ports_by_hand(f"by hand, {typed.words} {self._typed}", typed, typed.process)
        return cast("Obeying", self._agent(ports)).obey(typed.words)

    def _watch(self, name: str, watcher: Watcher) -> None:
        """Watch until the time has come, as often as it takes."""
        clock, timeline = self._simulation.clock, self._simulation.timeline
        if watcher.from_s:
            text = "another one begins; all it knows of the past is what is written on the Nodes"
            timeline.tell("world", None, "agent-begins", text)
        machine = self._machines[name]
        while timeline.now_s() < watcher.until_s:
            try:
                self._live(machine, watcher)
            except Killed:
                clock.advance(machine.down_s)
                timeline.tell("world", None, "agent-begins", f"{name} begins again")

    def _live(self, machine: AgentMachine, watcher: Watcher) -> None:
        """Live one life of an agent's process, until the time has come."""
        clock, timeline = self._simulation.clock, self._simulation.timeline
        process = machine.process = Process(clock)
        ticker, ports = self._born(machine, watcher, process)
        while timeline.now_s() < watcher.until_s:
            clock.wait(self._pass(ticker, ports.policy.poll_s))
            try:
                self._between_passes(machine, ticker, ports)
            except Killed:
                process.end()
                raise
        process.end()

    def _between_passes(self, machine: AgentMachine, ticker: Ticker, ports: StagePorts) -> None:
        """Let happen what waits until no pass is under way."""
        if machine.keeps and isinstance(ticker, Revertible):
            machine.keep(ticker.copied(ports))
        if machine.restarts:
            if isinstance(ticker, Revertible):
                ticker.release()
            machine.stop()

    def _born(self, machine: AgentMachine, watcher: Watcher, process: Process) -> tuple[Ticker, StagePorts]:
        """Return an agent, as it begins or goes on with the memory of a snapshot, and its ports."""
        back = machine.begin()
        machine.holder = self._holder(machine.name) if back is None else back.holder
        ports = self._ports(machine, watcher, process)
        if back is None:
            return self._agent(ports), ports
        ticker = cast("Revertible", back.agent).copied(ports)
        assert ticker is not None  # noqa: S101 - nothing goes on in what a snapshot has kept
        cast("Revertible", ticker).go_on()
        return ticker, ports

    def _holder(self, name: str) -> str:
        self._lives += 1
        return str(Holder(name, "simulated", str(self._lives)))

    def _pass(self, ticker: Ticker, poll_s: float) -> float:
        """Let an agent make a pass, as its watch loop would. Returns how long to wait for the next."""
        trouble = ""
        try:
            done = ticker.tick()
        except ClusterError as error:
            done, trouble = None, str(error)
        if trouble != self._trouble:
            self._reporter.said(trouble or "kubernetes: answers again", warning=bool(trouble))
        self._trouble = trouble
        return poll_s if done is None else max(MIN_WAIT_S, done.recheck_s)

    def _tell_end(self) -> None:
        self._simulation.timeline.tell("world", None, "agent-ends", "the agent that watched so far ends")

    def _ports(
        self, machine: AgentMachine, watcher: Watcher, process: Process, typed: Typed | None = None
    ) -> StagePorts:
        """Return the ports of an agent, or of a command that was typed."""
        watches = typed is None
        simulation, several = self._simulation, len(self._scenario.watchers) > 1
        knows = watcher.knows if watcher.knows is not None else tuple(simulation.hypervisors)
        name, links, calls, rules = machine.name, machine.links, watcher.calls, simulation.rules()
        holder, policy = machine.holder if watches else "", self._policy_of(machine)
        cluster, hypervisors = self._truth.ports(
            holder, machine.own, policy=policy, typed=typed, knows=watcher.knows
        )
        if self._scenario.clocks:
            cluster = skewed(cluster, self._balancer(name))
        cluster, chance = links.to_api(cluster), None
        if self._scenario.interleaved:
            chance = self._chances.setdefault(name, Random(f"{simulation.seed} {name}"))  # noqa: S311 - repeatable
            cluster = _far_away(cluster, simulation, process, chance)
        reporter = self._reporter.of(name.partition(",")[0]) if several else self._reporter
        if typed is not None:
            reporter = reporter.of_command(typed.name)
        by_hand = ByHand(cast("Evictor", cluster), simulation.surveyor, simulation.pauser, reporter.step)
        asker = InlineAsker(simulation.clock, links.delay_s, process, chance)
        asker.patience_s = PATIENCE_S if watches else math.inf
        linked = {one: links.to_endpoint(hypervisors[one], one) for one in knows}
        return StagePorts(
            cast("Cluster", cluster),
            _by_name(cast("Mapping[str, Hypervisor]", linked), calls),
            asker,
            machine.own if watches else Hands(machine.own, process),
            reporter,
            policy,
            Rules(
                {node: (calls.get(name, name), uuid) for node, (name, uuid) in rules.nodes.items()},
                {calls.get(name, name): rule for name, rule in rules.admitted.items()},
                frozenset(calls.get(name, name) for name in rules.by_name),
            ),
            {(calls.get(name, name), host): port for (name, host), port in simulation.witnesses.items()},
            self._disk if What.DISK_HANGS in {fault.what for fault in self._scenario.script} else None,
            self._leases_of(machine, process),
            holder,
            cast("Requests", links.to_api(simulation.requests)),
            None if watches else by_hand,
            self._beside(machine, process) if watches else None,
            machine.state,
            machine.own.wall_utc,
            partial(self._intends, name, process),
        )

    def _intends(self, name: str, process: Process, node: str, deed: Deed) -> None:
        """Let happen what waits until an agent or a command is about to do something about a node.

        Whichever is about to do the same meanwhile stands still, too: otherwise that would be done by then.
        """
        cue, now_s = BEFORE.get(type(deed)), self._simulation.clock.now_s()
        for fault in self._cue(cue, node):
            if fault.what is What.AGENT_STALLS:
                self._stalls[cue, node] = now_s + fault.for_s, fault.steps
        until_s, steps = self._stalls.get((cue, node), (now_s, 0))
        if until_s > now_s:
            process.stalls(partial(self._stall, name, until_s), steps)
            process.step()

    def _stall(self, name: str, until_s: float) -> None:
        tell, for_s = self._simulation.timeline.tell, until_s - self._simulation.clock.now_s()
        if for_s <= 0:
            return
        tell("world", None, "agent-freezes", f"{name} stands still: its machine is suspended")
        self._simulation.clock.advance(for_s)
        tell("world", None, "agent-goes-on", f"{name} goes on where it stood, {for_s:.0f} s later")

    def _ports_by_hand(self, name: str, typed: Typed, process: Process) -> StagePorts:
        """Return what a command works through. It is typed where the first agent runs, if there is one."""
        machine = self._machine(name, Watcher())
        first = next(iter(self._machines.values()), machine)
        machine.state, machine.sets = ReadState(first.state), first.sets
        return self._ports(machine, Watcher(), process, typed)

    def _policy_of(self, machine: AgentMachine) -> Policy:
        policy = replace(self._scenario.policy, **dict(machine.sets))
        return replace(policy, mode=Mode.OBSERVE) if machine.observes else policy

    def _leases_of(self, machine: AgentMachine, process: Process) -> LeaseStore:
        """Return the Leases, far away: what is written is on its way for a while, and so is the answer."""
        leases: object = self._simulation.leases
        if self._scenario.clocks:
            leases = skewed(leases, self._balancer(f"{machine.name}, leases"))
        leases = machine.links.to_leases(leases)
        if self._scenario.interleaved:
            key = f"{machine.name}, leases"
            seed = f"{self._simulation.seed} {machine.name} leases"
            chance = self._chances.setdefault(key, Random(seed))  # noqa: S311 - repeatable
            leases = _far_leases(leases, self._simulation, process, chance)
        return cast("LeaseStore", leases)

    def _balancer(self, name: str) -> Balancer:
        """Return what picks the API server for each answer to one agent, by a chance of its own."""
        key, seed = f"{name}, servers", self._simulation.seed
        chance = self._chances.setdefault(key, Random(f"{seed} {key}"))  # noqa: S311 - repeatable
        return Balancer(self._scenario.clocks, self._simulation.timeline, chance)

    def _beside(self, machine: AgentMachine, process: Process) -> Beside:
        simulation = self._simulation
        companion = Companion(process, simulation.clock)

        def again(step: Callable[[], float]) -> None:
            def go_on() -> None:
                with suppress(Killed):
                    while True:
                        companion.step()
                        simulation.clock.advance(step())

            simulation.clock.spawn(go_on)

        asker = InlineAsker(simulation.clock, machine.links.delay_s, companion)
        return Beside(asker, again, machine.own.wall_micros)


def _by_name(hypervisors: Mapping[str, Hypervisor], calls: Mapping[str, str]) -> dict[str, Hypervisor]:
    """Return the endpoints that an agent knows, by the names that they have in its configuration."""
    return {
        calls.get(name, name): cast("Hypervisor", Renamed(port, calls[name])) if name in calls else port
        for name, port in hypervisors.items()
    }


def _far_leases(leases: object, simulation: Simulation, process: Process, chance: Random) -> Around:
    """Return the Leases: a request takes effect after a while, and its answer comes later."""
    clock = simulation.clock

    def through(_name: str, call: Call) -> Call:
        def send(*args: object, **options: object) -> object:
            process.follow()
            clock.advance(chance.uniform(0.0, ON_THE_WAY_S))
            try:
                return call(*args, **options)
            finally:
                clock.advance(chance.uniform(0.0, ON_THE_WAY_S))
                process.follow()

        return send

    return Around(leases, through)


def _far_away(cluster: object, simulation: Simulation, process: Process, chance: Random) -> Around:
    """Return the cluster's port: what changes something is on its way for a while."""

    def through(name: str, call: Call) -> Call:
        def send(*args: object, **options: object) -> object:
            process.step(on_its_way=True)
            simulation.clock.advance(chance.uniform(0.0, ON_THE_WAY_S))
            return call(*args, **options)

        return send if name in WRITES else call

    return Around(cluster, through)
