"""Whatever can happen comes in some drawn world; none is played. A new feature shows here that it is covered.

What broke the promise lay outside what the worlds drew, twice. So nothing may be left out by accident: a
fault, a hold, a key of the policy, an intent, a command that acts, or a property of a world that is never
drawn fails a test here, and what is left out on purpose is named with its reason.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from itertools import pairwise

import pytest

from fencer.cli.main import COMMANDS
from fencer.core.holds import HOLDS
from fencer.core.model import Intent, Reason
from fencer.core.policy import Policy
from fencer.simulation.agents_drawn import MEANWHILE
from fencer.simulation.assembly import Shape
from fencer.simulation.commands import about
from fencer.simulation.faults import Cue, What
from fencer.simulation.meddling import JOINS
from fencer.simulation.requests import HealthCheck
from fencer.simulation.restarts import SHUT_DOWN
from fencer.simulation.scenario import Scenario, ServerClock, Watcher
from fencer.simulation.workloads import StatefulSet
from tests.scenarios.judge import world_of
from tests.scenarios.lines import script_lines, world_lines

WORLDS = 3000

FOR_STORIES_ONLY = {
    What.BUDGETS_LOOSENED,
    What.RESTORE_BACKUP,
}
"""Faults that no world draws."""

LOOKING = {
    *("demo", "init", "check", "status", "explain", "history", "report", "topology", "plan", "notify"),
    *("config", "setup", "replay", "journal", "version", "support-bundle"),
}
"""Commands that act on no cluster and no VM: they look, or set fencer itself up."""
ACTING = {"fence", "unfence", "trust", "approve", "pause", "resume", "drain", "shutdown", "start", "drill"}
WATCHING = {"watch"}
"""What each world's agents are."""

INTENTS: Mapping[Intent, set[str]] = {
    Intent.WATCH: WATCHING,
    Intent.FENCE: {"fence"},
    Intent.UNFENCE: {"unfence"},
    Intent.SHUTDOWN: {"shutdown"},
    Intent.START: {"start"},
}
"""By which commands each is asked."""


@cache
def drawn():
    """The worlds, each under its own recipe."""
    return tuple(world_of(seed) for seed in range(WORLDS))


@cache
def happens():
    """How many of them have each fault."""
    return Counter(what for world in drawn() for what in {fault.what for fault in world.script})


def typed():
    """Return the commands that are typed in any of them."""
    return {fault.words.split()[0] for world in drawn() for fault in world.script if fault.what is What.TYPED}


def faults(*whats: What) -> Callable[[Scenario], bool]:
    """Return whether any of these happens in a world."""
    return lambda world: any(fault.what in whats for fault in world.script)


HELD_BY: Mapping[Reason, Callable[[Scenario], bool]] = {
    Reason.FENCING_PAUSED: faults(What.FENCING_PAUSED),
    Reason.NODE_PAUSED: faults(What.NODE_PAUSED),
    Reason.NODE_EXCLUDED: faults(What.NODE_EXCLUDED),
    Reason.MAINTENANCE: lambda world: bool(world.policy.maintenance),
    Reason.OBSERVE_MODE: faults(What.AGENT_ARMED),
    Reason.STANDBY: lambda world: len(world.watchers) > 1,
    Reason.NO_LEASE: faults(What.AGENT_FROZEN, What.API_DOWN),
    Reason.NODE_RESERVED: lambda world: world.health_check is not None and not world.health_check.asks,
    Reason.HANDED_OVER: lambda world: world.health_check is not None and world.health_check.escalates,
    Reason.GIVEN_UP: lambda world: world.health_check is not None and world.health_check.patience_s < 60,
    Reason.MARK_UNREADABLE: faults(What.HOSTILE_NOTES),
    Reason.DOUBTS_UNREADABLE: faults(What.HOSTILE_NOTES),
    Reason.MARK_UNSIGNED: faults(What.FORGE_MARK),
    Reason.NOTES_FIRST: faults(What.API_DOWN),
    Reason.BLIND: faults(What.UNREACHABLE, What.HANG),
    Reason.EVIDENCE_MISSING: faults(What.TOO_LATE, What.DENIED),
    Reason.EVIDENCE_STALE: faults(What.LATE),
}
"""What brings each hold about."""


LAYERS = "a layer (CONTRIBUTING.md, Random worlds)"


def test_every_fault_comes():
    never = sorted(f"What.{what.name}" for what in set(What) - happens().keys() - FOR_STORIES_ONLY)
    assert not never, (
        f"never drawn in {WORLDS:,} worlds: {', '.join(never)}. Add it to {LAYERS}, "
        "or to FOR_STORIES_ONLY with a reason"
    )
    drawn_now = sorted(f"What.{what.name}" for what in FOR_STORIES_ONLY & happens().keys())
    assert not drawn_now, f"worlds draw {', '.join(drawn_now)} now: take it out of FOR_STORIES_ONLY"


