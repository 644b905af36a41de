"""Tells a world by chance: ``./dev world SEED [RECIPE] [--shrink]``."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator

from fencer.core.text import count
from fencer.simulation.scenario import Scenario
from fencer.simulation.stage import AgentFactory
from tests.scenarios.judge import Kept, Verdict, judge, recipe_of, world_of
from tests.scenarios.recipes import RECIPES, real_agent
from tests.scenarios.shrink import shrink
from tests.scenarios.usual import settings_of

INTERRUPTED = 130
"""Exit code, as shells have it after Ctrl-C."""


def main(words: list[str]) -> int:
    """Tell one world. Exit code 1: something is wrong with it. 130: it was interrupted."""
    parser = _parser()
    asked = parser.parse_args(words)
    if asked.seed < 0:
        parser.error(f"seeds are counted from 0, and there is none called {asked.seed}")
    recipe = asked.recipe or recipe_of(asked.seed)
    whole = (asked.faults, asked.agents, asked.settings) == (None, None, None)
    if asked.shrink and not whole:
        parser.error("--shrink begins with the whole world: it takes no --faults, --agents or --settings")
    if asked.shrink:
        return shrunk(asked.seed, recipe)
    keep = None if whole else _kept(parser, asked, recipe)
    return _tell(judge(asked.seed, recipe, keep=keep))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("./dev world", description=__doc__)
    parser.add_argument("seed", type=int, help="0 or more")
    parser.add_argument(
        "recipe", nargs="?", choices=RECIPES, help="default: the one that belongs to the seed"
    )
    parser.add_argument("--shrink", action="store_true", help="leave out all that it goes wrong without")
    parser.add_argument("--faults", type=_numbers, help="only those faults of its script: 0,3-5 or none")
    parser.add_argument("--agents", type=int, help="only so many of its agents")
    parser.add_argument("--settings", type=_names, help="all else is set as usual: poll_s,kubelets or none")
    return parser


def _tell(verdict: Verdict) -> int:
    print(verdict.report)  # noqa: T201 - this is a command
    return 1 if verdict.wrong else 0


def shrunk(seed: int, recipe: str, agent: AgentFactory = real_agent) -> int:
    """Make a world smaller, and write each step; if that is interrupted, the smallest so far is named.

    Args:
        seed: Of the world.
        recipe: Under which it goes wrong.
        agent: Builds the agents.

    Returns:
        The exit code.
    """
    command = f"./dev world {seed} {recipe}"
    smallest = command

    def smaller_yet(kept: Kept) -> None:
        nonlocal smallest
        smallest = f"{command} {kept}"
        print(_size(kept), file=sys.stderr, flush=True)  # noqa: T201 - this is a command

    try:
        verdict = shrink(seed, recipe, agent, smaller_yet)
    except KeyboardInterrupt:
        print(f"interrupted; the smallest so far: {smallest}", flush=True)  # noqa: T201 - this is a command
        return INTERRUPTED
    if verdict.wrong:
        return _tell(verdict)
    print(f"nothing is wrong with it, so that nothing is left out; to see all of it: {command}")  # noqa: T201 - this is a command
    return 0


def _size(kept: Kept) -> str:
    """Say how much is left."""
    faults, settings = count(len(kept.faults), "fault"), count(len(kept.settings or ()), "setting")
    return f"{faults} left, {settings}, {count(kept.agents, 'agent')}"


def _kept(parser: argparse.ArgumentParser, asked: argparse.Namespace, recipe: str) -> Kept:
    """Return what is to be left of a world; whatever it does not have is refused."""
    world = world_of(asked.seed, recipe)
    for why in _unknown(asked, world, settings_of(world, RECIPES[recipe])):
        parser.error(f"the world of seed {asked.seed} has {why}")
    faults = range(len(world.script)) if asked.faults is None else asked.faults
    agents = len(world.watchers) if asked.agents is None else asked.agents
    return Kept(tuple(faults), agents, asked.settings)


def _unknown(asked: argparse.Namespace, world: Scenario, names: tuple[str, ...]) -> Iterator[str]:
    """Say what a world has, where something else was asked for."""
    last, most = len(world.script) - 1, len(world.watchers)
    agents = most if asked.agents is None else asked.agents
    if not {*(asked.faults or ())} <= {*range(last + 1)} or not 1 <= agents <= most:
        yield f"faults 0 to {last}, and 1 to {most} agents"
    unknown = sorted({*(asked.settings or ())} - {*names})
    if unknown:
        yield f"{', '.join(unknown)} as usual; what it sets otherwise: {', '.join(names) or 'nothing'}"


def _names(text: str) -> tuple[str, ...]:
    return () if text == "none" else tuple(text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    """Return which numbers are asked for, like 0,3-5."""
    try:
        ends = [[int(end) for end in part.split("-", 1)] for part in text.split(",") if text != "none"]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: give numbers, like 0,3-5, or none") from None
    return tuple(number for first, *last in ends for number in range(first, (last or [first])[0] + 1))


if __name__ == "__main__":
    logging.disable()  # what agents log is part of no story
    sys.exit(main(sys.argv[1:]))
