"""What befalls the agents of a world, and how they differ: each by a chance of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from fencer.simulation.faults import Cue, Fault, What
from fencer.simulation.layers import Layer, and_then, began_s, chance_of, quiet_nodes
from fencer.simulation.links import cut_for_ever
from fencer.simulation.meddling import victim_of
from fencer.simulation.scenario import Scenario, Watcher

STEPS = 120
"""An agent meets its fate after at most so many steps: several passes."""
TO_API = (What.LINK_CUT, What.LINK_HANGS, What.LINK_SLOW, What.LINK_DENIED, What.LINK_DEAF)
"""What happens to the way of one agent to the API server …"""
TO_ENDPOINT = (*TO_API, What.LINK_STALE)
"""… and to an endpoint."""
FOR_EVER = frozenset({What.LINK_CUT, What.LINK_HANGS, What.LINK_DENIED, What.LINK_DEAF})
"""What may never end, where another agent is left that reaches everything."""
LASTS_S = (1.0, 8.0, 30.0, 100.0, 250.0)
"""For how long: less than a Lease, about as long as one, and much longer."""
FLAPS = (1, 1, 1, 4, 8)
"""How often."""


STALLS_S = (10.0, 40.0, 60.0, 60.0)
"""So long an agent stands still between a decision and the deed, at most."""
STALL_STEPS: Mapping[Cue, tuple[int, ...]] = {
    Cue.BEFORE_TAINT: (0, 1, 3, 4, 5),
    Cue.BEFORE_STOP: (0, 3, 5, 6, 7),
    Cue.BEFORE_CLEAR: (0, 1, 1, 2),
    Cue.BEFORE_LIFT: (0, 1),
}
"""After so many steps of its calls since that decision: before its last look, after it, before the write."""
HELD_AGAIN = ((What.NODE_PAUSED,), (What.NODE_EXCLUDED,))
"""A person keeps fencer from its node."""
MEANWHILE: Mapping[Cue, tuple[tuple[What, ...], ...]] = {
    Cue.BEFORE_TAINT: ((What.REVERT,), (What.REVERT,), (What.START,), *HELD_AGAIN),
    Cue.BEFORE_STOP: (
        *((What.RESUME,), (What.RESUME,), (What.RESUME, What.NIC_ON, What.KUBELET_START)),
        *((What.REBOOT,), (What.REVERT,), *HELD_AGAIN, ()),
    ),
    Cue.BEFORE_CLEAR: ((What.REVERT,), (What.REVERT,), (What.START,), (What.UNTAINT_BY_HAND,), *HELD_AGAIN),
    Cue.BEFORE_LIFT: (
        *((What.REVERT,), (What.CRASH,), (What.PAUSE,), (What.UNTAINT_BY_HAND, What.TAINT_BY_HAND)),
        *(*HELD_AGAIN, *HELD_AGAIN),
    ),
}
"""What happens then, by what was about to be done. Nothing: time passes, and a Lease ends."""
ENDED = ((What.CRASH,), (What.POWER_OFF,), (What.NIC_OFF, What.CRASH), (What.NIC_OFF, What.CRASH))
"""How a VM ends; without its network it is not heard once it is back, either."""
LEADS_TO: Mapping[Cue, tuple[tuple[What, ...], ...]] = {
    Cue.BEFORE_TAINT: ENDED,
    Cue.BEFORE_STOP: ((What.PAUSE,), (What.PAUSE,), (What.PAUSE,), (What.NIC_OFF,)),
    Cue.BEFORE_CLEAR: ENDED,
    Cue.BEFORE_LIFT: ENDED[:2],
}
"""What leads to that deed."""
HOLDS_END = {What.NODE_PAUSED: What.NODE_RESUMED, What.NODE_EXCLUDED: What.NODE_INCLUDED}


def fates(chance: Random, world: Scenario) -> Scenario:
    """Agents stand still or are killed, around the time in which they have most to do."""
    drawn = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        what = chance.choice((What.AGENT_FROZEN, What.AGENT_KILLED))
        for_s = chance.choice((0.5, 3.0, 15.0, 60.0)) * chance.uniform(0.5, 1.5)
        drawn.append(_fate(chance, world, what, _any_agent(chance, world), for_s))
    return and_then(world, *drawn)


def slow_disk(chance: Random, world: Scenario) -> Scenario:
    """The disk under an agent's journal and state hangs for a while."""
    at_s = max(0.0, began_s(world) + chance.uniform(-10.0, 120.0))
    text, for_s = "the disk under its journal hangs", chance.choice((0.5, 15.0, 300.0))
    return and_then(world, Fault(at_s, What.DISK_HANGS, "fencer-1", text, for_s=for_s))