def test_every_command_acts_or_looks():
    """A new command has to say here which of both it does."""
    unlisted = set(COMMANDS) ^ (ACTING | LOOKING | WATCHING)
    assert not unlisted, f"say in ACTING or LOOKING which of both it does, or take it out: {sorted(unlisted)}"


def test_every_command_that_acts_is_typed():
    never = sorted(ACTING - typed())
    assert not never, f"never typed in {WORLDS:,} worlds: {', '.join(never)}. Draw it in simulation/typed.py"


def test_every_intent_comes():
    unnamed = [intent for intent in Intent if intent not in INTENTS]
    assert not unnamed, f"say in INTENTS by which commands each is asked: {', '.join(unnamed)}"
    never = [intent for intent in Intent if not INTENTS[intent] <= typed() | WATCHING]
    assert not never, f"asked by no command that is drawn: {', '.join(never)}. Draw it in simulation/typed.py"


@pytest.mark.parametrize("hold", HOLDS, ids=lambda hold: hold.name)
def test_every_hold_comes_by_each_of_its_reasons(hold):
    unnamed = [reason for reason in hold.reasons if reason not in HELD_BY]
    assert not unnamed, f"say in HELD_BY what brings it about: {', '.join(unnamed)}"
    never = [reason for reason in hold.reasons if not any(map(HELD_BY[reason], drawn()))]
    assert not never, (
        f"what brings it about is never drawn in {WORLDS:,} worlds: {', '.join(never)}. "
        f"Add that to {LAYERS}, or correct HELD_BY"
    )


SAME_EVERYWHERE = {
    Scenario: {"title", "story", "fenced", "refused", "alone_s", "alone_whole", "spared", "stays_fenced"}
    | {"second_writer", "done", "interleaved"},
    Policy: {"mode"},
    Shape: {"endpoint", "abroad"},
}
"""What is the same in all of them: what only a story needs, and what a fault changes (the mode)."""


def values(kind, thing):
    """Yield each thing of a kind that a world has anywhere in it."""
    if isinstance(thing, kind):
        yield thing
    if is_dataclass(thing):
        for field in fields(thing):
            yield from values(kind, getattr(thing, field.name))
    elif isinstance(thing, tuple):
        for one in thing:
            yield from values(kind, one)


@pytest.mark.parametrize(
    "kind", [Scenario, Policy, Shape, Watcher, HealthCheck, ServerClock], ids=lambda kind: kind.__name__
)
def test_every_property_of_a_world_varies(kind):
    """Each key of the policy, each setting of agents, kubelets and controllers has two values or more."""
    things = [thing for world in drawn() for thing in values(kind, world)]
    seen = {field.name: {repr(getattr(thing, field.name)) for thing in things} for field in fields(kind)}
    alike = {name for name, found in seen.items() if len(found) < 2}
    expected = SAME_EVERYWHERE.get(kind, set())
    assert not alike - expected, (
        f"the same in {WORLDS:,} worlds: {kind.__name__}.{', '.join(sorted(alike - expected))}. "
        f"Let it vary in {LAYERS}, or add it to SAME_EVERYWHERE with a reason"
    )
    assert not expected - alike, f"these vary now: take them out of SAME_EVERYWHERE: {expected - alike}"


SHOWN_ELSEWHERE = {(Scenario, "name"): "the report of a seed begins with its seed"}
"""What varies, and is in no line about a world, with the reason."""


def with_value(kind, world, name, value):
    """Return a world in which the first thing of a kind has another value; it has to have such a thing."""
    if kind is Scenario:
        return replace(world, **{name: value})
    part = {Policy: "policy", Shape: "shape", Watcher: "watchers", HealthCheck: "health_check"}.get(
        kind, "clocks"
    )
    thing = getattr(world, part)
    if isinstance(thing, tuple):
        return replace(world, **{part: (replace(thing[0], **{name: value}), *thing[1:])})
    return replace(world, **{part: replace(thing, **{name: value})})


def has_all(world):
    """Whether a world has a thing of each kind, in which each property can be seen."""
    shape, set_later = world.shape, any(clock.set_at_s < world.duration_s for clock in world.clocks[:1])
    return bool(world.health_check and set_later and shape.further and shape.spare)


def shown(world):
    """Return all that a report shows of a world before it is played."""
    return [*world_lines(world), *script_lines(world.script)]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, field.name)
        for kind in (Scenario, Policy, Shape, Watcher, HealthCheck, ServerClock)
        for field in fields(kind)
        if field.name not in SAME_EVERYWHERE.get(kind, set()) and (kind, field.name) not in SHOWN_ELSEWHERE
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_a_report_shows_every_property_that_varies(kind, name):
    """The other value of any world that has one changes some line."""
    world = next(world for world in drawn() if has_all(world))
    others = (getattr(thing, name) for other in drawn()[:500] for thing in values(kind, other))
    assert any(shown(with_value(kind, world, name, other)) != shown(world) for other in others), (
        f"{kind.__name__}.{name} varies, and no line of a report shows it. "
        "Write it in lines.py, or name it in SHOWN_ELSEWHERE with a reason"
    )


