"""What comes over a world that was drawn, in some of them: each by a chance of its own.

A module that has more of it lists its own layers; `fencer.simulation.worlds` has all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from fencer.core.maintenance import Window
from fencer.core.requests import Strategy
from fencer.simulation.faults import Fault, What
from fencer.simulation.requests import HealthCheck
from fencer.simulation.scenario import Scenario, ServerClock
from fencer.simulation.workloads import StatefulSet, Workload

Over: TypeAlias = Callable[[Random, Scenario], Scenario]
"""Draws what comes over a world, and returns that world with it."""

SKEWED_S = (0.0, 2.0, 30.0, 120.0, 300.0, 590.0)
"""How far a clock is ahead, or behind: less than the ten minutes that fencer errs to the safe side for, by
what answers take (docs/design.md, E26)."""
FIRST_MINUTE_S = 47.0
"""So long after a story has begun the API server's clock shows a whole minute: windows count in minutes."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Something that comes over a world.

    Attributes:
        over: Draws it. Its name seeds its chance.
        share: In so many worlds.
        blinds: It may keep agents from seeing what happens, or from noting it: it is left out where that is
            the only way of knowing it.
    """

    over: Over
    share: float
    blinds: bool = False


def covered(world: Scenario, seed: int, layers: Sequence[Layer], *, witnessed_s: float = 0.0) -> Scenario:
    """Return a world with what is drawn on top of it.

    Args:
        world: As it is so far.
        seed: Its own.
        layers: What may come over it, in this order.
        witnessed_s: Until then an agent has to see what happens, or it could not be known later: what may
            keep agents from that comes later.
    """
    for layer in layers:
        chance = Random(f"{seed} {layer.over.__name__}")  # noqa: S311 - chance that can be repeated is the point
        if chance.random() >= layer.share:
            continue
        over = layer.over(chance, world)
        world = _later(world, over, witnessed_s) if layer.blinds and witnessed_s else over
    return world


def _later(world: Scenario, over: Scenario, from_s: float) -> Scenario:
    """Return a world with what comes over it, but later; where that is no matter of time, without it.

    Args:
        world: As it was.
        over: The same, with something that has come over it.
        from_s: Until then nothing of that may happen.
    """
    if replace(over, script=world.script) != world:
        return world
    new = [fault for fault in over.script if fault not in world.script]
    first_s = min((fault.at_s for fault in new if not fault.cue), default=from_s)
    return and_then(world, *after(new, from_s - first_s))


def after(faults: Sequence[Fault], later_s: float) -> list[Fault]:
    """Return what happens so much later; what waits for a cue goes on waiting."""
    return [fault if fault.cue else replace(fault, at_s=fault.at_s + max(0.0, later_s)) for fault in faults]


def and_then(world: Scenario, *faults: Fault) -> Scenario:
    """Return a world in which that happens, too."""
    return replace(world, script=(*world.script, *faults))


def and_runs(world: Scenario, make: Callable[[], Workload]) -> Scenario:
    """Return a world whose cluster runs one more workload; `make` makes it anew each time."""
    before = world.workloads
    return replace(world, workloads=lambda: (*before(), make()))


def death_of(world: Scenario) -> Fault | None:
    """Return the first death of a node's VM; None: it is another's, or a host's."""
    return next((fault for fault in world.script if fault.death and fault.target in world.shape.nodes), None)


def began_s(world: Scenario) -> float:
    """Return when an incident begins, in seconds of the story."""
    return next((fault.at_s for fault in world.script if fault.death), 30.0)


def quiet_nodes(world: Scenario) -> list[str]:
    """Return the nodes that work, and to which nothing happens, nor to their hosts and endpoints.

    Where there are none, only nothing happens to the nodes themselves.
    """
    shape, hit = world.shape, {fault.target for fault in world.script}
    calm = [name for name in shape.nodes if name not in {*shape.spare, *hit}]
    return [name for name in calm if not {shape.host_of(name), shape.endpoint_of(name)} & hit] or calm


def chance_of(chance: Random, share: float) -> bool:
    """Say yes in so many of all cases."""
    return chance.random() < share


# --- what the cluster is like


def slow_api(chance: Random, world: Scenario) -> Scenario:
    """The API takes seconds for each call: fencer has to cope with so many (docs/performance.md)."""
    return replace(world, shape=replace(world.shape, api_s=chance.choice((1.0, 2.0, 3.0, 4.0))))


def unrecorded(_chance: Random, world: Scenario) -> Scenario:
    """The API server has no record of who wrote what on the Nodes: it was reset."""
    return replace(world, shape=replace(world.shape, unrecorded=True))


def pinned(chance: Random, world: Scenario) -> Scenario:
    """The template of a workload with a volume names its node, past the scheduler."""
    node = chance.choice(world.shape.nodes)
    return and_runs(world, lambda: StatefulSet("pin", 1, named_node=node))


def staying(_chance: Random, world: Scenario) -> Scenario:
    """Pods with a volume tolerate every taint: they stay where they are."""
    return and_runs(world, lambda: StatefulSet("stays", 2, stays=True))


