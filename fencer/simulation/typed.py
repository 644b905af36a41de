"""What people type into a world that was drawn: the right command, the wrong one, two at once; and Ctrl-C.

What would not be honest is drawn all the same, and not typed: `fencer.simulation.typist` looks at the world
as it is by then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TypeAlias

from fencer.core.maintenance import Window
from fencer.simulation.deceptions import gives_away_s
from fencer.simulation.faults import Cue, Fault, What
from fencer.simulation.layers import Layer, after, and_then, began_s, chance_of, death_of, quiet_nodes
from fencer.simulation.restarts import SHUT_DOWN, Restarts
from fencer.simulation.scenario import Scenario

Line: TypeAlias = Callable[[Random, Scenario, str], str]
"""Draws the words of a command about a node."""

WHY = "--why drawn"
TWO = 2
"""An endpoint is distrusted once it was wrong about so many VMs."""
BOUND_S = 20.0
"""So long after a story has begun an agent has mostly seen who is who."""
REHEARSAL_S = 300.0
"""A fire drill in a sound world is over by then."""
BROKEN_OFF = (0.3, 2.0, 5.0, 12.0, 30.0, 70.0, 150.0)
"""So many seconds after it was typed a command is broken off."""


def _timeout(chance: Random) -> str:
    return f"--timeout {chance.choice((20, 60, 120, 240))}"


def _sometimes(chance: Random, share: float, *options: str) -> str:
    return f" {chance.choice(options)}" if chance_of(chance, share) else ""


def fence(chance: Random, world: Scenario, node: str) -> str:
    """Draw a fence: as it is, or with all that a person may add."""
    stops = _sometimes(chance, 0.25, "--stop-guest")
    over = _sometimes(chance, 0.15, "--over-brake drawn")
    named = _sometimes(chance, 0.2, f"--guest {node}", f"--guest {world.shape.endpoint_of(node)}/{node}")
    wrong = _sometimes(chance, 0.03, f"--guest {chance.choice(world.shape.nodes)}")
    return f"fence {node} {_timeout(chance)}{stops}{over}{wrong or named}"


def confirmed_fence(chance: Random, _world: Scenario, node: str) -> str:
    """Draw a fence with a person's word that the VM is off and stays off."""
    over = _sometimes(chance, 0.15, "--over-brake drawn")
    return f"fence {node} {_timeout(chance)} --confirm-guest-off drawn{over}"


def unfence(chance: Random, _world: Scenario, node: str) -> str:
    """Draw the lift of a fence."""
    word = _sometimes(chance, 0.3, "--confirm-guest-off drawn", "--same-boot drawn", "--adopt drawn")
    return f"unfence {node} {_timeout(chance)}{word}"


def drain(chance: Random, world: Scenario, node: str) -> str:
    """Draw a drain of one node, or of two."""
    other = chance.choice(world.shape.nodes)
    also = f" {other}" if other != node and chance_of(chance, 0.2) else ""
    return f"drain {node}{also} {_timeout(chance)}{_drains(chance)}"


def shutdown(chance: Random, world: Scenario, node: str) -> str:
    """Draw a shutdown of one node, or of several."""
    others = [name for name in world.shape.nodes if name not in {node, *world.shape.spare}]
    also = "".join(f" {name}" for name in chance.sample(others, chance.choice((0, 0, 0, 1, 2))))
    at_once = _sometimes(chance, 0.5, "--parallel 2") if also else ""
    cut = _sometimes(chance, 0.3, "--stop-after 5", "--stop-after 15")
    who = _sometimes(chance, 0.3, "--drain none", "--drain guest")
    return f"shutdown {node}{also} {_timeout(chance)}{at_once}{cut}{who or _drains(chance)}"


def _drains(chance: Random) -> str:
    return _sometimes(chance, 0.3, "--even-if-blocked", "--keep-cordon", "--grace-period 5", "--force")


def start(chance: Random, _world: Scenario, node: str) -> str:
    """Draw a start."""
    return f"start {node} {_timeout(chance)}"


def drill(chance: Random, _world: Scenario, node: str) -> str:
    """Draw a fire drill."""
    return f"drill {node} {_timeout(chance)}{_sometimes(chance, 0.5, '--even-without-room')}"


