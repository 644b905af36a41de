"""The whole state machine on a page: who asks, the node's stage, what its guest reads, and what follows.

A ladder is a row of rungs, asked in order; the first objection decides, and where there is none, its ending
does. `LADDERS` says which ladder is climbed. Every one of them begins with `wanted` and `bound`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, partial
from types import MappingProxyType
from typing import TypeAlias

from fencer.core import consent, fence, identity, proof, recover, shutdown, start, stop
from fencer.core.holder import holder
from fencer.core.holds import Act, allows
from fencer.core.model import Check, Decision, GuestRef, Intent, Observation, Outcome, PowerState
from fencer.core.policy import PausedGuest, Policy, SavedGuest, UnresponsiveGuest
from fencer.core.proof import PROOF, SEEN, SHOWN
from fencer.core.requests import Strategy
from fencer.core.rung import EndOfLadder, Objection, Rungs, Subject


@dataclass(frozen=True, slots=True)
class Ladder:
    """Rungs, and what follows when all of them hold."""

    rungs: Rungs
    ending: EndOfLadder
    act: Act | None = None
    """What it is for, for the table of holds; None: only a person asks for it."""

    def without(self, check: Check | None) -> Ladder:
        """Return the same ladder without one check's rung, to tell people what would follow."""
        name = check and check.name
        return replace(self, rungs=tuple(rung for rung in self.rungs if rung[0] != name))


def acting(act: Act, rungs: Rungs, ending: EndOfLadder) -> Ladder:
    """Return a ladder that ends in an action. Whether `watch` may do it is asked last of all."""
    return Ladder((*rungs, ("armed", partial(consent.armed, ending))), ending, act)


class Stage(StrEnum):
    """The stage of a node, for the one who asks."""

    HEARD = "heard"
    """Its kubelet is heard: there is nothing to do but to note which guest it is."""
    SILENT = "silent"
    """Neither heard nor fenced."""
    FENCED = "fenced"
    """It carries our taint and our mark."""
    ASKED = "asked"
    """Its guest was asked to shut down, and is waited for."""
    OVERDUE = "overdue"
    """The same, for too long."""


# --- the parts of ladders


APPROACH: Rungs = (("silent", fence.silent), ("unmarked", fence.unmarked), ("proven", fence.proven))
"""From a node that falls silent to its guest."""

NOTES_FIRST = ("notes first", consent.notes_first)
"""Before anything is given away, and before a guest is ended or started."""

WORTH_IT: Rungs = (
    ("needed", fence.needed),
    ("unreserved", consent.unreserved),
    ("brake", consent.braked),
    NOTES_FIRST,
)
"""Asked before anything that costs calls: otherwise every node with nothing to do would cost them in every
pass, and keep the others waiting."""

MAY_POWER: Rungs = (
    ("fresh", proof.fresh),
    ("nobody else's", stop.nobody_elses),
    ("no stall", stop.no_stall),
    ("power rights", consent.may_power),
    ("holder", holder),
    ("quorum", consent.quorate_without),
)
"""Whether the guest's power may be touched at all: said at once, and not only when it is due."""

POWER: Rungs = (("settled", proof.settled), ("power window", consent.in_window))
"""From a guest that could go on writing to its power-off; the fence follows from what is read then."""

NOT_IN_VAIN = ("not in vain", stop.not_in_vain)
"""Before a guest is ended that is not off. Running lifts every doubt but one about a hibernation (D3)."""

CLOSELY = ("looked closely", proof.looked_closely)
"""Before what takes time: sweeps may show a guest too seldom for its readings to add up."""


# --- the ladders


GONE: Rungs = (*SEEN, ("fall seen", fence.fall_seen), *WORTH_IT, *SHOWN)
"""The proof, and between its two parts what makes the second needless."""

FENCE = acting(Act.TAINT, (*APPROACH, *GONE), fence.taint)
FENCE_TRUSTING = acting(Act.TAINT, (*APPROACH, ("no stall", stop.no_stall), *GONE), fence.taint)
STOP_PAUSED = acting(
    Act.STOP,
    (*APPROACH, *MAY_POWER, NOT_IN_VAIN, *WORTH_IT, CLOSELY, ("paused", stop.paused_long), *POWER),
    stop.stop,
)
STOP_RUNNING = acting(
    Act.STOP,
    (*APPROACH, *MAY_POWER, NOT_IN_VAIN, ("unresponsive", stop.unresponsive), *WORTH_IT, CLOSELY, *POWER),
    stop.stop,
)
DISCARD_SAVED = acting(
    Act.STOP,
    (*APPROACH, *MAY_POWER, NOT_IN_VAIN, *WORTH_IT, CLOSELY, ("saved", stop.saved), *POWER),
    stop.discard,
)
SOUND = acting(Act.UNCORDON, (("heard", fence.heard_of), ("guest runs", fence.guest_runs)), fence.sound)