def cut_from_api(chance: Random, world: Scenario) -> Scenario:
    """One agent does not reach the API server, or not always; all others do."""
    return and_then(world, *_link(chance, world, _any_agent(chance, world), TO_API, ""))


def cut_from_endpoint(chance: Random, world: Scenario) -> Scenario:
    """One agent does not reach an endpoint, or is answered otherwise than all others."""
    name = _any_agent(chance, world)
    knows = world.watchers[_names(world).index(name)].knows
    endpoint = chance.choice(knows or (world.shape.endpoint, *world.shape.further))
    return and_then(world, *_link(chance, world, name, TO_ENDPOINT, endpoint))


def vm_paused(chance: Random, world: Scenario) -> Scenario:
    """The VM in which an agent runs is paused, and its clocks with it."""
    for_s = chance.choice((3.0, 15.0, 60.0, 240.0)) * chance.uniform(0.5, 1.5)
    return and_then(world, _fate(chance, world, What.AGENT_PAUSED, _any_agent(chance, world), for_s))


def vm_reverted(chance: Random, world: Scenario) -> Scenario:
    """The VM in which an agent runs is reverted to a snapshot, or only its disk is put back."""
    name, what = _any_agent(chance, world), chance.choice((What.AGENT_REVERTED, What.AGENT_RESTORED))
    kept_s = max(5.0, began_s(world) + chance.uniform(-40.0, 120.0))
    back = _fate(chance, world, what, name, chance.choice((1.0, 5.0, 30.0)))
    back = replace(back, at_s=kept_s + chance.choice((5.0, 40.0, 120.0, 300.0)) * chance.uniform(0.5, 1.5))
    return and_then(world, Fault(kept_s, What.AGENT_SNAPSHOT, name), back)


def stalled(chance: Random, world: Scenario) -> Scenario:
    """An agent stands still between a decision and the deed, and just then the world changes."""
    cue = chance.choice(tuple(MEANWHILE))
    world, node = _led_to(chance, world, cue)
    whats, for_s = chance.choice(MEANWHILE[cue]), chance.choice(STALLS_S) * chance.uniform(0.6, 1.0)
    if What.REVERT in whats:
        world = and_then(world, Fault(chance.uniform(5.0, 20.0), What.SNAPSHOT, node))
    at_s, ends_s = chance.uniform(0.1, 3.0), for_s + chance.uniform(5.0, 60.0)
    return and_then(
        world,
        Fault(0.0, What.AGENT_STALLS, node, cue=cue, for_s=for_s, steps=chance.choice(STALL_STEPS[cue])),
        *(Fault(at_s + number, what, node, cue=cue) for number, what in enumerate(whats)),
        *(Fault(ends_s, HOLDS_END[what], node, cue=cue) for what in whats if what in HOLDS_END),
    )


def _led_to(chance: Random, world: Scenario, cue: Cue) -> tuple[Scenario, str]:
    """Return about which node a deed is: mostly one to which nothing else happens, and what leads to it."""
    quiet = quiet_nodes(world)
    if not quiet or chance_of(chance, 0.15):
        return world, victim_of(chance, world)
    node, at_s = chance.choice(quiet), began_s(world) + chance.uniform(-20.0, 60.0)
    led = enumerate(chance.choice(LEADS_TO[cue]))
    world = and_then(world, *(Fault(at_s + number, what, node) for number, what in led))
    if cue is Cue.BEFORE_LIFT:
        world = and_then(world, Fault(chance.uniform(5.0, 60.0), What.START, node, cue=Cue.TAINTED))
    return world, node


def all_down(chance: Random, world: Scenario) -> Scenario:
    """All agents are down for minutes, and then begin again, sooner or later."""
    at_s = began_s(world) + chance.uniform(-20.0, 60.0)
    for_s = chance.choice((20.0, 120.0, 300.0))
    return and_then(
        world,
        *(
            Fault(at_s, What.AGENT_KILLED, name, for_s=for_s * chance.uniform(0.7, 1.3))
            for name in _names(world)
        ),
    )


