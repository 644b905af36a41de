"""Whole worlds by seed: how big, who watches and how, and what happens there, all of it drawn by chance.

Meaner than the real one: several endpoints and agents, answers that take their time, agents that are
suspended or killed in the midst of a call, incidents on top of each other. What is *not* drawn is what no
agent could tell from a death; each such limit says so where it is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from fencer.core.maintenance import Window
from fencer.core.policy import Policy
from fencer.core.requests import Strategy
from fencer.simulation import deceptions, incidents
from fencer.simulation.assembly import Shape
from fencer.simulation.blips import blips, crash_loop
from fencer.simulation.faults import Fault, What
from fencer.simulation.incidents import Draw
from fencer.simulation.requests import HealthCheck
from fencer.simulation.scenario import CLUSTER, Scenario, ServerClock, Watcher
from fencer.simulation.workloads import DaemonSet, Deployment, Job, StatefulSet, Workload

WORKING = (3, 3, 3, 4, 5, 8)
"""How many nodes work."""
IDLE = (0, 0, 0, 0, 3)
"""How many more are cordoned, and switched off."""
ENDPOINTS = (1, 1, 2, 3)
AGENTS = (1, 1, 1, 2, 2, 3)
ANSWERS_S = (None, None, 0.05, 0.3, 0.8)
"""How long every answer takes; None: hardly any time."""
RETURNS = frozenset({What.START, What.RESUME, What.REBOOT, What.KUBELET_START, What.NIC_ON})
"""Left out of some worlds: who fell stays down, and has to be fenced in the end."""
CALM_S = 30.0
"""At least this long after the last fault nothing more happens."""
STEPS = 120
"""An agent meets its fate after at most so many steps: several passes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of incident.

    Attributes:
        draw: Draws one.
        weight: How often, compared with the others.
        needs_witness: Somebody has to see what happens at its time, or nobody could know it later: no agent
            is suspended, killed or late there, and nothing keeps it from looking or from writing that down.
        comes_back: It is about what comes and goes: that is never left out, as `RETURNS` are of some worlds.
    """

    draw: Draw
    weight: int
    needs_witness: bool = False
    comes_back: bool = False


KINDS: tuple[Kind, ...] = (
    *(Kind(draw, weight) for draw, weight in incidents.KINDS.items()),
    Kind(deceptions.long_lie, 10, needs_witness=True),
    Kind(deceptions.all_lied_about, 5, needs_witness=True),
    Kind(deceptions.saved_to_file, 8, needs_witness=True),
    Kind(deceptions.moved_out, 10, needs_witness=True),
    Kind(deceptions.forged, 10),
    Kind(deceptions.by_hand, 8),
    Kind(deceptions.many_die, 14),
)
BLIPS = Kind(blips, 0, comes_back=True)
"""Instead of another kind in so many worlds, by a chance of their own: each other seed keeps its world."""
BLIPS_SHARE = 0.2
LOOPS = Kind(crash_loop, 0, comes_back=True)
"""The same of a crash loop, by another chance."""
LOOPS_SHARE = 0.08
MOVED_COLD = Kind(deceptions.moved_cold, 0)
MOVED_COLD_SHARE = 0.05
"""The same: in so many worlds guests move cold to a hypervisor that fencer doesn't know."""
CHECKED_SHARE = 0.25
"""In so many worlds another controller asks for sick nodes, sooner or later, patient or not."""
DISK_SHARE = 0.1
"""In so many worlds the disk of an agent hangs for a while."""
HELD_SHARE = 0.4
"""In so many worlds something holds fencer back for a while, amid all that happens."""
CLOCKS_SHARE = 0.25
"""In so many worlds several API servers answer, and their clocks differ."""
FORCED_SHARE = 0.15
"""In so many worlds an administrator force-deletes the pods of a dead node, before or after its fence."""
PINNED_SHARE = 0.15
"""In so many worlds the template of a workload with a volume names its node, past the scheduler."""
SLOW_API_SHARE = 0.1
"""In so many worlds the API is slow: fencer has to cope with seconds for each call (docs/performance.md)."""
SLOW_API_S = (1.0, 2.0, 3.0, 4.0)
"""How long each call takes then."""
UNRECORDED_SHARE = 0.15
"""In so many worlds the API server has no record of who wrote what on the Nodes: somebody reset it."""
SKEWED_S = (0.0, 2.0, 30.0, 120.0, 300.0, 590.0)
"""How far a clock is ahead, or behind: less than the ten minutes that fencer errs to the safe side for, by
what answers take (docs/design.md, E26)."""
FREED = frozenset({What.FENCING_RESUMED, What.NODE_RESUMED, What.NODE_INCLUDED, What.AGENT_ARMED})
"""From then on nothing holds fencer back."""
FIRST_MINUTE_S = 47.0
"""So long after a story has begun the API server's clock shows a whole minute: windows count in minutes."""


