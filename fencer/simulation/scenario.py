"""What a story is: a situation, a script of what breaks when, and what is expected of fencer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fencer.core.model import Reason
from fencer.core.policy import Mode, Policy
from fencer.simulation.assembly import Shape
from fencer.simulation.controllers import Timing
from fencer.simulation.faults import Fault, What
from fencer.simulation.kubelet import KubeletTiming
from fencer.simulation.requests import HealthCheck
from fencer.simulation.restarts import Restarts
from fencer.simulation.workloads import DaemonSet, Deployment, Job, StatefulSet, Workload

ARMED = Policy(mode=Mode.ARMED)
"""The careful recipe: all defaults."""

CLUSTER = (
    "Three nodes, each a VM. Eight database replicas run on them; the volume of each is for one node only."
)


def mixed() -> Sequence[Workload]:
    """Eight replicas with a volume each, and one of every other kind."""
    return (StatefulSet("db", 8), Deployment("web", 3), Job("count", 2), DaemonSet("log"))


def eight_replicas() -> Sequence[Workload]:
    """A StatefulSet of eight with a volume each, as in the report that `vm-paused` retells."""
    return (StatefulSet("db", 8),)


@dataclass(frozen=True, slots=True)
class Watcher:
    """One agent that watches.

    Attributes:
        knows: The endpoints in its configuration; None: all that there are.
        from_s: When it is started, in seconds since the story began.
        until_s: When it ends.
        calls: What its configuration calls an endpoint, where that is not the name that all others know.
        observes: Its configuration says `mode: observe`, whatever the story's policy is.
    """

    knows: tuple[str, ...] | None = None
    from_s: float = 0.0
    until_s: float = math.inf
    calls: Mapping[str, str] = field(default_factory=dict)
    observes: bool = False


@dataclass(frozen=True, slots=True)
class ServerClock:
    """The clock of one API server.

    Attributes:
        ahead_s: How far it is ahead of the true time, in seconds; negative: behind.
        set_at_s: When it is set, in seconds since the story began.
        then_ahead_s: How far it is ahead after that.
    """

    ahead_s: float = 0.0
    set_at_s: float = math.inf
    then_ahead_s: float = 0.0

    def ahead_at(self, at_s: float) -> float:
        """Return how far it is ahead at a time of the story."""
        return self.ahead_s if at_s < self.set_at_s else self.then_ahead_s


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story.

    Attributes:
        name: What to type.
        title: What it shows, in a few words.
        story: The situation and the question, line by line.
        script: What happens when.
        fenced: Nodes that fencer is expected to fence, in order.
        refused: Why it is expected to refuse to fence, or to lift its fence.
        duration_s: How long the story is.
        alone_s: How long it is told without fencer.
        alone_whole: Without fencer the whole script is played, not only up to the first death.
        spared: Nothing is to be done in the end, and nothing to be refused.
        stays_fenced: The fence is expected to stand at the end; otherwise it is to be lifted by itself.
        second_writer: Somebody brings old memory back, and it writes beside the new owners, whatever fencer
            does: the story is about what it says and does then.
        workloads: What runs in the cluster.
        shape: How big the cluster is.
        policy: How fencer is set.
        watchers: The agents.
        kubelets: How quick the kubelets are.
        kubelets_of: How quick those are that differ, by node.
        controllers: How slow the control plane is.
        health_check: Another controller that asks fencer for nodes; None: there is none.
        budgets: How many pods of which workloads must stay Ready.
        done: What people type that is expected to be done, in order; anything else is expected to be refused.
        interleaved: Calls take effect anywhere within the time that their answers take, so that whatever one
            agent does happens in the midst of what the others do.
        restarts: Which VMs start again by themselves, and when.
        clocks: Of the API servers, behind one address: each answer to an agent comes from one of them. Empty:
            one, and it is right. Agents' own clocks are right.
    """

    name: str
    title: str
    story: tuple[str, ...]
    script: tuple[Fault, ...]
    fenced: tuple[str, ...]
    refused: Reason | None
    duration_s: float
    alone_s: float = 780.0
    alone_whole: bool = False
    spared: bool = False
    stays_fenced: bool = False
    second_writer: bool = False
    workloads: Callable[[], Sequence[Workload]] = mixed
    shape: Shape = field(default_factory=Shape)
    policy: Policy = ARMED
    watchers: tuple[Watcher, ...] = (Watcher(),)
    kubelets: KubeletTiming = field(default_factory=KubeletTiming)
    kubelets_of: Mapping[str, KubeletTiming] = field(default_factory=dict)
    controllers: Timing = field(default_factory=Timing)
    health_check: HealthCheck | None = None
    budgets: Mapping[str, int] = field(default_factory=dict)
    done: tuple[str, ...] = ()
    interleaved: bool = False
    clocks: tuple[ServerClock, ...] = ()
    restarts: tuple[Restarts, ...] = ()

    @property
    def commands_only(self) -> bool:
        """Whether nothing happens but what people type: Kubernetes alone would have nothing to do."""
        return all(fault.what in {What.TYPED, What.BUDGETS_LOOSENED} for fault in self.script)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Return how any agent is set, at first and after each reload."""
        reloads = (fault for fault in self.script if fault.what is What.AGENT_RELOADED)
        return (self.policy, *(replace(self.policy, **dict(fault.sets)) for fault in reloads))

    @property
    def last_policies(self) -> tuple[Policy, ...]:
        """Return how each agent is set once all reloads are over, in the order of `watchers`."""
        last: dict[str, tuple[tuple[str, Any], ...]] = {}
        for fault in sorted(self.script, key=lambda fault: fault.at_s):
            if fault.what is What.AGENT_RELOADED:
                last[fault.target] = fault.sets
        for number, watcher in enumerate(self.watchers, 1):
            if watcher.observes:
                last[f"fencer-{number}"] = (("mode", Mode.OBSERVE),)
        names = (f"fencer-{number}" for number, _ in enumerate(self.watchers, 1))
        return tuple(replace(self.policy, **dict(last.get(name, ()))) for name in names)

    @property
    def renew_s(self) -> float:
        """How often the slowest kubelet renews its lease, in seconds."""
        return max(one.renew_s for one in (self.kubelets, *self.kubelets_of.values()))

    @property
    def return_s(self) -> float:
        """How long after a VM's start its kubelet has reported it, and listed its pods, at most."""
        kubelets = (self.kubelets, *self.kubelets_of.values())
        return max(one.boot_s + max(one.late_s, one.status_s[1]) + one.relist_s for one in kubelets)

    def script_for(self, *, alone: bool) -> tuple[Fault, ...]:
        """Return what happens with fencer, or without."""
        if not alone or self.alone_whole:
            return self.script
        first_death = next((n for n, fault in enumerate(self.script) if fault.death), 0)
        return self.script[: first_death + 1]
