"""Worlds to look at: an agent that watches a simulated one, and the board that it shows its passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from fencer.core.policy import Mode, Policy
from fencer.ports.runtime import Sight
from fencer.reporting.several import SeveralReporters
from fencer.runtime.reconcile import Agent
from fencer.runtime.watch import watch
from fencer.runtime.world import API, World
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.web.board import Board, Snapshot
from fencer.web.lately import Lately, read
from fencer.web.page import page
from tests.cli.lab import Lab

BERLIN = ZoneInfo("Europe/Berlin")
ARMED = Policy(mode=Mode.ARMED)


class Watched:
    """An agent in the lab, and what it has shown.

    Args:
        shape: How big the world is.
        policy: How fencer is set.
        journal: Where its journal is kept. None: nowhere.
    """

    def __init__(
        self, shape: Shape | None = None, policy: Policy = ARMED, *, journal: Path | None = None
    ) -> None:
        self.lab = Lab(policy, shape=shape)
        self.lab.journal = journal
        inner = self.lab._watched_world()
        clock = inner.clock
        names = tuple(inner.hypervisors)
        self.board = Board("0.1.0", "fencer@pve1", policy, API, names, clock.now_s, self.lab.wall, journal)
        self._world: World = replace(inner, reporter=SeveralReporters(inner.reporter, self.board))
        self._agent = Agent(self._world, policy, self.lab.rules, by="fencer@pve1")

    def passes(self, seconds: float) -> Watched:
        """Let time pass while the agent watches."""
        until_s = self._world.clock.now_s() + seconds
        watch(
            self._agent,
            self._world,
            self.lab.policy.poll_s,
            lambda: self._world.clock.now_s() >= until_s,
            viewers=(self.board,),
        )
        return self

    def stands_still(self, seconds: float) -> Watched:
        """Let time pass without the agent."""
        self.lab.simulation.clock.advance(seconds)
        return self

    def breaks(self, what: What, target: str = "") -> Watched:
        """Let something happen."""
        self.lab.breaks(what, target)
        return self

    def now(self) -> datetime:
        """The time, where people are."""
        return self.lab.wall().astimezone(BERLIN)

    def lately(self) -> Lately:
        """The last incidents, from the journal if there is one."""
        return Lately(read=self.now()) if self.lab.journal is None else read(self.lab.journal, self.now())

    def page(self, **options: object) -> str:
        """The page as it is now."""
        return page(
            self.board.snapshot(), self.lately(), self.now(), path="/etc/fencer/config.yaml", **options
        )  # type: ignore[arg-type]


HOME = Shape(
    nodes=tuple(f"k8s-{number}" for number in range(1, 13)), endpoint="home", hosts=("pve1", "pve2", "pve3")
)
"""Twelve nodes on three hosts."""


def well() -> Watched:
    """All is well."""
    return Watched(HOME).passes(30)


def fenced(journal: Path | None = None) -> Watched:
    """One guest has crashed, and its node is fenced; another node was cut off, and is not."""
    world = Watched(HOME, journal=journal).passes(60)
    world.breaks(What.CRASH, "k8s-2").breaks(What.NIC_OFF, "k8s-5")
    return world.passes(140)


def many(nodes: int, hosts: int) -> Snapshot:
    """Many nodes, all well, made out of one: no agent has time for so many in a test."""
    seen = well().board.snapshot()
    assert seen.sight is not None
    judged = seen.sight.judged
    patterns = list(judged.values())
    made = {}
    for number in range(nodes):
        item = patterns[number % len(patterns)]
        name, observed = f"node-{number}", item.observation
        evidence = observed.evidence
        assert evidence is not None
        guest = replace(evidence.guest, name=name, id=name, host=f"pve{number % hosts}")
        candidate = replace(observed.candidates[0], guest=guest)
        node = observed.node
        binding = replace(node.binding, guest=guest) if node.binding is not None else None  # type: ignore[type-var]
        observed = replace(
            observed,
            node=replace(node, name=name, uid=name, binding=binding),
            evidence=replace(evidence, guest=guest),
            candidates=(candidate,),
            history=replace(observed.history, guest=guest.key, ran_as=guest),
        )
        made[name] = replace(item, observation=observed)
    return replace(seen, sight=replace(seen.sight, judged=made))


def sick(seen: Snapshot, every: int) -> Snapshot:
    """The same, with every so many-th node silent and refused."""
    pattern = next(
        item
        for item in fenced().board.snapshot().sight.judged.values()  # type: ignore[union-attr]
        if item.observation.node.name == "k8s-5"
    )
    sight = seen.sight
    assert sight is not None
    judged = dict(sight.judged)
    for number, (name, item) in enumerate(judged.items()):
        if number % every == 0:
            node = replace(item.observation.node, ready=None, not_ready_s=60.0, lease_age_s=70.0)
            observed = replace(item.observation, node=node)
            judged[name] = replace(item, observation=observed, decision=pattern.decision)
    return replace(seen, sight=replace(sight, judged=judged))