def world_by_seed(seed: int, policy: Policy) -> Scenario:
    """Draw a world and what happens there. Nothing is expected of it but what is expected of every world.

    Args:
        seed: Same seed, same world, under every policy.
        policy: How fencer is set.
    """
    chance = Random(seed)  # noqa: S311 - chance that can be repeated is the point
    shape = _shape(chance)
    shape = replace(shape, api_s=_api_s(seed))
    script: Sequence[Fault]
    script, kind = _script(chance, shape, seed)
    if kind is MOVED_COLD:
        shape = replace(shape, foreign=("elsewhere",))
    watchers = _watchers(chance, shape, needs_witness=kind.needs_witness)
    if not kind.needs_witness:
        script = (*script, *_fates(chance, watchers, script))
    held, policy = _held(seed, script, shape, policy, needs_witness=kind.needs_witness)
    script = (*script, *_slow_disk(seed, script), *_forced(seed, script, shape), *held)
    script = (*script, *_cordoned_since(seed, script, shape, needs_witness=kind.needs_witness))
    if chance.random() < 0.4 and not kind.comes_back:  # noqa: PLR2004 - so many
        script = [fault for fault in script if fault.what not in RETURNS]
    script = tuple(sorted(script, key=lambda fault: fault.at_s))
    sizes = (len(shape.nodes), chance.random() < 0.3)  # noqa: PLR2004 - so many of them have pods that stay
    shape = replace(shape, tells_cold=chance.random() < 0.5, unrecorded=_unrecorded(seed))  # noqa: PLR2004 - half of them
    return Scenario(
        name=f"seed-{seed}",
        title="A world by chance",
        story=(CLUSTER,),
        script=script,
        fenced=(),
        refused=None,
        duration_s=_ends_s(script, policy) + CALM_S,
        shape=shape,
        policy=policy,
        watchers=watchers,
        workloads=lambda: (*_workloads(*sizes), *_pinned(seed, shape)),
        health_check=_health_check(seed),
        interleaved=True,
        clocks=_clocks(seed, script),
    )


def draws_loop(seed: int) -> bool:
    """Whether a crash loop is drawn for a seed, unless blips are."""
    return Random(f"{seed}, crash loop").random() < LOOPS_SHARE  # noqa: S311 - repeatable


def _shape(chance: Random) -> Shape:
    working = tuple(f"k8s-{number}" for number in range(1, chance.choice(WORKING) + 1))
    idle = tuple(f"idle-{number}" for number in range(1, chance.choice(IDLE) + 1))
    further = tuple(f"lab-{letter}" for letter in "bc"[: chance.choice(ENDPOINTS) - 1])
    return Shape(
        nodes=(*working, *idle),
        hosts=("lab1", "lab2", "lab3")[: chance.choice((1, 3, 3))],
        watched=chance.random() < 0.4,  # noqa: PLR2004 - so many of them
        further=further,
        foreign=("elsewhere",) if chance.random() < 0.5 else (),  # noqa: PLR2004 - half of them
        spread=chance.random() < 0.5,  # noqa: PLR2004 - half of them
        spare=idle,
        answer_s=chance.choice(ANSWERS_S),
    )


