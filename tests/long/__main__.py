"""The long run: what is too much for every change.

./dev long                      all steps, one after the other
./dev long --list               their names
./dev long STEP…                some of them
./dev long --repeat N PATH…     a part of the tests N times, without second tries; options of pytest after --
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from tests.long.repeat import repeat
from tests.long.site import CHECKOUT, Site
from tests.long.step import Ended, LeftOut, Outcome, Step, StepFailed, table
from tests.long.steps import STEPS


def main(words: Sequence[str]) -> int:
    """Run what the words ask for. Exit code 1: something failed; 130: it was interrupted."""
    asked = _parse(words)
    if asked.list:
        width = max(map(len, STEPS))
        say("\n".join(f"{step.name:<{width}}  {step.what}" for step in STEPS.values()))
        return 0
    asked.folder.mkdir(parents=True, exist_ok=True)
    with (asked.folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say(f"another `./dev long` is at work in {asked.folder}: wait for it, or take another --folder")
            return 1
        return _do(asked)


def _do(asked: argparse.Namespace) -> int:
    """Run what was asked for. Exit code 1: something failed; 130: it was interrupted."""
    if asked.repeat is not None:
        site = Site(asked.folder, "repeat", asked.seed)
        say(f"output: {site.log}")
        return 0 if repeat(site, asked.repeat, asked.what, say) else 1
    ended: list[Ended] = []
    for name in asked.what or STEPS:
        ended.append(run(STEPS[name], asked.folder, asked.seed))
        if ended[-1].outcome is Outcome.INTERRUPTED:
            break
    told = f"{table(ended)}\nseed {asked.seed}; all output: {asked.folder}"
    (asked.folder / "table.txt").write_text(f"{told}\n")
    say(f"\n{told}")
    if ended[-1].outcome is Outcome.INTERRUPTED:
        return 130
    # Whoever names a step, or requires all that is real, is not content with less.
    wanted = {Outcome.FAILED, Outcome.LEFT_OUT} if asked.what or _required() else {Outcome.FAILED}
    return 1 if any(step.outcome in wanted for step in ended) else 0


def run(step: Step, folder: Path, seed: int) -> Ended:
    """Run one step, whatever comes of it."""
    site = Site(folder, step.name, seed)
    say(f"{step.name}: {step.what}; output: {site.log}")
    began_s = time.monotonic()
    try:
        outcome, note = Outcome.PASSED, step.run(site)
    except (StepFailed, OSError) as failed:
        outcome, note = Outcome.FAILED, str(failed)
    except LeftOut as why:
        outcome, note = Outcome.LEFT_OUT, str(why)
    except KeyboardInterrupt:
        outcome, note = Outcome.INTERRUPTED, "nothing is shown by it, nor by what was to come after it"
    say(f"{step.name}: {outcome.value}: {note}")
    return Ended(step.name, outcome, note, (time.monotonic() - began_s) / 60)


def say(text: str) -> None:
    """Tell the person who waits."""
    print(text, flush=True)  # noqa: T201 - this is a command


def _required() -> bool:
    return os.environ.get("FENCER_REQUIRE_REAL") == "1"


def _times(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least once, not {number} times")
    return number


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "./dev long", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what", nargs="*", metavar="STEP", help="or, with --repeat, what to tell `./dev test`"
    )
    parser.add_argument("--list", action="store_true", help="name the steps")
    parser.add_argument("--repeat", type=_times, metavar="N", help="run a part of the tests N times")
    parser.add_argument(
        "--seed",
        type=int,
        default=date.today().toordinal(),  # noqa: DTZ011 - other numbers each day, wherever
        help="what is drawn by chance is drawn by this; default: of the day",
    )
    parser.add_argument(
        "--folder", type=Path, default=CHECKOUT / ".long", help="where all output goes; default: .long"
    )
    asked = parser.parse_args(words)
    if asked.repeat and not asked.what:
        parser.error("--repeat: which part? For example: --repeat 10 tests/e2e")
    unknown = [] if asked.repeat else [name for name in asked.what if name not in STEPS]
    if unknown:
        parser.error(f"no step {', '.join(unknown)}; there are: {', '.join(STEPS)}")
    return asked


if __name__ == "__main__":
    # As Ctrl-C does: what was started ends with us.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    sys.exit(main(sys.argv[1:]))
