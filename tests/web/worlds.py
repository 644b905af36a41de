"""Worlds to look at: an agent that watches a simulated one, and the board that it shows its passes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from fencer.core.model import Binding, GuestRef, Judged
from fencer.core.policy import Mode, Policy
from fencer.reporting.several import SeveralReporters
from fencer.runtime.reconcile import Agent
from fencer.runtime.watch import watch
from fencer.runtime.world import API, World
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.web.board import Board
from fencer.web.lately import Lately, read
from fencer.web.page import page
from fencer.web.snapshot import Snapshot
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
        self.lab = Lab(policy, shape=shape, strict=False)
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
            viewer=self.board,
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
        )


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


def old_memory() -> Watched:
    """A node is fenced, and its guest comes back out of a snapshot with its old memory."""
    world = Watched(HOME).passes(30).breaks(What.SNAPSHOT, "k8s-2").passes(30)
    return world.breaks(What.CRASH, "k8s-2").passes(90).breaks(What.REVERT, "k8s-2").passes(60)


def blind() -> Watched:
    """A hypervisor has not answered for a while."""
    return Watched(HOME).passes(60).breaks(What.UNREACHABLE, "home").passes(240)


def api_down() -> Watched:
    """The API server has not answered for a while, while a node was fenced."""
    return fenced().breaks(What.API_DOWN).passes(240)


def observed() -> Watched:
    """A guest has crashed, and fencer only observes."""
    world = Watched(HOME, Policy(mode=Mode.OBSERVE)).passes(60)
    return world.breaks(What.CRASH, "k8s-2").passes(100)


def paused() -> Watched:
    """Somebody has paused all fencing."""
    world = Watched(HOME).passes(30)
    world.lab.simulation.api.paused_why = "storage work until noon"
    return world.passes(10)


def excluded() -> Watched:
    """A node is excluded from fencing."""
    world = Watched(HOME).passes(30)
    api = world.lab.simulation.api
    api.nodes["k8s-3"].annotations["fencer.dev/exclude"] = "true"
    api.changed(api.nodes["k8s-3"])
    return world.passes(10)


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
        binding = replace(node.binding, guest=guest) if node.binding is not None else None
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
        for item in fenced().board.snapshot().sight.judged.values()
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


HOSTILE = (
    "<script>window.owned=1</script><img src=x onerror='window.owned=1'>\"'{{7*7}}{% raw %}]]></style>"
    "</title><!--&amp;\u202egnp.\u2066\x1b[31m\n# |~|`\ud800"
)
LONG = "n" * 253


def spoiled(seen: Snapshot, with_: str) -> Snapshot:
    """The same, with this in every name and every word that comes from outside."""
    sight = seen.sight
    assert sight is not None
    return replace(
        seen,
        by=seen.by + with_,
        version=seen.version + with_,
        failing=seen.failing and seen.failing + with_,
        endpoints=tuple(replace(one, name=one.name + with_, error=with_) for one in seen.endpoints),
        steps={
            name + with_: tuple(replace(step, text=step.text + with_) for step in steps)
            for name, steps in seen.steps.items()
        },
        sight=replace(
            sight,
            judged={name + with_: _spoiled(item, with_) for name, item in sight.judged.items()},
            endpoints=tuple(name + with_ for name in sight.endpoints),
            errors={name + with_: with_ for name in sight.endpoints},
            malformed=(f"{with_}: {with_}",),
            paused_why=with_,
        ),
    )


def _spoiled(item: Judged, with_: str) -> Judged:
    seen, decision = item.observation, item.decision

    def guest(one: GuestRef) -> GuestRef:
        return replace(
            one,
            endpoint=one.endpoint + with_,
            id=one.id + with_,
            name=one.name + with_,
            host=(one.host or "") + with_,
        )

    checks = tuple(replace(one, seen=one.seen + with_, needs=one.needs + with_) for one in decision.checks)
    binding = seen.node.binding
    return replace(
        item,
        failed=with_,
        decision=replace(decision, checks=checks, guest=decision.guest and guest(decision.guest)),
        observation=replace(
            seen,
            node=replace(
                seen.node,
                name=seen.node.name + with_,
                binding=replace(binding, guest=guest(binding.guest))
                if isinstance(binding, Binding)
                else binding,
            ),
            candidates=tuple(replace(one, guest=guest(one.guest)) for one in seen.candidates),
            evidence=seen.evidence
            and replace(seen.evidence, guest=guest(seen.evidence.guest), raw=seen.evidence.raw + with_),
        ),
    )


def spoiled_past(lately: Lately, with_: str) -> Lately:
    """The last incidents, likewise."""
    told = tuple(
        replace(one, id=one.id + with_, node=one.node + with_, told=one.told + with_)
        for one in lately.incidents
    )
    return replace(lately, incidents=told, trouble=with_)