CLEAR = acting(
    Act.CLEAR,
    (
        ("same guest", recover.same_guest),
        *SEEN,
        ("left", recover.left),
        ("not given up", consent.not_given_up),
        NOTES_FIRST,
        *SHOWN,
    ),
    recover.clear,
)
CLEAR_TRUSTING = Ladder((("no stall", stop.no_stall), *CLEAR.rungs), recover.clear, Act.CLEAR)
RETURN = acting(
    Act.LIFT,
    (
        ("same guest", recover.same_guest),
        ("old memory", recover.no_old_memory),
        ("running", recover.running),
        ("booted again", recover.booted_anew),
        ("renewed", recover.renewed),
        ("looked closely", recover.looked_closely),
        ("pods gone", recover.pods_gone),
        ("volumes gone", recover.volumes_gone),
    ),
    recover.unfence,
)
"""All of it must hold before a fence is lifted. Not Ready: a network add-on may wait for the untaint."""
RETURN_UNTOLD = Ladder(
    (
        ("fenced guest off", recover.fenced_guest_off),
        ("booted again", recover.booted_anew),
        ("heard for long", recover.heard_for_long),
        *RETURN.rungs[5:],
    ),
    recover.unfence,
)
"""The same, for a fenced node that is no guest any more: deleted, or built again elsewhere."""
TAKE_BACK = acting(
    Act.UNDO,
    (
        ("memory is back", recover.memory_is_back),
        ("looked closely", recover.looked_closely),
        ("nothing given away", recover.nothing_given_away),
    ),
    recover.take_back,
)
"""The boot that was fenced is heard: if nothing was given away yet, the fence is lifted at once."""
STOP_OLD_MEMORY = acting(
    Act.STOP,
    (
        ("same guest", recover.same_guest),
        ("fresh", proof.fresh),
        ("nobody else's", stop.nobody_elses),
        ("power rights", consent.may_power),
        ("holder", holder),
        ("quorum", consent.quorate_without),
        ("unreserved", consent.unreserved),
        NOTES_FIRST,
        ("looked closely", proof.looked_closely),
    ),
    recover.stop_again,
)
"""A guest that came back with its old memory is stopped again at once, where the operator wants that."""

KNOWN: Rungs = (("proven", fence.proven), ("fresh", proof.fresh))
ALLOWED: Rungs = (("power rights", consent.may_power),)
"""By hand it comes first: a person is told before a node is drained for a shutdown that is refused."""
ASK = Ladder(
    (
        *ALLOWED,
        *KNOWN,
        ("running", shutdown.running),
        ("same run", shutdown.same_run),
        ("quorum", consent.quorate_without),
        ("not asked", shutdown.not_asked),
        ("settled", proof.settled),
    ),
    shutdown.ask,
)
CUT = Ladder(
    (
        *KNOWN,
        ("running", shutdown.running),
        ("same run", shutdown.same_run),
        ("nobody else's", stop.nobody_elses),
        ("power rights", consent.may_power),
        ("quorum", consent.quorate_without),
        ("hanging", shutdown.hanging),
        NOTES_FIRST,
        ("looked closely", proof.looked_closely),
    ),
    shutdown.cut,
)
CONFIRM = Ladder((("proven", fence.proven), ("unheard", fence.unheard), *PROOF), shutdown.confirmed)

UP: Rungs = (
    *ALLOWED,
    *KNOWN,
    ("startable", start.startable),
    ("unheard", fence.unheard),
    ("not started", start.not_started),
    ("settled", proof.settled),
)
POWER_ON = Ladder((("unfenced", start.unfenced), *UP, NOTES_FIRST), start.power_on)
CLEAR_AND_START = Ladder((*UP, *CLEAR.rungs), recover.clear)
"""A fenced node: what is left is cleared first, by the same proof."""
WELCOME = Ladder(
    (
        ("fresh", proof.fresh),
        ("unfenced", start.unfenced),
        ("reported", start.reported),
        ("rested", start.rested),
    ),
    start.welcome,
)


# --- which of them


