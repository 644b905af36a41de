"""Runs a part of the tests again and again: whoever fails now and then has a defect with a number."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from tests.long.junit import FAMILY, Run, Tally, read
from tests.long.site import Site


def repeat(site: Site, times: int, words: Sequence[str], tell: Callable[[str], None]) -> bool:
    """Run a part of the tests again and again, without second tries; return whether nothing failed.

    Args:
        site: Where the output and the junit files go.
        times: How often.
        words: What to tell `./dev test`: paths, and options of pytest.
        tell: Takes a line for each run, and at the end who failed how often.
    """
    tally = Tally()
    for number in range(1, times + 1):
        began_s = time.monotonic()
        run = _run(site, number, words)
        tally.add(run)
        minutes = (time.monotonic() - began_s) / 60
        tell(
            f"run {number} of {times}: {run.tests_count} tests, {len(run.failures)} failed, {minutes:.1f} min"
        )
    for line in tally.lines():
        tell(line)
    return not tally.failures


def _run(site: Site, number: int, words: Sequence[str]) -> Run:
    file = site.folder / f"run-{number}.xml"
    variables = {"FENCER_SECOND_TRY": "0"}
    if "FENCER_REQUIRE_REAL" not in os.environ:
        variables["FENCER_REQUIRE_REAL"] = "1"
    code = site.run("./dev", "test", *words, f"--junitxml={file.absolute()}", *FAMILY, variables=variables)
    return read(file, code, site.last_line())