def _workloads(nodes: int, some_stay: bool) -> Sequence[Workload]:  # noqa: FBT001 - drawn
    stay = (StatefulSet("stays", 2, stays=True),) if some_stay else ()
    return (StatefulSet("db", 2 * nodes), Deployment("web", 3), Job("count", 2), DaemonSet("log"), *stay)


def _script(chance: Random, shape: Shape, seed: int) -> tuple[tuple[Fault, ...], Kind]:
    """Draw what happens; and of what kind it is."""
    working = replace(shape, nodes=tuple(name for name in shape.nodes if name not in shape.spare))
    victim = chance.choice(working.nodes)
    began_s = chance.uniform(30.0, 60.0)
    back_s = began_s + chance.uniform(20.0, 200.0)
    kinds = [
        kind for kind in KINDS if kind.draw is not deceptions.moved_out or shape.further or shape.foreign
    ]
    [kind] = chance.choices(kinds, weights=[kind.weight for kind in kinds])
    if Random(f"{seed}, blips").random() < BLIPS_SHARE:  # noqa: S311 - repeatable
        kind = BLIPS
    elif draws_loop(seed):
        kind = LOOPS
    elif Random(f"{seed}, moved cold").random() < MOVED_COLD_SHARE:  # noqa: S311 - repeatable
        kind = MOVED_COLD
    script = list(kind.draw(chance, working, victim, began_s, back_s))
    script += [Fault(chance.uniform(10.0, 25.0), What.POWER_OFF, name) for name in shape.spare]
    if kind.needs_witness:
        return tuple(script), kind
    script += incidents.more(chance, working, victim, began_s)
    if chance.random() < 0.2:  # noqa: PLR2004 - so many
        script += _another(chance, working, victim, began_s)
    return tuple(script), kind


def _another(chance: Random, shape: Shape, victim: str, began_s: float) -> Sequence[Fault]:
    """Draw a second incident on top of the first, of another guest where there is one."""
    other = chance.choice([name for name in shape.nodes if name != victim])
    simple = [kind for kind in KINDS if not kind.needs_witness]
    [kind] = chance.choices(simple, weights=[kind.weight for kind in simple])
    at_s = began_s + chance.uniform(0.0, 150.0)
    return kind.draw(chance, shape, other, at_s, at_s + chance.uniform(20.0, 150.0))


def _watchers(chance: Random, shape: Shape, *, needs_witness: bool) -> tuple[Watcher, ...]:
    """Draw who watches. The first knows every endpoint; another may know one only, or come later."""
    others = []
    for _ in range(chance.choice(AGENTS) - 1):
        knows = (chance.choice((shape.endpoint, *shape.further)),) if chance.random() < 0.15 else None  # noqa: PLR2004 - so many
        late = not needs_witness and chance.random() < 0.3  # noqa: PLR2004 - so many
        others.append(Watcher(knows, from_s=chance.uniform(1.0, 150.0) if late else 0.0))
    return (Watcher(), *others)


def _health_check(seed: int) -> HealthCheck | None:
    """Draw how another controller is set that asks for nodes, by a chance of its own; None: there is none."""
    chance = Random(f"{seed} health check")  # noqa: S311 - chance that can be repeated is the point
    if chance.random() >= CHECKED_SHARE:
        return None
    return HealthCheck(
        after_s=chance.choice((1.0, 15.0, 60.0, 300.0)),
        strategy=chance.choice(tuple(Strategy)),
        patience_s=chance.choice((3.0, 30.0, 120.0, 600.0)),
        asks=chance.random() < 0.8,  # noqa: PLR2004 - mostly it asks fencer
        escalates=chance.random() < 0.5,  # noqa: PLR2004 - half of them
    )


def _api_s(seed: int) -> float:
    """Draw how long each call of the API takes, by a chance of its own, in seconds."""
    chance = Random(f"{seed} slow API")  # noqa: S311 - chance that can be repeated is the point
    return chance.choice(SLOW_API_S) if chance.random() < SLOW_API_SHARE else 0.0