Choice: TypeAlias = PausedGuest | SavedGuest | UnresponsiveGuest
Row: TypeAlias = Mapping[PowerState, Ladder | Mapping[Choice, Ladder]]

_BEFORE: Row = {
    PowerState.RUNNING: {UnresponsiveGuest.REFUSE: FENCE, UnresponsiveGuest.STOP: STOP_RUNNING},
    PowerState.PAUSED: {
        PausedGuest.STOP: STOP_PAUSED,
        PausedGuest.TRUST: FENCE_TRUSTING,
        PausedGuest.REFUSE: FENCE,
    },
    PowerState.SAVED: {SavedGuest.REFUSE: FENCE, SavedGuest.DISCARD: DISCARD_SAVED},
    **dict.fromkeys((PowerState.STOPPING, PowerState.STOPPED, PowerState.ABSENT, PowerState.UNKNOWN), FENCE),
}
_AFTER: Row = {
    PowerState.PAUSED: {
        PausedGuest.STOP: RETURN,
        PausedGuest.TRUST: CLEAR_TRUSTING,
        PausedGuest.REFUSE: RETURN,
    },
    PowerState.STOPPED: CLEAR,
    **dict.fromkeys((PowerState.RUNNING, PowerState.SAVED, PowerState.STOPPING), RETURN),
    **dict.fromkeys((PowerState.ABSENT, PowerState.UNKNOWN), RETURN),
}
_DOWN: Row = {
    PowerState.STOPPED: CONFIRM,
    **dict.fromkeys(set(PowerState) - {PowerState.STOPPED}, ASK),
}
_UP: Row = {
    PowerState.RUNNING: WELCOME,
    **dict.fromkeys(set(PowerState) - {PowerState.RUNNING}, POWER_ON),
}

LADDERS: Mapping[tuple[Intent, Stage], Row] = MappingProxyType(
    {
        (Intent.WATCH, Stage.HEARD): dict.fromkeys(PowerState, SOUND),
        (Intent.WATCH, Stage.SILENT): _BEFORE,
        (Intent.WATCH, Stage.FENCED): _AFTER,
        (Intent.FENCE, Stage.SILENT): _BEFORE,
        (Intent.FENCE, Stage.FENCED): _AFTER,
        (Intent.UNFENCE, Stage.FENCED): dict.fromkeys(PowerState, RETURN),
        (Intent.SHUTDOWN, Stage.SILENT): _DOWN,
        (Intent.SHUTDOWN, Stage.ASKED): _DOWN,
        (Intent.SHUTDOWN, Stage.OVERDUE): {**_DOWN, PowerState.RUNNING: CUT},
        (Intent.START, Stage.SILENT): _UP,
        (Intent.START, Stage.FENCED): {**_AFTER, PowerState.STOPPED: CLEAR_AND_START},
    }
)
"""Intent and stage, then what the guest reads, then, where the policy leaves a choice, what it chose."""


COUNTS_AS: Mapping[tuple[Intent, Stage], PowerState] = MappingProxyType(
    {
        (Intent.WATCH, Stage.SILENT): PowerState.PAUSED,
        (Intent.FENCE, Stage.SILENT): PowerState.PAUSED,
        (Intent.SHUTDOWN, Stage.OVERDUE): PowerState.RUNNING,
    }
)
"""As what a VM counts that has powered itself off, and whose process is left: that is ended likewise (M1)."""

USUAL: Mapping[Intent, Ladder] = MappingProxyType(
    {
        Intent.WATCH: FENCE,
        Intent.FENCE: FENCE,
        Intent.UNFENCE: RETURN,
        Intent.SHUTDOWN: ASK,
        Intent.START: POWER_ON,
    }
)
"""The ladder if nothing is known of the guest."""


def ladder_for(subject: Subject, policy: Policy) -> Ladder:
    """Find the ladder that a node has to climb."""
    starts = subject.seen.intent is Intent.START and subject.evidence.doubt is not None
    state = PowerState.STOPPED if subject.evidence.gone or starts else subject.power_state
    rows = subject.seen.intent, stage_of(subject, policy)
    if state is PowerState.STOPPING and subject.evidence.powered_off:
        state = COUNTS_AS.get(rows, state)
    found = LADDERS[rows][state]
    return found if isinstance(found, Ladder) else found[_chosen(subject, policy, state)]