def skewed_clocks(chance: Random, world: Scenario) -> Scenario:
    """Several API servers answer, and their clocks differ; one may be set while much is going on."""

    def ahead_s() -> float:
        return chance.choice(SKEWED_S) * chance.choice((-1.0, 1.0))

    clocks = [ServerClock(ahead_s()) for _ in range(chance.choice((1, 2, 2, 3)))]
    if chance_of(chance, 0.5):
        set_at_s = max(1.0, began_s(world) + chance.uniform(-20.0, 200.0))
        clocks[0] = replace(clocks[0], set_at_s=set_at_s, then_ahead_s=ahead_s())
    return replace(world, clocks=tuple(clocks))


def health_check(chance: Random, world: Scenario) -> Scenario:
    """Another controller asks for sick nodes, sooner or later, patient or not."""
    check = HealthCheck(
        after_s=chance.choice((1.0, 15.0, 60.0, 300.0)),
        strategy=chance.choice(tuple(Strategy)),
        patience_s=chance.choice((3.0, 30.0, 120.0, 600.0)),
        asks=chance_of(chance, 0.8),
        escalates=chance_of(chance, 0.5),
    )
    return replace(world, health_check=check)


# --- what people do


def held(chance: Random, world: Scenario) -> Scenario:
    """Something holds fencer back for a while, amid all that happens.

    People pause fencing exactly when they move, save and restart things. What is seen then has to count
    later, so it is drawn as well where an agent has to see what happens at its time.
    """
    return _hold(chance, world)


def held_again(chance: Random, world: Scenario) -> Scenario:
    """Several things hold fencer back from the same node, one of them longer than the other."""
    for _ in range(chance.choice((2, 2, 3))):
        world = _hold(chance, world)
    return world


def _hold(chance: Random, world: Scenario) -> Scenario:
    from_s = max(5.0, began_s(world) + chance.uniform(-40.0, 90.0))
    until_s = from_s + chance.choice((3.0, 20.0, 90.0, 240.0)) * chance.uniform(0.5, 1.5)
    death = death_of(world)
    node = death.target if death else world.shape.nodes[0]
    draws: Sequence[tuple[Fault, ...]] = (
        (Fault(from_s, What.FENCING_PAUSED), Fault(until_s, What.FENCING_RESUMED)),
        (Fault(from_s, What.NODE_PAUSED, node), Fault(until_s, What.NODE_RESUMED, node)),
        (Fault(from_s, What.NODE_EXCLUDED, node), Fault(until_s, What.NODE_INCLUDED, node)),
        (Fault(until_s, What.AGENT_ARMED, "fencer-1", for_s=0.5),),
        (Fault(from_s, What.API_DOWN), Fault(until_s, What.API_UP)),
        (),
    )
    drawn = chance.choice(draws)
    if drawn:
        return and_then(world, *drawn)
    begins, ends = (int(max(0.0, at_s - FIRST_MINUTE_S) // 60) + 1 for at_s in (from_s, until_s))
    window = Window(f"00:{begins:02}", f"00:{max(begins, ends) + 1:02}", "UTC", why="drawn")
    return replace(world, policy=replace(world.policy, maintenance=(*world.policy.maintenance, window)))


def forced(chance: Random, world: Scenario) -> Scenario:
    """An administrator force-deletes the pods of a dead node, before or after its fence."""
    death = death_of(world)
    if death is None:
        return world
    at_s = death.at_s + chance.uniform(3.0, 110.0)
    cordon = (Fault(at_s, What.CORDON_BY_HAND, death.target),) if chance_of(chance, 0.5) else ()
    return and_then(world, *cordon, Fault(at_s + 1.0, What.FORCE_DELETE_PODS, death.target))


def untainted(chance: Random, world: Scenario) -> Scenario:
    """An administrator takes the out-of-service taint off by hand: once the node is back, or too early."""
    death = death_of(world)
    if death is None:
        return world
    at_s = death.at_s + chance.choice((60.0, 90.0, 180.0, 300.0)) * chance.uniform(0.8, 1.3)
    return and_then(world, Fault(at_s, What.UNTAINT_BY_HAND, death.target))


def cordoned_since(chance: Random, world: Scenario) -> Scenario:
    """While a returned Node settles, an agent is killed, or a person cordons or uncordons it."""
    starts = (fault for fault in world.script if fault.what is What.START)
    back = next((fault for fault in starts if fault.target in world.shape.nodes), None)
    if back is None:
        return world
    if chance_of(chance, 0.4):
        at_s, for_s = back.at_s + chance.uniform(45.0, 80.0), chance.choice((0.5, 3.0, 15.0))
        return and_then(world, Fault(at_s, What.AGENT_KILLED, "fencer-1", for_s=for_s))
    at_s = back.at_s + chance.uniform(40.0, 90.0)
    then_s = at_s + chance.choice((1.0, 5.0, 20.0, 60.0)) * chance.uniform(0.5, 1.5)
    pair = Fault(at_s, What.UNCORDON_BY_HAND, back.target), Fault(then_s, What.CORDON_BY_HAND, back.target)
    return and_then(world, *chance.choice((pair, pair, pair[:1], pair[1:])))


SHAPES = (Layer(slow_api, 0.1), Layer(unrecorded, 0.15))
"""What has to be known before it is drawn what happens."""

LAYERS = (
    Layer(pinned, 0.15),
    Layer(staying, 0.3),
    Layer(skewed_clocks, 0.25),
    Layer(health_check, 0.25),
    Layer(held, 0.4),
    Layer(held_again, 0.1),
    Layer(forced, 0.15),
    Layer(untainted, 0.06),
    Layer(cordoned_since, 0.15, blinds=True),
)
