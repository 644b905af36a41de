"""Puts faults into parts of fencer, one at a time: its tests must find each, or a list say why nobody can.

./dev mutants core                     a part: all modules that hold its rules
./dev mutants fencer/core/fence.py …   some modules
./dev mutants fencer/core/fence.py --place silent   one function, class or table of them
./dev mutants --quick core             what is in functions, a tenth of a second each
./dev mutants --list core              name the faults, and try none
./dev mutants core evicting --write    write the numbers into docs/safety.md
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.long.mutants import page
from tests.long.mutants.explained import LIST, outdated, read, unexplained
from tests.long.mutants.faults import Fault, faults_in
from tests.long.mutants.runner import AlreadyFailing, Runner

ROOT = Path(__file__).parents[3]
EXAMPLES = "25"
"""Of each property: what is found by luck deserves a test of its own."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of fencer whose tests are tried.

    Attributes:
        folder: All modules in it, and in folders below.
        tests: Paths for pytest, and its options.
        without: Names of modules that hold no rules, but words.
    """

    folder: str
    tests: tuple[str, ...]
    without: frozenset[str] = frozenset()

    def modules(self) -> list[str]:
        """Return the paths of all modules that are tried."""
        paths = sorted((ROOT / self.folder).rglob("*.py"))
        return [str(path.relative_to(ROOT)) for path in paths if path.stem not in {"__init__", *self.without}]


_WAITING = {"clock", "footprint", "hookserver", "systemd", "watch", "workers", "world"}
"""When and where calls are made: what they are told is not for them to judge. Their tests take real time."""

_FOR_PEOPLE = {"notebook", "onlooker"}
"""An agent that only observes, and a command that looks once, never act."""

_IN_ORDER = {"campaign", "drain", "hook", "turns"}
"""In which order a person's wish is carried out. What cannot be taken back is judged elsewhere in each case:
a power-off, a start or a fence by core, in `Agent.step`; evictions by `evicting` and the API's budgets."""

_ALL_WORDS = frozenset({"headlines", "nodes", "reasons", "reports", "steps", "ways_out"})
"""Of wording; what would follow is found out before it is told."""

PARTS: Mapping[str, Part] = {
    "core": Part(
        "fencer/core",
        # What is drawn is no rule. A few things stand in core that only others ask for.
        (
            *("tests/core", "tests/frozen", "tests/runtime/test_late.py", "tests/wording/test_headlines.py"),
            *("-k", "not test_what_is_drawn_leads_to_every_action"),
        ),
        frozenset({"text"}),
    ),
    "evicting": Part("fencer/evicting", ("tests/evicting",)),
    "wording": Part("fencer/wording", ("tests/wording",), _ALL_WORDS),
    "planned": Part("fencer/planned", ("tests/planned",), frozenset(_IN_ORDER)),
    "runtime": Part(
        "fencer/runtime",
        # Stories, told or drawn by chance, take ten times as long, and find little that these do not.
        ("tests/runtime", "--deselect", "tests/runtime/test_bounds.py"),
        frozenset({*_WAITING, *_FOR_PEOPLE}),
    ),
}


def main(words: Sequence[str]) -> int:
    """Try what the words ask for. Exit code 1: a fault is neither found nor explained."""
    asked = _parse(words)
    began_s = time.monotonic()
    entries, survivors, tried, old, seen = read(), [], [], [], 0
    for part in PARTS.values():
        modules = [path for path in asked.modules if path.startswith(f"{part.folder}/")]
        faults = [fault for path in modules for fault in faults_in(ROOT, path)]
        faults = [fault for fault in faults if asked.place is None or asked.place in fault.place.split(".")]
        faults = [fault for fault in faults if fault.function or not asked.quick]
        seen += len(faults)
        if asked.list:
            sys.stdout.write("".join(f"{fault}\n" for fault in faults))
        if not faults or asked.list:
            continue
        tests = asked.tests or part.tests
        say(f"{len(faults)} faults in {part.folder}; first without any: {' '.join(tests)}\n")
        try:
            left = Runner(ROOT, tests, asked.jobs, _progress).survivors(faults, quick=asked.quick)
        except AlreadyFailing as failed:
            say(f"\n{failed}: {' '.join(tests)}\n")
            return 1
        survivors += left
        tried += faults
        about = [entry for entry in entries if entry.path in modules and asked.place in {None, entry.place}]
        old += [] if asked.quick else outdated(left, about)
    if asked.place is not None and not seen:
        say(f"no fault in a place called {asked.place}: name a function, class or table of these modules\n")
        return 2
    if asked.list:
        return 0
    left = unexplained(survivors, entries)
    say("".join(f"\n{fault}" for fault in left))
    say("".join(f"\nin {LIST.name}, but found, or not there any more: {entry}" for entry in old))
    say(f"\n{table(tried, survivors, left)}\n{(time.monotonic() - began_s) / 60:.1f} minutes\n")
    say(f"{len(tried)} faults: {len(tried) - len(survivors)} found, {len(survivors) - len(left)} explained, ")
    say(f"{len(left)} neither; {len(old)} explained in vain\n")
    if asked.write:
        write(tried, survivors, left)
    return 1 if left or old else 0