def trust(chance: Random, world: Scenario, _node: str) -> str:
    """Draw a person's trust in an endpoint."""
    return f"trust {chance.choice((world.shape.endpoint, *world.shape.further))} {WHY}"


def approve(_chance: Random, world: Scenario, node: str) -> str:
    """Draw an approval of a node's VM."""
    return f"approve {node} --guest {world.shape.endpoint_of(node)}/{node} --yes"


def plan(_chance: Random, _world: Scenario, node: str) -> str:
    """Draw a look at what a drain would hit."""
    return f"plan {node}"


LINES: tuple[tuple[Line, int], ...] = (
    *((fence, 6), (unfence, 4), (drain, 6), (shutdown, 6), (start, 6), (drill, 5), (trust, 2), (plan, 1)),
    (approve, 1),
    (confirmed_fence, 4),
)
"""What is typed, and how often, compared with the others."""


def _line(chance: Random, world: Scenario, node: str) -> str:
    [draw] = chance.choices([line for line, _ in LINES], weights=[weight for _, weight in LINES])
    return draw(chance, world, node)


def _typed(at_s: float, words: str, node: str) -> Fault:
    return Fault(max(1.0, at_s), What.TYPED, node, words=words)


def _victim(world: Scenario) -> str:
    """Return a node to which something happens."""
    death = death_of(world)
    hit = (fault.target for fault in world.script if fault.target in world.shape.nodes)
    return death.target if death else next(hit, world.shape.nodes[0])


def _working(world: Scenario) -> list[str]:
    """Return the nodes that are not off from the beginning."""
    return [name for name in world.shape.nodes if name not in world.shape.spare]


# --- the layers


def typed_at_the_victim(chance: Random, world: Scenario) -> Scenario:
    """A person types something about a node to which something happens, right or wrong."""
    node = _victim(world)
    times = sorted(began_s(world) + chance.uniform(-25.0, 240.0) for _ in range(chance.choice((1, 1, 2, 3))))
    return and_then(world, *(_typed(at_s, _line(chance, world, node), node) for at_s in times))


def typed_elsewhere(chance: Random, world: Scenario) -> Scenario:
    """A person types something about another node, while that one has its incident."""
    victim = _victim(world)
    node = chance.choice([name for name in _working(world) if name != victim])
    return and_then(
        world, _typed(began_s(world) + chance.uniform(-25.0, 200.0), _line(chance, world, node), node)
    )


def typed_at_once(chance: Random, world: Scenario) -> Scenario:
    """Two people type at the same time, about one node or about two."""
    at_s = began_s(world) + chance.uniform(-25.0, 150.0)
    nodes = chance.choice(_working(world)), chance.choice((_victim(world), *world.shape.nodes))
    then_s = at_s + chance.choice((0.0, 0.5, 3.0))
    first, second = (_line(chance, world, node) for node in nodes)
    return and_then(world, _typed(at_s, first, nodes[0]), _typed(then_s, second, nodes[1]))


def maintained(chance: Random, world: Scenario) -> Scenario:
    """Planned work on a node, as it is meant: it is drained or shut down, and started again later."""
    node = chance.choice(_working(world))
    at_s = began_s(world) + chance.uniform(-40.0, 60.0)
    then_s = at_s + chance.choice((15.0, 60.0, 180.0)) * chance.uniform(0.7, 1.5)
    stop = chance.choice((drain, shutdown, shutdown))(chance, world, node)
    return and_then(world, _typed(at_s, stop, node), _typed(then_s, start(chance, world, node), node))


def drilled(chance: Random, world: Scenario) -> Scenario:
    """A fire drill of a sound node, while all are sound; what happens in this world comes in between."""
    if world.shape.spare:  # nodes that are off: no drill begins
        return world
    node, last_s = chance.choice(world.shape.nodes), max(BOUND_S + 1.0, began_s(world))
    return and_then(world, _typed(chance.uniform(BOUND_S, last_s), drill(chance, world, node), node))


def fenced_by_hand(chance: Random, world: Scenario) -> Scenario:
    """A person fences a node by hand at once: that takes less silence than an agent waits for."""
    death = death_of(world)
    if death is None:
        return world
    at_s = death.at_s + chance.uniform(2.0, 45.0)
    return and_then(world, _typed(at_s, fence(chance, world, death.target), death.target))


