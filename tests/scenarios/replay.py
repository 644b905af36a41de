"""Tells a world by chance: ``./dev world SEED [RECIPE] [--shrink]``."""

from __future__ import annotations

import argparse
import logging
import sys

from tests.scenarios.judge import Kept, judge, recipe_of, settings_of, world_of
from tests.scenarios.recipes import RECIPES
from tests.scenarios.shrink import shrink


def main(words: list[str]) -> int:
    """Tell one world. Exit code 1: something is wrong with it."""
    parser = argparse.ArgumentParser("./dev world", description=__doc__)
    parser.add_argument("seed", type=int, help="0 or more")
    parser.add_argument(
        "recipe", nargs="?", choices=RECIPES, help="default: the one that belongs to the seed"
    )
    parser.add_argument("--shrink", action="store_true", help="leave out all that it goes wrong without")
    parser.add_argument("--faults", type=_numbers, help="only those faults of its script: 0,3,4 or none")
    parser.add_argument("--agents", type=int, help="only so many of its agents")
    parser.add_argument("--settings", type=_names, help="all else is set as usual: poll_s,kubelets or none")
    asked = parser.parse_args(words)
    if asked.seed < 0:
        parser.error(f"seeds are counted from 0, and there is none called {asked.seed}")
    recipe = asked.recipe or recipe_of(asked.seed)
    kept = (asked.faults, asked.agents, asked.settings)
    if asked.shrink and kept != (None, None, None):
        parser.error("--shrink begins with the whole world: it takes no --faults, --agents or --settings")
    if asked.shrink:
        verdict = shrink(asked.seed, recipe)
        if not verdict.wrong:
            told = f"./dev world {asked.seed} {recipe}"
            print(f"nothing is wrong with it, so that nothing is left out; to see all of it: {told}")  # noqa: T201 - this is a command
            return 0
    elif kept == (None, None, None):
        verdict = judge(asked.seed, recipe)
    else:
        world = world_of(asked.seed, recipe)
        last, most = len(world.script) - 1, len(world.watchers)
        faults = range(last + 1) if asked.faults is None else asked.faults
        agents = most if asked.agents is None else asked.agents
        if not {*faults} <= {*range(last + 1)} or not 1 <= agents <= most:
            parser.error(f"the world of seed {asked.seed} has faults 0 to {last}, and 1 to {most} agents")
        unknown = {*(asked.settings or ())} - {*settings_of(world, RECIPES[recipe])}
        if unknown:
            parser.error(f"the world of seed {asked.seed} has {', '.join(sorted(unknown))} as usual")
        verdict = judge(asked.seed, recipe, keep=Kept(tuple(faults), agents, asked.settings))
    print(verdict.report)  # noqa: T201 - this is a command
    return 1 if verdict.wrong else 0


def _names(text: str) -> tuple[str, ...]:
    return () if text == "none" else tuple(text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return () if text == "none" else tuple(int(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: give numbers, like 0,3,4, or none") from None


if __name__ == "__main__":
    logging.disable()  # what agents log is part of no story
    sys.exit(main(sys.argv[1:]))
