"""Tells an incident by chance: ``uv run python -m tests.scenarios.replay SEED [RECIPE]``."""

from __future__ import annotations

import argparse
import sys

from tests.scenarios.judge import judge, recipe_of
from tests.scenarios.recipes import RECIPES


def main(words: list[str]) -> int:
    """Tell one incident. Exit code 1: something is wrong with it."""
    parser = argparse.ArgumentParser("python -m tests.scenarios.replay", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument(
        "recipe", nargs="?", choices=RECIPES, help="default: the one that belongs to the seed"
    )
    asked = parser.parse_args(words)
    verdict = judge(asked.seed, asked.recipe or recipe_of(asked.seed))
    print(verdict.report)  # noqa: T201 - this is a command
    return 1 if verdict.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