def upgraded(chance: Random, world: Scenario) -> Scenario:
    """One agent after the other is stopped and started again, as an upgrade of all hosts does it."""
    at_s, apart_s = began_s(world) + chance.uniform(-20.0, 120.0), chance.choice((0.0, 1.0, 20.0))
    return and_then(
        world,
        *(
            Fault(at_s + number * apart_s, What.AGENT_RESTARTED, name, for_s=chance.choice((0.5, 3.0, 15.0)))
            for number, name in enumerate(_names(world))
        ),
    )


def other_names(chance: Random, world: Scenario) -> Scenario:
    """Configurations call endpoints by different names; sometimes two names are swapped."""
    endpoints = (world.shape.endpoint, *world.shape.further)
    number = chance.randrange(len(world.watchers))
    if len(endpoints) > 1 and chance_of(chance, 0.5):
        calls = dict(zip(endpoints, (*endpoints[1:], endpoints[0]), strict=True))
    else:
        calls = {name: f"other-{name}" for name in endpoints if chance_of(chance, 0.7)}
    return _with_watcher(world, number, replace(world.watchers[number], calls=calls))


def observing(chance: Random, world: Scenario) -> Scenario:
    """One of several agents observes for ever, whatever the others do."""
    number = chance.randrange(len(world.watchers))
    if not _left(world, number):
        return replace(world, watchers=(*world.watchers, Watcher(observes=True)))
    return _with_watcher(world, number, replace(world.watchers[number], observes=True))


def leaving(chance: Random, world: Scenario) -> Scenario:
    """One of several agents ends for good, in the midst of it."""
    number = chance.randrange(len(world.watchers))
    if not _left(world, number):
        return world
    until_s = max(10.0, began_s(world) + chance.uniform(-10.0, 200.0))
    watcher = world.watchers[number]
    return _with_watcher(world, number, replace(watcher, until_s=watcher.from_s + until_s))


def _names(world: Scenario) -> list[str]:
    return [f"fencer-{number}" for number in range(1, len(world.watchers) + 1)]


def _any_agent(chance: Random, world: Scenario) -> str:
    return chance.choice(_names(world))


def _fate(chance: Random, world: Scenario, what: What, name: str, for_s: float) -> Fault:
    at_s = began_s(world) + chance.uniform(-10.0, 200.0)
    return Fault(at_s, what, name, for_s=for_s, steps=chance.randint(0, STEPS))


def _link(
    chance: Random, world: Scenario, name: str, whats: Sequence[What], endpoint: str
) -> Sequence[Fault]:
    """Draw what happens to one way of one agent: once, or it flaps."""
    what, drawn = chance.choice(whats), []
    at_s = max(1.0, began_s(world) + chance.uniform(-40.0, 120.0))
    for_s, flaps = chance.choice(LASTS_S), chance.choice(FLAPS)
    for _ in range(flaps):
        until_s = at_s + for_s * chance.uniform(0.5, 1.5) / flaps
        drawn += [
            Fault(at_s, what, name, endpoint=endpoint),
            Fault(until_s, What.LINK_BACK, name, endpoint=endpoint),
        ]
        at_s = until_s + chance.choice((0.5, 3.0, 12.0)) * chance.uniform(0.5, 1.5)
    stays = (
        what in FOR_EVER and _left(world, int(name.removeprefix("fencer-")) - 1) and chance_of(chance, 0.3)
    )
    return drawn[:-1] if stays else drawn


def _left(world: Scenario, number: int) -> bool:
    """Whether an agent is left that does everything, without one of them."""
    cut = cut_for_ever(world.script)
    return any(
        one.knows is None and not one.observes and math.isinf(one.until_s)
        for at, (name, one) in enumerate(zip(_names(world), world.watchers, strict=True))
        if at != number and name not in cut
    )


def _with_watcher(world: Scenario, number: int, watcher: Watcher) -> Scenario:
    watchers = (*world.watchers[:number], watcher, *world.watchers[number + 1 :])
    return replace(world, watchers=watchers)


AGENT_LAYERS = (
    Layer(fates, 0.5, blinds=True),
    Layer(stalled, 0.15, blinds=True),
    Layer(slow_disk, 0.1),
    Layer(other_names, 0.15),
    Layer(observing, 0.08),
    Layer(leaving, 0.08, blinds=True),
    Layer(cut_from_api, 0.12, blinds=True),
    Layer(cut_from_endpoint, 0.15, blinds=True),
    Layer(vm_paused, 0.08, blinds=True),
    Layer(vm_reverted, 0.08, blinds=True),
    Layer(all_down, 0.06, blinds=True),
    Layer(upgraded, 0.08, blinds=True),
)
"""What befalls agents, and how they differ. What changes who watches comes before what happens to them."""
