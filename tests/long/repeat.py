"""Runs a part of the tests again and again: whoever fails now and then has a defect with a number."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tests.long.junit import FAMILY, Run, Tally, read
from tests.long.site import Site, required


def repeat(site: Site, times: int, words: Sequence[str], tell: Callable[[str], None]) -> bool:
    """Run a part of the tests again and again, without second tries; return whether nothing failed.

    Args:
        site: Where the output and the junit files go.
        times: How often.
        words: What to tell `./dev test`: paths, and options of pytest.
        tell: Takes a line for each run and failure, and at the end, however it ends, who failed how often.
    """
    tally = Tally()
    try:
        for number in range(1, times + 1):
            _count(site, number, times, words, tally, tell)
    finally:
        for line in tally.lines():
            tell(line)
    return not tally.failures


def _count(
    site: Site, number: int, times: int, words: Sequence[str], tally: Tally, tell: Callable[[str], None]
) -> None:
    began_s = time.monotonic()
    run = _run(site, number, words)
    tally.add(run)
    minutes = (time.monotonic() - began_s) / 60
    tell(
        f"run {number} of {times}: {run.tests_count} tests, {len(run.failures)} failed, "
        f"{run.left_out_count} left out, {minutes:.1f} min"
    )
    for test in run.failures:
        tell(f"    {test}")


def _run(site: Site, number: int, words: Sequence[str]) -> Run:
    file = site.folder / f"run-{number}.xml"
    words = (*words, f"--junitxml={file.absolute()}", *FAMILY)
    code = site.run("./dev", "test", *words, variables={**required(), "FENCER_SECOND_TRY": "0"})
    return read(file, code, site.last_line())
