"""A simulated cluster that an agent watches, and what is told there of the ways out of a reason.

A `Row` is a situation in which a reason is said, with every way out that is told there. What is told and what
is done are held together by the words: see `unaccounted`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, TypeAlias, cast

from fencer.config.settings import Config
from fencer.core.crash_loop import loop_alarms
from fencer.core.model import Intent, Judged, Reason
from fencer.core.policy import Policy
from fencer.errors import FencerError
from fencer.ports import Cluster, Hypervisor, StateStore
from fencer.runtime.election import Campaigns
from fencer.runtime.reconcile import Agent
from fencer.runtime.watch import sight
from fencer.runtime.world import World
from fencer.simulation.assembly import Shape
from fencer.simulation.controllers import Timing
from fencer.simulation.objects import ApiNode
from fencer.simulation.scenario import ARMED
from fencer.wording.reasons import TEXTS, change
from fencer.wording.ways_out import ways_out
from tests.cli.lab import PATH, Lab

NODE = "k8s-2"
"""Who is in trouble, if nothing else is said."""

BINDING_S = 30.0
"""Until an agent has bound every node."""

MOMENT_S = 0.5
"""For so long after a slow answer of the API server the hypervisor is away."""


class Case(Lab):
    """A cluster, the agent that watches it, and its administrator.

    Args:
        policy: How fencer is set.
        shape: How big the world is.
        timing: How slow the control plane is.
        power: The configuration admits power actions.
        strict: Two writers on one volume fail the test.
        knows: The endpoints in the configuration; none: all.
        node: Which node it is about.
        known: The agent has bound every node already.
    """

    def __init__(self, row: Row) -> None:
        super().__init__(row.policy, power=row.power, strict=row.strict, shape=row.shape, timing=row.timing)
        self.knows = row.knows or tuple(self.simulation.hypervisors)
        self.state: StateStore | None = None
        self.witnessed = False
        self.another_lives = False
        self.slow_s = 0.0
        self.loops = False
        self.node = row.node
        self.judged: Judged | None = None
        self.said = ""
        self.agent = self.begin()
        if row.known:
            self.watched(BINDING_S)

    def begin(self) -> Agent:
        """Start the agent, or restart it with another configuration: it remembers nothing."""
        self.agent = Agent(self._world(), self.policy, self.rules, by="fencer@pve1")
        return self.agent

    def watched(self, seconds: float) -> None:
        """Let time pass under its eyes."""
        until_s = self.simulation.clock.now_s() + seconds
        while self.simulation.clock.now_s() < until_s:
            self._look()

    def until(self, holds: Callable[[Case], object], within_s: float, wanted: str) -> None:
        """Watch until something holds.

        Raises:
            AssertionError: it does not in time.
        """
        began_s = self.simulation.clock.now_s()
        while not holds(self):
            passed_s = self.simulation.clock.now_s() - began_s
            assert passed_s <= within_s, f"after {passed_s:.0f} s not {wanted}: {self.told}\n{self.said}"
            self._look()

    def _look(self) -> None:
        """Make one pass, as the watch loop does."""
        try:
            done = self.agent.tick()
        except FencerError as error:
            self.said, wait_s = str(error), self.policy.poll_s
        else:
            self.judged, wait_s = done.judged.get(self.node), done.recheck_s
            if isinstance(self.election, Campaigns):
                self.election.passed(sight(done, self._world()))
        self.simulation.clock.wait(max(0.05, wait_s))

    @property
    def reason(self) -> Reason | None:
        """What was said of the node last."""
        return None if self.judged is None else self.judged.decision.reason

    @property
    def told(self) -> str:
        """The ways out, as a person reads them, in one line."""
        if self.judged is None:
            return "nothing is said of it"
        return " ".join([str(self.reason), *" ".join(ways_out(self.judged, str(PATH))).split()])

    @property
    def api_node(self) -> ApiNode:
        """The Node object."""
        return self.simulation.api.nodes[self.node]

    @property
    def whole(self) -> bool:
        """Whether every replica is Ready somewhere."""
        return self.simulation.control_plane.whole()

    # -- what commands and agent are given -----------------------------------------------------------------

    def load(self, path: Any) -> Config:
        config = super().load(path)
        known = tuple(one for one in config.endpoints if one.name in self.knows)
        return replace(config, endpoints=known, nodes=self.rules.nodes)

    def cluster(self, _config: Config | None = None) -> Cluster:
        port = self.simulation.cluster
        methods = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}

        def pods(node: str) -> Any:
            if self.slow_s:
                trouble, clock = self.simulation.hypervisor.trouble, self.simulation.clock
                clock.advance(self.slow_s)
                trouble.unreachable = True
                clock.after(MOMENT_S, lambda: setattr(trouble, "unreachable", False))
            return port.pods(node)

        return cast("Cluster", SimpleNamespace(**{**methods, "pods": pods}))

    def _world(self) -> World:
        simulation = self.simulation
        known: Mapping[str, Hypervisor] = {name: simulation.hypervisors[name] for name in self.knows}
        witnesses = simulation.witnesses if self.witnessed else {}
        quiet = super()._world()
        return replace(
            quiet,
            cluster=self.cluster(),
            hypervisors=known,
            witnesses=witnesses,
            requests=simulation.requests,
            state=self.state,
        )


Step: TypeAlias = Callable[[Case], object]
"""One thing that happens, or that somebody does."""


@dataclass(frozen=True)
class Way:
    """One way out.

    Attributes:
        words: How it is told, wherever it is: each phrase stands in a text of its reason.
        taken: What a person does, or what happens, if it is taken.
        leads_to: What it promises.
        within_s: How long that may take.
    """

    words: tuple[str, ...]
    taken: tuple[Step, ...]
    leads_to: Callable[[Case], object]
    within_s: float = 200.0

    def __str__(self) -> str:
        """Return how it is told."""
        return self.words[0]


@dataclass(frozen=True)
class Row:
    """A situation in which a reason is said, and every way out of it.

    Attributes:
        situation: What happens until then.
        ways: All of them.
        beside: What is told with them and is no way out.
        policy, shape, timing, power, strict, knows, node, known: See `Case`.
        more: The same reason in another situation: its general text is held to the row before.
    """

    reason: Reason
    situation: tuple[Step, ...]
    ways: tuple[Way, ...]
    beside: tuple[str, ...] = ()
    policy: Policy = ARMED
    shape: Shape | None = None
    timing: Timing | None = None
    power: bool = True
    strict: bool = True
    knows: tuple[str, ...] = ()
    node: str = NODE
    known: bool = True
    within_s: float = 200.0
    more: str = ""

    def __str__(self) -> str:
        """Return the reason, and the situation where there is more than one."""
        return f"{self.reason.value}, {self.more}".removesuffix(", ")

    def reached(self) -> Case:
        """Return a world in which the reason was just said.

        Raises:
            AssertionError: it is not.
        """
        case = Case(self)
        for step in self.situation:
            step(case)
        case.until(lambda case: case.reason is self.reason, self.within_s, str(self))
        return case


def row(reason: Reason, situation: Iterable[Step], *ways: Way, **facts: Any) -> Row:
    """Return a row of the table: a reason, how a node comes there, and all ways out; `facts`: see `Row`."""
    return Row(reason, tuple(situation), ways, **facts)


def way(*words: str, do: Iterable[Step] = (), to: Callable[[Case], object], within_s: float = 200.0) -> Way:
    """Return a way out: how it is told, what is done, and what comes of it."""
    return Way(words, tuple(do), to, within_s)


def passes(*words: str, to: Callable[[Case], object], within_s: float = 200.0) -> Way:
    """Return a way out that needs nothing but time."""
    return way(*words, to=to, within_s=within_s)


CONNECTIVES = re.compile(r"What would change this:|Try:|\b(or|and|if|once|nor|now)\b|[,;:.()]")
"""What may stand between the phrases of the ways."""


def unaccounted(row: Row, texts: Iterable[str]) -> list[str]:
    """Return what a text says beyond the ways of a row, and what a way is called that no text says."""
    phrases = {*(word for way in row.ways for word in way.words), *row.beside}
    left, missing = [], set(phrases)
    for text in texts:
        rest = text
        for phrase in sorted(phrases, key=len, reverse=True):
            if phrase in rest:
                missing.discard(phrase)
                rest = rest.replace(phrase, "")
        rest = CONNECTIVES.sub("", rest).strip()
        left += [f"no way is called {rest!r}, of {text!r}"] if rest else []
    return [*left, *(f"nothing says {phrase!r}" for phrase in sorted(missing))]


def texts(case: Case, row: Row) -> list[str]:
    """Return all that names ways out of a reason: its general text, and what is told in this very case."""
    assert case.judged is not None
    alarms = (alarm.text for alarm in loop_alarms(case.judged.decision))
    told = " ".join(" ".join((*alarms, *ways_out(case.judged, str(PATH)))).split())
    if case.judged.observation.intent in {Intent.SHUTDOWN, Intent.START}:  # these doors tell no more
        told = f"What would change this: {change(case.judged.decision)}."
    return [told] if row.more else [TEXTS[row.reason].change, told]
