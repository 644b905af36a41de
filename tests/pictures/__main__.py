"""Makes the pictures of the documentation, or says which of them differ from what would be made now.

    ./dev pictures [--check] [NAME…]

Those that are drawn need nothing but this checkout. Those of pages need Chromium; without it they are named,
and left as they are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from tests.pictures import demo, ladder, measured, overview, screens
from tests.pictures.paper import ROOT
from tests.support.chromium import MISSING, found

FOLDER = ROOT / "docs"
DRAWN: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "overview": {"overview.svg": overview.draw},
    "ladder": {"ladder.svg": ladder.draw},
    "demo": {"demo.svg": demo.draw, "demo-still.svg": partial(demo.draw, still=True)},
    "growth": {"growth.svg": measured.growth},
    "failover": {"failover.svg": measured.slow_and_quick},
}
"""By name: the files of a picture, and what draws each."""
NAMES = (*DRAWN, *screens.TEXTS)


def differing(names: Iterable[str], folder: Path = FOLDER) -> list[str]:
    """Return the files that are not what would be made now, each with the command that makes it.

    Args:
        names: Of pictures.
        folder: Where they lie.
    """
    told = []
    for name in names:
        if name in DRAWN:
            made = {file: draw() for file, draw in DRAWN[name].items()}
            off = [file for file, text in made.items() if _kept(folder / file) != text]
        else:
            current = screens.known().get(name) == screens.digest(name)
            off = [file for file in screens.files(name) if not current or not (folder / file).exists()]
        told += [f"docs/{file} differs from what is drawn now: ./dev pictures {name}" for file in off]
    return told


def _kept(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def make(names: Iterable[str], folder: Path = FOLDER) -> list[str]:
    """Make pictures; return what was left out, and why.

    Args:
        names: Of pictures.
        folder: Where they are to lie.
    """
    names = tuple(names)
    for name in names:
        for file, draw in DRAWN.get(name, {}).items():
            (folder / file).write_text(draw(), "utf-8")
    pages = [name for name in names if name in screens.TEXTS]
    if pages and found() is None:
        return [f"docs/{file} was not made: {MISSING}" for name in pages for file in screens.files(name)]
    if pages:
        screens.take(pages, folder)
    return []


def main(words: list[str] | None = None) -> int:
    """Do what was asked for; return the exit code: 1 if a picture differs, or was not made."""
    parser = argparse.ArgumentParser(
        prog="./dev pictures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all of them: {', '.join(NAMES)}")
    parser.add_argument("--check", action="store_true", help="make nothing: say which differ")
    asked = parser.parse_args(words)
    for name in asked.names:
        if name not in NAMES:
            parser.error(f"{name}: no such picture; there are: {', '.join(NAMES)}")
    names = asked.names or NAMES
    told = differing(names) if asked.check else make(names)
    well = f"{', '.join(names)}: {'as they would be made now' if asked.check else 'made'}"
    sys.stdout.writelines(f"{line}\n" for line in told or [well])
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
