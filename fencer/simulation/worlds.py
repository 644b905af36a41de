"""Whole worlds by seed: how big, who watches and how, and what happens there, all of it drawn by chance.

Meaner than the real one: several endpoints and agents, answers that take their time, agents that are
suspended or killed in the midst of a call, incidents on top of each other, and what `layers` puts over all of
that. What is *not* drawn is what no agent could tell from a death; each such limit says so where it is set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from fencer.core.policy import Policy
from fencer.simulation import deceptions, incidents
from fencer.simulation.agents_drawn import AGENT_LAYERS
from fencer.simulation.assembly import Shape
from fencer.simulation.blips import blips, crash_loop
from fencer.simulation.commands import paused_for_s
from fencer.simulation.faults import Fault, What
from fencer.simulation.incidents import Draw
from fencer.simulation.layers import LAYERS, SHAPES, Layer, after, chance_of, covered
from fencer.simulation.meddling import MEDDLED, MEDDLING
from fencer.simulation.scenario import CLUSTER, Scenario, Watcher
from fencer.simulation.settings import SETTINGS, closes_s
from fencer.simulation.typed import TYPED
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
"""Left out of some worlds, of nodes: who fell stays down, and has to be fenced in the end."""
SEEN_S = 15.0
"""So long after something an agent has seen it, and has written it down."""
AMID = 2
"""So many things happen at least before and after a quiet hour."""
HOUR_S = 3600.0
CALM_S = 30.0
"""At least this long after the last fault nothing more happens."""
FREED = frozenset(
    {
        *(What.FENCING_RESUMED, What.NODE_RESUMED, What.NODE_INCLUDED),
        *(What.AGENT_ARMED, What.AGENT_RELOADED),
    }
)
"""From then on nothing holds fencer back."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of incident.

    Attributes:
        draw: Draws one.
        weight: How often, compared with the others.
        needs_witness: Agents have to see what happens at its time, or none could know it later: until its
            last turn no agent is suspended, killed or late, and nothing keeps them from writing that down.
        comes_back: It is about what comes and goes: that is never left out, as `RETURNS` are of some worlds.
        elsewhere: It needs a second endpoint.
        abroad: It needs one that fencer does not know.
        hosts: It needs so many hosts at the first endpoint.
        members: It needs control-plane nodes.
    """

    draw: Draw
    weight: int
    needs_witness: bool = False
    comes_back: bool = False
    elsewhere: bool = False
    abroad: bool = False
    hosts: int = 1
    members: bool = False

    def possible(self, shape: Shape) -> bool:
        """Whether a world of this shape has what it needs."""
        there = shape.foreign if self.abroad else (*shape.further, *shape.foreign)
        enough = len(shape.hosts) >= self.hosts and (bool(shape.members) or not self.members)
        return enough and (bool(there) or not (self.elsewhere or self.abroad))


KINDS: tuple[Kind, ...] = (
    *(Kind(draw, weight) for draw, weight in incidents.KINDS.items()),
    Kind(deceptions.long_lie, 10, needs_witness=True),
    Kind(deceptions.all_lied_about, 5, needs_witness=True),
    Kind(deceptions.saved_untracked, 8, needs_witness=True),
    Kind(deceptions.moved_out, 10, needs_witness=True, elsewhere=True),
    Kind(deceptions.moved_cold, 16, abroad=True),
    Kind(deceptions.started_abroad, 10, needs_witness=True, abroad=True),
    Kind(deceptions.forged, 10),
    Kind(deceptions.by_hand, 8),
    Kind(deceptions.many_die, 14),
    Kind(deceptions.hosts_die, 12, hosts=2),
    Kind(deceptions.members_fall, 40, members=True),
    Kind(blips, 40, comes_back=True),
    Kind(crash_loop, 16, comes_back=True),
)


def world_by_seed(seed: int, policy: Policy) -> Scenario:
    """Draw a world and what happens there. Nothing is expected of it but what is expected of every world.

    Args:
        seed: Same seed, same world, whatever the policy.
        policy: How fencer is set, but for what the world itself draws.
    """
    chance = Random(seed)  # noqa: S311 - chance that can be repeated is the point
    shape = _shape(chance)
    sound = replace(CALM, name=f"seed-{seed}", shape=shape, policy=policy, workloads=_workloads(shape))
    sound = covered(sound, seed, (*SHAPES, *MEDDLED))
    kind, script, witnessed_s = _script(chance, sound.shape)
    watchers = _watchers(chance, shape, needs_witness=kind.needs_witness)
    stays_down = chance_of(chance, 0.4) and not kind.comes_back
    world = replace(sound, script=script, watchers=watchers)
    world = covered(world, seed, EVERY_LAYER, witnessed_s=witnessed_s)
    left_out = RETURNS if stays_down else frozenset[What]()
    left = (
        one for one in world.script if one.what not in left_out or one.cue or one.target not in shape.nodes
    )
    world = replace(world, script=tuple(sorted(left, key=lambda fault: fault.at_s)))
    return replace(world, duration_s=_ends_s(world) + CALM_S)


def quiet_hour(chance: Random, world: Scenario) -> Scenario:
    """An hour passes quietly amid all that happens: what comes then comes so much later, all of it."""
    times = sorted(fault.at_s for fault in world.script if not fault.cue)
    if len(times) < AMID:
        return world
    amid_s = chance.choice(times[1:])
    later = (
        replace(fault, at_s=fault.at_s + HOUR_S) if not fault.cue and fault.at_s >= amid_s else fault
        for fault in world.script
    )
    return replace(world, script=tuple(later))


EVERY_LAYER = (
    *LAYERS,
    *AGENT_LAYERS,
    *MEDDLING,
    *SETTINGS,
    *TYPED,
    Layer(quiet_hour, 0.006),
)
"""What may come over a world, in this order."""

CALM = Scenario(
    name="calm",
    title="A world by chance",
    story=(CLUSTER,),
    script=(),
    fenced=(),
    refused=None,
    duration_s=CALM_S,
    interleaved=True,
)
"""What each of them is before anything is drawn."""


def _shape(chance: Random) -> Shape:
    working = tuple(f"k8s-{number}" for number in range(1, chance.choice(WORKING) + 1))
    idle = tuple(f"idle-{number}" for number in range(1, chance.choice(IDLE) + 1))
    further = tuple(f"lab-{letter}" for letter in "bc"[: chance.choice(ENDPOINTS) - 1])
    return Shape(
        nodes=(*working, *idle),
        hosts=("lab1", "lab2", "lab3")[: chance.choice((1, 3, 3))],
        watched=chance_of(chance, 0.4),
        further=further,
        foreign=("elsewhere",) if chance_of(chance, 0.5) else (),
        spread=chance_of(chance, 0.5),
        spare=idle,
        answer_s=chance.choice(ANSWERS_S),
        tells_cold=chance_of(chance, 0.5),
    )


def _workloads(shape: Shape) -> Callable[[], Sequence[Workload]]:
    replicas = 2 * len(shape.nodes)
    return lambda: (StatefulSet("db", replicas), Deployment("web", 3), Job("count", 2), DaemonSet("log"))


def _script(chance: Random, shape: Shape) -> tuple[Kind, tuple[Fault, ...], float]:
    """Draw of what kind it is, what happens, and until when an agent has to see that; 0: none has to."""
    working = replace(shape, nodes=tuple(name for name in shape.nodes if name not in shape.spare))
    victim = chance.choice(working.nodes)
    began_s = chance.uniform(30.0, 60.0)
    back_s = began_s + chance.uniform(20.0, 200.0)
    kind = _kind(chance, [kind for kind in KINDS if kind.possible(shape)])
    drawn = kind.draw(chance, working, victim, began_s, back_s)
    script = list(drawn)
    script += [Fault(chance.uniform(10.0, 25.0), What.POWER_OFF, name) for name in shape.spare]
    more = [*incidents.more(chance, working, victim, began_s)]
    more += _another(chance, working, victim, began_s) if chance_of(chance, 0.2) else ()
    if not kind.needs_witness:
        return kind, (*script, *more), 0.0
    *_, before_last_s, _ = sorted(fault.at_s for fault in drawn)
    witnessed_s = before_last_s + SEEN_S
    first_s = min((fault.at_s for fault in more), default=witnessed_s)
    return kind, (*script, *after(more, witnessed_s - first_s)), witnessed_s


def _kind(chance: Random, kinds: Sequence[Kind]) -> Kind:
    return chance.choices(kinds, weights=[kind.weight for kind in kinds])[0]


def _another(chance: Random, shape: Shape, victim: str, began_s: float) -> Sequence[Fault]:
    """Draw a second incident on top of the first, of another guest where there is one."""
    other = chance.choice([name for name in shape.nodes if name != victim])
    kind = _kind(chance, [kind for kind in KINDS if kind.possible(shape) and not kind.needs_witness])
    at_s = began_s + chance.uniform(0.0, 150.0)
    return kind.draw(chance, shape, other, at_s, at_s + chance.uniform(20.0, 150.0))


def _watchers(chance: Random, shape: Shape, *, needs_witness: bool) -> tuple[Watcher, ...]:
    """Draw who watches. The first knows every endpoint; another may know one only, or come later."""
    others = []
    for _ in range(chance.choice(AGENTS) - 1):
        knows = (chance.choice((shape.endpoint, *shape.further)),) if chance_of(chance, 0.15) else None
        late = not needs_witness and chance_of(chance, 0.3)
        others.append(Watcher(knows, from_s=chance.uniform(1.0, 150.0) if late else 0.0))
    return (Watcher(), *others)


def _ends_s(world: Scenario) -> float:
    """Return when nothing more happens: what was held back until the last of it has been done by then."""
    script = world.script
    freed_s = [fault.at_s for fault in script if fault.what in FREED or fault.words.startswith("resume")]
    freed_s += [fault.at_s + paused_for_s(fault.words) for fault in script]
    freed_s += [closes_s(window) for policy in world.policies for window in policy.maintenance]
    return max([0.0, *(fault.at_s + fault.for_s for fault in script), *(at_s + CALM_S for at_s in freed_s)])
