"""Plays many worlds by chance on all processors: ``./dev worlds 0-99999``.

Prints a table, and each seed with which something is wrong, with the command that tells it. Exit code 1:
there is one; 130: it was interrupted.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context

from fencer.core.model import Reason
from tests.scenarios.judge import Verdict, judge, recipe_of
from tests.scenarios.recipes import RECIPES
from tests.support import amounts

PROGRESS = 200
"""After so many worlds it tells how far it is."""
ENOUGH = 1000
"""Fewer worlds than these say nothing by the reasons that were given in none of them."""
INTERRUPTED = 130
"""Exit code, as shells have it after Ctrl-C."""
MOST = 10_000_000
"""More than anybody waits for: whoever asks for more has mistyped it."""


@dataclass
class Played:
    """How some worlds went.

    Attributes:
        counts: By recipe and what was counted.
        wrong: Seed → what is wrong with it.
        reasons: Of decisions about nodes, each that was given in any of them.
        typed: Commands that were typed, by their verb and whether they did what they were asked for.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: dict[int, str] = field(default_factory=dict)
    reasons: set[str] = field(default_factory=set)
    typed: Counter[tuple[str, bool]] = field(default_factory=Counter)

    def note(self, seed: int, verdict: Verdict) -> None:
        """Take in how one went."""
        recipe = recipe_of(seed)
        self.counts[recipe, "worlds"] += 1
        self.counts[recipe, "faults"] += verdict.script
        for what in ("fenced", "lifted", "revenant", "overtaken"):
            self.counts[recipe, what] += getattr(verdict, what)
        self.reasons |= verdict.reasons
        self.typed.update(verdict.typed)
        if verdict.wrong:
            self.counts[recipe, "wrong"] += 1
            more = len(verdict.wrong) - 1
            self.wrong[seed] = verdict.wrong[0] + (f" (and {more} more)" if more else "")

    def add(self, other: Played) -> None:
        """Take in how others went."""
        self.counts += other.counts
        self.wrong |= other.wrong
        self.reasons |= other.reasons
        self.typed += other.typed


def play(seeds: Iterable[int], play_one: Callable[[int], Verdict] = judge) -> Played:
    """Play some worlds. A world that cannot be played to its end is wrong, too."""
    played = Played()
    for seed in seeds:
        try:
            played.note(seed, play_one(seed))
        except Exception as error:  # noqa: BLE001 - a bug is a finding, and the other worlds are to be played
            played.counts[recipe_of(seed), "wrong"] += 1
            played.wrong[seed] = f"{type(error).__name__}: {error}"
    return played


def _play_one(seed: int) -> Played:
    """Play one world, so that it is told as soon as it is over."""
    return play([seed])


def table(played: Played) -> Iterator[str]:
    """Write what was counted, a row a recipe."""
    columns = ("worlds", "faults", "fenced", "lifted", "revenant", "overtaken", "wrong")
    yield f"| recipe | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    recipes = list(dict.fromkeys(recipe for recipe, _ in played.counts))
    for recipe in sorted(recipes):
        yield f"| {recipe} | {' | '.join(f'{played.counts[recipe, what]:,}' for what in columns)} |"
    sums = (sum(played.counts[recipe, what] for recipe in recipes) for what in columns)
    yield f"| all | {' | '.join(f'{count:,}' for count in sums)} |"
    verbs = sorted({verb for verb, _ in played.typed})
    tally = {verb: (played.typed[verb, True], played.typed[verb, False]) for verb in verbs}
    done = (f"{verb} {good:,} of {good + bad:,}" for verb, (good, bad) in tally.items())
    yield f"commands that did what they were asked for: {', '.join(done)}"
    never = ", ".join(sorted(set(Reason) - played.reasons))
    enough = sum(played.counts[recipe, "worlds"] for recipe in recipes) >= ENOUGH
    missing = f"; never: {never or 'none'}" if enough else ""
    yield f"reasons of decisions: {len(played.reasons)} of {len(Reason)}{missing}"


def main(words: list[str]) -> int:
    """Play them. Exit code 1: something is wrong with one. 130: not all were played."""
    parser = argparse.ArgumentParser("./dev worlds", description=__doc__)
    parser.add_argument("seeds", type=amounts.asked, help="like 0-99999")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N")
    asked = parser.parse_args(words)
    if asked.seeds.stop - asked.seeds.start > MOST or asked.processes < 1:
        parser.error(f"{MOST:,} worlds at most, on 1 process at least")
    began_s, played, interrupted = time.monotonic(), Played(), True
    with suppress(KeyboardInterrupt), get_context("spawn").Pool(asked.processes, _begin) as pool:
        tell(f"{len(asked.seeds):,} worlds, {asked.processes} at a time")
        for number, part in enumerate(pool.imap_unordered(_play_one, asked.seeds), 1):
            played.add(part)
            for seed, what in part.wrong.items():
                tell(f"seed {seed}, recipe {recipe_of(seed)}: {what}")
            if number % PROGRESS == 0 or number == len(asked.seeds):
                tell(f"{number:,} worlds, {(time.monotonic() - began_s) / 60:.1f} minutes")
        interrupted = False
    for line in table(played):
        tell(line)
    if played.wrong:
        first = min(played.wrong)
        tell(f"To see one: ./dev world {first} {recipe_of(first)} --shrink")
    if interrupted:
        told = sum(played.counts[recipe, "worlds"] for recipe in RECIPES)
        tell(f"interrupted: of {len(asked.seeds):,} worlds only these {told:,} were played")
        return INTERRUPTED
    return 1 if played.wrong else 0


def _begin() -> None:
    """Ctrl-C ends the parent, which then ends the others, and tells what was played until then.

    What agents log is part of no table.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable()


def tell(text: str) -> None:
    """Tell the person who waits."""
    print(text, flush=True)  # noqa: T201 - this is a command


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