def paused_by_command(chance: Random, world: Scenario) -> Scenario:
    """A person pauses fencing by command, for all nodes or one, for a while or until it is resumed."""
    at_s = max(5.0, began_s(world) + chance.uniform(-40.0, 90.0))
    for_s = chance.choice((20.0, 60.0, 180.0))
    about = f" {_victim(world)}" if chance_of(chance, 0.5) else ""
    if chance_of(chance, 0.3):
        pause = Fault(at_s, What.TYPED, words=f"pause{about} --for {chance.choice((1, 2, 3))}m {WHY}")
        return and_then(world, pause)
    ends = Fault(at_s + for_s, What.TYPED, words=f"resume{about}")
    return and_then(world, Fault(at_s, What.TYPED, words=f"pause{about} {WHY}"), ends)


def confirmed(chance: Random, world: Scenario) -> Scenario:
    """A person at the machine confirms that a VM is off."""
    node = _victim(world)
    at_s = began_s(world) + chance.uniform(20.0, 200.0)
    return and_then(world, _typed(at_s, confirmed_fence(chance, world, node), node))


def trusted_again(chance: Random, world: Scenario) -> Scenario:
    """An endpoint was wrong about several VMs, or seemed so; a person finds out why, and trusts it again."""
    since_s = [fault.at_s for fault in world.script if fault.what in {What.TRUTHFUL, What.MOVE_COLD}]
    if not since_s:
        return world
    at_s = chance.choice(since_s) + chance.choice((5.0, 40.0, 90.0, 150.0)) * chance.uniform(0.7, 1.5)
    endpoint = chance.choice((world.shape.endpoint, world.shape.endpoint_of(_victim(world))))
    return and_then(world, Fault(at_s, What.TYPED, words=f"trust {endpoint} {WHY}"))


def distrusted(chance: Random, world: Scenario) -> Scenario:
    """An endpoint was wrong about two VMs that die then, and a person trusts it again, once it is right."""
    shape, hit = world.shape, {fault.target for fault in world.script}
    quiet = [
        name
        for name in shape.nodes
        if not {name, shape.host_of(name), shape.endpoint_of(name)} & hit and name not in shape.spare
    ]
    two = [name for name in quiet if shape.endpoint_of(name) == shape.endpoint_of(quiet[0])][:2]
    if len(two) < TWO or "" in hit:
        return world
    at_s, endpoint = began_s(world) + chance.uniform(-20.0, 60.0), shape.endpoint_of(two[0])
    ends_s = at_s + gives_away_s(shape) + chance.uniform(10.0, 40.0)
    lies = (Fault(at_s, What.LIE_STOPPED, name) for name in two)
    deaths = (Fault(ends_s - 1.0, What.CRASH, name) for name in two)
    trusts = Fault(ends_s + chance.uniform(5.0, 150.0), What.TYPED, words=f"trust {endpoint} {WHY}")
    return and_then(world, *lies, *deaths, Fault(ends_s, What.TRUTHFUL, endpoint), trusts)


def approved(chance: Random, world: Scenario) -> Scenario:
    """A person approves a VM that a tag admits, before its node dies, or after."""
    shape = world.shape
    waiting = [
        name
        for name in shape.nodes
        if shape.grouped and name not in (shape.nodes if shape.admitted is None else shape.admitted)
    ]
    if not waiting:
        return world
    victim = _victim(world)
    node = victim if victim in waiting else chance.choice(waiting)
    at_s = began_s(world) + chance.uniform(-20.0, 150.0)
    return and_then(world, _typed(at_s, approve(chance, world, node), node))


# --- where a command has a chance


def fenced_in_time(chance: Random, world: Scenario) -> Scenario:
    """A person fences a node whose VM has ended, and to which nothing else happens: sooner than an agent.

    Sometimes a maintenance window keeps agents from it.
    """
    quiet = quiet_nodes(world)
    if not quiet:
        return world
    node, at_s = chance.choice(quiet), began_s(world) + chance.uniform(-20.0, 100.0)
    if chance_of(chance, 0.4):
        window = Window("00:00", "00:15", "UTC", nodes=(node,), why="drawn")
        world = replace(world, policy=replace(world.policy, maintenance=(*world.policy.maintenance, window)))
    fence_s = at_s + chance.choice((10.0, 25.0, 60.0)) * chance.uniform(0.7, 1.3)
    end = Fault(at_s, chance.choice((What.CRASH, What.POWER_OFF)), node)
    return and_then(world, end, _typed(fence_s, f"fence {node} --timeout 240", node))