def _chosen(subject: Subject, policy: Policy, state: PowerState) -> Choice:
    """Say what the policy, or the person at the keyboard, has chosen for a guest in this state."""
    if state is PowerState.PAUSED:
        return policy.paused_guest
    if state is PowerState.SAVED:
        return policy.saved_guest
    if subject.seen.intent is Intent.FENCE:
        return UnresponsiveGuest.STOP if subject.seen.word.stop_guest else UnresponsiveGuest.REFUSE
    asked_to_stop = subject.seen.call.strategy is Strategy.STOP
    return UnresponsiveGuest.STOP if asked_to_stop else policy.unresponsive_guest


def stage_of(subject: Subject, policy: Policy) -> Stage:
    """Say at which stage a node is."""
    node, intent = subject.node, subject.seen.intent
    if intent is Intent.SHUTDOWN:
        if shutdown.overdue(subject):
            return Stage.OVERDUE
        return Stage.SILENT if subject.seen.asked_s is None else Stage.ASKED
    if node.fenced:
        return Stage.FENCED
    return Stage.HEARD if intent is Intent.WATCH and fence.heard(subject, policy) else Stage.SILENT


def climb(ladder: Ladder, subject: Subject, opening: tuple[Check, ...], policy: Policy) -> Decision:
    """Ask the rungs in order, and stop at the first objection.

    Args:
        ladder: Which.
        subject: Who.
        opening: What was asked before: see `begin`.
        policy: How careful to be.
    """
    checks = list(opening)
    for index, (name, rung) in enumerate(ladder.rungs):
        answer = rung(subject, policy)
        if isinstance(answer, Objection):
            rest = (later for later, _ in ladder.rungs[index + 1 :])
            return _objected(answer, name, checks, rest, subject.guest)
        checks.append(Check(name, Outcome.PASSED, answer.seen, answer.needs))
    end = ladder.ending(subject, policy)
    return Decision(end.verdict, end.reason, tuple(checks), end.actions, end.recheck_s, subject.guest)


@dataclass(frozen=True, slots=True)
class Begun:
    """A node whose guest is known.

    Attributes:
        subject: Who.
        opening: What was asked so far.
        held: What holds fencer back from some of what it does; None: nothing.
    """

    subject: Subject
    opening: tuple[Check, ...]
    held: Decision | None = None


def begin(observation: Observation, policy: Policy) -> Begun | Decision:
    """Ask what every ladder begins with: whether fencer may at all, and which guest the node is."""
    answer = consent.held(observation, policy)
    held = None
    if isinstance(answer, Objection):
        held = _objected(answer, "wanted", [], _rest("bound", observation), None)
        if not any(allows(answer.reason, act) for act in Act if act is not Act.REMEMBER):
            return held
    checks = [Check("wanted", Outcome.PASSED, answer.seen)]
    found = identity.bound(observation)
    if isinstance(found, Objection):
        begun = observation.node.fenced or observation.node.cordon is not None
        return held if held and not begun else _objected(found, "bound", checks, _rest("", observation), None)
    subject, seen = found
    ladder = ladder_for(subject, policy)
    if ladder.act is Act.TAINT and _ended_by_fencer(observation, subject):
        held = None  # a window finishes what is begun, and that fence began with fencer's own stop
    if held is not None and not leaves_room(held, ladder):
        return held
    return Begun(subject, (*checks, Check("bound", Outcome.PASSED, seen)), held)


def _ended_by_fencer(observation: Observation, subject: Subject) -> bool:
    """Whether an agent has stopped this guest to fence its node: the claim there is of this incident."""
    return bool(observation.incident) and subject.node.claim == observation.incident and subject.evidence.gone


def leaves_room(held: Decision, ladder: Ladder) -> bool:
    """Whether what holds fencer back leaves room for what a ladder ends in."""
    return ladder.act is not None and allows(held.reason, ladder.act)


def _rest(first: str, observation: Observation) -> tuple[str, ...]:
    """Name the checks that are not asked any more, of the most likely ladder."""
    names = (name for name, _ in USUAL[observation.intent].rungs)
    return (first, *names) if first else tuple(names)


def _objected(
    answer: Objection, name: str, before: list[Check], rest: Iterable[str], guest: GuestRef | None
) -> Decision:
    failed = Check(name, Outcome.FAILED, answer.seen, answer.needs)
    checks = (*before, failed, *map(_not_asked, rest))
    return Decision(answer.verdict, answer.reason, checks, answer.actions, answer.recheck_s, guest)


@cache
def _not_asked(name: str) -> Check:
    """One object for all nodes: most checks of a big fleet are these."""
    return Check(name, Outcome.NOT_ASKED)