def _slow_disk(seed: int, script: Sequence[Fault]) -> Sequence[Fault]:
    """Draw whether the disk under a journal hangs, by a chance of its own: no other world changes by that."""
    chance = Random(f"{seed} disk")  # noqa: S311 - chance that can be repeated is the point
    began_s = next((fault.at_s for fault in script if fault.death), 30.0)
    if chance.random() >= DISK_SHARE:
        return ()
    at_s, for_s = max(0.0, began_s + chance.uniform(-10.0, 120.0)), chance.choice((0.5, 15.0, 300.0))
    return (Fault(at_s, What.DISK_HANGS, "fencer-1", "the disk under its journal hangs", for_s=for_s),)


def _forced(seed: int, script: Sequence[Fault], shape: Shape) -> Sequence[Fault]:
    """Draw whether an administrator clears a dead node by hand, by a chance of its own."""
    chance = Random(f"{seed} forced")  # noqa: S311 - chance that can be repeated is the point
    death = next((fault for fault in script if fault.death and fault.target in shape.nodes), None)
    if chance.random() >= FORCED_SHARE or death is None:
        return ()
    at_s = death.at_s + chance.uniform(3.0, 110.0)
    cordon = (Fault(at_s, What.CORDON_BY_HAND, death.target),) if chance.random() < 0.5 else ()  # noqa: PLR2004 - half of them
    return (*cordon, Fault(at_s + 1.0, What.FORCE_DELETE_PODS, death.target))


def _unrecorded(seed: int) -> bool:
    """Draw whether the Nodes have no record of who wrote what, by a chance of its own."""
    return Random(f"{seed} unrecorded").random() < UNRECORDED_SHARE  # noqa: S311 - chance that can be repeated is the point


def _cordoned_since(
    seed: int, script: Sequence[Fault], shape: Shape, *, needs_witness: bool
) -> Sequence[Fault]:
    """Draw what happens while a returned Node without a record settles: a restart, or a command."""
    chance = Random(f"{seed} cordoned since")  # noqa: S311 - chance that can be repeated is the point
    back = next((fault for fault in script if fault.what is What.START and fault.target in shape.nodes), None)
    if not _unrecorded(seed) or back is None:
        return ()
    restarts_s, for_s = back.at_s + chance.uniform(45.0, 80.0), chance.choice((0.5, 3.0, 15.0))
    if chance.random() < 0.4 and not needs_witness:  # noqa: PLR2004 - so many
        return (Fault(restarts_s, What.AGENT_KILLED, "fencer-1", for_s=for_s),)
    at_s = back.at_s + chance.uniform(40.0, 90.0)
    then_s = at_s + chance.choice((1.0, 5.0, 20.0, 60.0)) * chance.uniform(0.5, 1.5)
    pair = Fault(at_s, What.UNCORDON_BY_HAND, back.target), Fault(then_s, What.CORDON_BY_HAND, back.target)
    return chance.choice((pair, pair, pair[:1], pair[1:]))


def _pinned(seed: int, shape: Shape) -> Sequence[Workload]:
    """Draw whether the template of a workload names its node, by a chance of its own."""
    chance = Random(f"{seed} pinned")  # noqa: S311 - chance that can be repeated is the point
    if chance.random() >= PINNED_SHARE:
        return ()
    return (StatefulSet("pin", 1, named_node=chance.choice(shape.nodes)),)


