"""A simulated cluster with a real agent in it, every call and every word of it written down."""

from dataclasses import dataclass, field, replace

from fencer.core.policy import Mode, Policy
from fencer.core.wire import name_of
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World
from fencer.simulation.assembly import Shape, Simulation
from fencer.simulation.faults import Fault, What, apply
from fencer.simulation.workloads import Deployment, StatefulSet

ARMED = Policy(mode=Mode.ARMED)
AT_ONCE = replace(ARMED, require_not_ready=False, lease_silent_s=0.0, confirm_s=0.0)
WRITES = frozenset(
    {"bind", "claim", "taint", "untaint", "forget_mark", "uncordon", "clear", "delete_attachment"}
)
POWER = frozenset({"stop", "shutdown", "start", "discard"})


class Traced:
    """A port, with every call written down before it is passed on, and perhaps something done then."""

    def __init__(self, port, calls, before):
        self._port, self._calls, self._before = port, calls, before

    def __getattr__(self, name):
        attribute = getattr(self._port, name)
        if not callable(attribute):
            return attribute

        def call(*args, **kwargs):
            self._calls.append(name)
            if name in self._before:
                self._before.pop(name)()
            return attribute(*args, **kwargs)

        return call


@dataclass
class Notebook:
    """A Reporter that keeps what it is told."""

    decided_: list = field(default_factory=list)
    acted_: list = field(default_factory=list)
    said_: list = field(default_factory=list)

    def decided(self, node, decision):
        self.decided_.append((node.name, decision.verdict, decision.reason))

    def acted(self, node, action, done):
        self.acted_.append((node.name, name_of(type(action)), done.ok, str(done)))

    def said(self, text, *, warning):
        self.said_.append((text, warning))


class Stagehand:
    """Sets the scene: three nodes, a StatefulSet with volumes, a Deployment, perhaps more; and moves time."""

    def __init__(self, policy=ARMED, seed=0, shape=Shape(), more=()):  # noqa: B008 - a frozen value
        self.simulation = Simulation(shape, (StatefulSet("db", 4), Deployment("web", 3), *more), seed=seed)
        self.simulation.warm_up()
        self.policy = policy
        self.calls = []
        self.before = {}
        self.notes = Notebook()
        self.state = None
        self.agent = self.new_agent()

    def new_agent(self, policy=None):
        """An agent without memory, as after a restart."""
        simulation = self.simulation
        world = World(
            cluster=Traced(simulation.cluster, self.calls, self.before),
            hypervisors={
                name: Traced(port, self.calls, self.before) for name, port in simulation.hypervisors.items()
            },
            asker=simulation.asker,
            clock=simulation.clock,
            reporter=self.notes,
            leases=simulation.leases,
            state=self.state,
        )
        self.world = world
        self.agent = Agent(world, policy or self.policy, simulation.rules())
        return self.agent

    def happen(self, what, target="k8s-2"):
        apply(Fault(0.0, What(what), target), self.simulation)

    def run(self, seconds):
        """Pass after pass for so long; returns the last pass."""
        until_s = self.simulation.clock.now_s() + seconds
        done = self.agent.tick()
        while self.simulation.clock.now_s() < until_s:
            self.simulation.clock.wait(max(0.05, done.recheck_s))
            done = self.agent.tick()
        return done

    def reason(self, name="k8s-2"):
        """Why the agent last decided what it decided."""
        return [reason for node, _, reason in self.notes.decided_ if node == name][-1]

    def node(self, name="k8s-2"):
        return self.simulation.cluster.fact(name).node

    def pods(self, name="k8s-2"):
        return self.simulation.cluster.pods(name)

    def written(self):
        return [call for call in self.calls if call in WRITES | POWER]
