"""Makes a world that goes wrong as small as it can be, and still wrong in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from fencer.simulation.commands import about
from fencer.simulation.faults import OF_LINKS, Fault, What
from fencer.simulation.scenario import Scenario
from fencer.simulation.stage import AgentFactory
from tests.scenarios.judge import Kept, Verdict, judge, recipe_of, world_of
from tests.scenarios.recipes import RECIPES, real_agent
from tests.scenarios.usual import settings_of

_OF_ENDPOINTS = frozenset(
    {
        *(What.LIE_STOPPED, What.MISSING, What.UNSETTLED, What.ALL_STOPPED, What.HEARSAY, What.STALE),
        *(What.LATE, What.TOO_LATE, What.HANG, What.UNREACHABLE, What.DENIED, What.POWER_DENIED),
        *(What.STOP_RAISES, What.NO_QUORUM),
    }
)
ENDS: Mapping[What, frozenset[What]] = {
    What.TRUTHFUL: _OF_ENDPOINTS,
    What.WITNESS_TRUTHFUL: frozenset({What.WITNESS_SILENT, What.WITNESS_SAYS_ON, What.WITNESS_SAYS_OFF}),
    What.API_UP: frozenset({What.API_DOWN}),
    What.API_CAUGHT_UP: frozenset({What.API_LAGS}),
    What.NIC_ON: frozenset({What.NIC_OFF}),
    What.KUBELET_START: frozenset({What.KUBELET_STOP}),
    What.HOST_ON: frozenset({What.HOST_OFF}),
    What.QMEVENTD_BACK: frozenset({What.QMEVENTD_DEAD}),
    What.HOST_JOINED: frozenset({What.HOST_CUT}),
    What.LINK_BACK: OF_LINKS - {What.LINK_BACK},
}
"""What ends what: left out alone, what it ends would last for ever, which goes wrong in another way."""


def shrink(
    seed: int,
    recipe: str = "",
    agent: AgentFactory = real_agent,
    smaller_yet: Callable[[Kept], object] = lambda _kept: None,
) -> Verdict:
    """Leave out faults, agents and settings, for as long as it still goes wrong in the same way.

    Args:
        seed: Of a world that goes wrong.
        recipe: Under which it does; empty: the one that belongs to the seed.
        agent: Builds the agents.
        smaller_yet: Called with what is left, whenever that is less.

    Returns:
        The verdict on what is left; on the whole world, where nothing is wrong with it.
    """

    def play(keep: Kept) -> Verdict:
        return judge(seed, recipe, agent, keep)

    world = world_of(seed, recipe)
    settings = settings_of(world, RECIPES[recipe or recipe_of(seed)])
    keep = Kept(tuple(range(len(world.script))), len(world.watchers), settings)
    verdict = play(keep)
    if not verdict.wrong:
        return verdict

    def still_wrong(kept: Kept) -> bool:
        sound = not endless(world.script, kept) and is_possible(world_of(seed, recipe, kept))
        return sound and play(kept).kind == verdict.kind

    while smaller := next(_smaller(keep, still_wrong), None):
        keep = smaller
        smaller_yet(keep)
    return play(keep)


def _smaller(keep: Kept, still_wrong: Callable[[Kept], bool]) -> Iterator[Kept]:
    """Yield what is left by leaving one thing out, if it still goes wrong in the same way."""
    for agents in range(1, keep.agents):
        if still_wrong(less := replace(keep, agents=agents)):
            yield less
    for number in reversed(keep.faults):
        if still_wrong(less := replace(keep, faults=tuple(one for one in keep.faults if one != number))):
            yield less
    settings = keep.settings or ()
    for left in ((), *(tuple(one for one in settings if one != name) for name in settings)):
        if settings and still_wrong(less := replace(keep, settings=left)):
            yield less


def is_possible(world: Scenario) -> bool:
    """Whether each policy of a world is one that the configuration accepts, and that suits its kubelets."""
    periods_fit = all(policy.lease_period_s >= world.renew_s for policy in world.policies)
    return periods_fit and not any(policy.violations() for policy in world.policies)


def _ends(fault: Fault, before: Fault) -> bool:
    """Whether a fault ends another one before it; a command that resumes fencing ends one that paused it."""
    if fault.words.startswith("resume"):
        return before.words.startswith("pause") and about(before.words) == about(fault.words)
    return before.what in ENDS.get(fault.what, ())


def endless(script: Sequence[Fault], kept: Kept) -> bool:
    """Whether something is left that had an end, and has none any more."""
    return any(
        _ends(fault, script[before])
        for number, fault in enumerate(script)
        if number not in kept.faults
        for before in kept.faults
        if before < number
    )