def lifted_in_time(chance: Random, world: Scenario) -> Scenario:
    """A person lifts the fence of a node that is back, as soon as it may be lifted, or a moment earlier."""
    quiet = quiet_nodes(world)
    if not quiet:
        return world
    node, at_s = chance.choice(quiet), began_s(world) + chance.uniform(-20.0, 60.0)
    starts_s = chance.uniform(2.0, 60.0)
    back = Fault(starts_s, What.START, node, cue=Cue.TAINTED)
    lift_s, words = starts_s + chance.uniform(5.0, 50.0), unfence(chance, world, node)
    lift = Fault(lift_s, What.TYPED, node, words=words, cue=Cue.TAINTED)
    return and_then(world, Fault(at_s, What.CRASH, node), back, lift)


def trusted_in_time(chance: Random, world: Scenario) -> Scenario:
    """The same in a calm world: whatever else happens there comes minutes later."""
    later_s = REHEARSAL_S + gives_away_s(world.shape)
    calm = replace(world, script=())
    first = distrusted(chance, calm).script
    return replace(world, script=(*first, *after(world.script, later_s))) if first else world


def rehearsed(chance: Random, world: Scenario) -> Scenario:
    """A fire drill in a calm world: whatever happens there comes minutes later."""
    later, node = after(world.script, REHEARSAL_S), chance.choice(_working(world))
    world = replace(world, script=tuple(later))
    at_s = chance.uniform(BOUND_S, 2 * BOUND_S)
    return and_then(world, _typed(at_s, f"drill {node} --timeout 240 --even-without-room", node))


def started_again(chance: Random, world: Scenario) -> Scenario:
    """A person shuts a node down to which nothing else happens; its VM starts again at each power-off."""
    quiet = quiet_nodes(world)
    if not quiet:
        return world
    node, at_s = chance.choice(quiet), began_s(world) + chance.uniform(-20.0, 100.0)
    again = Restarts((node,), SHUT_DOWN, chance.uniform(0.05, 3.0), in_place=chance_of(chance, 0.5))
    cut = _sometimes(chance, 0.3, "--stop-after 5", "--stop-after 15")
    words = f"shutdown {node} --timeout 240 --drain none{cut}"
    return and_then(replace(world, restarts=(*world.restarts, again)), _typed(at_s, words, node))


def broken_off(chance: Random, world: Scenario) -> Scenario:
    """The person who typed a command presses Ctrl-C or loses the session, or the command is killed."""
    typed = [fault for fault in world.script if fault.what is What.TYPED and fault.target]
    ends = []
    for fault in typed:
        if chance_of(chance, 0.6):
            what = chance.choice((What.INTERRUPTED, What.INTERRUPTED, What.COMMAND_KILLED))
            at_s = fault.at_s + chance.choice(BROKEN_OFF) * chance.uniform(0.5, 1.5)
            ends.append(Fault(at_s, what, fault.target))
            if chance_of(chance, 0.3):
                ends.append(Fault(at_s + chance.uniform(0.5, 5.0), What.INTERRUPTED, fault.target))
    return and_then(world, *ends)


TYPED = (
    Layer(typed_at_the_victim, 0.15),
    Layer(typed_elsewhere, 0.08),
    Layer(typed_at_once, 0.04),
    Layer(maintained, 0.08),
    Layer(drilled, 0.1),
    Layer(fenced_by_hand, 0.06),
    Layer(paused_by_command, 0.05),
    Layer(confirmed, 0.05),
    Layer(approved, 0.6),
    Layer(trusted_again, 0.1),
    Layer(distrusted, 0.05),
    Layer(fenced_in_time, 0.14),
    Layer(lifted_in_time, 0.12),
    Layer(rehearsed, 0.06),
    Layer(trusted_in_time, 0.04),
    Layer(started_again, 0.06),
    Layer(broken_off, 0.4),
)