def write(tried: Iterable[Fault], survivors: Iterable[Fault], left: Iterable[Fault]) -> None:
    """Write the numbers of the modules that were tried into the table of `docs/safety.md`."""
    tried_of, survived, neither = (
        Counter(fault.path for fault in faults) for faults in (tried, survivors, left)
    )
    today = datetime.now(UTC).date().isoformat()
    rows = [
        page.Row(path, tried_of[path], survived[path] - neither[path], neither[path], today)
        for path in tried_of
    ]
    text = page.PAGE.read_text(encoding="utf-8")
    page.PAGE.write_text(page.with_rows(text, shown(), rows), encoding="utf-8")


def shown() -> list[str]:
    """Return the modules that `docs/safety.md` shows and that have a fault."""
    return [path for part in page.SHOWN for path in PARTS[part].modules() if faults_in(ROOT, path)]


def table(tried: Iterable[Fault], survivors: Iterable[Fault], left: Iterable[Fault]) -> str:
    """Return a line for each module: how many faults were tried, found, explained, and neither."""
    counts = [Counter(fault.path for fault in faults) for faults in (tried, survivors, left)]
    rows = [f"{'module':<32} tried found explained left"]
    for path in counts[0]:
        all_of, survived, neither = (count[path] for count in counts)
        found, explained = all_of - survived, survived - neither
        rows.append(f"{path:<32} {all_of:>5} {found:>5} {explained:>9} {neither:>4}")
    return "\n".join(rows)


def say(text: str) -> None:
    """Tell the person who waits; what the tests say goes nowhere."""
    sys.stderr.write(text)
    sys.stderr.flush()


def _progress(_fault: Fault, found: bool) -> None:
    """A question mark: not found yet; what is not in the end is told then."""
    say("." if found else "?")


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "./dev mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="+", metavar="PART|MODULE", help=f"{', '.join(PARTS)}, or paths")
    parser.add_argument("--place", help="only this function, class or table")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="other tests than the part's")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="so many trials at a time")
    parser.add_argument("--quick", action="store_true", help="load no module again: see `Runner.survivors`")
    parser.add_argument("--list", action="store_true", help="name the faults, and try none")
    parser.add_argument("--write", action="store_true", help="write the numbers into docs/safety.md")
    asked = parser.parse_args(words)
    if asked.write and (asked.place or asked.tests or asked.quick or asked.list):
        parser.error("--write is for whole modules, with all tests of their part")
    if asked.jobs < 1:
        parser.error("--jobs is 1 at least")
    if missing := [path for path in asked.tests or () if not (ROOT / path.partition("::")[0]).exists()]:
        parser.error(f"--tests: there is no {', '.join(missing)}")
    asked.modules = []
    for word in asked.what:
        if word in PARTS:
            asked.modules += PARTS[word].modules()
        elif (ROOT / word).is_file() and any(word.startswith(f"{part.folder}/") for part in PARTS.values()):
            asked.modules.append(word)
        else:
            parser.error(f"{word}: neither a part ({', '.join(PARTS)}) nor a module of one")
    return asked


if __name__ == "__main__":
    os.chdir(ROOT)
    os.environ["FENCER_EXAMPLES_AT_MOST"] = EXAMPLES
    sys.exit(main(sys.argv[1:]))