def test_every_cue_is_waited_for():
    waited = {fault.cue for world in drawn() for fault in world.script}
    assert not set(Cue) - waited, f"no world waits for these: {set(Cue) - waited}. Draw it in {LAYERS}"


@pytest.mark.parametrize("cue", MEANWHILE, ids=str)
def test_whatever_may_happen_in_the_moment_of_a_deed_does(cue):
    """While an agent stands still between its decision and this deed."""
    seen = {fault.what for world in drawn() for fault in world.script if fault.cue is cue}
    assert seen >= {What.AGENT_STALLS, *(what for whats in MEANWHILE[cue] for what in whats)}


def held_twice(world):
    """Whether two holds lie over one node at the same time."""
    return len({*HOLDING} & {fault.what for fault in world.script}) > 1


def hosts_off_at_once(world):
    """Whether a second host loses its power before the first has it back."""
    on_s = min((fault.at_s for fault in world.script if fault.what is What.HOST_ON), default=math.inf)
    off = {fault.target for fault in world.script if fault.what is What.HOST_OFF and fault.at_s < on_s}
    return len(off) > 1


def typed_words(*words):
    """Return whether a command with all of these words is typed in a world."""
    return lambda world: any({*words} <= {*fault.words.split()} for fault in world.script)


def stolen(world):
    """Whether a machine reports the UUID of a VM of no node, which is paused then, in a world with tags."""
    whats = {fault.what for fault in world.script if fault.target in world.shape.bystanders}
    return world.shape.grouped and What.PAUSE in whats and bool(whats & {*JOINS})


def shut_down_together(world):
    """Whether a person shuts several nodes down by one command."""
    return any(fault.words.startswith("shutdown") and len(about(fault.words)) > 1 for fault in world.script)


def started_again(*, in_place):
    """Return whether a person shuts a node down whose VM starts again at each power-off."""
    return lambda world: any(
        fault.words.startswith("shutdown")
        and any(
            fault.target in one.nodes and one.after == SHUT_DOWN and one.in_place is in_place
            for one in world.restarts
        )
        for fault in world.script
    )


def quiet_for_an_hour(world):
    """Whether nothing happens for an hour, and then something does."""
    times = sorted(fault.at_s for fault in world.script)
    return any(later_s - earlier_s > 3000.0 for earlier_s, later_s in pairwise(times))


def left_and_troubled(world):
    """Whether agents fall in a world in which one of them has to see memory leave."""
    whats = {fault.what for fault in world.script}
    leaves = whats & {What.MOVE_OUT, What.SAVE_TO_FILE, What.HIBERNATE}
    return bool(leaves and whats & {What.AGENT_FROZEN, What.LINK_CUT})


HOLDING = (What.FENCING_PAUSED, What.NODE_PAUSED, What.NODE_EXCLUDED)
FURTHER: Mapping[str, Callable[[Scenario], bool]] = {
    "control-plane nodes": lambda world: len(world.shape.members) > 2,
    "nodes that the configuration names": lambda world: bool(world.shape.mapped),
    "power by tag": lambda world: world.shape.grouped,
    "several holds": held_twice,
    "several hosts off": hosts_off_at_once,
    "a shutdown of several nodes": shut_down_together,
    "a VM named like the number of a node's": lambda world: (
        {*world.shape.bystanders} & {world.shape.number_of(name) for name in world.shape.mapped} - {""}
    ),
    "a shutdown of a VM that starts again": started_again(in_place=False),
    "a shutdown of a VM that is reset instead": started_again(in_place=True),
    "fence --guest": typed_words("fence", "--guest"),
    "a joiner with the UUID of a VM of no node": lambda world: any(
        fault.what in JOINS and fault.target in world.shape.bystanders for fault in world.script
    ),
    "power by tag over some VMs": lambda world: world.shape.grouped and world.shape.admitted is not None,
    "a joiner with the UUID of a VM that only a tag admits, which is paused then": stolen,
    "an approval": typed_words("approve"),
    "pods without a grace period": lambda world: any(
        isinstance(one, StatefulSet) and not one.grace_s for one in world.workloads()
    ),
    "a quiet hour": quiet_for_an_hour,
    "troubles of agents where memory leaves": left_and_troubled,
}


@pytest.mark.parametrize("name", FURTHER)
def test_it_comes(name):
    assert any(map(FURTHER[name], drawn())), f"never in {WORLDS:,} worlds: {name}. Draw it in {LAYERS}"


def test_features_meet():
    """Holds, commands, and troubles of agents come together, not only one at a time."""
    layers = [len({fault.what for fault in world.script}) for world in drawn()]
    assert sum(count >= 6 for count in layers) > WORLDS / 10