def _clocks(seed: int, script: Sequence[Fault]) -> tuple[ServerClock, ...]:
    """Draw how far the clocks of the API servers are from the true time, by a chance of its own.

    One may be set while much is going on. That no other world changes by it, nor where API servers agree.
    """
    chance = Random(f"{seed} clocks")  # noqa: S311 - chance that can be repeated is the point
    if chance.random() >= CLOCKS_SHARE:
        return ()
    began_s = next((fault.at_s for fault in script if fault.death), 30.0)

    def ahead_s() -> float:
        return chance.choice(SKEWED_S) * chance.choice((-1.0, 1.0))

    clocks = [ServerClock(ahead_s()) for _ in range(chance.choice((1, 2, 2, 3)))]
    if chance.random() < 0.5:  # noqa: PLR2004 - half of them
        set_at_s = max(1.0, began_s + chance.uniform(-20.0, 200.0))
        clocks[0] = replace(clocks[0], set_at_s=set_at_s, then_ahead_s=ahead_s())
    return tuple(clocks)


def _held(
    seed: int, script: Sequence[Fault], shape: Shape, policy: Policy, *, needs_witness: bool
) -> tuple[Sequence[Fault], Policy]:
    """Draw what holds fencer back for a while, by a chance of its own: no other world changes by that.

    People pause fencing exactly when they move, save and restart things. What is seen then has to count
    later, so it is drawn as well where somebody has to see what happens at its time.

    Returns:
        What happens besides, and the policy with what is written into the configuration.
    """
    chance = Random(f"{seed} held")  # noqa: S311 - chance that can be repeated is the point
    if chance.random() >= HELD_SHARE:
        return (), policy
    began_s = next((fault.at_s for fault in script if fault.death), 30.0)
    from_s = max(5.0, began_s + chance.uniform(-40.0, 90.0))
    until_s = from_s + chance.choice((3.0, 20.0, 90.0, 240.0)) * chance.uniform(0.5, 1.5)
    victim = next((fault.target for fault in script if fault.death and fault.target in shape.nodes), "")
    node = victim or shape.nodes[0]
    draws: Sequence[tuple[Fault, ...]] = (
        (Fault(from_s, What.FENCING_PAUSED), Fault(until_s, What.FENCING_RESUMED)),
        (Fault(from_s, What.NODE_PAUSED, node), Fault(until_s, What.NODE_RESUMED, node)),
        (Fault(from_s, What.NODE_EXCLUDED, node), Fault(until_s, What.NODE_INCLUDED, node)),
        (Fault(until_s, What.AGENT_ARMED, "fencer-1", for_s=0.5),),
        (Fault(from_s, What.API_DOWN), Fault(until_s, What.API_UP)) if needs_witness else (),
        (),
    )
    drawn = chance.choice(draws)
    if drawn:
        return drawn, policy
    begins, ends = (int(max(0.0, at_s - FIRST_MINUTE_S) // 60) + 1 for at_s in (from_s, until_s))
    window = Window(f"00:{begins:02}", f"00:{max(begins, ends) + 1:02}", "UTC", why="drawn")
    return (), replace(policy, maintenance=(window,))


def _ends_s(script: Sequence[Fault], policy: Policy) -> float:
    """Return when nothing more happens: what was held back until the last of it has been done by then."""
    freed_s = [fault.at_s for fault in script if fault.what in FREED]
    freed_s += [60.0 * int(window.ends[3:]) for window in policy.maintenance]
    return max([0.0, *(fault.at_s + fault.for_s for fault in script), *(at_s + CALM_S for at_s in freed_s)])


def _fates(chance: Random, watchers: Sequence[Watcher], script: Sequence[Fault]) -> Sequence[Fault]:
    """Draw what befalls agents, around the time in which they have most to do."""
    if chance.random() < 0.5:  # noqa: PLR2004 - half of the worlds
        return ()
    began_s = next((fault.at_s for fault in script if fault.death), 30.0)
    fates = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        what = chance.choice((What.AGENT_FROZEN, What.AGENT_KILLED))
        name = f"fencer-{chance.randint(1, len(watchers))}"
        for_s = chance.choice((0.5, 3.0, 15.0, 60.0)) * chance.uniform(0.5, 1.5)
        at_s = began_s + chance.uniform(-10.0, 200.0)
        fates.append(Fault(at_s, what, name, for_s=for_s, steps=chance.randint(0, STEPS)))
    return fates
